"""Memory shared with other libraries: DLPack in both directions, arrays on bare addresses, and __cuda_array_interface__."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import tack

HOST = (1, 0)  # DLPack's device type and number of the CPU


@tack.kernel
def double(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2


class Wrapped:
    """An object of another library with NumPy's memory. It sees what it is asked, and may be of a library that knows no versions."""

    def __init__(self, values: np.ndarray, versions: bool = True, again: bool = False) -> None:
        self.values, self.versions, self.again = values, versions, again
        self.asked: list[dict[str, Any]] = []
        self.capsule: Any = None

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        self.asked.append(options)
        if not self.versions and "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        if self.capsule is None or not self.again:
            self.capsule = self.values.__dlpack__(**options)
        return self.capsule


class Managed(ctypes.Structure):
    """DLManagedTensor as the DLPack specification has it, for arrays that no library makes."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), *Managed._fields_[:10],
    ]  # fmt: skip


def capsule_of(tensor: ctypes.Structure, name: bytes) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(tensor), name, None)


def look_into(capsule: Any) -> tuple[str, Any]:
    """A capsule's name and its structure."""
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = name_of(capsule)
    kind = Versioned if b"versioned" in name else Managed
    return name.decode(), kind.from_address(pointer_of(capsule, name))


def on_host(device: tack.Device) -> bool:
    return device.type == "cpu"


# -- to other libraries


@pytest.mark.parametrize("dtype", tack.types.ARRAY_DTYPES, ids=lambda t: t.name)
def test_numpy_sees_the_memory(device: tack.Device, dtype: tack.DType) -> None:
    a = tack.array(np.arange(6).reshape(2, 3), dtype=dtype)
    if not on_host(device):
        np.testing.assert_array_equal(np.from_dlpack(a.to_device("cpu")), a.numpy())
        return
    seen = np.from_dlpack(a)
    assert seen.dtype == a.numpy().dtype and seen.shape == (2, 3)
    a[1, 2] = 40
    assert seen[1, 2] == 40
    seen[0, 0] = 7
    assert a[0, 0] == 7


