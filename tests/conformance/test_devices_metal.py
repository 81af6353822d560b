"""Metal: memory that host and GPU share, the limit of buffers, the archive of a second process, dumped MSL, every function failing once."""

from __future__ import annotations

import ctypes
import os
import types
from pathlib import Path

import child
import numpy as np
import pytest
import tensors
from test_dlpack import look_into

import tack

pytestmark = pytest.mark.needs("Metal")


@tack.kernel
def add_one(x):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1


@tack.kernel
def add_both(x, y):
    for i in range(x.shape[0]):
        x[i] = x[i] + y[i]


def test_the_device_is_called_metal_and_has_no_number(device: tack.Device) -> None:
    assert tack.device("metal") is device and str(device) == "metal" and tack.device_count("metal") == 1
    assert device.arch.startswith("apple") and device.device_name
    assert not device.supports_f64 and device.supports_workgroups and device.queued and device.host_addressable
    assert device._backend.supported_atomic_dtypes == {tack.i32, tack.u32, tack.f32}
    assert device.max_iterations == 1 << 32


def test_an_array_and_the_hosts_view_are_one_allocation(device: tack.Device) -> None:
    x = tack.zeros(100)
    view = np.asarray(x, copy=False) if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else np.asarray(memoryview(x))
    assert view.ctypes.data == x.pointer
    add_one(x)
    assert x.numpy() is not view and x.numpy().ctypes.data != x.pointer, "numpy() copies"
    assert view[5] == 1.0
    view[5] = 7.0
    add_one(x)
    assert x[5] == 8.0


def many(arrays: int, scalars: int, name: str) -> object:
    """A kernel of so many arrays and scalars, which adds all of them up in each element of the first."""
    a, s = [f"a{i}" for i in range(arrays)], [f"s{i}" for i in range(scalars)]
    total = " + ".join([f"{x}[i]" for x in a] + s)
    text = f"@tack.kernel\ndef {name}({', '.join(a + s)}):\n    for i in range(a0.shape[0]):\n        a0[i] = {total}\n"
    from language import define

    return define(text)[name]


def test_thirty_arrays_and_forty_scalars_are_taken(device: tack.Device) -> None:
    kernel = many(30, 40, "wide")
    arrays = [tack.full(10, float(i)) for i in range(30)]
    kernel(*arrays, *(float(i) for i in range(40)))  # type: ignore[operator]
    assert arrays[0].tolist() == [float(sum(range(30)) + sum(range(40)))] * 10


def test_more_scalars_than_fit_into_a_command_lie_in_a_buffer(device: tack.Device) -> None:
    kernel = many(1, 520, "wider")
    a = tack.zeros(4)
    kernel(a, *(1.0 for _ in range(520)))  # type: ignore[operator]
    assert a.tolist() == [520.0] * 4


def test_thirty_one_arrays_and_a_scalar_are_too_many(device: tack.Device) -> None:
    kernel, arrays, compiled = many(31, 1, "too_wide"), [tack.zeros(4) for _ in range(31)], device.compiled
    assert device.max_buffers == 31
    told = r"Kernel 'too_wide' needs 32 buffers, .*; the limit on Metal is 31\."
    for mode in ("source", "schedule"):
        with pytest.raises(tack.UnsupportedError, match=told):
            tack.inspect(kernel, *arrays, 1.0, mode=mode)
    with pytest.raises(tack.UnsupportedError, match=told):
        tack.compile(kernel, *[tack.f32[:]] * 31, float, target="metal:apple7")
    with pytest.raises(tack.UnsupportedError, match=told):
        kernel(*arrays, 1.0)  # type: ignore[operator]
    assert device.compiled == compiled and all(a.tolist() == [0.0] * 4 for a in arrays)


