"""The arithmetic of kernels on Python numbers: what every operation of the IR means, one obvious function each.

Integers are Python ints in their type's range, bools are bools, floats are Python floats; an f32 value is a float that f32 can hold.
Nothing here is fast: it is the meaning that code generation is compared with.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, TypeAlias

from ..types import BOOL, DType, f32

__all__ = [
    "BINARY",
    "BITS",
    "COMPARE",
    "EXACT_MATH",
    "FLOAT_CLASS",
    "UNARY",
    "Number",
    "bitcast",
    "cast",
    "fma",
    "identity",
    "round_to",
    "sample",
    "wrap",
]

Number: TypeAlias = "int | float | bool"
Binary: TypeAlias = "Callable[[Number, Number, DType], Number]"
Unary: TypeAlias = "Callable[[Number, DType], Number]"

_PRECISION: Final = {32: 24, 64: 53}  # bits of the significand
_LEAST: Final = {32: -149, 64: -1074}  # exponent of the smallest subnormal
_LARGEST: Final = {32: 128, 64: 1024}  # 2 to this is the first power out of range
_INT_OF_BITS: Final = {8: "b", 16: "h", 32: "i", 64: "q"}


# --- representation ---------------------------------------------------------------------------------------------------------------


def wrap(value: int, dtype: DType) -> int:
    """``value`` modulo 2^N, in the range of the integer type."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.is_signed and value > dtype.max else value


def round_to(value: float, dtype: DType) -> float:
    """A float rounded once to the float type (to nearest, ties to even, beyond the range to infinity)."""
    return value if dtype.bits == 64 else ctypes.c_float(value).value


def _round_exact(value: Fraction, dtype: DType) -> float:
    """An exact number rounded once to the float type. Zero gives +0."""
    if value == 0:
        return 0.0
    sign = 1.0 if value > 0 else -1.0
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1  # now 2^exponent <= magnitude < 2^(exponent + 1)
    quantum = max(exponent - _PRECISION[dtype.bits] + 1, _LEAST[dtype.bits])
    units = round(magnitude / Fraction(2) ** quantum)  # Fraction's round is half to even
    if quantum >= _LARGEST[dtype.bits] or units >= 1 << (_LARGEST[dtype.bits] - quantum):
        return sign * math.inf
    return sign * math.ldexp(units, quantum)


def cast(value: Number, dtype: DType) -> Number:
    """A kernel's cast: ints wrap; floats truncate and saturate, NaN gives 0; to bool: not equal to 0; to a float: rounded once."""
    if dtype == BOOL:
        return value != 0
    if dtype.is_float:
        return round_to(value, dtype) if isinstance(value, float) else _round_exact(Fraction(value), dtype)
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        if math.isinf(value):
            return dtype.max if value > 0 else dtype.min
        return min(max(math.trunc(value), dtype.min), dtype.max)
    return wrap(int(value), dtype)


def _pack_code(dtype: DType) -> str:
    if dtype.is_float:
        return "f" if dtype.bits == 32 else "d"
    code = _INT_OF_BITS[dtype.bits]
    return code if dtype.is_signed else code.upper()


def bitcast(value: Number, source: DType, dtype: DType) -> Number:
    """The same bits read as another type of the same size."""
    if source == dtype:
        return value
    (result,) = struct.unpack("<" + _pack_code(dtype), struct.pack("<" + _pack_code(source), value))
    return result  # type: ignore[no-any-return]


def identity(op: str, dtype: DType) -> Number:
    """The value that changes nothing when combined by a reduction's operator: -0.0 for a float add, NaN for float min and max."""
    if op == "add":
        return -0.0 if dtype.is_float else 0
    if op == "mul":
        return 1.0 if dtype.is_float else 1
    if op in ("min", "max"):
        if dtype.is_float:
            return math.nan
        return dtype.max if op == "min" else dtype.min
    if op == "and":
        return True if dtype == BOOL else wrap(-1, dtype)
    if op in ("or", "xor"):
        return False if dtype == BOOL else 0
    raise ValueError(f"no reduction operator {op!r}")


# --- + - * / and their like -------------------------------------------------------------------------------------------------------
# An f32 operation is done in f64 and rounded: for + - * / and sqrt that equals one rounding, since 53 >= 2 * 24 + 2.


