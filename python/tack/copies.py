"""Copies, conversions and fills of any layout: on devices with a queue by kernels of tack's own, which take their place in its order."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any  # there when kernels are looked at: their annotations name it

from . import _runtime
from .arrays import Array
from .creation import array as new_array
from .intrinsics import INTRINSICS
from .kernels import kernel, kernel_function
from .types import by_name, i64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._runtime import Device
    from .types import DType

__all__ = ["assign", "broadcast", "packed", "spread", "write"]

ndrange: Any = INTRINSICS["ndrange"]

_ready: set[tuple[Any, ...]] = set()  # kernels that a device has, by what they are specialized on


@cache
def _copiers(dtype: DType) -> dict[int, Any]:
    """Kernels, by the number of dimensions (0: any), that store ``dtype(x)`` in ``out``.

    They get the memory from an array's first element to its last as one dimension, and numbers that are counted in elements: lengths
    ``n``, strides ``a`` and ``b``, and the places ``p`` and ``q`` of the first elements. So they are compiled once for all layouts.
    """

    @kernel
    def copy_2(out: Any, x: Any, p: Any, q: Any, n0: Any, n1: Any, a0: Any, a1: Any, b0: Any, b1: Any) -> None:
        for i, j in ndrange(n0, n1):
            out[p + i * a0 + j * a1] = dtype(x[q + i * b0 + j * b1])

    @kernel
    def copy_4(
        out: Any, x: Any, p: Any, q: Any, n0: Any, n1: Any, n2: Any, n3: Any, a0: Any, a1: Any, a2: Any, a3: Any, b0: Any, b1: Any,
        b2: Any, b3: Any,
    ) -> None:  # fmt: skip
        for i, j, k, m in ndrange(n0, n1, n2, n3):
            out[p + i * a0 + j * a1 + k * a2 + m * a3] = dtype(x[q + i * b0 + j * b1 + k * b2 + m * b3])

    @kernel
    def copy_any(out: Any, x: Any, p: Any, q: Any, table: Any, size: Any) -> None:
        for n in range(size):
            rest = n
            to = p
            of = q
            for d in range(table.shape[1] - 1, -1, -1):
                i = rest % table[0, d]
                rest //= table[0, d]
                to += i * table[1, d]
                of += i * table[2, d]
            out[to] = dtype(x[of])

    return {2: copy_2, 4: copy_4, 0: copy_any}


def assign(out: Array, source: Array) -> None:
    """Copies the elements of ``source`` to ``out``, which has the same shape and may be of any dtype and on any device.

    Conversions are those of a kernel's cast. Where the two overlap, all of ``source`` is read first.
    """
    same = out.dtype_name == source.dtype_name
    if not out.device.can_address(source.device):
        if not same:
            write(out, _cast(source.numpy(), out.dtype))
        elif _by_kernel(out):
            between = Array(out.device, out.dtype_name, out.shape)
            between.copy_from(packed(source))
            assign(out, between)
        else:
            out.copy_from(packed(source))
    elif same and not (_by_kernel(out) or _by_kernel(source)):
        out.copy_from(source)
    elif not _launched(out, source):
        if same:
            out.copy_from(source)
        else:
            out.write_from(_cast(source._host(), out.dtype))


def write(out: Array, values: NDArray[Any]) -> None:
    """Copies from host memory of the same shape and dtype, which has been read when this returns."""
    if not _by_kernel(out):
        out.write_from(values)
        return
    between = Array(out.device, out.dtype_name, out.shape)
    between.write_from(values)
    assign(out, between)


def spread(out: Array, element: bytes) -> None:
    """Sets every element to the value whose bytes are given."""
    one = Array(out.device, out.dtype_name, ())
    _runtime.Array.fill(one, element)
    assign(out, broadcast(one, out.shape))


def packed(source: Array) -> Array:
    """An array without gaps that the host reads in one piece: the very array, unless its elements lie apart in memory of a device's own."""
    if not _by_kernel(source) or source.device.host_addressable:
        return source
    try:
        out = Array(source.device, source.dtype_name, source.shape)
    except MemoryError:  # the host has room for what lies between the elements, too
        return source
    return out if _launched(out, source) else source


