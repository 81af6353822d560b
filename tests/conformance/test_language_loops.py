"""The kernel language: the loops inside an iteration, and the names that they bind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from language import here, kernel, refused

import tack


def filled(text: str, n: int, *arguments: Any, dtype: Any = tack.i64, **names: Any) -> list[Any]:
    out = tack.zeros(n, dtype)
    kernel(text, **names)(out, *map(here, arguments))
    return out.tolist()


def inner(body: str, *arguments: int) -> list[int]:
    """What a body of ordinary Python does to ``out`` in a kernel, which is what Python does."""
    lines = "\n".join("            " + line for line in body.strip("\n").splitlines())
    text = f"""
    @tack.kernel
    def k(out, a, b, c):
        for _ in range(1):
{lines}
    """
    got = filled(text, 40, *arguments)
    expected = [0] * 40
    exec(body, {"out": expected, "a": arguments[0], "b": arguments[1], "c": arguments[2]})
    assert got == expected
    return got


BODIES = {
    "every step": "n = 0\nfor i in range(a, b, c):\n    out[i % 40] += i\n    n += 1\nout[39] = n",
    "bounds are evaluated once": "m = b\nfor i in range(a, m):\n    m += 5\n    out[i % 40] = m",
    "assigning the variable": "n = 0\nfor i in range(5):\n    i = i * 10 + a\n    out[n] = i\n    n += 1\nout[30] = i",
    "last value": """
for i in range(3, 9, 2):
    pass
out[0] = i
for j in range(2):
    for l in range(4):
        pass
out[1] = j * 10 + l
""",
    "else": "for i in range(6):\n    if i == a:\n        break\n    out[i] = 1\nelse:\n    out[20] = 7\nout[21] = 3",
    "while else": "i = 0\nwhile i < 6:\n    if i == a:\n        break\n    out[i] = 1\n    i += 1\nelse:\n    out[20] = 7\nout[21] = i",
    "else of an empty loop": """
for i in range(a, a):
    out[0] = 1
else:
    out[1] = 2
while a > 100:
    out[2] = 3
else:
    out[3] = 4
""",
    "break and continue nest": """
for i in range(6):
    for j in range(6):
        if j == i:
            continue
        if j > 4:
            break
        out[i * 6 + j] += 1
    else:
        out[38] += 1
    if i == 4:
        break
else:
    out[39] = 1
""",
    "break in else": """
for i in range(4):
    for j in range(3):
        out[i] += j
    else:
        if i == 2:
            break
    out[20 + i] = 1
out[30] = i
""",
    "while True": """
n = 0
while True:
    n += 1
    if n % 2:
        continue
    out[n] = n
    if n > a + 4:
        break
out[39] = n
""",
    "conditions change": "n, m = a, b\nwhile n and m > -3:\n    n, m = n - 1, m - 2\nout[0], out[1] = n, m",
    "several breaks bind": """
x = 0
for i in range(10):
    if i == a:
        x = 5
        break
    if i == b:
        x = 6
        break
    x = i
out[0] = x
out[1] = i
""",
    "values go round": "p, q = 0, 1\nfor _ in range(12):\n    p, q = q, p + q\nout[0], out[1] = p, q",
    "types go round": "t = 0\nfor i in range(5):\n    t = t + i * 1.5\nout[0] = int(t)",
    "loops in ifs in loops": """
for i in range(8):
    if i % 3 == 0:
        j = 0
        while j < i:
            j += 2
            if j == 4:
                continue
            out[i] += j
    elif i % 3 == 1:
        for j in range(i, 0, -1):
            if j == a:
                break
            out[i] += j * 10
    else:
        out[i] = -1
""",
}


@pytest.mark.parametrize("name", BODIES)
def test_loops_do_what_pythons_do(device: tack.Device, name: str) -> None:
    for arguments in ((2, 9, 3), (9, 2, -2), (5, 5, 1), (0, 6, 4), (7, 3, 2)):
        inner(BODIES[name], *arguments)


def test_a_while_with_else_that_breaks_an_outer_loop_and_divergent_trip_counts(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(out, x):
        for i in range(len(x)):
            n = x[i]
            steps = 0
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                steps += 1
                if steps > 50:
                    break
            else:
                steps += 1000
            out[i] = steps
    """

    def collatz(n: int) -> int:
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
            if steps > 50:
                return steps
        return steps + 1000

    x = np.arange(1, 200, dtype=np.int64)
    assert filled(text, 199, x) == [collatz(int(v)) for v in x]


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64])
def test_bounds_computed_of_elements_have_64_bits(device: tack.Device, dtype: Any) -> None:
    """Also where lanes count from and to different numbers, on both sides of what 32 bits hold."""
    text = """
    @tack.kernel
    def k(out, a):
        for i in range(out.shape[0]):
            s = 0
            for j in range(int(a[i]) + 1, int(a[i]) + 4):
                s += j
            for j in range(int(a[i]) - 1, int(a[i]) - 3, -1):
                s -= 10 * j
            out[i] = s
    """
    edges = [k + d for k in (-(2**62), -(2**32), -(2**31), 0, 2**31, 2**32, 2**40) for d in range(-4, 5)]
    values = [v for v in edges if np.iinfo(dtype).min <= v <= np.iinfo(dtype).max]
    expected = [3 * v + 6 - 10 * (2 * v - 3) for v in values]
    assert filled(text, len(values), np.array(values, dtype)) == [(v + 2**63) % 2**64 - 2**63 for v in expected]