def _add(a: Number, b: Number, t: DType) -> Number:
    return round_to(float(a) + float(b), t) if t.is_float else wrap(int(a) + int(b), t)


def _sub(a: Number, b: Number, t: DType) -> Number:
    return round_to(float(a) - float(b), t) if t.is_float else wrap(int(a) - int(b), t)


def _mul(a: Number, b: Number, t: DType) -> Number:
    return round_to(float(a) * float(b), t) if t.is_float else wrap(int(a) * int(b), t)


def _divide(a: float, b: float, t: DType) -> float:
    if b == 0.0:
        return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return round_to(a / b, t)


def _div(a: Number, b: Number, t: DType) -> Number:
    return _divide(float(a), float(b), t)


def fmod(a: float, b: float) -> float:
    """C's fmod: the exact remainder of the truncated quotient, with the sign of ``a``."""
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0.0:
        return math.nan
    return math.fmod(a, b)


def _float_divmod(a: float, b: float, t: DType) -> tuple[float, float]:
    """numpy's floor_divide and remainder of b != 0, each step rounded to the type."""
    mod = fmod(a, b)
    quotient = _divide(round_to(a - mod, t), b, t)
    if mod != 0.0:  # a NaN too
        if (b < 0.0) != (mod < 0.0):
            mod = round_to(mod + b, t)
            quotient = round_to(quotient - 1.0, t)
    else:
        mod = math.copysign(0.0, b)
    if quotient != 0.0:
        floor = _floor(quotient)
        if quotient - floor > 0.5:
            floor = round_to(floor + 1.0, t)
        return floor, mod
    return math.copysign(0.0, _divide(a, b, t)), mod


