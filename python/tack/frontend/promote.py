"""The promotion rules: what type two numbers have together. Contract: the narrowest integer type that holds both, weak numbers yield."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..types import ARRAY_DTYPES, BOOL, DType, f32, f64, i8, i16, i32, i64, u64
from .values import W_FLOAT, W_INT, W_UINT, Num, Type, Weak

__all__ = ["holds", "join", "join_all", "join_nums"]

_SIGNED: Final = {8: i8, 16: i16, 32: i32, 64: i64}


def _compute(a: Type, b: Type) -> Type | None:
    if a is b:
        return a
    if isinstance(a, Weak) and isinstance(b, Weak):
        return a if a.rank > b.rank else b
    if isinstance(a, Weak):
        a, b = b, a
    assert isinstance(a, DType)
    if isinstance(b, Weak):
        if a == BOOL:
            return b
        return W_FLOAT if b.is_float and not a.is_float else a
    if a == BOOL or b == BOOL:
        return b if a == BOOL else a
    if a.is_float or b.is_float:
        floats = [t for t in (a, b) if t.is_float]
        return f64 if f64 in floats else f32
    if a.code == b.code:
        return a if a.bits >= b.bits else b
    signed, unsigned = (a, b) if a.code == "i" else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    return _SIGNED.get(unsigned.bits * 2)


_ALL: Final[tuple[Type, ...]] = (*ARRAY_DTYPES, BOOL, W_INT, W_UINT, W_FLOAT)
_TABLE: Final[dict[str, dict[str, Type | None]]] = {a.name: {b.name: _compute(a, b) for b in _ALL} for a in _ALL}


def join(a: Type, b: Type) -> Type | None:
    """The common type, or None where promotion refuses (signed with u64).

    A strong integer with a weak float gives W_FLOAT, which the caller makes strong: it is no longer computed of weak numbers alone.
    """
    return _TABLE[a.name][b.name]


def join_nums(a: Num, b: Num, weak_float: DType) -> Type | None:
    """The common type of two numbers: as ``join``, but loop indices, shapes and lengths become u64 where they meet u64."""
    ta, tb = a.type, b.type
    if ta is tb:
        return ta
    t = _TABLE[ta.name][tb.name]
    if t is None:
        if (a.index and tb == u64) or (b.index and ta == u64):
            return u64
        return None
    if t is W_FLOAT and not (_weak(ta) and _weak(tb)):
        return weak_float
    return t


def join_all(nums: Sequence[Num], weak_float: DType) -> tuple[Type, bool] | None:
    """The common type of any number of numbers, and whether it is that of an index; None where promotion refuses.

    It depends on the set of their types alone: strong floats give the widest of them; else strong integers and a weak float the kernel's
    weak-float type; else strong integers the narrowest type that holds them all; else weak ones that of the highest rank.
    """
    types: dict[Type, bool] = {}
    for n in nums:
        types[n.type] = n.index and types.get(n.type, True)
    if len(types) == 1:
        return next(iter(types.items()))
    strong = [t for t in types if isinstance(t, DType) and t is not BOOL]
    if any(t.is_float for t in strong):
        return f64 if f64 in strong else f32, False
    if not strong:
        return max((t for t in types if isinstance(t, Weak)), key=lambda t: t.rank), False
    if W_FLOAT in types:
        return weak_float, False
    bits = max(t.bits for t in strong)
    signed = [t for t in strong if t.is_signed]
    unsigned = max((t.bits for t in strong if not t.is_signed), default=0)
    if not signed:
        return next(t for t in strong if t.bits == bits), False
    if unsigned < 64:
        return _SIGNED[max(bits, 2 * unsigned)], False
    return (u64, False) if signed == [i64] and types[i64] else None


def _weak(t: Type) -> bool:
    return t.__class__ is Weak or t == BOOL


def holds(dtype: DType, value: int) -> bool:
    """Whether an integer type can hold the value."""
    return dtype.min <= value <= dtype.max
