"""Element types of arrays and scalars, array specs, and the layout classes. Imports nothing but ``enum``."""

from __future__ import annotations

import enum

TYPE_CHECKING = False  # importing typing for this would cost more than this module
if TYPE_CHECKING:
    from typing import Any, Final, NoReturn

__all__ = [
    "ARRAY_DTYPES",
    "BOOL",
    "ArraySpec",
    "DType",
    "Layout",
    "by_name",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
]


class Layout(enum.IntEnum):
    """How an array lies in memory; part of a kernel's specialization. The numbers are tack::Layout's."""

    CONTIGUOUS = 0
    INNER = 1
    GENERAL = 2


class _Frozen:
    """Refuses assignment, as a frozen dataclass does; dataclasses itself would import inspect into every process."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"cannot assign to field {name!r} of {self!r}: it is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"cannot delete field {name!r} of {self!r}: it is immutable")


class DType(_Frozen):
    """An element type: ``tack.f32`` and its like.

    Called on the host it makes a NumPy scalar, called in a kernel it is a cast. ``tack.f32[:, :]`` is an array type.

    Attributes: ``name`` ("f32"), ``code`` ("i", "u", "f" or "b"), ``bits``.
    """

    __slots__ = ("_hash", "bits", "code", "name")
    __match_args__ = ("name", "code", "bits")
    name: str
    code: str
    bits: int
    _hash: int

    def __init__(self, name: str, code: str, bits: int) -> None:
        put = object.__setattr__
        put(self, "name", name)
        put(self, "code", code)
        put(self, "bits", bits)
        put(self, "_hash", hash((name, code, bits)))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, DType):
            return self.name == other.name and self.code == other.code and self.bits == other.bits
        return NotImplemented

    def __hash__(self) -> int:
        return self._hash

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


class ArraySpec(_Frozen):
    """An array type, for tack.inspect and tack.compile without an array at hand.

    Attributes: ``dtype``, ``rank``, ``layout``, ``read_only``.
    """

    __slots__ = ("dtype", "layout", "rank", "read_only")
    __match_args__ = ("dtype", "rank", "layout", "read_only")
    dtype: DType
    rank: int
    layout: Layout
    read_only: bool

    def __init__(self, dtype: DType, rank: int, layout: Layout = Layout.CONTIGUOUS, read_only: bool = False) -> None:
        put = object.__setattr__
        put(self, "dtype", dtype)
        put(self, "rank", rank)
        put(self, "layout", layout)
        put(self, "read_only", read_only)

    def _fields(self) -> tuple[DType, int, Layout, bool]:
        return self.dtype, self.rank, self.layout, self.read_only

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, ArraySpec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        dims = ", ".join(":" * self.rank) if self.rank else "()"
        return f"{self.dtype}[{dims}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return ArraySpec, self._fields()


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
