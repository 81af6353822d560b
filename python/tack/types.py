"""Element types of arrays and scalars, array specs, and the layout classes. Imports nothing but the standard library."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["ARRAY_DTYPES", "BOOL", "ArraySpec", "DType", "Layout", "by_name", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


class Layout(enum.IntEnum):
    """How an array lies in memory; part of a kernel's specialization. The numbers are tack::Layout's."""

    CONTIGUOUS = 0
    INNER = 1
    GENERAL = 2


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: ``tack.f32`` and its like.

    Called on the host it makes a NumPy scalar, called in a kernel it is a cast. ``tack.f32[:, :]`` is an array type.
    """

    name: str
    code: str  # "i", "u", "f", "b"
    bits: int

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.code == "f"

    @property
    def is_int(self) -> bool:
        """Signed or unsigned integer; not bool."""
        return self.code in "iu"

    @property
    def is_signed(self) -> bool:
        return self.code == "i"

    @property
    def min(self) -> int:
        """Smallest value of an integer type."""
        return -(1 << (self.bits - 1)) if self.code == "i" else 0

    @property
    def max(self) -> int:
        """Largest value of an integer type."""
        return (1 << (self.bits - (self.code == "i"))) - 1

    def __repr__(self) -> str:
        return f"tack.{self.name}"

    def __str__(self) -> str:
        return f"tack.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name, (self.name,)

    def __call__(self, value: Any) -> Any:
        """``value`` as a NumPy scalar of this type, with a kernel cast's meaning (ints wrap; floats truncate and saturate, NaN gives 0)."""
        from .runtime.host_scalar import cast  # numpy is not imported by the compiler's own modules

        return cast(value, self)

    def __getitem__(self, dims: Any) -> ArraySpec:
        """``tack.f32[:]``, ``tack.f32[:, :]``: an array type of that rank."""
        items = dims if isinstance(dims, tuple) else (dims,)
        if not all(isinstance(d, slice) and d == slice(None) for d in items):
            raise TypeError(f"{self}[...]: write one ':' for each dimension, e.g. {self}[:, :]")
        return ArraySpec(self, len(items))


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array type, for tack.inspect and tack.compile without an array at hand."""

    dtype: DType
    rank: int
    layout: Layout = Layout.CONTIGUOUS
    read_only: bool = False


i8: Final = DType("i8", "i", 8)
u8: Final = DType("u8", "u", 8)
i16: Final = DType("i16", "i", 16)
u16: Final = DType("u16", "u", 16)
i32: Final = DType("i32", "i", 32)
u32: Final = DType("u32", "u", 32)
i64: Final = DType("i64", "i", 64)
u64: Final = DType("u64", "u", 64)
f32: Final = DType("f32", "f", 32)
f64: Final = DType("f64", "f", 64)
BOOL: Final = DType("bool", "b", 1)  # of conditions and bool scalars; no array has it

ARRAY_DTYPES: Final = (i8, u8, i16, u16, i32, u32, i64, u64, f32, f64)
_NAMES: Final = {t.name: t for t in (*ARRAY_DTYPES, BOOL)}


def by_name(name: str) -> DType:
    """The dtype called ``name``; KeyError if there is none."""
    return _NAMES[name]
