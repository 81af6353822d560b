"""Everything that makes arrays or copies between them: empty, zeros, array, asarray, arange, concatenate, copyto, ..."""

from __future__ import annotations

import sys

from . import _runtime
from .arrays import Array, as_dtype, as_shape, check_supported, element_bytes, numpy_dtype, wrap_numpy
from .devices import as_device
from .sharing import is_tensor, shared
from .types import DType, f32, i32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from numpy.typing import NDArray

    from ._runtime import Device
    from .devices import DeviceLike

__all__ = [
    "arange", "array", "asarray", "concatenate", "copyto", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones",
    "ones_like", "stack", "zeros", "zeros_like",
]  # fmt: skip

new_array, fill = _runtime.new_array, _runtime.Array.fill


def _new(shape: Any, dtype: Any, device: DeviceLike, what: str) -> Array:
    """An uninitialised array; ``what`` makes it and stands in the messages. Errors are Python's, so that the runtime need not know them."""
    made: Array | None = new_array(shape, dtype, device)
    if made is None:
        kind, where = as_dtype(dtype), as_device(device)
        check_supported(kind, where, what)
        made = Array(where, kind.name, as_shape(shape, what))
    return made


def _filled(out: Array, element: bytes) -> Array:
    fill(out, element)  # at once: it is contiguous and may be written
    return out


def empty(shape: Any, dtype: Any = f32, device: DeviceLike = None) -> Array:
    """An uninitialised array. ``shape``: an int or a tuple of ints; ``device``: a device or its name, None for the default device."""
    made: Array | None = new_array(shape, dtype, device)
    return _new(shape, dtype, device, "tack.empty()") if made is None else made


def zeros(shape: Any, dtype: Any = f32, device: DeviceLike = None) -> Array:
    """An array of zeros."""
    out = _new(shape, dtype, device, "tack.zeros()")
    return _filled(out, bytes(out.itemsize))


def ones(shape: Any, dtype: Any = f32, device: DeviceLike = None) -> Array:
    """An array of ones."""
    return full(shape, 1, dtype, device)


def full(shape: Any, value: Any, dtype: Any = f32, device: DeviceLike = None) -> Array:
    """An array whose elements all have ``value``, a number that ``dtype`` can hold."""
    kind = as_dtype(dtype)
    element = element_bytes(value, kind, "tack.full()")
    return _filled(_new(shape, kind, device, "tack.full()"), element)


def _like(prototype: Any, dtype: Any, device: DeviceLike, shape: Any) -> tuple[Any, DType, Device]:
    """Shape, dtype and device of a new array: the prototype's where not given otherwise."""
    if not hasattr(prototype, "shape") or not hasattr(prototype, "dtype"):
        raise TypeError(f"the prototype of a *_like() constructor is an array, not {type(prototype).__name__}")
    if device is not None:
        where = as_device(device)
    else:
        where = prototype.device if isinstance(prototype, Array) else as_device("cpu")
    return prototype.shape if shape is None else shape, as_dtype(prototype.dtype if dtype is None else dtype), where


def empty_like(prototype: Any, dtype: Any = None, device: DeviceLike = None, shape: Any = None) -> Array:
    """An uninitialised array with the prototype's shape, dtype and device, where these are not given."""
    return _new(*_like(prototype, dtype, device, shape), "tack.empty_like()")


def zeros_like(prototype: Any, dtype: Any = None, device: DeviceLike = None, shape: Any = None) -> Array:
    """An array of zeros with the prototype's shape, dtype and device, where these are not given."""
    return full_like(prototype, 0, dtype, device, shape)


def ones_like(prototype: Any, dtype: Any = None, device: DeviceLike = None, shape: Any = None) -> Array:
    """An array of ones with the prototype's shape, dtype and device, where these are not given."""
    return full_like(prototype, 1, dtype, device, shape)