def test_the_capsule_says_what_the_array_is(device: tack.Device) -> None:
    a = tack.array(np.arange(24, dtype=np.float32).reshape(4, 6))[::2, 4:0:-1]
    assert a.__dlpack_device__() == ({"cpu": 1, "metal": 8, "cuda": 2, "hip": 10, "level_zero": 14}[device.type], device.index)
    for version, wanted in ((None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"), ((2, 0), "dltensor_versioned")):
        capsule = a.__dlpack__(max_version=version)
        name, tensor = look_into(capsule)
        assert name == wanted
        assert (tensor.device_type, tensor.device_id) == a.__dlpack_device__()
        if device.type == "metal":  # an object, and a place in it
            assert tensor.data not in (None, a.pointer) and tensor.byte_offset == 16
        else:
            assert tensor.data + tensor.byte_offset == a.pointer
        assert (tensor.code, tensor.bits, tensor.lanes) == (2, 32, 1)
        assert tensor.ndim == 2 and list(tensor.shape[:2]) == [2, 4] and list(tensor.strides[:2]) == [12, -1]
        if wanted.endswith("versioned"):
            assert tensor.major == 1 and tensor.flags == 0


def test_an_export_marks_the_memory_shared(device: tack.Device) -> None:
    a = tack.zeros(4)
    view = a[1:]
    assert not a.shared
    a.__dlpack__(copy=True)
    assert not a.shared
    a.__dlpack__()
    assert a.shared and view.shared


def test_an_exported_array_outlives_its_python_objects(device: tack.Device) -> None:
    gc.collect()  # what other tests left
    a = tack.arange(1000, dtype=tack.i32)
    view = tack.from_dlpack(a[10:20])
    before = device.memory_stats()["in_use"]
    del a
    gc.collect()
    assert view.tolist() == list(range(10, 20)) and device.memory_stats()["in_use"] == before
    del view
    gc.collect()
    assert device.memory_stats()["in_use"] < before


def test_a_capsule_that_nobody_takes_frees_the_memory(device: tack.Device) -> None:
    gc.collect()  # what other tests left
    before = device.memory_stats()["in_use"]
    for version in (None, (1, 0)):
        capsule = tack.zeros(100_000).__dlpack__(max_version=version)
        assert device.memory_stats()["in_use"] > before
        del capsule
        gc.collect()
        assert device.memory_stats()["in_use"] == before


def test_memory_may_be_given_up_on_any_thread(device: tack.Device) -> None:
    gc.collect()
    kept = [tack.from_dlpack(tack.full(10, 3.0))]
    before = device.memory_stats()["in_use"]
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    assert device.memory_stats()["in_use"] < before


def test_a_read_only_array_needs_a_version_that_can_say_so(device: tack.Device) -> None:
    values = np.arange(5.0)
    values.flags.writeable = False
    a = tack.asarray(values, device="cpu")
    assert a.read_only
    with pytest.raises(BufferError, match="read-only"):
        a.__dlpack__()
    assert look_into(a.__dlpack__(max_version=(1, 0)))[1].flags == 1
    assert look_into(a.__dlpack__(max_version=(1, 0), copy=True))[1].flags == 2  # a copy, and writable
    assert not np.from_dlpack(a).flags.writeable
    again = tack.from_dlpack(a)
    assert again.read_only
    with pytest.raises(ValueError, match="read-only"):
        double(again)


def test_copies_are_made_only_where_they_may_be(device: tack.Device) -> None:
    a = tack.zeros(3)
    assert tack.from_dlpack(a, copy=False).pointer == a.pointer == tack.from_dlpack(a).pointer
    assert tack.from_dlpack(a, copy=True).pointer != a.pointer
    copied = tack.from_dlpack(a.__dlpack__(copy=True))
    a.fill(1)
    assert copied.tolist() == [0.0] * 3
    assert look_into(a.__dlpack__(max_version=(1, 0), copy=True))[1].flags == 2
    if on_host(device):
        assert look_into(a.__dlpack__(dl_device=HOST, max_version=(1, 0)))[1].flags == 0
    else:
        host = a.__dlpack__(dl_device=HOST, max_version=(1, 0))
        assert look_into(host)[1].flags == 2 and look_into(host)[1].device_type == 1
        assert tack.from_dlpack(host).tolist() == [1.0] * 3
        assert tack.from_dlpack(a, device="cpu").device is tack.device("cpu")
        for refused in (lambda: a.__dlpack__(dl_device=HOST, copy=False), lambda: tack.from_dlpack(a, device="cpu", copy=False)):
            with pytest.raises(BufferError, match="copy=False"):
                refused()
    with pytest.raises(BufferError, match=r"\(99, 0\)"):
        a.__dlpack__(dl_device=(99, 0))


def test_streams_are_for_devices_that_have_them(device: tack.Device) -> None:
    a = tack.zeros(3)
    a.__dlpack__(stream=None)
    if device.type in ("cuda", "hip"):
        for stream in (-1, 1, 2, 1 << 40, *([0] if device.type == "hip" else [])):  # HIP's default stream
            a.__dlpack__(stream=stream)
        refused: tuple[Any, ...] = (-2, 1.0, True, "1")
    else:
        refused = (0, 1, -1)
    for stream in refused:
        with pytest.raises(ValueError, match="stream"):
            a.__dlpack__(stream=stream)


# -- from other libraries


@pytest.mark.parametrize("versions", [True, False])
@pytest.mark.parametrize("dtype", [*(np.dtype(c) for c in "bBhHiIqQfd"), np.dtype(bool)], ids=str)
def test_memory_of_numpy_is_used_in_place(dtype: np.dtype, versions: bool) -> None:
    values = np.ones((3, 4), dtype)
    source = Wrapped(values, versions)
    a = tack.from_dlpack(source)
    assert a.device is tack.device("cpu") and a.shape == (3, 4) and a.shared
    assert a.dtype == (tack.u8 if dtype.kind == "b" else tack.arrays.as_dtype(dtype))
    assert a.__array__(copy=False).ctypes.data == values.ctypes.data
    if dtype.kind != "b":
        double(a.reshape(12))
        np.testing.assert_array_equal(values, 2)
    assert source.asked[0] == {"max_version": (1, 1)} and len(source.asked) == (1 if versions else 2)


def test_views_keep_their_strides() -> None:
    values = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
    for view in (values[::2, 1:, ::-1], values.transpose(2, 0, 1), np.broadcast_to(values[0, 0], (4, 5)), values[:, :0], values[1, 1, 1:2]):
        a = tack.from_dlpack(Wrapped(view))
        assert a.shape == view.shape
        np.testing.assert_array_equal(a.numpy(), view)
        np.testing.assert_array_equal(np.from_dlpack(a), view)


def test_read_only_memory_stays_so() -> None:
    values = np.zeros(3)
    values.flags.writeable = False
    a = tack.from_dlpack(values)
    assert a.read_only
    with pytest.raises(ValueError, match="read-only"):
        a.fill(1.0)


def test_the_owner_lives_as_long_as_the_array() -> None:
    class Values(np.ndarray):
        pass

    values = np.arange(5.0).view(Values)
    gone = weakref.ref(values)
    a = tack.from_dlpack(values)[1:]
    del values
    gc.collect()
    assert gone() is not None and a.tolist() == [1.0, 2.0, 3.0, 4.0]
    del a
    gc.collect()
    assert gone() is None


def test_a_capsule_is_used_once() -> None:
    for versions in (True, False):
        source = Wrapped(np.arange(3.0), versions, again=True)
        assert tack.from_dlpack(source).tolist() == [0.0, 1.0, 2.0]
        with pytest.raises(ValueError, match="used before"):
            tack.from_dlpack(source)
    capsule = tack.ones(2, device="cpu").__dlpack__()
    assert tack.from_dlpack(capsule).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="used before"):
        tack.from_dlpack(capsule)


def test_what_cannot_be_taken_is_refused_and_the_capsule_stays_good() -> None:
    with pytest.raises(TypeError, match="code 5 with 128 bits"):
        tack.from_dlpack(np.zeros(3, complex))
    with pytest.raises(TypeError, match="16 bits"):
        tack.from_dlpack(np.zeros(3, np.float16))
    with pytest.raises(TypeError, match="int"):
        tack.from_dlpack(3)
    with pytest.raises(TypeError, match="called 'nothing'"):
        tack.from_dlpack(capsule_of(Managed(), b"nothing"))
    nine = np.zeros((1,) * 9).__dlpack__()
    with pytest.raises(ValueError, match="9 dimensions"):
        tack.from_dlpack(nine)
    assert look_into(nine)[0] == "dltensor"  # not taken

    class Answers:
        def __dlpack__(self, **options: Any) -> Any:
            return "a string"

    with pytest.raises(TypeError, match="Answers"):
        tack.from_dlpack(Answers())


def test_structures_that_no_library_here_makes() -> None:
    data = (ctypes.c_float * 6)(*range(6))
    shape = (ctypes.c_int64 * 2)(2, 2)
    ended: list[int] = []
    end = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda p: ended.append(p))
    deleter = ctypes.cast(end, ctypes.c_void_p).value
    tensor = Managed(ctypes.addressof(data), 1, 0, 2, 2, 32, 1, shape, None, 8, None, deleter)  # no strides; an offset of two elements
    a = tack.from_dlpack(capsule_of(tensor, b"dltensor"))
    assert a.tolist() == [[2.0, 3.0], [4.0, 5.0]] and ended == []
    del a
    gc.collect()
    assert ended == [ctypes.addressof(tensor)]
    newer = Versioned(2, 0, None, deleter, 0, ctypes.addressof(data), 1, 0, 2, 2, 32, 1, shape, None, 0)
    with pytest.raises(BufferError, match=r"DLPack 2\.0"):
        tack.from_dlpack(capsule_of(newer, b"dltensor_versioned"))
    for device_type, error in ((99, "device type 99"), (7, "device type 7")):
        elsewhere = Managed(ctypes.addressof(data), device_type, 0, 2, 2, 32, 1, shape, None, 0, None, None)
        with pytest.raises(BufferError, match=error):
            tack.from_dlpack(capsule_of(elsewhere, b"dltensor"))
    pinned = Managed(ctypes.addressof(data), 3, 0, 2, 2, 32, 1, shape, None, 0, None, None)  # CUDA's host memory is the CPU's
    assert tack.from_dlpack(capsule_of(pinned, b"dltensor")).device is tack.device("cpu")
    huge = (ctypes.c_int64 * 2)(1 << 62, 1 << 62)
    for strides in (None, huge):
        far = Managed(ctypes.addressof(data), 1, 0, 2, 2, 32, 1, huge, strides, 0, None, None)
        with pytest.raises(ValueError, match="64-bit"):
            tack.from_dlpack(capsule_of(far, b"dltensor"))
    negative = Managed(ctypes.addressof(data), 1, 0, 1, 2, 32, 1, (ctypes.c_int64 * 1)(-1), None, 0, None, None)
    with pytest.raises(ValueError, match="-1"):
        tack.from_dlpack(capsule_of(negative, b"dltensor"))
    odd = Managed(ctypes.addressof(data) + 1, 1, 0, 1, 2, 32, 1, (ctypes.c_int64 * 1)(1), None, 0, None, None)
    with pytest.raises(ValueError, match="misaligned|multiple"):
        tack.from_dlpack(capsule_of(odd, b"dltensor"))


