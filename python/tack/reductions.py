"""sum, min and max of f32 arrays where the array lies on a GPU, as kernels of tack's own; elsewhere NumPy reduces."""

from __future__ import annotations

import math

from .arrays import Array
from .intrinsics import INTRINSICS
from .kernels import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["greatest", "smallest", "total"]

ndrange: Any = INTRINSICS["ndrange"]
isnan: Any = INTRINSICS["isnan"]

# The order of combination is the language's own: it depends on the number of elements alone, and is not NumPy's. min and max of the
# language prefer numbers to NaN; here one NaN makes the result NaN, as in NumPy, so it is looked for beside.


@kernel
def sum_flat(x: Any) -> Any:
    result = 0.0
    for i in range(x.shape[0]):
        result += x[i]
    return result


@kernel
def sum_strided(x: Any) -> Any:
    result = 0.0
    for i, j, k, m in ndrange(x.shape[0], x.shape[1], x.shape[2], x.shape[3]):
        result += x[i, j, k, m]
    return result


@kernel
def min_flat(x: Any) -> Any:
    result = math.inf
    nans = 0
    for i in range(x.shape[0]):
        result = min(result, x[i])
        nans |= isnan(x[i])
    return math.nan if nans else result


@kernel
def min_strided(x: Any) -> Any:
    result = math.inf
    nans = 0
    for i, j, k, m in ndrange(x.shape[0], x.shape[1], x.shape[2], x.shape[3]):
        result = min(result, x[i, j, k, m])
        nans |= isnan(x[i, j, k, m])
    return math.nan if nans else result


@kernel
def max_flat(x: Any) -> Any:
    result = -math.inf
    nans = 0
    for i in range(x.shape[0]):
        result = max(result, x[i])
        nans |= isnan(x[i])
    return math.nan if nans else result


@kernel
def max_strided(x: Any) -> Any:
    result = -math.inf
    nans = 0
    for i, j, k, m in ndrange(x.shape[0], x.shape[1], x.shape[2], x.shape[3]):
        result = max(result, x[i, j, k, m])
        nans |= isnan(x[i, j, k, m])
    return math.nan if nans else result


def total(x: Array) -> float:
    """The sum, 0.0 for an empty array."""
    return _reduce(sum_flat, sum_strided, x)


def smallest(x: Array) -> float:
    """The smallest element, NaN if there is one. The array is not empty."""
    return _reduce(min_flat, min_strided, x)


def greatest(x: Array) -> float:
    """The largest element, NaN if there is one. The array is not empty."""
    return _reduce(max_flat, max_strided, x)


def _reduce(flat: Any, strided: Any, x: Array) -> float:
    if x.ndim > 4 and x.layout:
        x = x.copy()
    with x.device:  # whatever the default is: the array's device reduces
        if x.ndim == 1 or not x.layout:
            return float(flat(x.reshape(x.size)))
        return float(strided(x[(None,) * (4 - x.ndim)]))