def _floordiv(a: Number, b: Number, t: DType) -> Number:
    if t.is_float:
        return _divide(float(a), float(b), t) if b == 0.0 else _float_divmod(float(a), float(b), t)[0]
    return 0 if b == 0 else wrap(int(a) // int(b), t)


def _mod(a: Number, b: Number, t: DType) -> Number:
    if t.is_float:
        return fmod(float(a), float(b)) if b == 0.0 else _float_divmod(float(a), float(b), t)[1]
    return 0 if b == 0 else wrap(int(a) % int(b), t)


def _int_pow(a: Number, b: Number, t: DType) -> Number:
    """Integers only: exact modulo 2^N; a negative exponent gives 0. Floats go through the math functions."""
    return 0 if b < 0 else wrap(pow(int(a), int(b), 1 << t.bits), t)


def _shl(a: Number, b: Number, t: DType) -> Number:
    return wrap(int(a) << int(b), t) if 0 <= b < t.bits else 0


def _shr(a: Number, b: Number, t: DType) -> Number:
    return int(a) >> int(b) if 0 <= b < t.bits else (-1 if a < 0 else 0)


def _and(a: Number, b: Number, t: DType) -> Number:
    return bool(a and b) if t == BOOL else int(a) & int(b)


def _or(a: Number, b: Number, t: DType) -> Number:
    return bool(a or b) if t == BOOL else int(a) | int(b)


def _xor(a: Number, b: Number, t: DType) -> Number:
    return bool(a) != bool(b) if t == BOOL else int(a) ^ int(b)


def _min(a: Number, b: Number, t: DType) -> Number:
    return b if a != a or b < a else a


def _max(a: Number, b: Number, t: DType) -> Number:
    return b if a != a or b > a else a


BINARY: Final[dict[str, Binary]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "floordiv": _floordiv,
    "mod": _mod,
    "pow": _int_pow,
    "shl": _shl,
    "shr": _shr,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "min": _min,
    "max": _max,
}

COMPARE: Final[dict[str, Callable[[Number, Number], bool]]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _neg(a: Number, t: DType) -> Number:
    return -float(a) if t.is_float else wrap(-int(a), t)


def _abs(a: Number, t: DType) -> Number:
    return math.fabs(a) if t.is_float else wrap(abs(int(a)), t)


UNARY: Final[dict[str, Unary]] = {
    "neg": _neg,
    "abs": _abs,
    "not": lambda a, t: wrap(~int(a), t),
    "lnot": lambda a, t: not a,
}


def fma(a: float, b: float, c: float, dtype: DType) -> float:
    """a * b + c rounded once to the float type."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        product = 0.0 if math.isfinite(a) and math.isfinite(b) else a * b  # a finite product is nothing beside an infinite c
        return product + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if a == 0.0 or b == 0.0 else 0.0  # signs of zeros as in IEEE; a cancellation gives +0
    return _round_exact(exact, dtype)


# --- exact functions of floats ----------------------------------------------------------------------------------------------------


def _floor(a: float) -> float:
    return math.copysign(float(math.floor(a)), a) if math.isfinite(a) else a


def _ceil(a: float) -> float:
    return math.copysign(float(math.ceil(a)), a) if math.isfinite(a) else a


def _trunc(a: float) -> float:
    return math.copysign(float(math.trunc(a)), a) if math.isfinite(a) else a


def _rint(a: float) -> float:
    return math.copysign(float(round(a)), a) if math.isfinite(a) else a


def _sqrt(a: float) -> float:
    return a if a == 0.0 or math.isnan(a) else math.nan if a < 0.0 else math.sqrt(a)


EXACT_MATH: Final[dict[str, Callable[..., float]]] = {
    "floor": _floor,
    "ceil": _ceil,
    "trunc": _trunc,
    "round": _rint,
    "fabs": math.fabs,
    "copysign": math.copysign,
    "fmod": fmod,
    "sqrt": _sqrt,
}
"""Functions that have one right answer; the caller rounds it to the type."""

FLOAT_CLASS: Final[dict[str, Callable[[float], bool]]] = {"isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite}


# --- bit functions ----------------------------------------------------------------------------------------------------------------


def _pattern(a: Number, t: DType) -> int:
    return int(a) & ((1 << t.bits) - 1)


def _popcount(a: Number, t: DType) -> int:
    return _pattern(a, t).bit_count()


def _clz(a: Number, t: DType) -> int:
    return t.bits - _pattern(a, t).bit_length()


def _ctz(a: Number, t: DType) -> int:
    p = _pattern(a, t)
    return (p & -p).bit_length() - 1 if p else t.bits


def _rotl(a: Number, b: Number, t: DType) -> int:
    p, n = _pattern(a, t), int(b) % t.bits
    return wrap(p << n | p >> (t.bits - n), t)


def _rotr(a: Number, b: Number, t: DType) -> int:
    return _rotl(a, -int(b), t)


def _mulhi(a: Number, b: Number, t: DType) -> int:
    return (int(a) * int(b)) >> t.bits


def _add_sat(a: Number, b: Number, t: DType) -> int:
    return min(max(int(a) + int(b), t.min), t.max)


def _sub_sat(a: Number, b: Number, t: DType) -> int:
    return min(max(int(a) - int(b), t.min), t.max)


BITS: Final[dict[str, Callable[..., int]]] = {
    "popcount": _popcount,
    "clz": _clz,
    "ctz": _ctz,
    "rotl": _rotl,
    "rotr": _rotr,
    "mulhi": _mulhi,
    "add_sat": _add_sat,
    "sub_sat": _sub_sat,
}


def sample(mode: str, at: Sequence[float], shape: Sequence[int], texel: Callable[[tuple[int, ...]], float]) -> Number:
    """The operation ``sample`` at (x, y, z), without the coarse weights of hardware. ``shape`` and ``texel``'s places: z, y, x."""
    corners: list[list[tuple[int, float]]] = []  # along each axis: texels and their weights
    for t, n in zip(reversed(at), shape, strict=True):
        x = 0.0 if math.isnan(t) else t
        x = x * n - 0.5 if mode == "repeat" else x if mode == "nearest" else x - 0.5
        x = x % n if mode == "repeat" else min(max(x, 0.0), n - 1.0)
        low = math.floor(x)
        following = (low + 1) % n if mode == "repeat" else min(low + 1, n - 1)
        corners.append([(low, 1.0)] if mode == "nearest" else [(low, 1 - (x - low)), (following, x - low)])
    total = 0.0
    for (k, depth), (j, height), (i, width) in itertools.product(*corners):
        total += depth * height * width * texel((k, j, i))
    return round_to(total, f32)
