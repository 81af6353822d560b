"""Threads, forks, pickles and long runs: kernels called at once, in children, and very often."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from language import define, kernel
from threads import at_once

import tack

FILL = "@tack.kernel\ndef k(x, n):\n    for i in range(len(x)):\n        x[i] = n * 3 + i\n"


def test_a_first_call_of_16_threads_compiles_once(device: tack.Device) -> None:
    for round_ in range(3):
        k = kernel(FILL.replace("3", str(1000 + round_ + os.getpid() * 10)))
        arrays = [tack.zeros(100, tack.i64, device=device) for _ in range(16)]
        before = device.compiled + device.loaded
        at_once(16, lambda n, k=k, arrays=arrays: k(arrays[n], n))
        assert device.compiled + device.loaded == before + 1
        assert all(a[0] == (1000 + round_ + os.getpid() * 10) * n for n, a in enumerate(arrays))


def test_8_threads_with_scalars_of_their_own(device: tack.Device) -> None:
    k = kernel(FILL)
    total = kernel("@tack.kernel\ndef k(x, n):\n    s = 0\n    for i in range(len(x)):\n        s += x[i] * n\n    return s\n")

    def work(n: int) -> None:
        for size in (10, 1000, 20_000):
            x = tack.zeros(size, tack.i64, device=device)
            for step in range(20):
                k(x, n * 100 + step)
                assert x[0] == (n * 100 + step) * 3 and x[size - 1] == (n * 100 + step) * 3 + size - 1
                assert total(x, n) == n * sum((n * 100 + step) * 3 + i for i in range(size)) if size == 10 else True

    at_once(8, work)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_after_use_works_in_parent_and_child(tmp_path: Path) -> None:
    program = tmp_path / "forks.py"
    program.write_text(
        "import os, sys\nimport tack\n\n"
        + FILL
        + """
@tack.kernel
def other(x, n):
    for i in range(len(x)):
        x[i] = x[i] + n

def check(value):
    x = tack.zeros(3_000_000, tack.i64)
    k(x, value)
    other(x, value)
    assert x[0] == value * 4 and x[2_999_999] == value * 4 + 2_999_999, x
    y = tack.zeros(10, tack.f64)
    k(y, value)
    assert y[1] == value * 3 + 1

x = tack.zeros(3_000_000, tack.i64)
for _ in range(5):
    k(x, 1)                      # the pool's threads are at work before the fork
for generation in range(3):
    child = os.fork()
    if child == 0:
        check(5 + generation)    # compiles and runs in the child
        os._exit(0)
    check(2 + generation)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
print("done")
"""
    )
    run = subprocess.run([sys.executable, "-W", "ignore", str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert run.stdout == "done\n", run.stderr


def test_kernels_are_pickled_by_reference_and_by_cloudpickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: tack.Device) -> None:
    (tmp_path / "pickled_kernels.py").write_text(
        "import tack\n@tack.func\ndef f(v):\n    return v + 1\n@tack.kernel\ndef k(x):\n    x[0] = f(x[0])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__("pickled_kernels")
    assert pickle.loads(pickle.dumps(module.k)) is module.k and pickle.loads(pickle.dumps(module.f)) is module.f
    cloudpickle = pytest.importorskip("cloudpickle")
    names = define(
        "A = 5\n@tack.func\ndef f(v):\n    return v + A\n"
        "@tack.kernel(exact=True)\ndef k(x):\n    for i in range(len(x)):\n        x[i] = f(x[i])\n"
    )
    data = tmp_path / "k.pickle"
    data.write_bytes(cloudpickle.dumps(names["k"]))
    text = "import pickle, sys, tack\nk = pickle.load(open(sys.argv[1], 'rb'))\nx = tack.zeros(2)\nk(x)\nprint(x.tolist(), k.__name__)"
    run = subprocess.run([sys.executable, "-c", text, str(data)], capture_output=True, text=True, timeout=120, check=False)
    assert run.stdout == "[5.0, 5.0] k\n", run.stderr


def resident() -> int:
    """Bytes of memory in use by the process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no /proc here")


def growth(work: Callable[[], Any]) -> int:
    """How much memory a second run of the work keeps."""
    work()
    gc.collect()
    before = resident()
    work()
    gc.collect()
    return resident() - before


@needs_proc
def test_memory_does_not_grow_over_many_launches(device: tack.Device) -> None:
    k = kernel(FILL)
    total = kernel("@tack.kernel\ndef k(x):\n    s = 0\n    for i in range(len(x)):\n        s += x[i]\n    return s\n")
    x = tack.zeros(16, tack.i64)
    count = 1_000 if "TACK_SIM_SUPPORT" in os.environ else 50_000  # a simulated device takes its time

    def launches() -> None:
        for n in range(count):
            k(x, n)
            total(x)

    assert growth(launches) < 4 << 20


@needs_proc
def test_memory_does_not_grow_over_300_sizes(device: tack.Device) -> None:
    k = kernel(FILL)
    before = device.compiled + device.loaded

    def sizes() -> None:
        for n in range(1, 301):
            x = tack.zeros(n * 997, tack.i32)
            k(x, n)
            assert x[n - 1] == n * 3 + n - 1

    grown = growth(sizes)
    assert grown < 8 << 20 and device.compiled + device.loaded == before + 1


@needs_proc
def test_memory_does_not_grow_over_refused_calls(device: tack.Device) -> None:
    k = kernel("@tack.kernel\ndef k(x):\n    for i in range(len(x)):\n        x[i] = missing\n")
    x = tack.zeros(3)

    def calls() -> None:
        for _ in range(1000):
            with pytest.raises(NameError):
                k(x)

    assert growth(calls) < 4 << 20
