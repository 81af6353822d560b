"""Debug mode: every index and assert checked, the first failure named and raised, nothing outside touched; and print in kernels."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tack

LANES = (None, *(pytest.param(lanes, marks=pytest.mark.needs("lanes and threads")) for lanes in (1, 4, 16)))


@pytest.fixture(autouse=True)
def _off() -> Iterator[None]:
    before = tack.debug(False)
    yield
    before.__exit__()


def line_of(function: Callable[..., Any], text: str) -> int:
    """The line of this file on which ``function`` has ``text``."""
    lines, first = inspect.getsourcelines(function)
    (found,) = [first + k for k, line in enumerate(lines) if text in line]
    return found


def failure(kind: type[Exception], call: Callable[[], Any]) -> str:
    """The message of what a call raises in debug mode, at its end or at the wait."""
    with pytest.raises(kind) as caught, tack.debug():
        call()
        tack.sync()
    assert type(caught.value) is kind
    return str(caught.value)


# ---- what is said


def _shift(x, y):
    for i in range(x.shape[0]):
        y[i] = 2.0 * x[i + 1]


shift = tack.kernel(_shift)


def test_an_index_outside_names_everything(device: tack.Device) -> None:
    x, y = tack.ones(100), tack.zeros(100)
    message = failure(IndexError, lambda: shift(x, y))
    line = line_of(_shift, "x[i + 1]")
    assert (
        message
        == f"Kernel '_shift': index 100 is outside of 'x' of shape (100,)\n  in iteration i = 99\n  File \"{__file__}\", line {line}"
    )


@pytest.mark.parametrize("simd", LANES)
def test_the_rest_of_the_memory_is_not_touched(device: tack.Device, simd: int | None) -> None:
    def spread(x, y, far):
        for i in range(x.shape[0]):
            y[i + far] = x[i] + 1

    kernel = tack.kernel(simd=simd)(spread)
    for far, wrong in ((1, 50), (-1, -1), (1 << 40, None), (-(1 << 62), None)):
        whole = tack.full(150, -7.0)
        x, y = tack.arange(50).astype(tack.f32), whole[50:100]
        message = failure(IndexError, lambda x=x, y=y, far=far: kernel(x, y, far))
        found = int(re.search(r"index (-?\d+) is outside of 'y' of shape \(50,\)", message)[1])
        iteration = int(re.search(r"in iteration i = (\d+)", message)[1])
        assert found == iteration + far and not 0 <= found < 50
        if wrong is not None:
            assert found == wrong
        assert (whole.numpy()[:50] == -7).all() and (whole.numpy()[100:] == -7).all()


@pytest.mark.parametrize("simd", LANES)
def test_gathers_scatters_and_atomics(device: tack.Device, simd: int | None) -> None:
    def gather(x, index, y):
        for i in range(index.shape[0]):
            y[i] = x[index[i]]

    def scatter(x, index, y):
        for i in range(index.shape[0]):
            y[index[i]] = x[i]

    def count(x, index, y):
        for i in range(index.shape[0]):
            tack.atomic_add(y, index[i], 1)

    rng = np.random.default_rng(3)
    for function in (gather, scatter, count):
        kernel = tack.kernel(simd=simd)(function)
        index = rng.integers(0, 70, 70).astype(np.int32)
        x, good, y, plain = tack.ones(70), tack.array(index), tack.zeros(70), tack.zeros(70)
        with tack.debug():
            kernel(x, good, y)
        kernel(x, good, plain)
        assert (y.numpy() == plain.numpy()).all()
        for place, wrong in ((0, 70), (33, -1), (69, 2_000_000_000)):
            bad = index.copy()
            bad[place] = wrong
            message = failure(IndexError, lambda b=bad, k=kernel: k(x, tack.array(b), tack.zeros(70)))
            array = "x" if function is gather else "y"
            assert f"index {wrong} is outside of '{array}' of shape (70,)\n  in iteration i = {place}\n" in message


@pytest.mark.parametrize("simd", LANES)
def test_guards_are_believed(device: tack.Device, simd: int | None) -> None:
    def guarded(x, y):
        for i in range(x.shape[0]):
            if i + 1 < x.shape[0]:
                y[i] = x[i + 1]
            else:
                y[i] = -1.0
            k = i
            while k > 0 and x[k - 1] > 0.0:
                k -= 3

    x, y = tack.ones(67), tack.zeros(67)
    with tack.debug():
        tack.kernel(simd=simd)(guarded)(x, y)
    assert y.tolist() == [1.0] * 66 + [-1.0]


@pytest.mark.parametrize("simd", LANES)
def test_failures_deep_inside_loops(device: tack.Device, simd: int | None) -> None:
    def deep(x, y, last):
        for i in range(x.shape[0]):
            s = 0.0
            for k in range(i + 1):
                if k % 2 == 0:
                    s += x[k]
                elif i == 41:
                    s += y[k + last]
            y[i] = s

    kernel = tack.kernel(simd=simd)(deep)
    x, y = tack.ones(64), tack.zeros(64)
    with tack.debug():
        kernel(x, y, 0)
    message = failure(IndexError, lambda: kernel(x, y, 60))
    assert "index 65 is outside of 'y' of shape (64,)\n  in iteration i = 41\n" in message  # k = 5, the first odd one beyond


@tack.kernel
def plane(x, y, dj):
    for i, j in tack.ndrange(x.shape[0], (1, x.shape[1])):
        y[i, j] = x[i, j + dj]


def test_several_dimensions_and_views(device: tack.Device) -> None:
    x, y = tack.ones((6, 40)), tack.zeros((6, 40))
    message = failure(IndexError, lambda: plane(x, y, 1))
    assert re.search(r"index \((\d), 40\) is outside of 'x' of shape \(6, 40\)\n  in iteration i = \1, j = 39\n", message)
    for view in (x[::-1, ::-1], x[::2, :20], x[1:, 3:23], x.T):
        target = tack.zeros(view.shape)
        with tack.debug():
            plane(view, target, 0)
        n = view.shape[1]
        assert (target.numpy()[:, 1:] == 1).all()
        message = failure(IndexError, lambda v=view, t=target: plane(v, t, 1))
        assert re.search(
            rf"index \((\d+), {n}\) is outside of 'x' of shape \({view.shape[0]}, {n}\)\n  in iteration i = \1, j = {n - 1}\n", message
        )


SHORT, LONG = (10, 20, 30), tuple(range(100))
TABLE = ((1, 2.0), (3, 4.0))


def test_tuples(device: tack.Device) -> None:
    @tack.kernel
    def short(x, p):
        for i in range(x.shape[0]):
            x[i] = SHORT[p + i]

    @tack.kernel
    def long(x, p):
        for i in range(x.shape[0]):
            x[i] = LONG[p - i] if p < 200 else 0

    @tack.kernel
    def table(x, p):
        a, b = TABLE[p]
        for i in range(x.shape[0]):
            x[i] = a + b

    x = tack.zeros(3)
    assert "'short': index 3 is outside of the tuple of 3 items\n  in iteration i = 2\n" in failure(IndexError, lambda: short(x, 1))
    assert "'long': index -1 is outside of the tuple of 100 items\n  in iteration i = 1\n" in failure(IndexError, lambda: long(x, 0))
    assert "'table': index 2 is outside of the tuple of 2 items\n  File" in failure(IndexError, lambda: table(x, 2))
    with tack.debug():
        short(x, 0)
        assert x.tolist() == [10, 20, 30]
        long(x, 200)
        assert x.tolist() == [0, 0, 0]
        table(x, 1)
        assert x.tolist() == [7, 7, 7]


def test_flat_local_and_zero_dimensional(device: tack.Device) -> None:
    @tack.kernel
    def flat(x, n):
        for p in range(n):
            x.flat[p] = 3.0

    @tack.kernel
    def local(x, k):
        for i in range(x.shape[0]):
            scratch = tack.local_array(tack.f32, (2, 4))
            scratch[i % 2, k] = 5.0
            x[i] = scratch[i % 2, k]

    @tack.kernel
    def scalar(x, y):
        for i in range(y.shape[0]):
            y[i] = x[()]

    x = tack.zeros((3, 5))
    assert "flat index 15 is outside of the 15 elements of 'x' of shape (3, 5)\n  in iteration p = 15\n" in failure(
        IndexError, lambda: flat(x, 16)
    )
    z = tack.zeros(40)
    message = failure(IndexError, lambda: local(z, 4))
    assert re.search(r"index \([01], 4\) is outside of 'scratch' of shape \(2, 4\)", message)
    with tack.debug():
        flat(x, 15)
        local(z, 3)
        scalar(tack.array(4.0), y := tack.zeros(3))
    assert y.tolist() == [4.0] * 3 and (z.numpy() == 5).all() and (x.numpy() == 3).all()


def test_negative_constants_and_empty_arrays(device: tack.Device) -> None:
    @tack.kernel
    def last(x):
        for i in range(1):
            x[0] = x[-1]

    @tack.kernel
    def first(x):
        x[0] = 1.0

    with tack.debug():
        last(x := tack.arange(5).astype(tack.f32))
    assert x.tolist()[0] == 4.0
    assert "index -1 is outside of 'x' of shape (0,)" in failure(IndexError, lambda: last(tack.zeros(0)))
    message = failure(IndexError, lambda: first(tack.zeros(0)))
    assert "index 0 is outside of 'x' of shape (0,)\n  File" in message  # no loop, no iteration


def test_steps_of_a_sequence_are_named(device: tack.Device) -> None:
    @tack.kernel
    def march(x):
        for t in tack.sequential(10):
            for i in range(8):
                x[i + t] += 1.0

    x = tack.zeros(12)
    message = failure(IndexError, lambda: march(x))
    assert re.search(r"index 12 is outside of 'x' of shape \(12,\)\n  in iteration i = 7 of step t = 5\n", message)
    assert x.numpy().max() <= 6  # the steps after the failing one do nothing


def test_reductions_and_results(device: tack.Device) -> None:
    @tack.kernel
    def total(x, n):
        s = 0.0
        for i in range(n):
            s += x[i]
        return s

    x = tack.ones(5000)
    with tack.debug():
        assert total(x, 5000) == 5000.0
    assert "index 5000 is outside of 'x'" in failure(IndexError, lambda: total(x, 5001))


def test_the_line_of_a_device_function(device: tack.Device) -> None:
    message = failure(IndexError, lambda: calls_pick(tack.zeros(4)))
    assert f"line {line_of(pick, 'x[k]')}" in message


@tack.func
def pick(x, k):
    return x[k]


@tack.kernel
def calls_pick(x):
    for i in range(x.shape[0]):
        x[i] = pick(x, i + 2)


# ---- asserts


@pytest.mark.parametrize("simd", LANES)
def test_asserts(device: tack.Device, simd: int | None) -> None:
    def plain(x):
        for i in range(x.shape[0]):
            assert x[i] >= 0.0
            x[i] = 9.0

    def message(x):
        for i in range(x.shape[0]):
            assert x[i] >= 0.0, "negative {} value"

    def formatted(x):
        for i in range(x.shape[0]):
            assert x[i] >= 0.0, f"x[{i}] is {x[i]:+.2f} of {x.shape} {x[i] < 0.0} {{}}"

    def values(x):
        for i in range(x.shape[0]):
            assert x[i] >= 0.0, ("bad", i, x[i])

    data = np.ones(50, np.float32)
    data[37] = -2.5
    for function, text in (
        (plain, "x[i] >= 0.0 is not true"),
        (message, "negative {} value"),
        (formatted, "x[37] is -2.50 of (50,) True {}"),
        (values, "('bad', 37, -2.5)"),
    ):
        kernel = tack.kernel(simd=simd)(function)
        kernel(tack.array(data))  # nothing is checked outside of debug mode
        said = failure(AssertionError, lambda k=kernel: k(tack.array(data)))
        assert said.startswith(f"Kernel '{function.__name__}': {text}\n  in iteration i = 37\n")
        assert said.endswith(f'File "{__file__}", line {line_of(function, "assert")}')
        with tack.debug():
            kernel(tack.ones(50))


def test_asserts_outside_of_loops_and_of_arguments(device: tack.Device) -> None:
    @tack.kernel
    def check(x, n):
        assert n <= x.shape[0], f"n = {n}"
        for i in range(n):
            x[i] = 1.0

    x = tack.zeros(4)
    with tack.debug():
        check(x, 4)
    said = failure(AssertionError, lambda: check(tack.zeros(4), 5))
    assert said.startswith("Kernel 'check': n = 5\n  File ")


def test_asserts_cost_nothing_outside_of_debug_mode(device: tack.Device) -> None:
    def bare(x, y):
        for i in range(x.shape[0]):
            x[i] = 2.0 * x[i]

    def asserting(x, y):
        assert x.shape[0] > 0
        for i in range(x.shape[0]):
            assert y[i] > 0.0, f"y is {y[i]}"
            for k in range(int(y[i])):
                assert x[k] < 1.0
            x[i] = 2.0 * x[i]

    x = tack.ones(10)
    mode = "optimized" if device.type == "cpu" else "source"
    texts = [re.sub("#line.*\n", "", tack.inspect(tack.kernel(f), x, x, mode=mode)) for f in (bare, asserting)]
    assert texts[0] == texts[1].replace("asserting", "bare")


def test_debug_mode_changes_no_bits(device: tack.Device) -> None:
    @tack.kernel
    def mixed(x, y, out):
        for i in range(x.shape[0]):
            product = x[i] * y[i]
            assert product == product, f"{product}"
            out[i] = product + tack.sin(x[i]) * y[i]

    rng = np.random.default_rng(1)
    x, y = (tack.array(rng.standard_normal(1000).astype(np.float32)) for _ in range(2))
    plain, checked = tack.zeros(1000), tack.zeros(1000)
    mixed(x, y, plain)
    with tack.debug():
        mixed(x, y, checked)
    assert plain.numpy().tobytes() == checked.numpy().tobytes()


# ---- the mode


def test_the_mode_nests_and_ends(device: tack.Device) -> None:
    y = tack.zeros(3)
    whole = tack.ones(8)
    x = whole[:3]  # what lies behind it is read where nothing is checked

    @tack.kernel
    def shift_inside(x, y, far):
        for i in range(1):
            y[i] = x[i + far]

    def checks() -> bool:
        try:
            shift_inside(x, y, 3)
            tack.sync()
        except IndexError:
            return True
        return False

    assert not checks()
    with tack.debug():
        assert checks()
        with tack.debug(False):
            assert not checks()
        assert checks()
    assert not checks()
    mode = tack.debug(True)
    assert checks()
    tack.debug(False)
    assert not checks()
    with mode:  # used again
        assert checks()
    assert not checks()
    with pytest.raises(TypeError, match="expected a bool, got 1"):
        tack.debug(1)


def test_a_failure_leaves_everything_usable(device: tack.Device) -> None:
    x, y = tack.ones(100), tack.zeros(100)
    in_use = set()
    for _ in range(5):
        failure(IndexError, lambda: shift(x, y))
        in_use.add(device.memory_stats()["in_use"])
    assert len(in_use) == 1  # no buffer stays behind
    with tack.debug():
        plane(tack.ones((2, 3)), out := tack.zeros((2, 3)), 0)
    assert out.tolist() == [[0.0, 1.0, 1.0]] * 2


def test_the_others_stop_soon() -> None:
    @tack.kernel
    def fails(x, turns):
        for i in range(x.shape[0]):
            assert i != 3
            s = 0.0
            for k in range(turns):
                s = s * 0.5 + x[i]
            x[i] = s

    with tack.device("cpu"), tack.debug():
        x = tack.ones(4_000_000)
        fails(tack.ones(2), 10)  # compiled
        start = time.perf_counter()
        with pytest.raises(AssertionError):
            fails(x, 100_000)
        assert time.perf_counter() - start < 2.0  # all of it would take most of a minute


def test_several_threads_get_their_own_failures(device: tack.Device) -> None:
    said: dict[int, str] = {}

    def work(n: int) -> None:
        x, y = tack.ones(n), tack.zeros(n)
        for _ in range(20):
            with pytest.raises(IndexError) as caught:
                shift(x, y)
                tack.sync()
            said[n] = str(caught.value)

    with tack.debug():
        threads = [threading.Thread(target=work, args=(n,)) for n in (10, 20, 30, 40)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    if not device.queued:
        assert all(f"index {n} is outside of 'x' of shape ({n},)" in said[n] for n in (10, 20, 30, 40))


SCRIPT = """
import tack