@pytest.mark.parametrize("dtype", [np.int64, np.uint16])
def test_what_a_loop_that_breaks_has_bound_is_not_what_its_else_binds(device: tack.Device, dtype: Any) -> None:
    text = """
    @tack.kernel
    def k(out, a, b):
        for i in range(out.shape[0]):
            for _ in range(b[i]):
                if a[i] % 3 != 0:
                    v = a[i]
                    break
            else:
                v = 100
                if b[i] == 0:
                    for _ in range(b[i] + 2):
                        v += 0
            out[i] = v // 7 * 10 + (v > 100)
    """
    a = np.array([v for k in (0, 200, 2**15, 2**31, 2**40) for v in range(k - 4, k + 5) if 0 <= v <= np.iinfo(dtype).max], dtype)
    b = np.arange(len(a), dtype=np.uint8) % 3
    value = np.where((b > 0) & (a % 3 != 0), a, 100).astype(np.int64)
    wide = value // 7 * 10 + (value > 100)
    assert filled(text, len(a), a, b) == (wide % 2**16 if dtype is np.uint16 else wide).tolist()


@pytest.mark.parametrize(
    "body",
    [
        "for j in range(n):\n    v = j\nx[i] = v",
        "for j in range(n):\n    pass\nx[i] = j",
        "if n > 2:\n    v = 1\nx[i] = v",
        "while n > i:\n    v = 1\n    break\nx[i] = v",
        "for j in range(3):\n    if j > n:\n        break\n    v = 1\nx[i] = v",
        "for j in range(3):\n    x[i] = v\n    v = j",
        "x[i] = v\nv = 1",
        "v: tack.f32\nx[i] = v",
        "v += 1\nx[i] = 1",
    ],
)
def test_reading_a_name_that_may_be_unbound_is_refused_with_its_line(device: tack.Device, body: str) -> None:
    lines = "\n".join("            " + line for line in body.splitlines())
    text = f"\n    @tack.kernel\n    def k(x, n):\n        for i in range(len(x)):\n{lines}\n"
    message = refused(text, NameError, tack.zeros(3, tack.i32), 1)
    name = "j" if body.endswith("= j") and "v" not in body else "v"
    assert f"'{name}'" in message and "line " in message and "^" in message


def test_a_loop_that_surely_runs_binds(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(out):
        for i in range(1):
            for j in range(3):
                v = j * 2
            out[0] = v * 10 + j
    """
    assert filled(text, 1) == [42]


def test_loops_over_tuples_are_unrolled(device: tack.Device) -> None:
    text = """
    @tack.func
    def double(x):
        return 2 * x
    @tack.func
    def square(x):
        return x * x
    FUNCS = (double, square)
    @tack.kernel
    def k(out, n):
        for i in range(1):
            for v in WEIGHTS:
                if v == n:
                    continue
                if v > 6:
                    break
                out[v] = v * 10
            else:
                out[9] = 1
            for f in FUNCS:
                out[8] += f(n)
            for a, b in ((1, 2.5), (3, 4.0)):
                out[7] += int(a * b)
            for d in (tack.i8, tack.u8):
                out[10] += d(200)
            for s in out.shape:
                out[11] = s
        """
    for n in (2, 7):
        expected = [0] * 12
        for v in (1, 2, 5, 7):
            if v == n:
                continue
            if v > 6:
                break
            expected[v] = v * 10
        else:
            expected[9] = 1
        expected[8] = 2 * n + n * n
        expected[7] += 2 + 12
        expected[10] = -56 + 200
        expected[11] = 12
        assert filled(text, 12, n, WEIGHTS=(1, 2, 5, 7)) == expected


@pytest.mark.parametrize("dtype", ["u1", "i4"])
@pytest.mark.parametrize("lanes", [1, 4])
def test_loops_to_a_zero(dtype: str, lanes: int) -> None:
    """LLVM makes a call of ``strlen`` or ``wcslen`` of such a loop, if it may; there is none to call."""
    rows = np.ones((9, 40), dtype)
    lengths = np.arange(9) * 4
    rows[np.arange(9), lengths] = 0
    text = """
    @tack.kernel(simd=LANES)
    def k(out, rows):
        for i in range(rows.shape[0]):
            n = 0
            while rows[i, n] != 0:
                n += 1
            out[i] = n
    """
    assert filled(text, 9, rows, LANES=lanes) == lengths.tolist()
