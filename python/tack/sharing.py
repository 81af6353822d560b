"""Memory that tack and other libraries use together: DLPack and __cuda_array_interface__ in both directions, arrays on a bare address."""

from __future__ import annotations

import sys

from . import _runtime
from .arrays import Array, as_dtype, as_shape, check_supported, numpy_dtype
from .devices import as_device
from .layouts import row_major

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .devices import Device, DeviceLike

__all__ = ["array_from_ptr", "borrowed", "cuda_array_interface", "dlpack_device", "export_dlpack", "from_dlpack", "is_tensor", "shared"]

# DLPack's numbers of the kinds of memory that tack's devices have. (_runtime.dlpack_device_type has those that they can address besides.)
_DLPACK_TYPES = {"cpu": 1, "cuda": 2, "metal": 8, "hip": 10, "level_zero": 14}
_NUMBERED = ("cuda", "hip", "level_zero")
_DLPACK_VERSION = (1, 1)


def dlpack_device(array: Array) -> tuple[int, int]:
    """What ``Array.__dlpack_device__`` answers: DLPack's number of the kind of device, and which one of them."""
    return _DLPACK_TYPES[array.device.type], array.device.index


def export_dlpack(
    array: Array, stream: Any, max_version: tuple[int, int] | None, dl_device: tuple[int, int] | None, copy: bool | None
) -> object:
    """What ``Array.__dlpack__`` answers; see there."""
    here = dlpack_device(array)
    copied = copy is True
    if dl_device is not None and tuple(dl_device) != here:
        if tuple(dl_device) != (_DLPACK_TYPES["cpu"], 0):
            raise BufferError(
                f"an array on {array.device} can be exported to {here} and to the host, not to DLPack device {tuple(dl_device)}"
            )
        if copy is False:
            raise BufferError(f"an array on {array.device} cannot be exported to the host without a copy, and copy=False was asked for")
        array = array.to_device("cpu")
        here, copied = dlpack_device(array), True
    elif copied:
        array = array.copy()
    _check_stream(array.device, stream)
    versioned = max_version is not None and max_version[0] >= 1
    if array.read_only and not versioned:
        raise BufferError("a read-only array can be exported only to a library that takes DLPack 1.0 or newer; export a copy (copy=True)")
    if not copied:
        array.mark_shared()
    if stream != -1:  # -1: the other library waits by itself
        array.device.synchronize()
    return _runtime.dlpack_export(array, *here, versioned, copied)


def _check_stream(device: Device, stream: Any) -> None:
    if stream is None:
        return
    if device.type not in ("cuda", "hip"):
        raise ValueError(f"__dlpack__(stream={stream!r}): a device of type {device.type!r} has no streams; leave stream out")
    if isinstance(stream, bool) or not isinstance(stream, int) or stream < -1 or (device.type == "cuda" and stream == 0):
        raise ValueError(f"__dlpack__(stream={stream!r}): a stream is None, -1 (do not wait), 1, 2 or the address of one")


