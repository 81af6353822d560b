"""What tack's functions compute when ordinary Python calls them, on Python numbers and NumPy scalars: as in kernels."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from ..intrinsics import ATOMICS, INTRINSICS, WORKGROUP
from ..types import DType, f64, i64
from .host_scalar import cast
from .host_types import NUMPY_TYPES, dtype_of

__all__ = ["call"]


def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs tack.``name`` on the host. Raises RuntimeError for what only kernels have, TypeError for arguments that are not numbers."""
    if name in WORKGROUP or name in ATOMICS or name in ("local_array", "local_array_like"):
        raise RuntimeError(
            f"tack.{name}() can only be called in a kernel (a function under @tack.kernel or @tack.func that a kernel calls)"
        )
    if kwargs:
        raise TypeError(f"tack.{name}({INTRINSICS[name].signature}) takes no keyword arguments, got {', '.join(kwargs)}")
    function, count = _FUNCTIONS[name]
    if (len(args) != count) if count >= 0 else (len(args) < -count):
        wanted = f"{count}" if count >= 0 else f"at least {-count}"
        raise TypeError(f"tack.{name}({INTRINSICS[name].signature}) takes {wanted} argument{'s' if wanted != '1' else ''}, got {len(args)}")
    if name not in ("ndrange", "sequential", "bitcast"):
        for value in args:
            _check_number(name, value)
    return function(*args)


def _check_number(name: str, value: Any) -> None:
    if not isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        cure = "call it in a kernel, or use NumPy on a.numpy()" if getattr(value, "ndim", 0) else "pass a Python number or a NumPy scalar"
        raise TypeError(f"tack.{name}() on the host takes numbers, not {type(value).__name__}: {cure}")


def _common(*values: Any) -> DType | None:
    """The dtype that NumPy scalars among ``values`` have in common; None where all are Python numbers."""
    strong = [dtype for dtype in map(dtype_of, values) if dtype is not None and dtype.code != "b"]
    if not strong:
        return None
    if all(dtype == strong[0] for dtype in strong):
        common = strong[0]
    else:
        found = dtype_of(np.result_type(*(NUMPY_TYPES[d] for d in strong)).type(0))
        common = found if found is not None else f64
    return f64 if common.is_int and any(isinstance(v, float) for v in values) else common


def _float_result(values: tuple[Any, ...], compute: Callable[..., Any]) -> Any:
    """``compute`` on f64 numbers, rounded to the floats' common type; a Python float where no float scalar is among the values."""
    common = _common(*values)
    with np.errstate(all="ignore"):
        result = float(compute(*(np.float64(v) for v in values)))
    return cast(result, common) if common is not None and common.is_float else result


def _floats(compute: Callable[..., Any], count: int) -> tuple[Callable[..., Any], int]:
    return lambda *values: _float_result(values, compute), count


def _predicate(test: Callable[[float], bool]) -> tuple[Callable[..., Any], int]:
    return lambda value: test(float(value)), 1


