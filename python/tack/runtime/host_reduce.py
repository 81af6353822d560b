"""Sums on the host. Integer sums are exact whatever their size; float sums are NumPy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["exact_sum"]

_CHUNK = 1 << 30  # that many 32-bit halves add up within 63 bits


def exact_sum(values: NDArray[Any]) -> int | float:
    """The sum of all elements as a Python number."""
    if values.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):  # inf and NaN are results, as on other devices
            return float(values.sum())
    if values.size <= _CHUNK and values.itemsize <= 4:
        return int(values.sum(dtype=np.int64))
    total = 0
    flat = values.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        if part.itemsize <= 4:
            total += int(part.sum(dtype=np.int64))
        elif _small(part):
            total += int(part.sum())
        else:  # the halves of 64-bit numbers separately: the upper one keeps the sign
            total += int((part & 0xFFFFFFFF).sum(dtype=np.uint64)) + (int((part >> 32).sum()) << 32)
    return total


def _small(part: NDArray[Any]) -> bool:
    """Whether no partial sum of 64-bit integers can leave their type."""
    if part.size == 0:
        return True
    largest = max(abs(int(part.min())), abs(int(part.max())))
    return largest * part.size < 1 << 63