def broadcast(source: Array, shape: tuple[int, ...]) -> Array:
    """A view of ``source`` with a shape that it broadcasts to as in NumPy. Raises ValueError where it does not."""
    missing = len(shape) - source.ndim
    fits = missing >= 0 and all(own in (1, length) for own, length in zip(source.shape, shape[missing:], strict=True))
    if not fits:
        raise ValueError(f"shape {source.shape} does not broadcast to {shape}")
    own = zip(source.shape, source.strides, shape[missing:], strict=True)
    strides = (0,) * missing + tuple(stride if length == wanted else 0 for length, stride, wanted in own)
    return Array(source, source.dtype_name, shape, strides, 0, source.read_only)


def _cast(values: NDArray[Any], dtype: DType) -> NDArray[Any]:
    from .runtime.host_types import cast_array

    return cast_array(values, dtype)


def _by_kernel(array: Array) -> bool:
    """Whether the device is to gather or scatter the elements: the host would have to wait for it, or to move what lies between."""
    return bool(array.layout) and array.device.queued


def _launched(out: Array, source: Array) -> bool:
    """Copies on the arrays' device, if it has a queue and its compiler is there."""
    device = out.device
    if not device.queued:
        return False
    if out.size == 0:
        return True
    if out.dtype_name == source.dtype_name:
        if out.pointer == source.pointer and out.strides == source.strides:
            return True
        bits = f"u{8 * out.itemsize}"  # so that every NaN keeps its bits, and fewer kernels are compiled
        if out.dtype_name != bits:
            out, source = _view(out, bits), _view(source, bits)
    if _overlap(out, source):
        between = Array(device, source.dtype_name, source.shape)
        return _launched(between, source) and _launched(out, between)
    shape, to, of = _merged(out.shape, out.strides, source.strides, out.itemsize, source.itemsize)
    if 0 < device.max_iterations < out.size:
        return False
    (out, p), (source, q) = _memory(out), _memory(source)
    rank = next((r for r in (2, 4) if r >= len(shape)), 0)
    copier = _copiers(by_name(out.dtype_name))[rank]
    with device:
        if not rank:
            table = new_array([shape, to, of], dtype=i64)
            return _call(copier, device, out, source, p, q, table, prod(shape))
        missing = rank - len(shape)
        return _call(copier, device, out, source, p, q, *(1,) * missing, *shape, *(0,) * missing, *to, *(0,) * missing, *of)


def _call(copier: Any, device: Device, out: Array, source: Array, *numbers: Any) -> bool:
    """Launches, if the device has the kernel or its compiler can make it."""
    special = (copier, device, out.read_only, source.dtype_name, source.read_only, _runtime.debugging())
    if special not in _ready:
        function = kernel_function(copier)
        try:
            function.kernel_of(function.specialize((out, source, *numbers), device))
        except RuntimeError:  # no compiler here: copies are the host's then, as they need none
            return False
        _ready.add(special)
    copier(out, source, *numbers)
    return True


def _memory(array: Array) -> tuple[Array, int]:
    """The memory from an array's first element to its last, in one dimension, and the place of element (0, 0, ...) in it."""
    low, high = _reach(array)
    count = (high - low) // array.itemsize
    first = array.pointer - low
    return Array(array, array.dtype_name, (count,), (array.itemsize,), -first, array.read_only), first // array.itemsize


def _view(array: Array, dtype: str) -> Array:
    return Array(array, dtype, array.shape, array.strides, 0, array.read_only)


def _overlap(a: Array, b: Array) -> bool:
    (low_a, high_a), (low_b, high_b) = _reach(a), _reach(b)
    return low_a < high_b and low_b < high_a


def _reach(array: Array) -> tuple[int, int]:
    """The addresses from the first byte of an array to the one behind its last."""
    low = high = array.pointer
    for length, stride in zip(array.shape, array.strides, strict=True):
        low += min(0, (length - 1) * stride)
        high += max(0, (length - 1) * stride)
    return low, high + array.itemsize


def _merged(
    shape: tuple[int, ...], to: tuple[int, ...], of: tuple[int, ...], to_item: int, of_item: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """A copy in as few dimensions as possible, those that lie closest in the destination last: lengths, and both strides in elements."""
    apart = [(length, a // to_item, b // of_item) for length, a, b in zip(shape, to, of, strict=True) if length != 1]
    merged: list[tuple[int, int, int]] = []
    for length, a, b in sorted(apart, key=lambda dim: -abs(dim[1])):
        if merged and merged[-1][1:] == (a * length, b * length):
            merged[-1] = (merged[-1][0] * length, a, b)
        else:
            merged.append((length, a, b))
    return tuple(d[0] for d in merged), tuple(d[1] for d in merged), tuple(d[2] for d in merged)