def full_like(prototype: Any, value: Any, dtype: Any = None, device: DeviceLike = None, shape: Any = None) -> Array:
    """An array of ``value`` with the prototype's shape, dtype and device, where these are not given."""
    dims, kind, where = _like(prototype, dtype, device, shape)
    element = element_bytes(value, kind, "tack.full_like()")
    return _filled(_new(dims, kind, where, "tack.full_like()"), element)


def array(values: Any, dtype: Any = None, device: DeviceLike = None) -> Array:
    """A new array with a copy of ``values``: an array of tack's, NumPy's or another library's, (nested) lists of numbers, a range.

    The dtype is the input's where it has one. Python floats give f32, Python ints i32 (OverflowError where they do not fit), bools u8.
    """
    where = as_device(device)
    if isinstance(values, Array):
        kind = values.dtype if dtype is None else as_dtype(dtype)
        check_supported(kind, where, "tack.array()")
        return values._copied_to(where, kind.name)
    if _is_foreign(values):
        return array(shared(values), dtype, where)
    source = _as_numpy(values, None if dtype is None else as_dtype(dtype))
    out = _new(source.shape, as_dtype(source.dtype), where, "tack.array()")
    out.write_from(source)
    return out


def asarray(values: Any, dtype: Any = None, device: DeviceLike = None) -> Array:
    """``values`` as an array: itself, or its memory where that can be used in place, else a copy.

    A tack array that ``device`` can address is returned as it is. A NumPy array becomes an array on its memory when the device is a CPU
    (also when ``device`` is None), and so does another library's array (with ``__dlpack__`` or ``__cuda_array_interface__``) where
    ``device`` can address it or is None; writes to one are then seen by the other.
    """
    kind = None if dtype is None else as_dtype(dtype)
    if isinstance(values, Array):
        if kind is not None and kind != values.dtype:
            return array(values, kind, values.device if device is None else device)
        return values if device is None else values.to_device(device)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(values, numpy.ndarray):
        where = as_device("cpu" if device is None else device)
        same = values.dtype.isnative and as_dtype(values.dtype) == (kind or as_dtype(values.dtype))
        usable = same and values.flags.aligned and not any(stride % values.itemsize for stride in values.strides)
        if usable and where.type == "cpu":
            return wrap_numpy(values, where)
        return array(values, kind, where)
    if _is_foreign(values):
        return asarray(shared(values), kind, device)
    return array(values, kind, device)


def _is_foreign(values: Any) -> bool:
    """Whether ``values`` is an array of another library than NumPy."""
    numpy = sys.modules.get("numpy")
    return is_tensor(values) and not (numpy is not None and isinstance(values, (numpy.ndarray, numpy.generic)))


def _as_numpy(values: Any, kind: DType | None) -> NDArray[Any]:
    """``values`` as a NumPy array of a native dtype that tack knows."""
    import numpy

    if kind is None and _is_weak(values):
        found = numpy.asarray(values)
        if found.dtype.kind == "f":  # an empty list is, too
            return found.astype(numpy.float32)
        if found.dtype.kind == "b":
            return found.view(numpy.uint8)
        if found.size:
            low, high = int(found.min()), int(found.max())
            if low < i32.min or high > i32.max:
                raise OverflowError(
                    f"tack.array(): Python ints become tack.i32, which does not hold {high if high > i32.max else low}: give dtype=tack.i64"
                )
        return numpy.asarray(found.astype(numpy.int32))
    found = numpy.asarray(values)
    if found.dtype.kind not in "biuf" or found.dtype.itemsize > 8 or found.dtype == numpy.float16:
        raise TypeError(
            f"tack.array(): {type(values).__name__} of dtype {found.dtype} has no tack dtype: convert it first (a.astype(np.float32))"
        )
    if kind is None or numpy_dtype(kind) == found.dtype:
        return found.view(numpy.uint8) if found.dtype.kind == "b" else found.astype(found.dtype.newbyteorder("="), copy=False)
    if _is_weak(values) and kind.is_int:
        if found.dtype.kind == "f" and found.size:
            raise TypeError(f"tack.array(): floats do not go into an array of {kind}: convert them to int first")
        if found.size and (int(found.min()) < kind.min or int(found.max()) > kind.max):
            raise OverflowError(
                f"tack.array(): the values {found.min()} to {found.max()} do not fit {kind}, which holds {kind.min} to {kind.max}"
            )
    from .runtime.host_types import cast_array

    return cast_array(found.astype(found.dtype.newbyteorder("="), copy=False), kind)