def test_arrays_of_a_device_return_to_it(device: tack.Device) -> None:
    a = tack.arange(12, dtype=tack.i32).reshape(3, 4)
    for view in (a, a[1:, ::2], a.T):
        back = tack.from_dlpack(view)
        assert back.device.can_address(device) and back.pointer == view.pointer and back.strides == view.strides
        np.testing.assert_array_equal(back.numpy(), view.numpy())
    back = tack.from_dlpack(a.reshape(12))
    double(back)
    assert a.reshape(12).tolist() == [2 * i for i in range(12)]


# -- bare addresses


def test_an_array_on_an_address(device: tack.Device) -> None:
    base = tack.arange(24, dtype=tack.i32)
    a = tack.array_from_ptr(base.pointer, (4, 6), tack.i32, device=device, owner=base)
    assert a.device is device and a.shared and a.pointer == base.pointer and a.strides == (24, 4)
    np.testing.assert_array_equal(a.numpy(), np.arange(24).reshape(4, 6))
    double(a.reshape(24))
    assert base.tolist() == [2 * i for i in range(24)]
    backwards = tack.array_from_ptr(base.pointer + 23 * 4, 24, np.int32, strides=(-4,), device=device, owner=base, read_only=True)
    assert backwards.tolist() == [2 * i for i in range(23, -1, -1)] and backwards.read_only
    with pytest.raises(ValueError, match="read-only"):
        double(backwards)


