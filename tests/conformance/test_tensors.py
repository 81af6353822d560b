"""Other libraries' tensors straight in kernels, where the device can address them; what keeps them out; __cuda_array_interface__ taken."""

from __future__ import annotations

import ctypes
import gc
import weakref
from pathlib import Path
from typing import Any

import child
import numpy as np
import pytest
from tensors import Described, FutureTensor, NewerTensor, Tensor
from test_dlpack import Wrapped

import tack


@tack.kernel
def double(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2


@tack.kernel
def add(out, x, y):
    for i, j in tack.ndrange(out.shape[0], out.shape[1]):
        out[i, j] = x[i, j] + y[i, j]


@pytest.fixture(params=[Tensor, NewerTensor], ids=["exchange", "newer"])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("dtype", tack.types.ARRAY_DTYPES, ids=lambda t: t.name)
def test_a_kernel_takes_tensors_in_place(device: tack.Device, kind: Any, dtype: tack.DType) -> None:
    a = tack.arange(12, dtype=dtype)
    tensor, looks = kind(a), Tensor.looks
    for _ in range(3):
        double(tensor)
    assert a.tolist() == [8 * i % 256 if dtype.bits == 8 else 8 * i for i in range(12)]
    assert Tensor.looks >= looks + 3


def test_layouts_of_tensors(device: tack.Device) -> None:
    base = tack.array(np.arange(48, dtype=np.float32).reshape(6, 8))
    for view in (base, base.T, base[::2, 6:0:-2], base[:, :0], base[2:3], base[:, 3:4]):
        out = tack.zeros(view.shape)
        add(Tensor(out), Tensor(view), view)
        np.testing.assert_array_equal(out.numpy(), 2 * view.numpy())


def test_tensors_and_arrays_mix(device: tack.Device) -> None:
    x, y, out = tack.ones((3, 4)), tack.full((3, 4), 2.0), tack.zeros((3, 4))
    add(out, Tensor(x), y)
    add(x, out, Tensor(y))
    assert x.tolist() == [[5.0] * 4] * 3


def test_tensors_are_shared_memory_and_done_when_the_call_returns(device: tack.Device) -> None:
    """The other library reads its memory without tack: here through an array that knows no queue of work."""
    a = tack.zeros(4000)
    for _ in range(10):
        a.fill(1.0)
        double(Tensor(a))
        raw = tack.array_from_ptr(a.pointer, 4000, tack.f32, device=device, owner=a)
        assert raw[3999] == 2.0


def test_tensors_of_two_devices(device: tack.Device) -> None:
    host, here = np.ones((2, 2), np.float32), tack.ones((2, 2))
    if device.can_address(tack.device("cpu")):
        add(here, Tensor(host), here)
        assert here.tolist() == [[2.0, 2.0], [2.0, 2.0]]
        return
    with pytest.raises(ValueError, match=r"Kernel 'add': arguments 'out' .* and 'x' \(another library's on cpu\) are on two devices"):
        add(here, Tensor(host), here)
    add(Tensor(host), Tensor(host), host)  # on the CPU, whatever the default
    assert host.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_scalars_of_a_tensors_library_are_no_arrays_of_one_dimension(device: tack.Device) -> None:
    with pytest.raises(TypeError, match=r"Kernel 'double'"):
        double(Tensor(tack.zeros(())))


@pytest.mark.parametrize(
    ("tensor", "error", "message"),
    [
        (lambda: Tensor(np.ones(3, np.float32), requires_grad=True), TypeError, r"parameter 'x' is a tensors\.Tensor .*x\.detach\(\)"),
        (lambda: Tensor(np.ones(3, np.float16)), TypeError, r"parameter 'x'.* 16 bits"),
        (lambda: Tensor(np.ones(3, np.complex64)), TypeError, r"parameter 'x'.* code 5"),
        (lambda: Tensor(np.ones((1,) * 9, np.float32)), ValueError, r"parameter 'x'.* 9 dimensions"),
        (lambda: Tensor(np.ones(3, np.float32), fails=True), ValueError, r"parameter 'x'.*does not give it out"),
        (lambda: FutureTensor(np.ones(3, np.float32)), BufferError, r"parameter 'x' is a tensors\.FutureTensor .*functions for C"),
        (lambda: Tensor(np.zeros(20, np.uint8)[1:9].view(np.float32)), ValueError, r"parameter 'x'.*multiple of 4"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_name(device: tack.Device, tensor: Any, error: type, message: str) -> None:
    for _ in range(2):
        with pytest.raises(error, match=f"(?s)Kernel 'double'.*{message}"):
            double(tensor())


@pytest.mark.parametrize("versions", [True, False])
def test_objects_with_dlpack_alone_are_taken_in_place_too(versions: bool) -> None:
    values = np.arange(4, dtype=np.float32)
    double(Wrapped(values, versions))
    assert values.tolist() == [0.0, 2.0, 4.0, 6.0]
    values.flags.writeable = False
    with pytest.raises((ValueError, BufferError), match=r"(?s)Kernel 'double'.*(read-only|readonly)"):
        double(Wrapped(values, versions))


def test_a_tensor_is_not_kept(device: tack.Device) -> None:
    tensor = Tensor(tack.ones(3))
    gone = weakref.ref(tensor)
    double(tensor)
    del tensor
    gc.collect()
    assert gone() is None


def test_constructors_take_tensors(device: tack.Device) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    source = Wrapped(values)
    in_place = tack.asarray(source)
    assert in_place.device.type == "cpu" and in_place.pointer == values.ctypes.data and in_place.tolist() == values.tolist()
    copied = tack.array(source)
    assert copied.device is device and copied.pointer != values.ctypes.data and copied.tolist() == values.tolist()
    assert tack.asarray(source, dtype=tack.f64).dtype == tack.f64 and tack.asarray(source, device=device).device.can_address(device)
    np.testing.assert_array_equal(tack.concatenate([source, source]).numpy(), np.concatenate([values, values]))
    with pytest.raises(TypeError, match="128 bits"):
        tack.array(Wrapped(np.zeros(3, complex)))


# -- streams


# The driver's library, and its functions that make a stream and that fill memory in one.
STREAMS = {
    "cuda": ("TACK_LIBCUDA", "libcuda.so.1", "cuStreamCreate", "cuMemsetD32Async"),
    "hip": ("TACK_LIBHIP", "libamdhip64.so.7", "hipStreamCreateWithFlags", "hipMemsetD32Async"),
}


@pytest.mark.needs("simulator", "streams")
def test_the_stream_of_a_tensors_library_is_waited_for(device: tack.Device, tmp_path: Path) -> None:
    """Work lies in a stream that does not wait for the default one: read too early, the memory has its old content."""
    variable, library, create, fill = STREAMS[device.type]
    program = f"""
        import ctypes, os, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import tack
        from tensors import Described, Tensor
        from test_tensors import double
        d = tack.device({device.type!r})
        tack.set_default_device(d)
        driver = ctypes.CDLL(os.environ.get({variable!r}) or {library!r})
        stream = ctypes.c_void_p()
        assert driver.{create}(ctypes.byref(stream), 1) == 0  # non-blocking

        def work(a):
            assert driver.{fill}(ctypes.c_uint64(a.pointer), 0x40400000, ctypes.c_size_t(a.size), stream) == 0  # 3.0

        for _ in range(5):
            a = tack.zeros(5000)
            tack.sync()
            work(a)
            Tensor.stream = stream.value
            double(Tensor(a))
            assert a[0] == a[4999] == 6.0, a
            if d.type == "cuda":
                b = tack.zeros(5000)
                tack.sync()
                work(b)
                taken = tack.asarray(Described(b, stream=stream.value))
                double(taken)
                assert b[0] == b[4999] == 6.0, b
                c = tack.zeros(5000)
                tack.sync()
                work(c)
                double(Described(c, stream=stream.value))
                assert c[4999] == 6.0, c
        print(Tensor.streams[0])
    """
    kind = {"cuda": 2, "hip": 10}[device.type]
    assert child.run(program, tmp_path, order="delayed", delay=3000).out == f"({kind}, 0)\n"


@pytest.mark.needs("simulator", "CUDA")
def test_an_export_waits_whatever_the_stream_of_its_taker(device: tack.Device, tmp_path: Path) -> None:
    """Asked of the driver, over a stand-in that starts no work by itself; -1 says that the taker waits."""
    program = """
        import ctypes, os, tack
        driver = ctypes.CDLL(os.environ["TACK_LIBCUDA"])
        tack.set_default_device("cuda")

        @tack.kernel
        def add_one(x):
            for i in range(x.shape[0]):
                x[i] = x[i] + 1

        for stream in (None, 1, 2, 1 << 40, -1):
            x = tack.zeros(100)
            tack.sync()
            add_one(x)
            capsule = x.__dlpack__(stream=stream, max_version=(1, 0))
            print(driver.cuStreamQuery(None), end=" ")  # 600 is CUDA_ERROR_NOT_READY; having asked makes the stand-in begin
    """
    assert child.run(program, tmp_path, order="lazy").out == "0 0 0 0 600 "


# -- __cuda_array_interface__


@pytest.mark.needs("CUDA")
def test_the_cuda_array_interface_is_taken(device: tack.Device) -> None:
    a = tack.arange(24, dtype=tack.i32).reshape(4, 6)
    for view in (a, a[::2, 1:], a.T):
        for stream in (None, 1, 2):
            taken = tack.asarray(Described(view, stream=stream))
            assert taken.device is device and taken.pointer == view.pointer and taken.strides == view.strides and taken.shared
            np.testing.assert_array_equal(taken.numpy(), view.numpy())
    double(Described(a.reshape(24)))
    assert a[3, 5] == 46
    source = Described(a)
    gone = weakref.ref(source)
    taken = tack.asarray(source)[1:]
    del source
    gc.collect()
    assert gone() is not None, "the memory's owner is kept"
    del taken
    gc.collect()
    assert gone() is None
    frozen = tack.asarray(Described(a, data=(a.pointer, True)))
    assert frozen.read_only
    assert tack.asarray(Described(tack.zeros((0, 3)))).shape == (0, 3)
    copied = tack.array(Described(a))
    assert copied.pointer != a.pointer and copied.tolist() == a.tolist()


@pytest.mark.needs("CUDA")
def test_interfaces_that_cannot_be_taken(device: tack.Device) -> None:
    a = tack.zeros(8)
    for changes, error, message in (
        ({"mask": 1}, TypeError, "mask"), ({"stream": 0}, ValueError, "stream 0"), ({"typestr": ">f4"}, TypeError, "byte-swapped"),
        ({"typestr": "<c8"}, TypeError, "complex64"), ({"data": (1 << 60, False)}, ValueError, "no CUDA device can address"),
        ({"shape": (1 << 40,)}, ValueError, "cannot address"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            tack.asarray(Described(a, **changes))
        with pytest.raises(error, match=f"(?s)Kernel 'double': parameter 'x'.*{message}"):
            double(Described(a, **changes))


@pytest.mark.needs("CUDA", "neighbour")
def test_an_interface_is_of_the_device_whose_memory_it_is(device: tack.Device) -> None:
    second = tack.device(f"cuda:{1 - device.index}")
    a = tack.ones(8, device=second)
    assert tack.asarray(Described(a)).device is second
    double(Described(a))
    assert a.sum() == 16.0


def test_other_devices_show_no_cuda_array_interface(device: tack.Device) -> None:
    if device.type != "cuda":
        with pytest.raises(AttributeError, match="only arrays on a CUDA device"):
            Described(tack.zeros(3))


def test_devices_without_streams_have_none_to_wait_for(device: tack.Device) -> None:
    device.wait_for_stream(0)
    device.wait_for_stream(1)
    if device.type == "cpu":
        device.wait_for_stream(ctypes.c_uint64(-1).value)