def _is_weak(values: Any) -> bool:
    """Whether ``values`` consists of Python numbers alone, which have no dtype of their own."""
    todo = [values]
    while todo:
        value = todo.pop()
        if isinstance(value, (list, tuple)):
            todo.extend(value)
        elif type(value) not in (bool, int, float, range):
            return False
    return True


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, device: DeviceLike = None) -> Array:
    """``start, start + step, ...`` below ``stop``; with one number, from 0 to it. Ints give i32, floats f32, unless ``dtype`` is given."""
    import numpy

    if stop is None:
        start, stop = 0, start
    bounds = []
    for bound in (start, stop, step):
        if not isinstance(bound, (bool, int, float, numpy.integer, numpy.floating)):
            raise TypeError(f"tack.arange() takes numbers, not {type(bound).__name__}")
        bounds.append(bound.item() if isinstance(bound, numpy.generic) else bound)
    if bounds[2] == 0:
        raise ValueError("tack.arange(): the step is 0")
    whole = all(isinstance(bound, int) for bound in bounds)
    kind = (i32 if whole else f32) if dtype is None else as_dtype(dtype)
    if whole:
        numbers = range(*map(int, bounds))
        if kind.is_int and numbers and not (kind.min <= min(numbers[0], numbers[-1]) and max(numbers[0], numbers[-1]) <= kind.max):
            raise OverflowError(f"tack.arange(): {numbers[0]} to {numbers[-1]} do not fit {kind}: give a wider dtype=, e.g. tack.i64")
        values: NDArray[Any] = numpy.arange(*bounds, dtype=numpy.uint64 if kind.name == "u64" else numpy.int64)
    else:
        values = numpy.arange(*bounds, dtype=numpy.float64)
    return array(values, kind, device)


def linspace(start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = f32, device: DeviceLike = None) -> Array:
    """``num`` evenly spaced numbers from ``start`` to ``stop``, the last included unless ``endpoint`` is False."""
    import numpy

    return array(numpy.linspace(start, stop, num, endpoint=endpoint), dtype, device)


def eye(rows: int, columns: int | None = None, k: int = 0, dtype: Any = f32, device: DeviceLike = None) -> Array:
    """Zeros with ones on the ``k``-th diagonal, above the main one where ``k`` is positive. Square unless ``columns`` is given."""
    import numpy

    height, width = as_shape((rows, rows if columns is None else columns), "tack.eye()")
    return array(numpy.eye(height, width, k, dtype=numpy.uint8), dtype, device)


def stack(arrays: Iterable[Any], axis: int = 0, dtype: Any = None, device: DeviceLike = None) -> Array:
    """The arrays, all of one shape, along a new axis, on ``device`` or the first one's, with the dtype that NumPy's promotion gives.

    Raises ValueError for no arrays or shapes that differ.
    """
    parts = [a if isinstance(a, Array) else asarray(a) for a in arrays]
    if not parts:
        raise ValueError("tack.stack(): there must be at least one array")
    shape = parts[0].shape
    if not -len(shape) - 1 <= axis <= len(shape):
        raise ValueError(f"tack.stack(): axis {axis} is out of range for {len(shape) + 1} dimensions")
    for part in parts:
        if part.shape != shape:
            raise ValueError(f"tack.stack(): shape {part.shape} differs from {shape}, that of the first array")
    key = (slice(None),) * (axis % (len(shape) + 1)) + (None,)
    return concatenate([part[key] for part in parts], len(key) - 1, dtype, device)


