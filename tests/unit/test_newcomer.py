"""What a newcomer tries first and gets wrong: each is refused with its line, and with a cure that works."""

from __future__ import annotations

import functools
import math
import os
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

import tack


def refusal(kernel: object, *args: object) -> str:
    with pytest.raises(tack.CompileError) as caught:
        kernel(*args)  # type: ignore[operator]
    return str(caught.value)


@pytest.fixture
def out() -> np.ndarray:
    return np.zeros(4, np.float32)


@tack.kernel
def makes_zeros(out):
    for i in range(4):
        t = np.zeros(3)
        out[i] = t[0]


@tack.kernel
def makes_random(out):
    for i in range(4):
        out[i] = np.random.rand()


@functools.lru_cache
def three():
    return 3


@tack.kernel
def calls_cached(out):
    for i in range(4):
        out[i] = three()


@tack.kernel
def half_precision(out):
    for i in range(4):
        out[i] = np.float16(1)


@tack.kernel
def over_indices(out):
    for i in np.ndindex(4):
        out[i] = 1


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        (makes_zeros, "np.zeros has no meaning in a kernel"),
        (makes_random, "rand() has no meaning in a kernel"),
        (calls_cached, "three() has no meaning in a kernel"),
        (half_precision, "the class numpy.float16 has no meaning in a kernel"),
        (over_indices, "the class numpy.ndindex has no meaning in a kernel"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_has_no_python_text_is_not_proposed_for_tack_func(out: np.ndarray, kernel: object, says: str) -> None:
    message = refusal(kernel, out)
    assert says in message
    assert "above its definition" not in message
    assert "as an argument" not in message


def test_the_cure_for_zeros_is_a_local_array(out: np.ndarray) -> None:
    assert "tack.local_array(dtype, shape)" in refusal(makes_zeros, out)


@tack.kernel
def add_one(out, x):
    for i in range(4):
        out[i] = x[i] + 1


def test_a_number_where_an_array_is_indexed_is_named(out: np.ndarray) -> None:
    message = refusal(add_one, out, 3.0)
    assert "the argument 'x' is a Python float and cannot be indexed" in message
    assert "Pass an array" in message
    assert "the argument 'out' is a Python int and cannot be stored to" in refusal(add_one, 1, out)
    assert "Pass an array, or ask 'x is None' first." in refusal(add_one, out, None)


@tack.kernel
def counts_by_element(counts, x):
    for i in range(4):
        tack.atomic_add(counts[0], x[i])


def test_a_forgotten_index_of_an_atomic_shows_the_form(out: np.ndarray) -> None:
    assert "Write tack.atomic_add(array, index, value)." in refusal(counts_by_element, out, out)


@tack.kernel
def as_long_as_it_is_positive(out, x):
    n = 3 if x[0] > 0 else 4
    for i in range(n):
        out[i] = 1


def test_a_bound_that_an_element_decides_is_called_that(out: np.ndarray) -> None:
    message = refusal(as_long_as_it_is_positive, out, out)
    assert "depend on an element of an array" in message
    assert "'const'" not in message


def test_the_compilers_own_frames_are_not_shown(out: np.ndarray) -> None:
    try:
        makes_zeros(out)
    except tack.CompileError as error:
        frames = traceback.extract_tb(error.__traceback__)
    assert [frame.name for frame in frames] == ["test_the_compilers_own_frames_are_not_shown", "miss"]


@pytest.mark.parametrize(
    ("array", "cure"),
    [
        (np.zeros(4, ">f4"), "np.ascontiguousarray(a, a.dtype.newbyteorder('='))"),
        (np.zeros(17, np.uint8)[1:].view(np.float32), "a.copy()"),
        (np.zeros(4, [("a", "f4"), ("b", "i2")])["a"], "np.ascontiguousarray(a)"),
        (np.zeros(4, [("b", "u1"), ("a", "f4")])["a"], "np.ascontiguousarray(a)"),
    ],
    ids=["swapped", "misaligned", "strides", "misaligned-strides"],
)
def test_the_cure_for_an_odd_numpy_array_works(out: np.ndarray, array: np.ndarray, cure: str) -> None:
    with pytest.raises(ValueError, match=r"Kernel 'add_one': parameter 'x'") as caught:
        add_one(out, array)
    assert f"pass {cure}" in str(caught.value)
    add_one(out, eval(cure, {"np": np, "a": array}))
    assert out.tolist() == [1.0] * 4


def test_numpys_reductions_take_tack_arrays() -> None:
    a = tack.array(np.arange(6, dtype=np.int32).reshape(2, 3))
    assert (np.sum(a), np.min(a), np.max(a), np.mean(a)) == (15, 0, 5, 2.5)
    with pytest.raises(TypeError, match=r"write a\.numpy\(\)\.sum\(\.\.\.\)"):
        np.sum(a, axis=0)
    with pytest.raises(TypeError, match=r"write a\.numpy\(\)\.max\(\.\.\.\)"):
        a.max(1)  # type: ignore[arg-type]


@tack.kernel
def factorials(out):
    for i in range(4):
        out[i] = math.factorial(i)


def test_a_loop_is_proposed_for_a_factorial(out: np.ndarray) -> None:
    assert "Loop: f = 1, then f *= i." in refusal(factorials, out)


BACKGROUND = """
import threading, time
import numpy as np
import tack

@tack.kernel
def work(x, rounds):
    for i in range(x.shape[0]):
        for k in range(rounds):
            x[i] = tack.sin(x[i])

def forever():
    x = np.ones(10_000, np.float32)
    while True:
        work(x, rounds)

def compile_slowly(name, text, *rest):
    compiling.set()
    for _ in range(5000):  # so that it wants the GIL again and again while the interpreter finishes
        time.sleep(0.0001)
    return compiled(name, text, *rest)

compiling = threading.Event()
"""


@pytest.mark.parametrize(
    "program",
    [
        "rounds = 1000; work(np.ones(1, np.float32), 1); threading.Thread(target=forever, daemon=True).start(); time.sleep(0.2)",
        """
rounds = 1
compiled = tack.compile_for_cpu
tack._runtime.set_cpu_compiler(compile_slowly)
threading.Thread(target=forever, daemon=True).start()
compiling.wait()
""",
    ],
    ids=["launching", "compiling"],
)
def test_a_daemon_thread_in_a_kernel_does_not_crash_the_end_of_the_process(tmp_path: Path, program: str) -> None:
    file = tmp_path / "background.py"
    file.write_text(BACKGROUND + program + "\nprint('done')\n")
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=120, env={**os.environ, "TACK_CACHE": "0"}, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@tack.kernel
def of_another_library(out):
    for i in tack.prange(len(out)):
        out[i] = 1


@tack.kernel
def asks_for_types(out):
    for i in range(len(out)):
        out[i] = isinstance(out[i], float)


@tack.kernel
def gammas(out):
    for i in range(len(out)):
        out[i] = math.gamma(out[i])


@tack.kernel
def halves(out):
    for i in range(len(out)):
        out[i] = tack.f16(out[i])


@pytest.mark.parametrize(
    ("kernel", "cure"),
    [
        (of_another_library, "Write for i in range(n): the outer loop of a kernel is parallel."),
        (asks_for_types, "compare x.dtype == tack.f32"),
        (gammas, "as a @tack.func"),
        (halves, "There are no floats of 16 bits"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_names_that_people_look_for_have_a_cure(out: np.ndarray, kernel: object, cure: str) -> None:
    assert cure in refusal(kernel, out)