def _pick(better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def pick(*values: Any) -> Any:
        best = values[0]
        for value in values[1:]:
            if best != best or (value == value and better(value, best)):
                best = value
        common = _common(*values)
        if common is not None:
            return cast(best, common)
        return float(best) if any(isinstance(v, float) for v in values) else best

    return pick


def _power(x: Any, y: Any) -> Any:
    common = _common(x, y)
    if isinstance(x, (float, np.floating)) or isinstance(y, (float, np.floating)):
        return _float_result((x, y), np.power)
    dtype = dtype_of(x) or common or i64
    base, exponent = int(x), int(y)
    value = 0 if exponent < 0 else pow(base, exponent, 1 << dtype.bits)
    return _integer(value, dtype, common)


def _integer(value: int, dtype: DType, common: DType | None) -> Any:
    """``value`` wrapped to ``dtype``; a Python int where no NumPy scalar took part."""
    wrapped = cast(value, dtype)
    return wrapped if common is not None else int(wrapped)


def _absolute(x: Any) -> Any:
    dtype = dtype_of(x)
    if dtype is None or not dtype.is_int:
        return abs(x) if dtype is None or dtype.is_float else int(x)
    return cast(abs(int(x)), dtype)


def _divmod(x: Any, y: Any) -> tuple[Any, Any]:
    common = _common(x, y)
    if isinstance(x, (float, np.floating)) or isinstance(y, (float, np.floating)):
        kind = NUMPY_TYPES[common] if common is not None else np.float64
        with np.errstate(all="ignore"):
            quotient, rest = np.floor_divide(kind(x), kind(y)), np.remainder(kind(x), kind(y))
        return (quotient, rest) if common is not None else (float(quotient), float(rest))
    dtype = common or i64
    a, b = int(x), int(y)
    quotient, rest = (a // b, a % b) if b else (0, 0)
    return _integer(quotient, dtype, common), _integer(rest, dtype, common)


def _fma(a: Any, b: Any, c: Any) -> Any:
    common = _common(a, b, c)
    dtype = common if common is not None and common.is_float else f64
    x, y, z = float(a), float(b), float(c)
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        with np.errstate(all="ignore"):
            result = float(np.float64(x) * np.float64(y) + np.float64(z))
    else:
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        result = _round(exact, dtype) if exact else x * y + z  # the sum of zeros knows its sign
    return cast(result, dtype) if common is not None and common.is_float else result


def _round(exact: Fraction, dtype: DType) -> float:
    """An exact rational number rounded once to f32 or f64, half to even."""
    if dtype == f64:
        try:
            return exact.numerator / exact.denominator  # Python rounds the quotient of two ints correctly
        except OverflowError:
            return math.inf if exact > 0 else -math.inf
    approximate = abs(exact.numerator) / exact.denominator
    exponent = max(math.frexp(approximate)[1] - 24, -149)  # of the last place of an f32
    scaled = abs(exact) / (Fraction(2) ** exponent)
    whole = round(scaled)  # Fraction rounds half to even
    result = math.ldexp(whole, exponent)
    return math.copysign(result, exact)


def _bits(compute: Callable[..., int], count: int) -> tuple[Callable[..., Any], int]:
    """A function of integers: ``compute(dtype, *ints)``, with operands as they are in the dtype."""

    def run(*values: Any) -> Any:
        for value in values:
            if isinstance(value, (float, np.floating)):
                raise TypeError(f"a function of bits takes integers, not {type(value).__name__}")
        common = _common(*values)
        dtype = common if common is not None else i64
        return _integer(compute(dtype, *(int(cast(v, dtype)) for v in values)), dtype, common)

    return run, count


def _unsigned(dtype: DType, x: int) -> int:
    return x & ((1 << dtype.bits) - 1)


def _rotate_left(dtype: DType, x: int, n: int) -> int:
    n %= dtype.bits
    bits = _unsigned(dtype, x)
    return (bits << n) | (bits >> (dtype.bits - n))


def _trailing_zeros(dtype: DType, x: int) -> int:
    bits = _unsigned(dtype, x)
    return (bits & -bits).bit_length() - 1 if bits else dtype.bits


def _clamp(dtype: DType, x: int) -> int:
    return min(max(x, dtype.min), dtype.max)


def _bitcast(x: Any, dtype: Any) -> Any:
    from ..arrays import as_dtype

    target = as_dtype(dtype)
    source = dtype_of(x)
    if source is None:
        raise TypeError(
            f"tack.bitcast() on the host takes a NumPy scalar (tack.f32(x)), not {type(x).__name__}: a Python number has no size"
        )
    if source.bits != target.bits:
        raise TypeError(f"tack.bitcast() needs types of one size: {source} has {source.bits} bits, {target} has {target.bits}")
    return x.view(NUMPY_TYPES[target])


def _ndrange(*dims: Any) -> Iterator[Any]:
    if len(dims) > 4:
        raise TypeError(f"tack.ndrange() takes 1 to 4 dimensions, got {len(dims)}")
    ranges = []
    total = 1
    for dim in dims:
        start, stop = dim if isinstance(dim, tuple) else (0, dim)
        ranges.append(range(operator.index(start), operator.index(stop)))
        total *= max(0, ranges[-1].stop - ranges[-1].start)
    if total > (1 << 63) - 1:
        raise ValueError(f"tack.ndrange(): {total} iterations are more than 2^63 - 1")
    return iter(ranges[0]) if len(ranges) == 1 else itertools.product(*ranges)


def _sequential(*bounds: Any) -> range:
    numbers = [operator.index(b) for b in bounds]
    if len(numbers) == 3 and numbers[2] == 0:
        return range(0)  # as in a kernel: a step of 0 runs nothing
    return range(*numbers)


# name -> (function, number of arguments; negative: at least that many)
_FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "sqrt": _floats(np.sqrt, 1),
    "rsqrt": _floats(lambda x: 1.0 / np.sqrt(x), 1),
    "cbrt": _floats(np.cbrt, 1),
    "exp": _floats(np.exp, 1),
    "exp2": _floats(np.exp2, 1),
    "expm1": _floats(np.expm1, 1),
    "log": _floats(np.log, 1),
    "log2": _floats(np.log2, 1),
    "log10": _floats(np.log10, 1),
    "log1p": _floats(np.log1p, 1),
    "pow": (_power, 2),
    "sin": _floats(np.sin, 1),
    "cos": _floats(np.cos, 1),
    "tan": _floats(np.tan, 1),
    "asin": _floats(np.arcsin, 1),
    "acos": _floats(np.arccos, 1),
    "atan": _floats(np.arctan, 1),
    "atan2": _floats(np.arctan2, 2),
    "sinh": _floats(np.sinh, 1),
    "cosh": _floats(np.cosh, 1),
    "tanh": _floats(np.tanh, 1),
    "asinh": _floats(np.arcsinh, 1),
    "acosh": _floats(np.arccosh, 1),
    "atanh": _floats(np.arctanh, 1),
    "erf": _floats(math.erf, 1),
    "erfc": _floats(math.erfc, 1),
    "floor": _floats(np.floor, 1),
    "ceil": _floats(np.ceil, 1),
    "trunc": _floats(np.trunc, 1),
    "round": _floats(np.rint, 1),
    "fabs": _floats(np.fabs, 1),
    "abs": (_absolute, 1),
    "fmod": _floats(np.fmod, 2),
    "copysign": _floats(np.copysign, 2),
    "hypot": _floats(np.hypot, 2),
    "fma": (_fma, 3),
    "isnan": _predicate(math.isnan),
    "isinf": _predicate(math.isinf),
    "isfinite": _predicate(math.isfinite),
    "divmod": (_divmod, 2),
    "min": (_pick(operator.lt), -2),
    "max": (_pick(operator.gt), -2),
    "popcount": _bits(lambda t, x: _unsigned(t, x).bit_count(), 1),
    "clz": _bits(lambda t, x: t.bits - _unsigned(t, x).bit_length(), 1),
    "ctz": _bits(_trailing_zeros, 1),
    "rotl": _bits(_rotate_left, 2),
    "rotr": _bits(lambda t, x, n: _rotate_left(t, x, -n), 2),
    "mulhi": _bits(lambda t, x, y: (x * y) >> t.bits, 2),
    "add_sat": _bits(lambda t, x, y: _clamp(t, x + y), 2),
    "sub_sat": _bits(lambda t, x, y: _clamp(t, x - y), 2),
    "bitcast": (_bitcast, 2),
    "ndrange": (_ndrange, -1),
    "sequential": (_sequential, -1),
}
assert set(_FUNCTIONS) | WORKGROUP | ATOMICS | {"local_array", "local_array_like"} == set(INTRINSICS)
