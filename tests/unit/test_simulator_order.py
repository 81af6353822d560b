"""The CUDA driver stand-in's queues: what runs when, by the driver's documented rules for streams, events and copies. No tack in it."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "simulators"))

import standins
from cuda_client import Gpu, byref, c_float, c_int, c_size_t, c_ulonglong, c_void_p, in_process

try:
    standins.compiler()
except standins.Unavailable as missing:
    pytest.skip(str(missing), allow_module_level=True)

COPY = 'extern "C" __global__ void k(float* to, const float* from) { to[0] = from[0]; }'
NON_BLOCKING = 1


def pinned_float(gpu: Gpu, value: float) -> ctypes.Array[c_float]:
    made = (c_float * 1).from_address(gpu.pinned(4))
    made[0] = value
    return made


def address(array: ctypes.Array[c_float]) -> int:
    return ctypes.addressof(array)


def program_nothing_runs_before_a_wait() -> None:
    gpu = Gpu()
    k = gpu.kernel(COPY)
    stream, event = gpu.stream(NON_BLOCKING), gpu.event()
    out, source = pinned_float(gpu, 0), gpu.upload([5])
    gpu.sync()
    gpu.launch(k, 1, 1, address(out), source, stream=stream)
    gpu.call("cuEventRecord", event, stream)
    time.sleep(0.05)
    assert out[0] == 0
    other = gpu.stream()
    gpu.call("cuStreamSynchronize", other)
    gpu.call("cuStreamSynchronize", None)
    assert out[0] == 0, "neither another stream nor the default one waits for a non-blocking stream"
    assert gpu.result("cuEventQuery", event) == "NOT_READY"
    gpu.call("cuEventSynchronize", event)
    assert out[0] == 5
    # One who asks again and again gets there.
    out[0] = 0
    gpu.launch(k, 1, 1, address(out), source, stream=stream)
    asked = 0
    while gpu.result("cuStreamQuery", stream) == "NOT_READY":
        asked += 1
    assert asked >= 1
    assert out[0] == 5


def test_nothing_runs_before_a_wait() -> None:
    in_process(program_nothing_runs_before_a_wait, order="lazy")


def program_copies() -> None:
    gpu = Gpu()
    p, stream = gpu.alloc(4), gpu.stream()
    size, device = c_size_t(4), c_ulonglong(p)
    pageable, pinned = (c_float * 1)(1), pinned_float(gpu, 1)
    # From pageable memory the source is taken at the call, from pinned memory when the copy runs.
    gpu.call("cuMemcpyHtoDAsync_v2", device, pageable, size, stream)
    pageable[0] = 2
    gpu.call("cuStreamSynchronize", stream)
    assert gpu.download(p, 1) == [1]
    gpu.call("cuMemcpyHtoDAsync_v2", device, c_void_p(address(pinned)), size, stream)
    pinned[0] = 2
    gpu.call("cuStreamSynchronize", stream)
    assert gpu.download(p, 1) == [2]
    # To pinned memory a copy is queued, to pageable memory it is done when the call returns.
    gpu.call("cuMemcpyDtoHAsync_v2", c_void_p(address(pinned)), device, size, stream)
    pinned[0] = 9
    gpu.call("cuStreamSynchronize", stream)
    assert pinned[0] == 2
    gpu.call("cuMemsetD32Async", device, ctypes.c_uint(0), c_size_t(1), stream)
    gpu.call("cuMemcpyDtoHAsync_v2", pageable, device, size, stream)
    assert pageable[0] == 0
    # The synchronous forms wait for blocking streams, through the default stream.
    gpu.call("cuMemsetD32Async", device, ctypes.c_uint(0x40000000), c_size_t(1), stream)
    gpu.call("cuMemcpyDtoH_v2", pageable, device, size)
    assert pageable[0] == 2
    # A free waits for what is queued.
    k, source = gpu.kernel(COPY), gpu.upload([7])
    gpu.launch(k, 1, 1, address(pinned), source, stream=stream)
    gpu.free(source)
    assert pinned[0] == 7
    assert gpu.reports() == []


@pytest.mark.parametrize("order", ["lazy", "delayed"])
def test_copies_take_their_source_and_return_when_the_manual_says(order: str) -> None:
    in_process(program_copies, order=order, delay=2000)


def program_streams() -> None:
    gpu = Gpu()
    k, p, q, r = gpu.kernel(COPY), gpu.upload([1]), gpu.upload([2]), gpu.upload([3])
    for _ in range(8):
        first, second, event = gpu.stream(), gpu.stream(), gpu.event()
        # The default stream waits for blocking streams, and they for it.
        gpu.launch(k, 1, 1, q, p, stream=first)  # q = p
        gpu.launch(k, 1, 1, r, q)  # r = q
        gpu.call("cuMemsetD32Async", c_ulonglong(q), ctypes.c_uint(0), c_size_t(1), second)
        gpu.call("cuStreamSynchronize", second)
        assert (gpu.download(r, 1), gpu.download(q, 1)) == ([1], [0])
        # An event orders two streams.
        lone, after = gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING)
        gpu.call("cuMemsetD32Async", c_ulonglong(p), ctypes.c_uint(0x3F800000), c_size_t(1), lone)
        gpu.launch(k, 1, 1, q, p, stream=lone)
        gpu.call("cuEventRecord", event, lone)
        gpu.call("cuStreamWaitEvent", after, event, 0)
        gpu.launch(k, 1, 1, r, q, stream=after)
        gpu.call("cuStreamSynchronize", after)
        assert gpu.download(r, 1) == [1]
        # Work of a destroyed stream is still done.
        gpu.call("cuMemsetD32Async", c_ulonglong(r), ctypes.c_uint(0), c_size_t(1), first)
        gpu.call("cuStreamDestroy_v2", first)
        assert gpu.download(r, 1) == [0]
    milliseconds, start, end = c_float(), gpu.event(), gpu.event()
    gpu.call("cuEventRecord", start, None)
    assert gpu.result("cuEventElapsedTime", byref(milliseconds), start, end) == "INVALID_HANDLE", "an event that was never recorded"
    gpu.launch(k, 1, 1, q, p)
    gpu.call("cuEventRecord", end, None)
    assert gpu.result("cuEventElapsedTime", byref(milliseconds), start, end) == "NOT_READY"
    gpu.sync()
    gpu.call("cuEventElapsedTime", byref(milliseconds), start, end)
    assert 0 <= milliseconds.value < 10000


@pytest.mark.parametrize("order", ["lazy", "delayed"])
def test_streams_and_events_order_work(order: str) -> None:
    in_process(program_streams, order=order)


def program_unordered() -> None:
    gpu = Gpu()
    seen = set()
    for _ in range(40):
        p = gpu.upload([0])
        gpu.sync()
        for value in (1, 2):
            gpu.call("cuMemsetD32Async", c_ulonglong(p), ctypes.c_uint(value), c_size_t(1), gpu.stream(NON_BLOCKING))
        gpu.sync()
        seen.add(gpu.download(p, 1, c_int)[0])
    assert seen == {1, 2}


def test_delayed_work_of_unordered_streams_runs_in_any_order() -> None:
    in_process(program_unordered, order="delayed", delay=50)


def program_missing_wait() -> None:
    gpu = Gpu()
    k, p, out = gpu.kernel(COPY), gpu.upload([3]), pinned_float(gpu, 0)
    gpu.launch(k, 1, 1, address(out), p)
    assert out[0] == 0, "the kernel has not run when the launch returns"
    gpu.sync()
    assert out[0] == 3


def test_a_missing_wait_shows_in_both_orders() -> None:
    in_process(program_missing_wait, order="lazy")
    in_process(program_missing_wait, order="delayed", delay=20000)


def program_recorded() -> None:
    gpu = Gpu()
    k, p, q = gpu.kernel(COPY), gpu.upload([3]), gpu.upload([4])
    for _ in range(1000):
        gpu.launch(k, 1, 1, q, p)
    assert gpu.outcome() == "SUCCESS"
    assert gpu.download(q, 1) == [4]
    assert gpu.counters()["tallies"]["launches"] == 1000


def test_recorded_launches_do_not_run() -> None:
    in_process(program_recorded, order="record")


def program_threads() -> None:
    gpu = Gpu()
    k = gpu.kernel('extern "C" __global__ void k(int* n) { atomicAdd(n, 1); }')
    total, errors = gpu.upload([0], c_int), []

    def work() -> None:
        try:
            gpu.call("cuCtxSetCurrent", gpu.context)
            stream, own = gpu.stream(), gpu.upload([0], c_int)
            for _ in range(50):
                gpu.launch(k, 2, 32, total, stream=stream)
                gpu.launch(k, 1, 1, own, stream=stream)
            gpu.call("cuStreamSynchronize", stream)
            assert gpu.download(own, 1, c_int) == [50]
            gpu.free(own)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert gpu.download(total, 1, c_int) == [4 * 50 * 64]


@pytest.mark.parametrize("order", ["lazy", "delayed"])
def test_several_threads_at_once(order: str) -> None:
    in_process(program_threads, order=order, delay=0)