def test_queued_copies_and_fills_of_any_size_and_place(device: tack.Device) -> None:
    """Metal's own are of whole words alone."""
    for start, stop in ((0, 8), (1, 8), (4, 9), (3, 10), (0, 1000), (1, 999)):
        a, b = tack.zeros(1003, dtype=tack.u8), tack.full(1003, 9, dtype=tack.u8)
        add_one(a)
        tack.copyto(b[start:stop], a[start:stop])
        add_one(a)
        a[start:stop].fill(5)
        add_one(a)
        tack.copyto(a[: stop - start], np.full(stop - start, 7, np.uint8))
        add_one(a)
        expected = np.full(1003, 4, np.uint8)
        expected[start:stop] = 7
        expected[: stop - start] = 8
        assert a.tolist() == expected.tolist()
        assert b.tolist() == [1 if start <= i < stop else 9 for i in range(1003)]


def test_other_libraries_name_memory_by_its_buffer(device: tack.Device) -> None:
    """DLPack's ``data`` is the MTLBuffer, as PyTorch and MLX have it, and ``byte_offset`` a place in it."""
    a = tack.arange(100, dtype=tack.f32)
    (_, whole), (_, part) = look_into(kept := a.__dlpack__()), look_into(kept_too := a[10:].__dlpack__())
    assert whole.data == part.data != a.pointer and part.byte_offset == whole.byte_offset + 40
    back = tack.from_dlpack(kept_too)
    assert back.device is device and back.pointer == a.pointer + 40
    add_one(back)
    assert a[10] == 11.0 and tack.from_dlpack(kept)[10] == 11.0
    del a
    assert back.tolist() == [float(i + 1) for i in range(10, 100)], "the memory lives for as long as either uses it"


