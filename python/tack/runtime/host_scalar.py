"""What a tack dtype does when it is called on the host: a NumPy scalar with a kernel cast's meaning."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..ir import arith
from ..types import BOOL, DType

__all__ = ["cast", "numpy_type"]

_NUMPY: Final[dict[str, type[np.generic]]] = {
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "u16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "f32": np.float32,
    "f64": np.float64,
    "bool": np.bool_,
}


def numpy_type(dtype: DType) -> type[np.generic]:
    """The NumPy scalar type of a tack dtype."""
    return _NUMPY[dtype.name]


def cast(value: Any, dtype: DType) -> np.generic:
    """``value`` (a Python or NumPy number or bool) as a NumPy scalar of ``dtype``, as a kernel casts it.

    Integers wrap modulo 2^N; a float becomes an integer by truncation, saturating, NaN as 0; to f32 there is one rounding.
    Raises TypeError for what is no real number, an array of any rank among them.
    """
    if isinstance(value, np.generic):
        number = value.item()
    elif hasattr(value, "__index__") and not isinstance(value, (bool, int)) and not hasattr(value, "shape"):
        number = value.__index__()
    else:
        number = value
    if not isinstance(number, (bool, int, float)):
        hint = f"; use .astype({dtype}) for arrays" if hasattr(value, "shape") else ""
        raise TypeError(f"{dtype}() takes a number, got {type(value).__name__}{hint}")
    if dtype == BOOL:
        return np.bool_(arith.cast(number, dtype))
    return _NUMPY[dtype.name](arith.cast(number, dtype))
