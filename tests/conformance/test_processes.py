"""Threads that do everything at once, processes that are spawned, and kernels and arrays that cross from one to another."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from threads import at_once

import tack


@tack.kernel
def add(x, n):
    for i in range(x.shape[0]):
        x[i] = x[i] + n


@tack.kernel
def scale(out, x, factor):
    for i in range(x.shape[0]):
        out[i] = x[i] * factor


@tack.kernel
def count(counts, sums, places):
    for i in range(places.shape[0]):
        tack.atomic_add(counts, places[i], 1)
        tack.atomic_add(sums, places[i], 0.5)


@tack.kernel
def total(x):
    s = tack.i64(0)
    for i in range(x.shape[0]):
        s += x[i]
    return s


ROUNDS = 6 if "TACK_SIM_SUPPORT" in os.environ else 60
LONG = 30_000 if "TACK_SIM_SUPPORT" in os.environ else 500_000  # iterations: long enough to be interrupted


def test_threads_call_allocate_free_and_wait_at_once(device: tack.Device) -> None:
    """Eight threads, each with arrays of its own and some of one for all to read; two kernels, copies, waits and trims between them."""
    common = tack.arange(3000, dtype=tack.i64)
    want = sum(range(3000))

    def work(n: int) -> None:
        with device:
            for step in range(ROUNDS):
                x = tack.full(200 + 531 * (step % 5), n, dtype=tack.i64)
                add(x, step)
                out = tack.empty_like(x)
                scale(out, x, 3)
                assert total(common) == want
                view = out[1::2]
                if step % 3 == n % 3:
                    device.synchronize()
                elif step % 3 == 0:
                    tack.sync()
                add(view, 1)
                host = out.numpy()
                assert (host[::2] == 3 * (n + step)).all() and (host[1::2] == 3 * (n + step) + 1).all()
                if step % 7 == 6 and n == 0:
                    device.trim()
                del x, out

    at_once(8, work)
    assert total(common) == want


@pytest.mark.parametrize("own", [True, False], ids=["arrays of tack", "arrays of numpy"])
def test_threads_update_the_same_elements(device: tack.Device, own: bool) -> None:
    """No atomic is lost, however long the launches take and whoever comes while another one is alone."""
    if not own and device.type != "cpu":
        pytest.skip("kernels run on NumPy's arrays on the CPU alone")
    places = (np.arange(LONG) % 11_000).astype(np.int32)
    counts, sums = np.zeros(11_000, np.int32), np.zeros(11_000, np.float32)
    arrays = [tack.array(counts), tack.array(sums)] if own else [counts, sums]
    at = [tack.array(places[:n]) if own else places[:n] for n in (30, 3_000, LONG)]

    def work(n: int) -> None:
        with device:
            for step in range(ROUNDS):
                count(*arrays, at[(n + step) % 3])

    at_once(4, work)
    if own:
        counts, sums = (a.numpy() for a in arrays)
    rounds = [sum((n + step) % 3 == k for n in range(4) for step in range(ROUNDS)) for k in range(3)]
    want = sum(r * np.bincount(p, minlength=11_000) for r, p in zip(rounds, (places[:30], places[:3_000], places), strict=True))
    assert np.array_equal(counts, want)
    assert np.array_equal(sums, want / 2)


def test_threads_with_devices_of_their_own(device: tack.Device) -> None:
    """The default device belongs to the thread: half of them work on the CPU."""
    devices = [device, tack.device("cpu")]

    def work(n: int) -> None:
        with devices[n % 2]:
            for step in range(ROUNDS):
                x = tack.ones(500)
                add(x, float(n))
                assert x.device is devices[n % 2] and x.sum() == 500.0 * (n + 1)
                assert x.to_device(devices[1 - n % 2]).tolist() == [n + 1.0] * 500

    at_once(6, work)


def test_a_first_call_of_different_kernels_at_once(device: tack.Device) -> None:
    from language import kernel

    text = "@tack.kernel\ndef k(x, n):\n    for i in range(len(x)):\n        x[i] = n * {} + i\n"
    kernels = [kernel(text.format(1000 + n)) for n in range(6)]

    def work(n: int) -> None:
        x = tack.zeros(100, tack.i64, device=device)
        kernels[n](x, 2)
        assert x[99] == 2 * (1000 + n) + 99

    at_once(6, work)


def test_threads_may_end_while_their_work_is_queued(device: tack.Device) -> None:
    x = tack.zeros(4000, dtype=tack.i64)

    def work() -> None:
        for _ in range(10):
            add(x, 1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    assert total(x) == 30 * 4000


SPAWNED = """
    import multiprocessing
    import sys
    import tack

    @tack.kernel
    def double(x):
        for i in range(x.shape[0]):
            x[i] = x[i] * 2

    def work(kernel, x):
        assert x.device is tack.get_default_device()
        y = x.to_device({device!r})
        kernel(y)
        return y

    if __name__ == "__main__":
        context = multiprocessing.get_context("spawn")
        tack.set_default_device({device!r})
        x = tack.arange(5, dtype=tack.i16)
        double(x)
        with context.Pool(2) as pool:
            results = pool.starmap(work, [(double, x), (double, x[::2]), (double, tack.asarray(x.numpy(), device="cpu"))])
        for y in results:
            assert y.device is tack.get_default_device()
            print(y.dtype, y.tolist())
