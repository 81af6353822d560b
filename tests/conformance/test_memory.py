"""A device's memory: what it counts, its limit, what it gives back, how it ends, and that it does not grow."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import pytest
from threads import at_once

import tack

MIB = 1 << 20


@tack.kernel
def add_one(x):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1


@pytest.fixture
def empty_handed(device: tack.Device) -> Iterator[tack.Device]:
    """The device with nothing in its cache and nothing left by other tests; afterwards without a limit."""
    gc.collect()
    device.synchronize()
    device.trim()
    yield device
    device.set_memory_limit(None)


def test_what_arrays_take_is_counted(empty_handed: tack.Device) -> None:
    d = empty_handed
    before = d.memory_stats()
    assert before.keys() == {"in_use", "cached", "peak", "allocations", "reused", "limit"} and before["cached"] == before["limit"] == 0
    x = tack.empty(MIB, dtype=tack.u8)
    view = x[100:]
    now = d.memory_stats()
    assert now["in_use"] - before["in_use"] == MIB and now["allocations"] == before["allocations"] + 1 and now["peak"] >= now["in_use"]
    del x
    assert d.memory_stats()["in_use"] == now["in_use"], "a view holds the memory"
    del view
    after = d.memory_stats()
    assert after["in_use"] == before["in_use"] and after["cached"] == MIB
    tack.empty(MIB - 100, dtype=tack.u8)  # of a size that was freed
    assert d.memory_stats()["reused"] == before["reused"] + 1 and d.memory_stats()["cached"] == MIB
    assert d.trim() == MIB and d.memory_stats()["cached"] == 0 and d.trim() == 0


def test_other_libraries_memory_does_not_count(device: tack.Device) -> None:
    x = tack.zeros(1000)
    before = device.memory_stats()["in_use"]
    shared = [tack.from_dlpack(x) for _ in range(5)]
    assert device.memory_stats()["in_use"] == before and len(shared) == 5


def test_a_limit_is_kept_and_names_itself(empty_handed: tack.Device) -> None:
    d = empty_handed
    kept = tack.full(MIB // 4, 1.0)
    d.set_memory_limit(d.memory_stats()["in_use"] + 2 * MIB)
    assert d.memory_stats()["limit"] == d.memory_stats()["in_use"] + 2 * MIB
    more = [tack.empty(MIB, dtype=tack.u8) for _ in range(2)]
    with pytest.raises(MemoryError, match=r"3\.0 MiB.*in use.*the limit is \d+\.\d MiB"):
        tack.empty(3 * MIB, dtype=tack.u8)
    with pytest.raises(MemoryError):
        tack.empty(1, dtype=tack.u8)
    add_one(kept)
    assert kept[0] == kept[-1] == 2.0, "the device stays usable"
    del more
    assert tack.empty(2 * MIB, dtype=tack.u8).nbytes == 2 * MIB  # what was cached, of another size, has made room
    d.set_memory_limit(None)
    assert tack.empty(8 * MIB, dtype=tack.u8).nbytes == 8 * MIB
    for wrong in (-1, 1.5, "1 GiB"):
        with pytest.raises(TypeError):
            d.set_memory_limit(wrong)


def test_too_much_is_a_memory_error_with_the_numbers(empty_handed: tack.Device) -> None:
    for shape in (10**15, (10**6, 10**9)):
        with pytest.raises(MemoryError, match=r"Allocating 909\.5 TiB on '.*' failed; .* in use, .* cached, .* at most so far"):
            tack.empty(shape, dtype=tack.u8)
    with pytest.raises(MemoryError, match="no device has as much"):
        tack.empty((1 << 62) + 64, dtype=tack.u8)
    x = tack.zeros(10)
    add_one(x)
    assert x.sum() == 10.0


def test_arrays_freed_while_work_uses_them_stay_until_it_is_done(device: tack.Device) -> None:
    """What is freed is handed out again at once: the queue's order alone keeps the new array's writes behind the old one's."""

    @tack.kernel
    def copied(out, x):
        for i in range(x.shape[0]):
            out[i] = x[i]

    outs = []
    for k in range(20):
        out, x = tack.empty(20_000), tack.full(20_000, float(k))
        copied(out, x)
        del x
        outs.append(out)
    for k, out in enumerate(outs):
        assert out[0] == out[19_999] == k


def test_arrays_freed_while_work_uses_them_outlive_a_trim(device: tack.Device) -> None:
    out = tack.zeros(5000)
    for k in range(5):
        x = tack.full(5000, 1.0)
        for _ in range(5):
            add_one(x)
        tack.copyto(out, x)
        del x
        device.trim()
    assert out.min() == out.max() == 6.0


def test_threads_allocate_and_free_at_once(empty_handed: tack.Device) -> None:
    before = empty_handed.memory_stats()

    def work(n: int) -> None:
        kept = []
        for k in range(60):
            x = tack.full(100 + 500 * (k % 7), float(n), device=empty_handed)
            kept.append(x)
            if len(kept) > 3:
                old = kept.pop(0)
                assert old[0] == old[old.size - 1] == n
        if n == 0:
            empty_handed.trim()

    at_once(6, work)
    gc.collect()
    now = empty_handed.memory_stats()
    assert now["in_use"] == before["in_use"] and now["allocations"] == before["allocations"] + 6 * 60


def cycles(count: int, device: tack.Device) -> int:
    """How many Python blocks and how much device memory ``count`` rounds of allocating and freeing leave behind."""

    def rounds(n: int) -> None:
        for k in range(n):
            tack.empty(16 + k % 5)

    rounds(1000)
    gc.collect()
    blocks, stats = sys.getallocatedblocks(), device.memory_stats()
    rounds(count)
    gc.collect()
    now = device.memory_stats()
    assert now["allocations"] - stats["allocations"] == now["reused"] - stats["reused"] == count, "no cycle asked the system"
    return sys.getallocatedblocks() - blocks + now["in_use"] - stats["in_use"] + now["cached"] - stats["cached"]


def test_allocating_and_freeing_does_not_grow(device: tack.Device) -> None:
    assert cycles(2_000 if "TACK_SIM_SUPPORT" in os.environ else 20_000, device) < 50


@pytest.mark.long
def test_a_million_cycles_do_not_grow(device: tack.Device) -> None:
    from test_robustness import resident

    cycles(1000, device)
    before = resident()
    assert cycles(1_000_000, device) < 50
    assert resident() - before < 4 * MIB
