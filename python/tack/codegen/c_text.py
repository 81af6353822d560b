"""Lines of printed C: indentation, #line directives that point at the user's Python, and constants."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

from ..ir.nodes import Loc
from ..types import DType

__all__ = ["Writer", "float_literal", "quoted"]

_LONGEST_DECIMAL = 12  # characters of a float that is written as a decimal number
_INDENT = " " * 60  # code that nests deeper is not indented more
_LAST_LINE = 2_000_000_000  # what compilers take as a line's number


class Writer:
    """Appends lines. A statement that comes from another place than compilers would think gets a #line directive."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 1
        self._file = ""
        self._line = 0  # of the last statement
        self._believed = 0  # what a compiler takes the next line for

    def do(self, text: str, loc: Loc | None = None) -> None:
        """A line of code that belongs to ``loc``. What one line of the user's becomes has one directive, before it."""
        if loc is not None and loc.file and 0 < loc.line < _LAST_LINE:
            if loc.file != self._file:
                self.lines.append(f'#line {loc.line} "{quoted(loc.file)}"')
                self._believed = loc.line
            elif loc.line not in (self._line, self._believed):
                self.lines.append(f"#line {loc.line}")
                self._believed = loc.line
            self._file, self._line = loc.file, loc.line
        self.lines.append(_INDENT[: 2 * self.indent] + text)
        self._believed += 1

    def open(self, text: str, loc: Loc | None = None) -> None:
        """Begins a block."""
        self.do(text, loc)
        self.indent += 1

    def middle(self, text: str, loc: Loc | None = None) -> None:
        """Ends a block and begins the next one: ``} else {``."""
        self.indent -= 1
        self.open(text, loc)

    def close(self, text: str = "}") -> None:
        """Ends a block."""
        self.indent -= 1
        self.do(text)

    def mark(self) -> tuple[int, int]:
        """A place to which ``insert`` comes back."""
        return len(self.lines), self.indent

    def insert(self, mark: tuple[int, int], text: str) -> None:
        """A line at a marked place, before the directive of the line there."""
        at, indent = mark
        self.lines.insert(at, _INDENT[: 2 * indent] + text)


def quoted(text: str) -> str:
    """A file's name inside the quotes of a directive."""
    return "".join(f"\\{c}" if c in '\\"' else c if c.isprintable() else "?" for c in text)


def float_literal(dtype: DType, value: float) -> str:
    """A finite float, exactly: as a short decimal number that is the very value, else in hexadecimal."""
    if dtype.bits == 32:
        (value,) = struct.unpack("<f", struct.pack("<f", value))
    assert math.isfinite(value)
    suffix = "f" if dtype.bits == 32 else ""
    text = repr(value)
    if len(text) <= _LONGEST_DECIMAL and "e" not in text and Decimal(text) == Decimal(value):
        return text + suffix
    mantissa, _, exponent = value.hex().partition("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}{suffix}"
