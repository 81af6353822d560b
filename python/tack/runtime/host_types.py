"""tack's dtypes and NumPy's, and casts of whole NumPy arrays with a kernel cast's meaning. Needs NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..types import ARRAY_DTYPES, BOOL, DType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NUMPY_TYPES", "cast_array", "dtype_of"]

NUMPY_TYPES: dict[DType, Any] = {
    dtype: np.dtype(name).type
    for dtype, name in zip(
        (*ARRAY_DTYPES, BOOL),
        ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "bool"),
        strict=True,
    )
}
_TACK_TYPES: dict[Any, DType] = {np.dtype(scalar): dtype for dtype, scalar in NUMPY_TYPES.items()}


def dtype_of(value: Any) -> DType | None:
    """The dtype of a NumPy scalar; None for anything else and for types that kernels do not know."""
    return _TACK_TYPES.get(value.dtype) if isinstance(value, np.generic) else None


def cast_array(values: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """All elements of a NumPy array cast to ``dtype``: ints wrap; floats truncate and saturate, NaN gives 0. Always a new array."""
    target = np.dtype(NUMPY_TYPES[dtype])
    if values.dtype.kind == "f" and dtype.is_int:
        with np.errstate(invalid="ignore"):
            truncated = np.trunc(values)
            # The limits as floats of the array's type: the upper one may round up to max + 1, hence "<" and not "<=".
            low, high = values.dtype.type(dtype.min), values.dtype.type(dtype.max)
            inside = (truncated >= low) & (truncated < high)
            result = np.asarray(np.where(inside, truncated, 0).astype(target))
        result[truncated >= high] = dtype.max
        result[truncated < low] = dtype.min
        return result
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(target)
