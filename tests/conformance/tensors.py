"""Stand-ins for other libraries' tensors: with DLPack's functions for C, and with __cuda_array_interface__, on any device's memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from test_dlpack import Managed, look_into

import tack

_NEW = ctypes.pythonapi.PyCapsule_New
_NEW.restype, _NEW.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class LowTensor(ctypes.Structure):
    """DLTensor: the first members of DLManagedTensor."""

    _fields_ = Managed._fields_[:10]


class Exchange(ctypes.Structure):
    """DLPackExchangeAPI of DLPack 1.3."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
        ("managed_of_object", ctypes.c_void_p), ("object_of_managed", ctypes.c_void_p), ("tensor_of_object", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p),
    ]  # fmt: skip


class Tensor:
    """A tensor of a library that counts how often it is looked at. ``stream``: what its library says it works in."""

    stream = 0
    looks = 0
    streams: list[tuple[int, int]] = []

    def __init__(self, owner: Any, requires_grad: bool = False, fails: bool = False) -> None:
        self.owner, self.requires_grad, self.fails, self.offset = owner, requires_grad, fails, 0
        shape, strides = owner.shape, owner.strides
        self.dims = ((ctypes.c_int64 * 16)(*shape), (ctypes.c_int64 * 16)(*(s // owner.itemsize for s in strides)))
        if isinstance(owner, np.ndarray):
            self.device, self.address, dtype = (1, 0), owner.ctypes.data, owner.dtype
        else:
            self.device, self.address, dtype = owner.__dlpack_device__(), owner.pointer, tack.arrays.numpy_dtype(owner.dtype)
            if owner.device.type == "metal" and owner.size:  # whose memory has no address to other libraries: an object, and a place in it
                self.capsule = owner.__dlpack__(max_version=(1, 0))
                _, described = look_into(self.capsule)
                self.address, self.offset = described.data, described.byte_offset
        self.dtype = (KINDS[dtype.kind], 8 * dtype.itemsize, 1)

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("this library wants to be asked through its functions for C")

    def __repr__(self) -> str:
        return f"Tensor({self.owner!r})"


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(LowTensor))
def tensor_of_object(tensor: Tensor, out: Any) -> int:
    Tensor.looks += 1
    if tensor.fails:
        return -1
    low = out.contents
    low.data, (low.device_type, low.device_id) = tensor.address if tensor.owner.size else None, tensor.device
    low.ndim, (low.code, low.bits, low.lanes) = len(tensor.owner.shape), tensor.dtype
    low.shape, low.strides = (ctypes.cast(d, ctypes.POINTER(ctypes.c_int64)) for d in tensor.dims)
    low.byte_offset = tensor.offset
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
def current_stream(device_type: int, device_id: int, out: Any) -> int:
    Tensor.streams.append((device_type, device_id))
    out[0] = Tensor.stream
    return 0


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


_api = Exchange(1, 3, None, None, None, None, _address(tensor_of_object), _address(current_stream))
_newer = Exchange(2, 0, ctypes.addressof(_api), None, None, None, None, None)
_future = Exchange(2, 0, None, None, None, None, None, None)


def _capsule(api: Exchange) -> Any:
    return _NEW(ctypes.addressof(api), b"dlpack_exchange_api", None)


class NewerTensor(Tensor):
    """Of a library that has functions of DLPack 2, and the older ones behind them."""


class FutureTensor(Tensor):
    """Of a library that has functions of DLPack 2 alone."""


Tensor.__dlpack_c_exchange_api__ = _capsule(_api)  # type: ignore[attr-defined]
NewerTensor.__dlpack_c_exchange_api__ = _capsule(_newer)  # type: ignore[attr-defined]
FutureTensor.__dlpack_c_exchange_api__ = _capsule(_future)  # type: ignore[attr-defined]


class Described:
    """An object with __cuda_array_interface__ on a tack array's memory, and whatever else is given."""

    def __init__(self, array: tack.Array, **changes: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}
