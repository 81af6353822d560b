"""The functions that the compiler knows by name (tack.sqrt, tack.ndrange, tack.atomic_add, ...), callable on the host as well.

Here are only names and help texts, so that ``import tack`` stays cheap; what a call on the host computes is in runtime/host_math.py.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ATOMICS", "INTRINSICS", "MATH", "WORKGROUP", "IntrinsicFunction"]


class IntrinsicFunction:
    """A function of the kernel language. In a kernel it is compiled; on the host it runs on Python numbers and NumPy scalars.

    On the host, a NumPy scalar gives a NumPy scalar of its dtype and a Python number a Python number. Atomics, local arrays and
    workgroup functions have no meaning outside a kernel and raise RuntimeError there.
    """

    def __init__(self, name: str, signature: str, doc: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.signature = signature
        self.__doc__ = f"{name}({signature})\n\n{doc}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from .runtime.host_math import call  # numpy is imported only where the host computes

        return call(self.__name__, args, kwargs)

    def __repr__(self) -> str:
        return f"<function tack.{self.__name__}({self.signature})>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _by_name, (self.__name__,)


def _by_name(name: str) -> IntrinsicFunction:
    return INTRINSICS[name]


_MATH = (
    ("sqrt", "x", "Square root, correctly rounded; NaN for x < 0."),
    ("rsqrt", "x", "1 / sqrt(x)."),
    ("cbrt", "x", "Cube root."),
    ("exp", "x", "e to the power x."),
    ("exp2", "x", "2 to the power x."),
    ("expm1", "x", "exp(x) - 1, accurate near 0."),
    ("log", "x", "Natural logarithm; NaN for x < 0, -inf for 0."),
    ("log2", "x", "Logarithm to base 2."),
    ("log10", "x", "Logarithm to base 10."),
    ("log1p", "x", "log(1 + x), accurate near 0."),
    ("pow", "x, y", "x to the power y. Integers: exact modulo 2^N; a negative exponent gives 0."),
    ("sin", "x", "Sine of x in radians."),
    ("cos", "x", "Cosine of x in radians."),
    ("tan", "x", "Tangent of x in radians."),
    ("asin", "x", "Arc sine in radians; NaN outside [-1, 1]."),
    ("acos", "x", "Arc cosine in radians; NaN outside [-1, 1]."),
    ("atan", "x", "Arc tangent in radians."),
    ("atan2", "y, x", "Angle of the point (x, y) in radians, in [-pi, pi]."),
    ("sinh", "x", "Hyperbolic sine."),
    ("cosh", "x", "Hyperbolic cosine."),
    ("tanh", "x", "Hyperbolic tangent."),
    ("asinh", "x", "Inverse hyperbolic sine."),
    ("acosh", "x", "Inverse hyperbolic cosine; NaN for x < 1."),
    ("atanh", "x", "Inverse hyperbolic tangent; NaN outside [-1, 1]."),
    ("erf", "x", "Error function."),
    ("erfc", "x", "1 - erf(x), accurate for large x."),
    ("floor", "x", "Largest whole number <= x, in x's float type."),
    ("ceil", "x", "Smallest whole number >= x, in x's float type."),
    ("trunc", "x", "x without its fraction, in x's float type."),
    ("round", "x", "Nearest whole number, halves to even, in x's float type."),
    ("fabs", "x", "Absolute value of a float."),
    ("abs", "x", "Absolute value; of the smallest signed integer it wraps."),
    ("fmod", "x, y", "Remainder with the sign of x, as C's fmod."),
    ("copysign", "x, y", "x with the sign of y."),
    ("hypot", "x, y", "sqrt(x*x + y*y) without overflow in between."),
    ("fma", "a, b, c", "a * b + c with one rounding."),
    ("isnan", "x", "Whether x is NaN."),
    ("isinf", "x", "Whether x is infinite."),
    ("isfinite", "x", "Whether x is neither infinite nor NaN."),
    ("divmod", "x, y", "(x // y, x % y); both 0 for integers where y is 0."),
    ("min", "a, b, ...", "Smallest of two or more; prefers a number to a NaN, and of equal values the first."),
    ("max", "a, b, ...", "Largest of two or more; prefers a number to a NaN, and of equal values the first."),
)

_BITS = (
    ("popcount", "x", "Number of one bits."),
    ("clz", "x", "Number of zero bits above the highest one bit; N for 0."),
    ("ctz", "x", "Number of zero bits below the lowest one bit; N for 0."),
    ("rotl", "x, n", "x rotated left by n modulo N bits."),
    ("rotr", "x, n", "x rotated right by n modulo N bits."),
    ("mulhi", "x, y", "Upper half of the double-width product."),
    ("add_sat", "x, y", "x + y, saturated to the type's range."),
    ("sub_sat", "x, y", "x - y, saturated to the type's range."),
    ("bitcast", "x, dtype", "The bits of x as a value of dtype, which has the same size."),
)

_LOOPS = (
    ("ndrange", "size | (start, stop), ...", "Iterates over 1 to 4 dimensions, the last fastest. Parallel at the top level of a kernel."),
    ("sequential", "[start,] stop[, step]", "Runs its body step after step, with the parallel loops inside; at the top level of a kernel."),
)

_MEMORY = (
    ("local_array", "dtype, shape", "Scratch memory of one iteration: constant shape, zeros at first."),
    ("local_array_like", "array, shape", "Scratch memory of one iteration with the dtype of array."),
)

_ATOMICS = (
    ("atomic_add", "array, index, value", "array[index] += value, atomically; returns the old value."),
    ("atomic_sub", "array, index, value", "array[index] -= value, atomically; returns the old value."),
    ("atomic_min", "array, index, value", "array[index] = min(array[index], value), atomically; returns the old value."),
    ("atomic_max", "array, index, value", "array[index] = max(array[index], value), atomically; returns the old value."),
    ("atomic_and_", "array, index, value", "array[index] &= value, atomically; integers only; returns the old value."),
    ("atomic_or_", "array, index, value", "array[index] |= value, atomically; integers only; returns the old value."),
    ("atomic_xor", "array, index, value", "array[index] ^= value, atomically; integers only; returns the old value."),
    ("atomic_exchange", "array, index, value", "array[index] = value, atomically; returns the old value."),
    ("atomic_cas", "array, index, compare, value", "Stores value where the element's bits equal compare's; returns the old value."),
)

_WORKGROUP = (
    ("shared", "dtype, shape", "Memory shared by the threads of a group; undefined until written. GPUs only."),
    ("shared_like", "array, shape", "Shared memory with the dtype of array. GPUs only."),
    ("barrier", "", "Waits until all threads of the group are here. GPUs only."),
    ("thread_id", "", "Position of this thread in its group. GPUs only."),
    ("block_id", "", "Position of this group in the launch. GPUs only."),
    ("block_dim", "", "Number of threads of a group. GPUs only."),
    ("block_sum", "value", "Sum of value over the threads of the group. GPUs only."),
    ("block_min", "value", "Smallest value of the group's threads. GPUs only."),
    ("block_max", "value", "Largest value of the group's threads. GPUs only."),
)

INTRINSICS: dict[str, IntrinsicFunction] = {
    name: IntrinsicFunction(name, signature, doc)
    for table in (_MATH, _BITS, _LOOPS, _MEMORY, _ATOMICS, _WORKGROUP)
    for name, signature, doc in table
}
MATH = frozenset(name for name, _, _ in (*_MATH, *_BITS))
ATOMICS = frozenset(name for name, _, _ in _ATOMICS)
WORKGROUP = frozenset(name for name, _, _ in _WORKGROUP)
