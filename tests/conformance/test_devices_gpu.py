"""Devices with memory and a queue of their own: where kernels run, what is refused, what waits, and what happens when memory ends."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import child
import numpy as np
import pytest
from threads import at_once

import tack
from tack.devices import title_of
from tack.runtime.dispatch import get_backend

pytestmark = pytest.mark.needs("queue")


@tack.kernel
def scale(x, out, factor):
    for i in range(x.shape[0]):
        out[i] = x[i] * factor


@tack.kernel
def add_one(x):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1


@tack.kernel
def seven():
    return 7


def other(device: tack.Device) -> tack.Device:
    """Another device of the type."""
    return tack.device(f"{device.type}:{1 - device.index}")


# -- names


@pytest.mark.needs("numbers")
def test_a_bare_name_is_the_same_object_as_its_numbered_device(device: tack.Device) -> None:
    assert tack.device(f"{device.type}:{device.index}") is device is tack.device(device.type)
    assert str(device) == f"{device.type}:{device.index}" and device.type == get_backend().name


def test_numbers_that_are_not_there_are_value_errors(device: tack.Device) -> None:
    count = tack.device_count(device.type)
    assert count >= 1
    with pytest.raises(ValueError, match=f"{device.type}:{count}"):
        tack.device(f"{device.type}:{count}")


# -- where arrays are and kernels run


def test_to_device_copies_there_and_back(device: tack.Device) -> None:
    host = tack.arange(1000, dtype=tack.f32, device="cpu")
    there = host.to_device(device)
    assert there is not host and there.device is device and there.pointer != host.pointer and there.to_device(device) is there
    add_one(there)
    assert host[5] == 5.0, "a copy"
    back = there.to_device("cpu")
    assert back.device is tack.device("cpu") and back.tolist() == [i + 1.0 for i in range(1000)]
    for view in (host.reshape(10, 100)[::3, 5:50], host.reshape(10, 100).T, host[::-1], host[:0]):
        np.testing.assert_array_equal(view.to_device(device).numpy(), view.numpy())


def test_a_kernel_runs_on_its_arrays_device_where_the_default_cannot_address_them(device: tack.Device) -> None:
    x, out = tack.ones(10), tack.zeros(10)
    with tack.device("cpu"):
        kernels = [d.compiled + d.loaded for d in (device, tack.device("cpu"))]

        @tack.kernel
        def only_there(x, out):
            for i in range(x.shape[0]):
                out[i] = x[i] + 41.0

        only_there(x, out)
        assert [d.compiled + d.loaded for d in (device, tack.device("cpu"))] == [kernels[0] + 1, kernels[1]]
        assert tack.empty_like(out).device is device and out.copy().device is device
    assert out.tolist() == [42.0] * 10


def test_a_kernel_without_arrays_runs_on_the_default_device(device: tack.Device) -> None:
    before = device.compiled + device.loaded
    scale(tack.ones(1), tack.ones(1), 1.0)
    assert seven() == 7
    assert device.compiled + device.loaded >= before


def test_arrays_on_two_devices_in_one_call_are_a_value_error(device: tack.Device) -> None:
    here, host = tack.zeros(4), tack.ones(4, device="cpu")
    for default in (device, tack.device("cpu")):
        with (
            default,
            pytest.raises(ValueError, match=r"Kernel 'scale': arguments 'x' .* and 'out' .* are on two devices.*to_device") as info,
        ):
            scale(host, here, 2.0)
        assert "cpu" in str(info.value) and str(device) in str(info.value)
    assert here.tolist() == [0.0] * 4, "nothing ran"


def test_numpy_arrays_with_arrays_of_a_gpu_are_a_value_error(device: tack.Device) -> None:
    out = tack.zeros(4)
    for call in (lambda: scale(np.ones(4, np.float32), out, 2.0), lambda: scale(out, np.ones(4, np.float32), 2.0)):
        with pytest.raises(ValueError, match=r"Kernel 'scale': .*tack\.array\((x|out), device=.*\)"):
            call()
    alone = np.ones(4, np.float32)
    scale(alone, alone, 3.0)  # on the CPU, in place
    assert alone.tolist() == [3.0] * 4


@pytest.mark.needs("neighbour")
def test_two_gpus(device: tack.Device) -> None:
    second = other(device)
    assert second is not device and str(second) != str(device) and not device.can_address(second)
    x = tack.arange(5000, dtype=tack.i32)
    y = x.to_device(second)  # through the host
    assert y.device is second
    for _ in range(10):
        add_one(x)
    add_one(y)
    assert x.tolist() == list(range(10, 5010)) and y.tolist() == list(range(1, 5001))
    with pytest.raises(ValueError, match="two devices"):
        scale(x, y, 2)
    tack.copyto(x, y)
    tack.copyto(y[::2], x[1::2])
    assert y[:4].tolist() == [2, 2, 4, 4]
    with second:
        assert tack.zeros(3).device is second and seven() == 7
    tack.sync()


@pytest.mark.needs("neighbour")
def test_each_gpu_compiles_its_own_kernels(device: tack.Device) -> None:
    @tack.kernel
    def unique(x):
        for i in range(x.shape[0]):
            x[i] = x[i] * 3.0 + 19.0

    counts = [d.compiled + d.loaded for d in (device, other(device))]
    for d in (device, other(device), device):
        unique(tack.zeros(3, device=d))
    assert [d.compiled + d.loaded for d in (device, other(device))] == [counts[0] + 1, counts[1] + 1]


# -- threads


def test_calls_of_one_kernel_from_several_threads_have_their_own_arguments(device: tack.Device) -> None:
    def work(n: int) -> None:
        x = tack.full(3000, float(n), device=device)  # on a thread that has never asked for the device
        out = tack.zeros(3000, device=device)
        for step in range(15):
            scale(x, out, float(step))
            if step % 5 == 0:
                assert out[0] == out[-1] == n * step, (n, step, out[0])
        assert out.sum() == n * 14 * 3000

    at_once(6, work)


def test_arrays_may_be_made_used_and_freed_on_different_threads(device: tack.Device) -> None:
    kept: list[tack.Array] = []

    def on_a_thread(work: Any) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    before = device.memory_stats()["in_use"]
    on_a_thread(lambda: kept.append(tack.full(100_000, 1.0, device=device)))
    on_a_thread(lambda: add_one(kept[0]))
    assert kept[0][99_999] == 2.0
    on_a_thread(kept.clear)
    assert device.memory_stats()["in_use"] == before


# -- limits


def test_launches_past_the_limit_are_refused_before_anything_runs(device: tack.Device) -> None:
    limit = device.max_iterations
    assert limit == get_backend().max_iterations and limit > 1 << 31

    @tack.kernel
    def two_loops(x, n):
        for i in range(x.shape[0]):
            x[i] = 1.0
        for i in range(n):
            if i < 0:
                x[0] = 2.0

    x = tack.zeros(8)
    message = (
        f"Kernel 'two_loops': {limit + 1} iterations; the limit on {title_of(device.type)} is {limit}. Split the work across several calls."
    )
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        two_loops(x, limit + 1)
    assert x.tolist() == [0.0] * 8, "no loop ran"
    two_loops(x, 0)
    two_loops(x, 5)
    assert x.tolist() == [1.0] * 8


def test_the_limit_goes_by_the_threads_of_a_group(device: tack.Device) -> None:
    @tack.kernel(block=64)
    def small_groups(x, n):
        for i in range(n):
            if i < 0:
                x[0] = 2.0

    limit = device.max_iterations // device.block * 64
    if device.type == "hip":  # whose limit is one of threads
        limit = device.max_iterations // 64 * 64
    with pytest.raises(ValueError, match=f"{limit + 1} iterations; the limit on .* is {limit}"):
        small_groups(tack.zeros(1), limit + 1)
    small_groups(tack.zeros(1), 1000)


@pytest.mark.needs("simulator")
def test_a_launch_of_exactly_the_limit_is_taken(device: tack.Device, tmp_path: Path) -> None:
    """With launches recorded and not run: no GPU would end with so many soon."""
    program = f"""
        import tack
        d = tack.device({device.type!r})

        @tack.kernel
        def k(x, n):
            for i in range(n):
                x[0] = 1.0

        k(tack.zeros(1, device=d), d.max_iterations)
        try:
            k(tack.zeros(1, device=d), d.max_iterations + 1)
        except ValueError as error:
            print(error)
    """
    assert "Split the work" in child.run(program, tmp_path, order="record").out


# -- memory


def test_no_device_has_10_to_the_15_bytes(device: tack.Device) -> None:
    x = tack.ones(1000)
    with pytest.raises(MemoryError, match=r"1000000000000000|10\^15|PiB|TiB|PB"):
        tack.empty(10**15, dtype=tack.u8)
    with pytest.raises(MemoryError):
        tack.zeros((1 << 20, 1 << 30))
    add_one(x)
    assert x.sum() == 2000.0 and tack.ones(10).sum() == 10.0, "the device stays usable"


@pytest.mark.needs("simulator")
def test_when_memory_ends_cached_memory_is_given_back_first(device: tack.Device, tmp_path: Path) -> None:
    program = f"""
        import tack
        d = tack.device({device.type!r})
        tack.set_default_device(d)
        MIB = 1 << 20

        @tack.kernel
        def add_one(x):
            for i in range(x.shape[0]):
                x[i] = x[i] + 1

        def fill_up(size):
            kept = []
            try:
                while True:
                    kept.append(tack.empty(size, dtype=tack.u8))
            except MemoryError as error:
                return kept, str(error)

        kept, message = fill_up(8 * MIB)
        assert 3 <= len(kept) <= 8, len(kept)
        assert "8.0 MiB" in message and "in use" in message, message
        add_one(kept[0])                      # usable as it is
        assert kept[0].device is d
        del kept                              # cached now
        kept, _ = fill_up(3 * MIB)            # of another size: the cache is given back, and tried again
        assert len(kept) >= 10, len(kept)
        small = tack.zeros(100)
        add_one(small)
        assert small.sum() == 100.0
        print("usable")
    """
    assert child.run(program, tmp_path, memory=64 << 20).out == "usable\n"


# -- errors of queued work

FAILS = """
    import tack
    tack.set_default_device({device!r})

    @tack.kernel
    def innocent(x):
        for i in range(x.shape[0]):
            x[i] = x[i] + 1

    @tack.kernel
    def culprit(x, far):
        for i in range(x.shape[0]):
            x[i + far] = 1.0

    x = tack.zeros(100)
    innocent(x)
    tack.sync()
    culprit(x, 1 << 40)          # returns: it is only queued
    print("queued")
    try:
        {wait}
    except RuntimeError as error:
        print(type(error).__name__, "culprit" in str(error), "innocent" in str(error))
        print(error)
    try:
        innocent(x)
        tack.sync()
    except RuntimeError as error:  # a context that a kernel has wrecked stays so; nothing aborts
        print("again:", error)
    print("end")
"""


@pytest.mark.needs("simulator")
@pytest.mark.parametrize("wait", ["tack.sync()", "x.numpy()", "x[3]", "x.sum()", "x.device.synchronize()"])
def test_the_error_of_a_queued_launch_is_raised_at_the_wait_and_names_the_kernel(device: tack.Device, tmp_path: Path, wait: str) -> None:
    ended = child.run(FAILS.format(device=device.type, wait=wait), tmp_path, ok=False)
    lines = ended.out.splitlines()
    assert ended.status == 0 and lines[:2] == ["queued", "RuntimeError True False"] and lines[-1] == "end", ended


# -- capabilities


def test_the_backend_says_what_it_can_do(device: tack.Device) -> None:
    be = get_backend()
    assert be.device is device and be.title == title_of(device.type) and be.block == 256
    if device.type in ("cuda", "hip"):
        assert be.supports_f64 is True and be.supports_workgroups is True
        assert be.supported_dtypes == frozenset(tack.types.ARRAY_DTYPES)
        assert be.supported_atomic_dtypes == {tack.i32, tack.u32, tack.i64, tack.u64, tack.f32, tack.f64}