def test_the_work_of_a_tensors_library_is_waited_for(device: tack.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """DLPack names no streams there: PyTorch's function is called, which finishes what PyTorch has queued."""
    waits: list[int] = []
    monkeypatch.setattr(tensors, "mps", types.SimpleNamespace(synchronize=lambda: waits.append(1)), raising=False)
    a = tack.ones(10)
    tensor = tensors.Tensor(a)
    for n in (1, 2):
        add_one(tensor)
        assert len(waits) == n and a.tolist() == [1.0 + n] * 10


@pytest.mark.needs("simulator")
def test_memory_that_the_host_cannot_see_is_refused(device: tack.Device) -> None:
    a = tack.ones(10)
    capsule = a.__dlpack__()
    ctypes.CDLL(os.environ["TACK_LIBMETAL"]).tack_sim_fail_at(ctypes.c_long(1), 1)
    with pytest.raises(ValueError, match="Metal cannot use another library's memory: tack_metal_adopt was made to fail"):
        tack.from_dlpack(capsule)
    assert tack.from_dlpack(capsule).tolist() == [1.0] * 10, "a capsule that was refused is as it was"


def test_host_memory_is_no_memory_of_the_gpus(device: tack.Device) -> None:
    """What NumPy has allocated is no MTLBuffer: alone it is the CPU's, beside Metal's arrays it is refused; NumPy sees arrays in place."""
    host, a = np.ones(4, np.float32), tack.ones(4)
    add_one(host)
    assert host.tolist() == [2.0] * 4
    with pytest.raises(ValueError, match=r"Kernel 'add_both'.*two devices"):
        add_both(a, host)
    view = np.asarray(memoryview(a))
    view[:] = host
    add_both(a, a)
    assert view.tolist() == [4.0] * 4


@pytest.mark.needs("simulator")
def test_a_second_process_makes_no_msl_compile_call(device: tack.Device, tmp_path: Path) -> None:
    first = child.run(child.CACHED.format(device.type), tmp_path)
    assert first.out == "3000.0 3.0\n" and first.calls("libtackmetal", "tack_metal_compile") == 3
    second = child.run(child.CACHED.format(device.type), tmp_path)
    assert second.out == first.out and second.calls("libtackmetal", "tack_metal_compile") == 0


def test_dumped_msl_is_what_is_compiled(device: tack.Device, tmp_path: Path) -> None:
    program = """
        import glob, os, tack

        @tack.kernel
        def dumped_by_a_test(x):
            for i in range(x.shape[0]):
                x[i] = 1.5

        x = tack.zeros(4, device="metal")
        dumped_by_a_test(x)
        (path,) = glob.glob("/tmp/tack-dumped_by_a_test-*.metal")
        text = open(path).read()
        os.remove(path)
        assert text == tack.inspect(dumped_by_a_test, x, mode="source"), text
        print("the same")
    """
    environment = {"TACK_DUMP_MSL": "1", "TACK_CACHE": "0"}
    assert child.run(program, tmp_path, environment=environment).out == "the same\n"


def test_textures_are_sampled_by_hardware(device: tack.Device) -> None:
    @tack.kernel
    def middle(out, volume):
        for i in range(out.shape[0]):
            out[i] = volume.sample(0.5, 0.5, float(i))

    volume = tack.texture3d(tack.array(np.arange(8, dtype=np.float32).reshape(2, 2, 2)))
    out = tack.zeros(2)
    middle(out, volume)
    assert volume.hardware and out.tolist() == [1.5, 5.5]
    text = tack.inspect(middle, out, volume, mode="source")
    assert "texture3d<float, access::sample>" in text and ".sample(" in text and "address::clamp_to_edge" in text


def test_msl_can_be_printed_for_a_gpu_that_is_not_there(device: tack.Device) -> None:
    assert "kernel void" in tack.compile(add_one, tack.f32[:], target="metal:apple9").source
    with pytest.raises(ValueError, match="'apple5' is no architecture"):
        tack.compile(add_one, tack.f32[:], target="metal:apple5")


USES = """
    import gc, tack

    @tack.kernel
    def add(x, y, n):
        for i in range(x.shape[0]):
            x[i] = x[i] + y[i] * n

    def program():
        x = tack.zeros(5000, device="metal")
        y = tack.array([1.0] * 5000, device="metal")
        add(x, y, 2.0)
        x[7] = 5.0
        y.fill(3.0)
        z = x.copy()
        add(z, y, 1.0)
        found = z.numpy().sum(), x.sum(), z[7]
        tack.sync()
        return [float(f) for f in found]

    expected = [5.0 * 5000 + 3.0, 2.0 * 5000 + 3.0, 8.0]

    def attempt():
        try:
            found = program()
        except (RuntimeError, MemoryError) as error:  # the classes that users are told of
            return type(error).__name__, str(error)
        assert found == expected, found
        return None

    failed = attempt()
    if failed:
        print(*failed)
        gc.collect()
        failed = attempt()       # the device is usable after
    print("usable" if failed is None else failed)
    gc.collect()
    tack.device("metal").trim()
"""


def left(ended: child.Ended) -> dict[str, int]:
    """What was alive when a process had ended, but for what a runtime holds as long as it lives: the device, its queue, loaded kernels."""
    counted = ended.counted["libtackmetal"]["counters"]
    return {name: count for name, count in counted.items() if count and name not in ("devices", "queues", "pipelines")}


@pytest.mark.needs("simulator")
@pytest.mark.parametrize("order", ["lazy", "delayed"])
def test_nothing_is_left_when_a_process_ends(device: tack.Device, tmp_path: Path, order: str) -> None:
    ended = child.run(USES, tmp_path, order=order)
    assert ended.out == "usable\n" and ended.calls("libtackmetal", "tack_metal_dispatch") >= 2
    assert left(ended) == {}


@pytest.mark.needs("simulator")
@pytest.mark.parametrize("step", [pytest.param(7, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_every_function_fails_once(device: tack.Device, tmp_path: Path, step: int) -> None:
    child.run(USES, tmp_path)  # fills the kernel cache
    n, told = 1, 0
    while True:
        ended = child.run(USES, tmp_path, fail=f"libtackmetal:{n}:3")
        assert ended.out.endswith("usable\n"), (n, ended.out, ended.err)
        assert left(ended) == {}, (n, ended.out, ended.err)
        told += "Metal" in ended.out
        if ended.counted["libtackmetal"]["injected"] == 0:
            break
        n += step
    assert n > 20 and told >= n // step // 2, (n, told)


def test_the_stand_in_is_what_a_setting_names(device: tack.Device) -> None:
    if "TACK_SIM_SUPPORT" in os.environ:
        assert "no hardware" in device.device_name