def test_the_owner_is_kept(device: tack.Device) -> None:
    base = tack.zeros(3)
    pointer, gone = base.pointer, weakref.ref(base)
    a = tack.array_from_ptr(pointer, 3, tack.f32, owner=base)[1:]
    del base
    gc.collect()
    assert gone() is not None
    del a
    gc.collect()
    assert gone() is None


def test_addresses_that_the_device_cannot_use_are_value_errors(device: tack.Device) -> None:
    unmapped = 1 << 60
    for pointer in (0, unmapped, -8, 1 << 64):
        with pytest.raises(ValueError, match="address"):
            tack.array_from_ptr(pointer, 4, tack.f32, device=device)
    own = tack.zeros(64, device=device)
    with pytest.raises(ValueError, match=f"{device}.* cannot address"):
        tack.array_from_ptr(own.pointer, 1 << 50, tack.f32, device=device)  # it starts there, and does not end there
    with pytest.raises(ValueError, match="multiple"):
        tack.array_from_ptr(own.pointer + 1, 4, tack.f32, device=device)
    if not on_host(device):
        host = np.zeros(64, np.float32)
        with pytest.raises(ValueError, match=f"{device}.* cannot address"):
            tack.array_from_ptr(host.ctypes.data, 64, tack.f32, device=device)
    assert tack.array_from_ptr(0, (3, 0), tack.f32, device=device).size == 0


def test_arguments_of_array_from_ptr_are_checked(device: tack.Device) -> None:
    own = tack.zeros(4)
    for arguments, error in (
        (("p", 4, tack.f32), "address"), ((True, 4, tack.f32), "address"), ((own.pointer, "x", tack.f32), "shape"),
        ((own.pointer, 4, "f32"), "dtype"), ((own.pointer, 4, np.complex64), "dtype"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=error):
            tack.array_from_ptr(*arguments)
    with pytest.raises(ValueError, match="strides"):
        tack.array_from_ptr(own.pointer, 4, tack.f32, strides=(4, 4))
    with pytest.raises(ValueError, match="negative"):
        tack.array_from_ptr(own.pointer, -1, tack.f32)
    with pytest.raises(ValueError, match="stride"):
        tack.array_from_ptr(own.pointer, 1, tack.f32, strides=(3,))


# -- __cuda_array_interface__


def test_the_cuda_array_interface_is_cudas(device: tack.Device) -> None:
    a = tack.zeros((3, 4), dtype=tack.i16)
    if device.type != "cuda":
        assert not hasattr(a, "__cuda_array_interface__")
        return
    shown = a.__cuda_array_interface__
    assert shown == {"shape": (3, 4), "typestr": "<i2", "data": (a.pointer, False), "strides": None, "stream": None, "version": 3}
    assert a.shared and a.T.__cuda_array_interface__["strides"] == (2, 8)
    assert tack.zeros(0).__cuda_array_interface__["data"] == (0, False)


def test_exports_leave_nothing_behind(device: tack.Device) -> None:
    a = tack.zeros(8)
    before = sys.getallocatedblocks()
    for _ in range(200 if "TACK_SIM_SUPPORT" in os.environ else 2000):
        tack.from_dlpack(a)
    gc.collect()
    assert sys.getallocatedblocks() - before < 100