@tack.kernel
def shift(x):
    for i in range(x.shape[0]):
        x[i] = x[i + 1]

try:
    shift(tack.ones(5))
    tack.sync()
except IndexError as error:
    print(error)
print(tack.get_default_device().compiled)
"""


def test_the_environment_and_the_disk_cache(tmp_path: Path) -> None:
    """TACK_DEBUG=1 checks from the start; what is stored says the same, and names the lines of the file as it is now."""
    script = tmp_path / "script.py"
    environment = {**os.environ, "TACK_DEBUG": "1", "TACK_CACHE_DIR": str(tmp_path / "cache"), "TACK_CACHE": "1"}
    outputs = []
    for head in ("", "", "\n\n\n"):
        script.write_text(head + SCRIPT)
        done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True)
        outputs.append(done.stdout.splitlines())
    for lines, (line, compiled) in zip(outputs, ((7, "1"), (7, "0"), (10, None)), strict=True):
        assert lines[0] == "Kernel 'shift': index 5 is outside of 'x' of shape (5,)"
        assert lines[2] == f'  File "{script}", line {line}'
        assert compiled is None or lines[3] == compiled


# ---- print


@tack.kernel
def says(x):
    print("start", x.shape, 1.5, True, None, tack.f32, sep="|")
    for i in range(x.shape[0]):
        if i % 3 == 0:
            print("i =", i, f"x={x[i]:8.3f} {x[i]!r} {i=}", (i, x[i]), end=";\n")


def test_print(device: tack.Device, capsys: pytest.CaptureFixture[str]) -> None:
    x = tack.linspace(0.0, 1.0, 4)
    says(x)
    tack.sync()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "start|(4,)|1.5|True|None|tack.f32"
    assert sorted(lines[1:]) == ["i = 0 x=   0.000 0.0 i=0 (0, 0.0);", "i = 3 x=   1.000 1.0 i=3 (3, 1.0);"]


def test_values_are_written_as_python_writes_them(device: tack.Device, capsys: pytest.CaptureFixture[str]) -> None:
    @tack.kernel
    def show32(x):
        for i in range(x.shape[0]):
            print(i, x[i], f"{x[i]:e} {x[i]:+09.2f} {x[i]:.3g} {x[i]:012}")

    @tack.kernel
    def show_ints(a, b, c, d):
        for i in range(a.shape[0]):
            print(i, a[i], b[i], c[i], d[i], a[i] < 0, f"{a[i]:5d}|{b[i]:03x}|{c[i]:X}|{d[i]:b}|{d[i]:+}|{a[i]:.1f}", sep=" ")

    numbers = [0.0, -0.0, 1.0, 0.1, -2.5, 1e-5, 1e-4, 123456.789, 1e15, 1e16, 1.5e16, 3.4e38, 1e-45, np.inf, -np.inf, np.nan, 16777217.0]
    for dtype in (np.float32, np.float64) if device.supports_f64 else (np.float32,):
        x = np.array(numbers, dtype)
        if dtype is np.float64:
            x = np.append(x, [1e300, 5e-324, 1 / 3, 9007199254740993.0])
        show32(tack.array(x))
        tack.sync()
        lines = {int(line.split()[0]): line for line in capsys.readouterr().out.splitlines()}
        for i, value in enumerate(x):
            f = float(value)
            shown = repr(float(str(value))) if dtype is np.float32 else repr(f)  # the fewest digits, laid out as Python does
            wide = shown.zfill(12) if np.isfinite(f) else f"{f:012}"
            assert lines[i] == f"{i} {shown} {f:e} {f:+09.2f} {f:.3g} {wide}", (i, f)
    a, b = np.array([-128, 127, 0], np.int8), np.array([0, 255, 7], np.uint8)
    c, d = np.array([1 << 63, (1 << 64) - 1, 1], np.uint64), np.array([-(1 << 63), (1 << 63) - 1, -1], np.int64)
    show_ints(*map(tack.array, (a, b, c, d)))
    tack.sync()
    lines = capsys.readouterr().out.splitlines()
    for i in range(3):
        p, q, r, s = (int(v[i]) for v in (a, b, c, d))
        assert f"{i} {p} {q} {r} {s} {p < 0} {p:5d}|{q:03x}|{r:X}|{s:b}|{s:+}|{p:.1f}" in lines


def test_prints_of_an_iteration_follow_each_other(device: tack.Device, capsys: pytest.CaptureFixture[str]) -> None:
    @tack.kernel(simd=16)
    def pairs(x):
        for i in range(x.shape[0]):
            print("a", i)
            print("b", i)

    with tack.device("cpu", num_threads=1) if device.type == "cpu" else device:
        pairs(tack.zeros(20))
        tack.sync()
    if device.type == "cpu":
        assert capsys.readouterr().out.split("\n")[:-1] == [f"{c} {i}" for i in range(20) for c in "ab"]


def test_lost_prints_are_told(device: tack.Device, capsys: pytest.CaptureFixture[str]) -> None:
    @tack.kernel
    def chatter(x):
        for i in range(x.shape[0]):
            print(i)

    n = 200_000
    chatter(tack.zeros(n))
    tack.sync()
    *lines, note = capsys.readouterr().out.splitlines()
    assert len(set(lines)) == len(lines) == 65536 and all(0 <= int(line) < n for line in lines)
    assert note == (
        f"[tack] Kernel 'chatter' printed {n} times in one call; {n - 65536} were lost, as there is room for 65536. "
        "Print less of it: if i == 0: print(...)."
    )


def test_prints_come_before_the_failure(device: tack.Device, capsys: pytest.CaptureFixture[str]) -> None:
    @tack.kernel
    def talk(x):
        for i in range(1):
            print("before {}", x[0])
            x[i + 7] = 1.0
            print("after")

    failure(IndexError, lambda: talk(tack.zeros(3)))
    assert capsys.readouterr().out == "before {} 0.0\n"


def test_print_raises_what_stdout_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def write(self, text: str) -> None:
            raise BrokenPipeError("nobody reads")

        def flush(self) -> None:
            pass

    x = tack.zeros(1)
    monkeypatch.setattr(sys, "stdout", Broken())
    with pytest.raises(BrokenPipeError, match="nobody reads"):
        says(x)
    monkeypatch.setattr(sys, "stdout", None)
    says(x)  # a program without a console
