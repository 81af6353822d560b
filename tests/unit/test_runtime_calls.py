"""What a call does to the thread that makes it: whether other Python threads may run meanwhile, and the floating-point mode around it."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import operator
import platform
import sys
import threading
import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import tack


@tack.kernel
def add_one(a):
    for i in range(a.shape[0]):
        a[i] = a[i] + 1.0


@tack.kernel
def chain(a, rounds):
    for i in range(a.shape[0]):
        x = a[i]
        for _ in range(rounds):
            x = x * 0.999 + 1e-3
        a[i] = x


@contextmanager
def spinning() -> Iterator[list[float]]:
    """A Python thread that always wants the GIL, and notes when it has it."""
    stop = threading.Event()
    seen: list[float] = []

    def spin() -> None:
        while not stop.is_set():
            seen.append(time.perf_counter())
            for _ in range(100):
                pass

    thread = threading.Thread(target=spin)
    thread.start()
    while not seen:
        time.sleep(0.001)
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def turns_of_others(call: Callable[[], object], count: int) -> tuple[int, float]:
    """How often another thread had the GIL during so many calls, and their time in s. The calls are made by C code, which has the GIL
    from the first to the last of them unless they give it up themselves."""
    with spinning() as seen:
        times = list(map(operator.call, [time.perf_counter, *[call] * count, time.perf_counter]))
        begin, end = times[0], times[-1]
    return sum(begin < t < end for t in seen), end - begin


def test_long_kernels_let_other_threads_run() -> None:
    a = np.ones(64, np.float32)
    chain(a, 100)
    rounds = 1000
    took = 0.0
    while took < 0.005:  # far above 20 us, and long enough for a thread to wake up
        rounds *= 2
        took = min(timeit.repeat(functools.partial(chain, a, rounds), number=1, repeat=5))  # the least: any run may be interrupted
    turns, _ = turns_of_others(functools.partial(chain, a, rounds), 40)
    assert turns >= 20


def test_short_kernels_keep_the_gil() -> None:
    a = np.zeros(64, np.float32)
    count = 2000
    for _ in range(50):  # measured to be short
        add_one(a)
    took = 0.0
    while took < 0.1:  # many times as long as another thread waits before it demands the GIL
        count *= 2
        turns, took = turns_of_others(functools.partial(add_one, a), count)
        assert turns == 0


# ---- the floating-point mode

_X86 = platform.machine() in ("x86_64", "AMD64") and sys.platform == "linux"
_NEAREST, _DOWNWARD, _UPWARD, _TO_ZERO = 0, 0x400, 0x800, 0xC00  # fenv.h on x86
_FLUSH = 0x8040  # FTZ and DAZ of MXCSR
_MXCSR_AT = 28  # in glibc's fenv_t


class _Mode:
    """The calling thread's mode: rounding direction and MXCSR, its flags of past exceptions left out."""

    def __init__(self) -> None:
        self.libm = ctypes.CDLL(ctypes.util.find_library("m"))

    def _environment(self) -> ctypes.Array[ctypes.c_char]:
        environment = ctypes.create_string_buffer(64)
        assert self.libm.fegetenv(environment) == 0
        return environment

    def get(self) -> tuple[int, int]:
        bits = int.from_bytes(self._environment()[_MXCSR_AT : _MXCSR_AT + 4], "little")
        return self.libm.fegetround(), bits & ~0x3F

    @contextmanager
    def set(self, rounding: int, flush: bool) -> Iterator[None]:
        before = self._environment()
        assert self.libm.fesetround(rounding) == 0
        changed = self._environment()
        bits = int.from_bytes(changed[_MXCSR_AT : _MXCSR_AT + 4], "little") | (_FLUSH if flush else 0)
        changed[_MXCSR_AT : _MXCSR_AT + 4] = bits.to_bytes(4, "little")
        assert self.libm.fesetenv(changed) == 0
        try:
            yield
        finally:
            assert self.libm.fesetenv(before) == 0


@tack.kernel
def arithmetic(out, x, rounds):
    for i in range(out.shape[0]):
        s = x[0]
        for _ in range(rounds):
            s = s * x[3] + x[0]
        out[i, 0] = x[0] + x[1]  # 1 + 1e-10: 1 to nearest and down, the next number up
        out[i, 1] = -x[0] - x[1]
        out[i, 2] = x[2] * x[3]  # half of the smallest normal number
        out[i, 3] = s


@pytest.mark.skipif(not _X86, reason="the mode is read and set by the layout of glibc's fenv_t on x86-64")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rounds", [1, 3000], ids=["short", "long"])
@pytest.mark.parametrize("flush", [False, True], ids=["subnormals", "flushed"])
def test_kernels_run_in_the_default_mode_and_the_callers_is_kept(threads: int, rounds: int, flush: bool) -> None:
    device = tack.device("cpu", num_threads=threads)
    x = tack.array(np.array([1.0, 1e-10, np.finfo(np.float32).tiny, 0.5], np.float32), device=device)
    out = tack.zeros((2000, 4), device=device)
    arithmetic(out, x, rounds)
    right = out.numpy().view(np.uint32)
    assert (out.numpy()[:, :3] == np.array([1.0, -1.0, np.finfo(np.float32).tiny / np.float32(2)], np.float32)).all()
    mode = _Mode()
    default = mode.get()
    for rounding in (_NEAREST, _DOWNWARD, _UPWARD, _TO_ZERO):
        got = tack.zeros((2000, 4), device=device)
        with mode.set(rounding, flush):
            wanted = mode.get()
            assert (wanted != default) == (rounding != _NEAREST or flush)
            for _ in range(3):
                arithmetic(got, x, rounds)
            kept = mode.get()
        assert kept == wanted
        assert np.array_equal(got.numpy().view(np.uint32), right)
    assert mode.get() == default
