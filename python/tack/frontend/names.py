"""The functions of the kernel language by name: which math functions there are, how Python folds them, what NumPy calls them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from ..ir.verify import BIT_FUNCTIONS, MATH_FUNCTIONS

__all__ = ["ATOMICS", "FUNCTIONS", "NUMPY_NAMES", "PYTHON_MATH", "WORKGROUP"]

WORKGROUP: Final = frozenset(
    ("shared", "shared_like", "barrier", "thread_id", "block_id", "block_dim", "block_sum", "block_min", "block_max")
)

# tack's name -> the kind in the IR
ATOMICS: Final = {
    "atomic_add": "add",
    "atomic_sub": "sub",
    "atomic_min": "min",
    "atomic_max": "max",
    "atomic_and_": "and",
    "atomic_or_": "or",
    "atomic_xor": "xor",
    "atomic_exchange": "exchange",
    "atomic_cas": "cas",
}

# Names that NumPy gives to functions of the kernel language.
NUMPY_NAMES: Final = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "absolute": "abs",
    "power": "pow",
    "rint": "round",
    "fmin": "min",
    "fmax": "max",
}

# What a call on Python numbers alone folds to; where Python raises, the call is compiled (and gives NaN or inf).
PYTHON_MATH: Final[dict[str, Callable[..., Any]]] = {
    name: getattr(math, name)
    for name in (
        *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "pow", "atan2", "fmod", "copysign", "hypot"),
        *("isnan", "isinf", "isfinite", "fabs"),
    )
}

FUNCTIONS: Final = frozenset(
    (
        *MATH_FUNCTIONS,
        *BIT_FUNCTIONS,
        *ATOMICS,
        *WORKGROUP,
        *("abs", "bitcast", "divmod", "fma", "local_array", "local_array_like", "max", "min", "ndrange", "sequential"),
        *("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64"),
    )
)
