"""The texts of what kernels report: placeholders for values, written as Python writes them. The runtime has the same in C++.

A text is one of ``str.format``: "{}" or "{:+08.3f}" for each value in order, "{{" and "}}" for braces. Of the format specifications
numbers have ``[+][0][width][.precision][type]``, with the types d x X o b of integers and e E f F g G; bools have none.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from string import Formatter
from typing import Final

from ..types import BOOL, DType

__all__ = ["MAX_VALUES", "escaped", "filled", "placeholders", "spec_fits"]

MAX_VALUES: Final = 64  # of one record
_SPEC: Final = re.compile(r"\+?0?(\d{1,2})?(\.\d{1,2})?([dxXobeEfFgG])?")


def escaped(text: str) -> str:
    """Plain text as part of a record's."""
    return text.replace("{", "{{").replace("}", "}}")


def spec_fits(spec: str, dtype: DType) -> bool:
    """Whether a value of the type can be written by a format specification."""
    if not spec:
        return True
    found = _SPEC.fullmatch(spec)
    if found is None or dtype == BOOL:
        return False
    kind = found[3]
    if kind is not None and kind in "eEfFgG":
        return True
    return found[2] is None and (kind is None or dtype.is_int)


def placeholders(text: str) -> list[str]:
    """The format specifications of a text's placeholders. Raises ValueError where it is malformed."""
    found = []
    for _, name, spec, conversion in Formatter().parse(text):
        if name is not None:
            if name or conversion:
                raise ValueError(f"a placeholder has a name or a conversion: {text!r}")
            found.append(spec or "")
    return found


def filled(text: str, values: Sequence[int | float | bool], types: Sequence[DType]) -> str:
    """The text with the values in their places."""
    return text.format(*(_Shown(v, t) for v, t in zip(values, types, strict=True)))


class _Shown:
    """A value that writes itself as one of its type: an f32 with the fewest digits that tell it from other f32s."""

    def __init__(self, value: int | float | bool, dtype: DType) -> None:
        self.value = value
        self.dtype = dtype

    def __format__(self, spec: str) -> str:
        value, dtype = self.value, self.dtype
        if spec and spec[-1] in "dxXobeEfFgG":
            return format(value, spec)
        if dtype == BOOL:
            text = str(bool(value))
        elif dtype.is_float:
            text = _shortest_f32(float(value)) if dtype.bits == 32 else repr(float(value))
        else:
            text = str(int(value))
        return _padded(text, spec) if spec else text


def _shortest_f32(value: float) -> str:
    if not math.isfinite(value):
        return repr(value)
    for digits in range(1, 10):
        text = f"{value:.{digits - 1}e}"
        near = float(text)
        if abs(near) < 3.5e38 and struct.unpack("f", struct.pack("f", near))[0] == value:
            return repr(near)
    return repr(value)


def _padded(text: str, spec: str) -> str:
    """[+][0][width] of a number's text."""
    if spec[0] == "+":
        spec = spec[1:]
        if text[0] != "-":
            text = "+" + text
    width = int(spec or "0")
    return text.zfill(width) if spec[:1] == "0" else text.rjust(width)
