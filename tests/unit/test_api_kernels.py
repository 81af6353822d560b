"""The decorated kernel as a Python object: attributes, methods, threads, pickles, interruption, REPL-like sources."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tack
from tack.kernels import kernel_function


@tack.kernel
def twice(x, factor=2.0):
    """Doubles."""
    for i in range(x.shape[0]):
        x[i] = x[i] * factor


@tack.func
def helper(v):
    return v + 1.0


def test_it_looks_like_the_function() -> None:
    import inspect

    assert (twice.__name__, twice.__qualname__, twice.__doc__, twice.__module__) == ("twice", "twice", "Doubles.", __name__)
    assert str(inspect.signature(twice)) == "(x, factor=2.0)" and "twice" in repr(twice)
    assert callable(twice.__wrapped__) and not hasattr(twice.__wrapped__, "_kernel")


def test_nested_functions_and_methods() -> None:
    def make() -> Any:
        @tack.kernel
        def inner(x):
            for i in range(x.shape[0]):
                x[i] = 5.0

        return inner

    x = tack.zeros(2)
    make()(x)
    assert x.tolist() == [5.0, 5.0]

    class Solver:
        @staticmethod
        @tack.kernel
        def step(x, n):
            for i in range(x.shape[0]):
                x[i] = n

    Solver.step(x, 3)
    Solver().step(x, 4)
    assert x.tolist() == [4.0, 4.0]


def test_options_as_a_decorator() -> None:
    @tack.kernel(block=64, exact=True, simd=4)
    def k(x):
        for i in range(x.shape[0]):
            x[i] = x[i] * 3.0 + 1.0

    x = tack.ones(9)
    k(x)
    assert x.tolist() == [4.0] * 9 and kernel_function(k).options == (("block", 64), ("exact", True), ("simd", 4))
    assert "4 iterations at a time" in tack.inspect(k, x, mode="schedule")


def test_none_is_decided_at_compile_time() -> None:
    @tack.kernel
    def k(x, y=None):
        for i in range(x.shape[0]):
            if y is None:
                x[i] = 1.0
            else:
                x[i] = y[i]

    x = tack.zeros(2)
    k(x)
    assert x[0] == 1.0
    k(x, tack.full(2, 8.0))
    assert x[0] == 8.0


def test_the_first_call_from_several_threads_compiles_once() -> None:
    @tack.kernel
    def k(x):
        for i in range(x.shape[0]):
            x[i] = tack.sin(x[i]) + 0.125

    d = tack.device("cpu")
    before = d.compiled + d.loaded
    barrier = threading.Barrier(8)
    arrays = [tack.zeros(100) for _ in range(8)]
    failures: list[BaseException] = []

    def call(x: tack.Array) -> None:
        try:
            barrier.wait(30)
            k(x)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and d.compiled + d.loaded == before + 1
    assert all(x.tolist() == [0.125] * 100 for x in arrays)


def test_numpy_arrays_run_in_place() -> None:
    x = np.ones((4, 6), np.float32)
    twice(x[1, ::2], 3)
    assert x[1].tolist() == [3, 1, 3, 1, 3, 1] and x.sum() == 24 + 6
    mixed = tack.ones(3)

    @tack.kernel
    def both(a, b):
        for i in range(a.shape[0]):
            a[i] = a[i] + b[i]

    both(mixed, np.full(3, 2.0))
    assert mixed.tolist() == [3.0] * 3


def test_pickles_by_reference() -> None:
    assert pickle.loads(pickle.dumps(twice)) is twice
    assert pickle.loads(pickle.dumps(helper)) is helper
    assert pickle.loads(pickle.dumps(tack.sqrt)) is tack.sqrt
    assert pickle.loads(pickle.dumps([tack.f32, tack.f32[:, :]])) == [tack.f32, tack.f32[:, :]]


def test_pickles_by_cloudpickle(tmp_path: Path) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    assert cloudpickle.loads(cloudpickle.dumps(twice)) is twice
    program = tmp_path / "sender.py"
    program.write_text(
        textwrap.dedent("""
            import sys, cloudpickle, tack
            RATE = 3.0
            @tack.func
            def helper(v):
                return v * RATE
            @tack.kernel(exact=True)
            def k(x):
                for i in range(x.shape[0]):
                    x[i] = helper(x[i]) + 1.0
            sys.stdout.buffer.write(cloudpickle.dumps((k, helper)))
        """)
    )
    data = subprocess.run([sys.executable, str(program)], check=True, capture_output=True).stdout
    program.unlink()
    k, func = pickle.loads(data)
    x = tack.ones(3)
    k(x)
    assert x.tolist() == [4.0] * 3 and func(2.0) == 6.0 and kernel_function(k).options == (("exact", True),)


SLOW = """
import signal, sys, time, tack
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background leaves it ignored
import linecache

