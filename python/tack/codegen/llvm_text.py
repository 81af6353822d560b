"""Words of LLVM's language: types, constants, names, and the writer that numbers values and keeps basic blocks well formed."""

from __future__ import annotations

import math
import struct

from ..types import DType

__all__ = ["Writer", "identifier", "literal", "llvm_type", "shared_name", "suffix"]

_FLOATS = {32: "float", 64: "double"}
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def llvm_type(dtype: DType, lanes: int = 1) -> str:
    """``float``, ``<16 x float>``."""
    scalar = _FLOATS[dtype.bits] if dtype.is_float else f"i{dtype.bits}"
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def suffix(dtype: DType, lanes: int = 1) -> str:
    """How overloaded intrinsics name the type: ``f32``, ``v16f32``."""
    scalar = f"{'f' if dtype.is_float else 'i'}{dtype.bits}"
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


def literal(dtype: DType, value: object) -> str:
    """A scalar constant of the type."""
    if dtype.is_float:
        assert isinstance(value, int | float)
        number = float(value)
        if dtype.bits == 32 and math.isfinite(number):
            try:
                number = struct.unpack("<f", struct.pack("<f", number))[0]
            except OverflowError:
                number = math.copysign(math.inf, number)
        if math.isnan(number):
            return "0x7FF8000000000000"
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if dtype.bits == 1:
        return "true" if value else "false"
    assert isinstance(value, int)
    return str(int(value))


def identifier(text: str) -> str:
    """``text`` in the characters that every assembler takes; other ones as their code point."""
    return "".join(c if c in _PLAIN else f"u{ord(c):x}_" for c in text) or "v"


def shared_name(name: str, dtype: DType, lanes: int) -> str:
    """Of a function of the math library that is called."""
    return f"@tack_math_{name}_{suffix(dtype, lanes)}"


class Writer:
    """Appends instructions. ``open`` tells whether the current block still lacks its terminator; what comes after one is dropped."""

    def __init__(self) -> None:
        self.entry: list[str] = []  # of the entry block: what is computed once, in front of everything
        self.lines: list[str] = []
        self.open = True
        self._names: dict[str, int] = {"words": 1, "begin": 1, "end": 1, "alone": 1, "entry": 1}  # the parameters and the first block

    def _new(self, hint: str) -> str:
        n = self._names.get(hint, 0)
        self._names[hint] = n + 1
        return f"{hint}.{n}" if n else hint

    def op(self, hint: str, text: str) -> str:
        name = "%" + self._new(hint)
        if self.open:
            self.lines.append(f"  {name} = {text}")
        return name

    def once(self, hint: str, text: str) -> str:
        """A value of the entry block."""
        name = "%" + self._new(hint)
        self.entry.append(f"  {name} = {text}")
        return name

    def prepare(self, text: str) -> None:
        """An instruction of the entry block that has no value."""
        self.entry.append("  " + text)

    def do(self, text: str) -> None:
        if self.open:
            self.lines.append("  " + text)

    def label(self, hint: str) -> str:
        return self._new(hint)

    def start(self, label: str) -> None:
        """Begins the block ``label``; an unfinished one falls into it."""
        self.br(label)
        self.lines.append(f"{label}:")
        self.open = True

    def br(self, label: str) -> None:
        self.do(f"br label %{label}")
        self.open = False

    def switch(self, value: str, otherwise: str, cases: list[tuple[int, str]]) -> None:
        """By an i32."""
        ways = " ".join(f"i32 {k}, label %{label}" for k, label in cases)
        self.do(f"switch i32 {value}, label %{otherwise} [ {ways} ]")
        self.open = False

    def cbr(self, cond: str, then: str, orelse: str) -> None:
        self.do(f"br i1 {cond}, label %{then}, label %{orelse}")
        self.open = False