def concatenate(arrays: Iterable[Any], axis: int = 0, dtype: Any = None, device: DeviceLike = None) -> Array:
    """The arrays joined along ``axis``, on ``device`` or the first one's, with the dtype that NumPy's promotion gives.

    Raises ValueError for no arrays or shapes that do not fit.
    """
    import numpy

    from .copies import assign

    parts = [a if isinstance(a, Array) else asarray(a) for a in arrays]
    if not parts:
        raise ValueError("tack.concatenate(): there must be at least one array")
    first = parts[0]
    if first.ndim == 0:
        raise ValueError("tack.concatenate(): 0-d arrays cannot be joined; use tack.array([a.item(), ...])")
    if not -first.ndim <= axis < first.ndim:
        raise ValueError(f"tack.concatenate(): axis {axis} is out of range for {first.ndim} dimensions")
    axis %= first.ndim
    for part in parts:
        if part.ndim != first.ndim or any(a != b for d, (a, b) in enumerate(zip(part.shape, first.shape, strict=True)) if d != axis):
            raise ValueError(f"tack.concatenate(): shape {part.shape} does not join {first.shape} along axis {axis}")
    kind = as_dtype(numpy.result_type(*(numpy_dtype(p.dtype) for p in parts)) if dtype is None else dtype)
    shape = list(first.shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    out = _new(tuple(shape), kind, first.device if device is None else device, "tack.concatenate()")
    at = 0
    for part in parts:
        end = at + part.shape[axis]
        assign(out[(slice(None),) * axis + (slice(at, end),)], part)
        at = end
    return out


def copyto(destination: Any, source: Any, casting: Any = "same_kind") -> None:
    """Copies ``source`` into ``destination``; one of them is a tack array, the other one too, or a NumPy array, a list or a number.

    ``source`` is broadcast as in NumPy. ``casting`` is numpy.can_cast's: TypeError where the dtypes do not fit it. On an unsafe
    conversion ints wrap, and floats truncate and saturate.
    """
    import numpy

    if not isinstance(destination, (Array, numpy.ndarray)):
        raise TypeError(f"tack.copyto() writes to a tack or NumPy array, not {type(destination).__name__}")
    if getattr(destination, "read_only", False) or (isinstance(destination, numpy.ndarray) and not destination.flags.writeable):
        raise ValueError("tack.copyto(): the destination is read-only")
    kind = as_dtype(destination.dtype)
    if isinstance(source, (Array, numpy.ndarray, numpy.generic)):
        found = source.dtype if isinstance(source, (numpy.ndarray, numpy.generic)) else numpy_dtype(source.dtype)
        if not numpy.can_cast(found, numpy_dtype(kind), casting):
            raise TypeError(
                f"tack.copyto(): {as_dtype(found)} does not go into {kind} under casting={casting!r}: use casting='unsafe' or astype()"
            )
    else:
        source = _as_numpy(source, kind)
    from .copies import assign, broadcast, write

    if isinstance(source, Array) and isinstance(destination, Array):
        if source.shape != destination.shape:
            source = _fitting(broadcast, source, destination.shape)
        assign(destination, source)
        return
    values = source._host() if isinstance(source, Array) else numpy.asarray(source)
    if as_dtype(values.dtype) != kind or not values.dtype.isnative:
        from .runtime.host_types import cast_array

        values = cast_array(values.astype(values.dtype.newbyteorder("="), copy=False), kind)
    values = _fitting(numpy.broadcast_to, values, destination.shape)
    if isinstance(destination, Array):
        write(destination, values)
    else:
        numpy.copyto(destination, values.astype(destination.dtype, copy=False))


def _fitting(broadcast: Callable[[Any, tuple[int, ...]], Any], values: Any, shape: tuple[int, ...]) -> Any:
    try:
        return broadcast(values, shape)
    except ValueError:
        raise ValueError(f"tack.copyto(): shape {values.shape} does not broadcast to {shape}") from None