def slow(number):
    # another kernel each time, so that a signal comes while one is compiled, however fast the machine
    lines = "\\n".join(f"        y = tack.sin(y * {i}.5) + tack.exp(y) if y > {number}.0 else y - {i}.0" for i in range(30))
    text = f"import tack\\n@tack.kernel\\ndef slow(x):\\n    for i in range(x.shape[0]):\\n        y = x[i]\\n{lines}\\n        x[i] = y\\n"
    file = f"<slow {number}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {}
    exec(compile(text, file, "exec"), names)
    return names["slow"]

@tack.kernel
def quick(x):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1.0

x = tack.zeros(3)
print("compiling", flush=True)
number = 0
try:
    while True:
        number += 1
        slow(number)(x)
except KeyboardInterrupt:
    print("interrupted", flush=True)
y = tack.zeros(3)
quick(y)
assert y.tolist() == [1.0] * 3, y
slow(number)(x)
print("usable", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize("delay", [0.05, 0.4, 1.0])
def test_ctrl_c_during_a_compile_leaves_the_process_usable(delay: float, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TACK_CACHE": "0"}
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "compiling\n"
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert out == "interrupted\nusable\n"


def test_inspect_of_the_schedule_tells_measured_costs() -> None:
    x = tack.zeros(1 << 16)
    for _ in range(20):
        twice(x)
    text = tack.inspect(twice, x, mode="schedule")
    assert "launch tack_twice" in text and "arg0.shape[0]" in text and " ns per iteration" in text and "not measured per" not in text


def test_memory_of_dropped_kernels_is_given_back() -> None:
    import gc
    import weakref

    @tack.kernel
    def k(x):
        for i in range(x.shape[0]):
            x[i] = x[i] - 3.5

    k(tack.zeros(1))
    watched = weakref.ref(k)
    del k
    gc.collect()
    assert watched() is None


def test_a_captured_value_that_keeps_changing_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tack.kernels._MOST_KERNELS", 3)
    rate = 0

    @tack.kernel
    def k(x):
        for i in range(x.shape[0]):
            x[i] = rate

    x = tack.zeros(1)
    for rate in (1, 2, 3, 4, 5, 1):
        k(x)
        assert x[0] == rate
    assert len(kernel_function(k).kernels) == 3


def test_the_command_line(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        return subprocess.run([sys.executable, "-m", "tack", *arguments], capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    assert "CPU: cpu (default)" in run("devices") and "Cannot start" in run("devices")
    settings = run("config")
    assert all(name in settings for name in tack.config()) and "TACK_CPU_THREADS" in tack.config()
    assert tack.config("TACK_LOG") == tack.config()["TACK_LOG"]
    with pytest.raises(ValueError, match="TACK_NONE"):
        tack.config("TACK_NONE")


def test_the_demo_runs_and_writes_its_picture(tmp_path: Path) -> None:
    pytest.importorskip("rich")
    image = pytest.importorskip("PIL.Image")
    picture = tmp_path / "in.png"
    image.fromarray((np.random.default_rng(0).random((40, 60, 3)) * 255).astype(np.uint8)).save(picture)
    out = tmp_path / "out.png"
    done = subprocess.run(
        [sys.executable, "-m", "tack", "demo", "--image", str(picture), "--size", "90", "--repeats", "1", "--output", str(out)],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("same bits") + done.stdout.count("within") == 8
    with image.open(out) as made:
        width, height = made.size
    assert height == 60 and width > 180


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--output", "nowhere/x.png"), "there is no folder nowhere"),
        (("--size", "-5"), "-5 is less than 8"),
        (("--repeats", "0"), "0 is less than 1"),
        (("--size", "many"), "invalid whole number value: 'many'"),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_the_demo_says_what_is_wrong_with_its_options_at_once(options: tuple[str, ...], says: str, tmp_path: Path) -> None:
    pytest.importorskip("rich")
    done = subprocess.run([sys.executable, "-m", "tack", "demo", *options], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode != 0 and says in done.stderr and "Traceback" not in done.stderr