def from_dlpack(source: Any, /, *, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """An array on the memory of ``source``: an object with ``__dlpack__`` (NumPy, PyTorch, CuPy, JAX, ...), or a DLPack capsule.

    Both see each other's writes; the memory lives for as long as either uses it. Kernels that use it are done when their call returns.
    What the other library never changes (JAX) or marks as such is read-only.
    ``copy``: True makes an array of its own, False refuses to copy; ``device``: where the array is to be, None for where it is. Raises
    BufferError where it could only be had by a copy and copy=False, TypeError for an object or an element type that cannot be taken.
    """
    capsule = _ask(source) if hasattr(source, "__dlpack__") else source
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(f"tack.from_dlpack() takes an object with __dlpack__() or a DLPack capsule, not {type(source).__name__}")
    kind, number, pointer, dtype, shape, strides, read_only, owner = _runtime.dlpack_import(capsule)
    # JAX's arrays never change, but its capsules do not say so.
    read_only = read_only or type(source).__module__.partition(".")[0] in ("jax", "jaxlib")
    array = Array(_device_of(kind, number), pointer, dtype, shape, strides, read_only, owner, True)
    if device is not None and not as_device(device).can_address(array.device):
        if copy is False:
            raise BufferError(
                f"an array on {array.device} cannot be used on {as_device(device)} without a copy, and copy=False was asked for"
            )
        return array.to_device(device)
    return array.copy() if copy else array


def _ask(source: Any) -> Any:
    """The capsule of an object, which may be of a library that knows no versions."""
    if hasattr(source, "is_neg") and source.is_neg():  # PyTorch, which gives such tensors out without a word
        raise BufferError("the elements of this tensor have the other sign in memory: pass x.resolve_neg()")
    options: dict[str, Any] = {}
    if hasattr(source, "__dlpack_device__"):
        kind, _ = source.__dlpack_device__()
        where = _runtime.dlpack_device_type(int(kind))
        if where == "cuda":
            options["stream"] = 1  # what was queued before on the default stream is done before tack's work starts
        elif where == "metal":
            settle(source)
    try:
        return source.__dlpack__(max_version=_DLPACK_VERSION, **options)
    except TypeError:
        return source.__dlpack__(**options)


def settle(tensor: Any) -> None:
    """Waits for what another library has queued on Metal, where DLPack names no streams: with PyTorch's function for it.

    Of other libraries nothing is known: they must have finished.
    """
    mps = getattr(sys.modules.get(type(tensor).__module__.partition(".")[0]), "mps", None)
    if mps is not None:
        mps.synchronize()


def _device_of(kind: int, number: int) -> Device:
    name = _runtime.dlpack_device_type(kind)
    if name is None:
        raise BufferError(f"from_dlpack(): tack has no device for DLPack's device type {kind}; copy the array to the CPU first")
    if name in _NUMBERED:
        return as_device(f"{name}:{number}")
    default = as_device(None)
    return default if default.type == name else as_device(name)


def is_tensor(value: Any) -> bool:
    """Whether ``value`` is an array of another library than NumPy, which tells where its memory is."""
    return hasattr(type(value), "__dlpack__") or hasattr(value, "__cuda_array_interface__")


def shared(value: Any) -> Array:
    """An array on the memory of another library's array, which it keeps alive: through DLPack, else through __cuda_array_interface__."""
    return from_dlpack(value) if hasattr(type(value), "__dlpack__") else _from_interface(value)


def borrowed(value: Any) -> _runtime.Array:
    """The same for the length of a call. Raises TypeError, ValueError or BufferError that says what keeps it from being used."""
    try:
        array = _runtime.borrowed(value)
        return shared(value) if array is None else array
    except (TypeError, ValueError, BufferError):
        raise
    except Exception as error:  # whatever the other library raises
        raise BufferError(f"{type(error).__name__}: {error}") from error


def _from_interface(source: Any) -> Array:
    """An array on what an object's __cuda_array_interface__ describes. Waits for the stream that it names."""
    import numpy

    about = source.__cuda_array_interface__
    if about.get("mask") is not None:
        raise TypeError("__cuda_array_interface__ with a mask has no place in a tack array: apply the mask first")
    stream = about.get("stream")
    if stream == 0:
        raise ValueError(
            "__cuda_array_interface__ with stream 0, which the interface leaves undefined: it is 1 (the default stream) or None"
        )
    address, read_only = about["data"]
    dtype = numpy.dtype(about["typestr"])
    if not dtype.isnative:
        raise TypeError(f"__cuda_array_interface__ of byte-swapped elements ({about['typestr']}): convert them first")
    shape, strides = tuple(about["shape"]), about.get("strides")
    device = _cuda_device_of(address if 0 not in shape else 0)
    if stream is not None:
        device.wait_for_stream(stream)
    if 0 in shape:
        return Array(device, as_dtype(dtype).name, shape)
    return array_from_ptr(address, shape, dtype, strides, device=device, owner=source, read_only=read_only)


def _cuda_device_of(address: int) -> Device:
    """The CUDA device whose memory it is: the interface does not say."""
    first = as_device("cuda")
    if not address or first.addresses(address, 1):
        return first
    for number in range(_runtime.device_count("cuda")):
        device = as_device(f"cuda:{number}")
        if device is not first and device.addresses(address, 1):
            return device
    raise ValueError(f"no CUDA device can address {address:#x}, which __cuda_array_interface__ says is its memory")


def array_from_ptr(
    ptr: int,
    shape: int | Sequence[int],
    dtype: Any,
    strides: Sequence[int] | None = None,
    *,
    device: DeviceLike = None,
    owner: object = None,
    read_only: bool = False,
) -> Array:
    """An array on memory that somebody else allocated. Kernels that use it are done when their call returns.

    ``ptr``: the address of element (0, 0, ...); ``strides``: bytes, None for row-major without gaps; ``owner``: kept alive as long as the
    array or a view of it is. Raises ValueError for an address that ``device`` cannot use, TypeError for wrong kinds of arguments.
    """
    where = as_device(device)
    kind = as_dtype(dtype)
    check_supported(kind, where, "tack.array_from_ptr()")
    if isinstance(ptr, bool) or not hasattr(ptr, "__index__"):
        raise TypeError(f"tack.array_from_ptr(): an address is an int, not {type(ptr).__name__}")
    address = ptr.__index__()
    dims = as_shape(shape, "tack.array_from_ptr()")
    steps = row_major(dims, kind.bits // 8) if strides is None else tuple(step.__index__() for step in strides)
    if len(steps) != len(dims):
        raise ValueError(f"tack.array_from_ptr(): {len(steps)} strides for {len(dims)} dimensions")
    if not 0 <= address < 1 << 64:
        raise ValueError(f"tack.array_from_ptr(): {address} is no address")
    if 0 not in dims:
        reach = [(length - 1) * step for length, step in zip(dims, steps, strict=True)]
        low, high = address + sum(r for r in reach if r < 0), address + sum(r for r in reach if r > 0) + kind.bits // 8
        if not (low > 0 and high <= 1 << 63 and where.addresses(low, high - low)):
            raise ValueError(
                f"tack.array_from_ptr(): {where} cannot address the {high - low} bytes at {low:#x}; give the device whose memory it is"
            )
    return Array(where, address, kind.name, dims, steps, bool(read_only), owner, True)


def cuda_array_interface(array: Array) -> dict[str, Any]:
    """What ``Array.__cuda_array_interface__`` answers, version 3; AttributeError for other devices than CUDA's. Waits for the device."""
    if array.device.type != "cuda":
        raise AttributeError(f"only arrays on a CUDA device have __cuda_array_interface__; this one is on {array.device}")
    array.mark_shared()
    array.device.synchronize()
    return {
        "shape": array.shape,
        "typestr": numpy_dtype(array.dtype).str,
        "data": (array.pointer if array.size else 0, array.read_only),
        "strides": None if array.layout == 0 else array.strides,
        "stream": None,
        "version": 3,
    }