"""


def test_kernels_and_arrays_cross_to_spawned_processes(device: tack.Device, tmp_path: Path) -> None:
    program = tmp_path / "spawned.py"
    program.write_text(textwrap.dedent(SPAWNED.format(device=device.type)))
    environment = {**os.environ, "TACK_CACHE_DIR": str(tmp_path / "cache")}
    run = subprocess.run([sys.executable, "-W", "error", str(program)], env=environment, capture_output=True, text=True, timeout=200)
    assert run.stdout == "tack.i16 [0, 4, 8, 12, 16]\ntack.i16 [0, 8, 16]\ntack.i16 [0, 4, 8, 12, 16]\n", run.stderr


COUNTING = """
    import sys
    import time
    import numpy as np
    import tack

    @tack.kernel
    def count(counts, n):
        for i in range(n):
            tack.atomic_add(counts, i % 8 * 2000, 1)

    memory = np.memmap(sys.argv[1], np.int64, "r+")
    counts, others = memory[:-2], memory[-2:]
    count(counts, 0)
    others[int(sys.argv[2])] = 1
    while not others.all():
        time.sleep(0.001)
    for _ in range(100):
        count(counts, 800_000)
"""


def test_processes_update_the_same_elements(tmp_path: Path) -> None:
    """Memory that other processes see is updated by atomics that hold there too."""
    program, memory = tmp_path / "counting.py", tmp_path / "counts"
    program.write_text(textwrap.dedent(COUNTING))
    np.zeros(20_002, np.int64).tofile(memory)  # more than a private table holds
    environment = {**os.environ, "TACK_CPU_THREADS": "1"}
    runs = [subprocess.Popen([sys.executable, str(program), str(memory), str(k)], env=environment) for k in range(2)]
    assert [run.wait(200) for run in runs] == [0, 0]
    assert np.fromfile(memory, np.int64)[:16_000:2000].tolist() == [2 * 100 * 100_000] * 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_may_use_the_cpu_where_the_parent_used_a_gpu(device: tack.Device, tmp_path: Path) -> None:
    program = tmp_path / "forked.py"
    program.write_text(
        textwrap.dedent(f"""
        import os
        import tack

        @tack.kernel
        def double(x):
            for i in range(x.shape[0]):
                x[i] = x[i] * 2

        here, host = tack.full(5, 1.0, device={device.type!r}), tack.full(5, 1.0, device="cpu")
        double(here), double(host)
        assert here.sum() == host.sum() == 10.0
        child = os.fork()
        if child == 0:
            double(host)                               # the parent's kernel
            x = tack.full(2_000_000, 3.0, tack.f64, device="cpu")
            double(x)                                  # compiled here
            os._exit(0 if host.sum() == 20.0 and x.sum() == 12_000_000.0 else 1)
        _, status = os.waitpid(child, 0)
        double(here)
        print(status, host.sum(), here.sum())
        """)
    )
    run = subprocess.run([sys.executable, "-W", "ignore", str(program)], capture_output=True, text=True, timeout=200)
    assert run.stdout == "0 10.0 20.0\n", run.stderr


SUB_INTERPRETER = """
import sys
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
    inner, run = interpreters.create("legacy"), interpreters.exec
else:
    import _xxsubinterpreters as interpreters
    inner, run = interpreters.create(isolated=False), interpreters.run_string
import tack
x = tack.ones(3)
run(inner, "try:\\n    import tack\\nexcept ImportError as error:\\n    print(error, flush=True)")
interpreters.destroy(inner)
print(x.sum(), tack.full(3, 2.0).sum())
"""


def test_a_sub_interpreter_is_told_to_use_threads_or_processes(tmp_path: Path) -> None:
    """It would make modules of its own over the process's one runtime, and take that over."""
    program = tmp_path / "inner.py"
    program.write_text(SUB_INTERPRETER)
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=100)
    refusal, after = run.stdout.splitlines() or ("", "")
    assert "this is a sub-interpreter: use threads, or processes" in refusal and after == "3.0 6.0", run.stderr
