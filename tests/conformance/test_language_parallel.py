"""The kernel language: parallel loops and what crosses them, ndrange, reductions, tack.sequential."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from language import here, kernel, refused

import tack


def filled(text: str, n: int, *arguments: Any, dtype: Any = tack.i64, **names: Any) -> list[Any]:
    out = tack.zeros(n, dtype)
    kernel(text, **names)(out, *map(here, arguments))
    return out.tolist()


# -- parallel loops


@pytest.mark.parametrize(
    "bounds", [(10,), (3, 10), (10, 3), (0,), (-5,), (2, 17, 3), (17, 2, -3), (2, 17, -3), (5, 5, 2), (-7, 8, 5), (0, 1, 100)]
)
def test_range_at_the_top(device: tack.Device, bounds: tuple[int, ...]) -> None:
    names = "abc"[: len(bounds)]
    text = f"@tack.kernel\ndef k(out, {', '.join(names)}):\n    for i in range({', '.join(names)}):\n        out[i + 8] += i * 10 + 1\n"
    expected = [0] * 32
    for i in range(*bounds):
        expected[i + 8] += i * 10 + 1
    assert filled(text, 32, *bounds) == expected
    literal = f"@tack.kernel\ndef k(out):\n    for i in range({', '.join(map(str, bounds))}):\n        out[i + 8] += i * 10 + 1\n"
    assert filled(literal, 32) == expected


def test_a_step_of_0_runs_nothing_at_run_time_and_is_refused_at_compile_time(device: tack.Device) -> None:
    text = "@tack.kernel\ndef k(out, s):\n    for i in range(0, 5, s):\n        out[i] = 1\n"
    assert filled(text, 5, 0) == [0] * 5
    inner = """
    @tack.kernel
    def k(out, s):
        for i in range(1):
            for j in range(0, 5, s):
                out[j] = 1
            out[4] = 7
    """
    assert filled(inner, 5, 0) == [0, 0, 0, 0, 7]
    assert "step" in refused("@tack.kernel\ndef k(out):\n    for i in range(0, 5, 0):\n        out[i] = 1\n", TypeError, tack.zeros(5))


def test_loops_run_in_order_and_see_what_earlier_ones_wrote(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(a, b):
        n = len(a)
        for i in range(n):
            a[i] = i
        for i in range(n):
            b[i] = a[n - 1 - i] * 2
        shift = b[0] + 1
        for i in range(n):
            a[i] = b[(i + 1) % n] + shift
        a[0] = shift
    """)
    for n in (1, 5, 10_000):
        a, b = tack.zeros(n, tack.i64), tack.zeros(n, tack.i64)
        k(a, b)
        expected_b = [(n - 1 - i) * 2 for i in range(n)]
        expected_a = [expected_b[(i + 1) % n] + expected_b[0] + 1 for i in range(n)]
        expected_a[0] = expected_b[0] + 1
        assert b.tolist() == expected_b and a.tolist() == expected_a


def test_iterations_start_from_the_scalars_bound_before(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(out):
        s = 5
        t, u = (1, 2), 3
        for i in range(len(out)):
            s = s + i
            t = (t[1], i)
            out[i] = s * 1000 + t[0] * 100 + t[1] * 10 + u
        for i in range(len(out)):
            s = 1
            out[i] += s
    """
    assert filled(text, 5) == [5000 + i * 1000 + 200 + i * 10 + 3 + 1 for i in range(5)]


def test_values_of_arrays_read_before_a_loop_are_read_once(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(x):
        first = x[0]
        for i in range(len(x)):
            x[i] = first + i
    """
    x = tack.full(3000, 7, tack.i32)
    kernel(text)(x)
    assert x.tolist() == [7 + i for i in range(3000)]


def test_within_an_iteration_loads_and_stores_keep_their_order(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(a, b):
        for i in range(len(a) - 1):
            a[i] = 1
            b[i] += 1
            a[i] += b[i]
            b[i] = a[i] * 10
    """
    base = np.full(64, 5, np.int32)
    kernel(text)(base[:-1], base[:-1])  # one memory under both names
    one = 1
    one += 1
    one += one
    assert base.tolist() == [one * 10] * 62 + [5, 5]


def test_an_iteration_writes_only_what_it_stores(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(x, p, q):
        for i in range(len(x)):
            if i % p == 0:
                x[i] = 1
            elif i % p == q:
                continue
            else:
                if i % 7 == 0:
                    x[i] = 2
    """
    n = 1003
    for dtype in (np.uint8, np.int16, np.float32):
        x = np.full(n, 9, dtype)
        kernel(text)(x, 3, 1)
        assert x.tolist() == [1 if i % 3 == 0 else 9 if i % 3 == 1 else 2 if i % 7 == 0 else 9 for i in range(n)]
    guarded = np.full(70, 9, np.uint8)
    kernel("@tack.kernel\ndef k(x):\n    for i in range(len(x)):\n        x[i] = 1\n")(guarded[3:66])
    assert guarded.tolist() == [9] * 3 + [1] * 63 + [9] * 4


def test_continue_ends_an_iteration(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(out):
        for i in range(len(out)):
            if i % 2:
                continue
            for j in range(3):
                if j == 1:
                    continue
                out[i] += j + 1
            if i > 5:
                continue
            out[i] += 100
    """
    assert filled(text, 8) == [104, 0, 104, 0, 104, 0, 4, 0]


# -- ndrange


SHAPES = [((5,),), ((3, 4),), ((2, 3, 4),), ((2, 3, 2, 3),), ((0, 4),), ((3, -2),), ((4, 1, 0, 2),)]


@pytest.mark.parametrize("shape", [s[0] for s in SHAPES], ids=str)
def test_ndrange_is_row_major(device: tack.Device, shape: tuple[int, ...]) -> None:
    names = "ijkl"[: len(shape)]
    index = ", ".join(names)
    text = f"""
    @tack.kernel
    def k(out, order, {", ".join("n" + c for c in names)}):
        for {index} in tack.ndrange({", ".join("n" + c for c in names)}):
            out[{index}] += 1 + {" + ".join(f"{10**n} * {c}" for n, c in enumerate(names))}
    """
    real = tuple(max(n, 0) for n in shape)
    out = tack.zeros(real, tack.i64)
    kernel(text)(out, 0, *shape)
    expected = np.zeros(real, np.int64)
    for index_ in np.ndindex(*real):
        expected[index_] = 1 + sum(10**n * c for n, c in enumerate(index_))
    assert np.array_equal(out.numpy(), expected)


@pytest.mark.parametrize(
    ("spec", "ranges"),
    [
        ("(1, 4), 3", [(1, 4), (0, 3)]),
        ("3, (2, 5)", [(0, 3), (2, 5)]),
        ("(1, 3), (4, 2), (0, 3)", [(1, 3), (4, 2), (0, 3)]),
        ("(-2, 2), (1, 3), (0, 2), (3, 5)", [(-2, 2), (1, 3), (0, 2), (3, 5)]),
        ("(n - 4, n)", [(1, 5)]),
        ("out.shape", [(0, 6), (0, 6), (0, 6), (0, 6)]),
        ("P, n", [(2, 4), (0, 5)]),
    ],
)
def test_ndrange_takes_sizes_and_pairs(device: tack.Device, spec: str, ranges: list[tuple[int, int]]) -> None:
    names = ["i", "j", "k", "l"][: len(ranges)]
    text = f"""
    @tack.kernel
    def k(out, n):
        for {", ".join(names) if len(names) > 1 else names[0] + ","} in tack.ndrange({spec}):
            out[{", ".join([c + " + 0" if c != "i" else "i if i >= 0 else i + 6" for c in names] + ["0"] * (4 - len(names)))}] += 1
    """
    if len(ranges) == 1:
        text = text.replace("i, in", "i in")
    out = tack.zeros((6, 6, 6, 6), tack.i32)
    kernel(text, P=(2, 4))(out, 5)
    expected = np.zeros((6, 6, 6, 6), np.int32)
    for index in itertools.product(*(range(*r) for r in ranges)):
        expected[tuple(index) + (0,) * (4 - len(index))] += 1
    assert np.array_equal(out.numpy(), expected)


def test_ndrange_to_one_name_gives_a_tuple(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(out):
        for p in tack.ndrange(3, 4):
            i, j = p
            out[p] = p[0] * 10 + p[-1] + len(p) * 100 + (i == p[0]) + (j == p[1])
        for q in tack.ndrange(3):
            out[q, 0] += 1000
    """
    out = tack.zeros((3, 4), tack.i64)
    kernel(text)(out)
    assert out.tolist() == [[i * 10 + j + 202 + 1000 * (j == 0) for j in range(4)] for i in range(3)]


def test_loops_too_long_are_refused_before_the_first_runs(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(x, n):
        for i in range(len(x)):
            x[i] = 1
        for i, j, l in tack.ndrange(n, n, n):
            x[0] = 2
    """
    x = tack.zeros(3, tack.i32)
    with pytest.raises(ValueError, match="Kernel 'k'"):
        kernel(text)(x, 2**40)
    assert x.tolist() == [0, 0, 0]


def test_bounds_come_from_scalars_shapes_and_captured_values(device: tack.Device) -> None:
    text = """
    @tack.func
    def half(n):
        return n // 2
    @tack.kernel
    def k(out, n, x):
        h, w = x.shape
        m = min(half(n) + N, h * w) - (w if n > 3 else 0)
        for i in range(max(m - 2, 1), m if n % 2 == 0 else abs(-m), 1 + (n == 8)):
            out[i] = 1
    """

    def expected(n: int) -> list[int]:
        m = min(n // 2 + 4, 12) - (3 if n > 3 else 0)
        return [1 if i in range(max(m - 2, 1), m, 1 + (n == 8)) else 0 for i in range(16)]

    for n in (0, 3, 8, 9, 30):
        assert filled(text, 16, n, tack.zeros((4, 3)), N=4) == expected(n)


BOUNDS = {
    "1 << n": lambda n, m: 1 << n,
    "2 ** n + 3 ** (n // 2)": lambda n, m: 2**n + 3 ** (n // 2),
    "(m >> n) + (m & 3) + (m | 4) - (m ^ n)": lambda n, m: (m >> n) + (m & 3) + (m | 4) - (m ^ n),
    "~(-m)": lambda n, m: ~(-m),
    "tack.popcount(m) + 64 - tack.clz(m)": lambda n, m: m.bit_count() + m.bit_length(),
    "tack.popcount(tack.i16(-m)) + tack.clz(tack.u8(m))": lambda n, m: (-m & 0xFFFF).bit_count() + 8 - (m & 0xFF).bit_length(),
    "tack.u8(m) << n": lambda n, m: (m << n) & 0xFF,
    "~tack.u8(m)": lambda n, m: 255 - (m & 0xFF),
    "tack.u8(m) ** 2": lambda n, m: m * m & 0xFF,
    "(m << -n - 1) + (m >> 64) + (-m >> 64) + 2 ** (-n - 1) + 5": lambda n, m: 4 if m else 5,
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_bounds_are_any_integer_arithmetic_of_scalars(device: tack.Device, bound: str) -> None:
    text = f"""
    @tack.kernel
    def k(out, n, m):
        count = 0
        for i in range({bound}):
            out[i] = 1
        for i in range({bound}):  # a reduction: its launch counts blocks
            count += out[i]
        return count
    """
    for n, m in ((0, 0), (0, 1), (3, 5), (2, 19), (6, 200), (5, 37)):
        out = tack.zeros(1000, tack.i32)
        expected = BOUNDS[bound](n, m)
        assert kernel(text)(out, n, m) == max(expected, 0)
        assert out.numpy().sum() == max(expected, 0)


def test_a_scan_halves_its_loops_in_a_sequence(device: tack.Device) -> None:
    scan = kernel("""
    @tack.kernel
    def k(x, levels):
        n = len(x)
        for d in tack.sequential(levels):
            for i in range(0, n, 2 << d):
                x[i + (2 << d) - 1] += x[i + (1 << d) - 1]
        for i in range(n - 1, n):
            x[i] = 0
        for d in tack.sequential(levels - 1, -1, -1):
            for i in range(0, n, 2 << d):
                left = x[i + (1 << d) - 1]
                x[i + (1 << d) - 1] = x[i + (2 << d) - 1]
                x[i + (2 << d) - 1] += left
    """)
    values = np.random.default_rng(5).integers(0, 100, 64).astype(np.int32)
    x = tack.array(values)
    scan(x, 6)
    np.testing.assert_array_equal(x.numpy(), np.cumsum(values) - values)


@pytest.mark.parametrize("bound", ["x[0]", "int(x[0])", "len(x) + x[1]", "s", "int(tack.sqrt(1.0 * n))"])
def test_bounds_of_what_only_the_device_knows_are_refused_with_the_cure(device: tack.Device, bound: str) -> None:
    text = f"""
    @tack.kernel
    def k(x, n):
        s = 0
        for i in range(len(x)):
            s += x[i]
        for i in range({bound}):
            x[i] = 1
    """
    cure = "int(a[0])" if "x[" in bound else "compute it before the call"
    assert cure in refused(text, tack.CompileError, tack.ones(4, tack.i32), 3)


@pytest.mark.parametrize(
    ("statements", "word"),
    [
        ("while n > 3:\n    for i in range(3):\n        x[i] = 1\n    n -= 1", "sequential"),
        ("if n > 3:\n    for i in range(3):\n        x[i] = 1", "inside"),
        ("for i in range(3):\n    x[i] = 1\nelse:\n    x[0] = 2", "else"),
        ("for i in range(3):\n    if i > n:\n        break\n    x[i] = 1", "continue"),
        ("for i in range(3):\n    if i > n:\n        return\n    x[i] = 1", "continue"),
        ("if n > 3:\n    return\nfor i in range(3):\n    x[i] = 1", "return"),
        ("for i in range(3):\n    x[i] = 1\ntack.atomic_add(x, 0, 1)", "a[i] += v"),
        ("with n:\n    for i in range(3):\n        x[i] = 1", "with"),
        ("for x[0] in range(3):\n    pass", "name"),
        ("for t in tack.sequential(3):\n    break", "break"),
        ("for i in range(3):\n    for t in tack.sequential(3):\n        x[i] = t", "sequential"),
        ("for i in range(3):\n    for j, l in tack.ndrange(3, 2):\n        x[i] = j", "range"),
        ("for i in range(3.0):\n    x[i] = 1", "integer"),
        ("for i, j in tack.ndrange(3, 2, 4):\n    x[i] = 1", "3"),
        ("for i in tack.ndrange(1, 2, 3, 4, 5):\n    x[0] = 1", "1 to 4"),
    ],
)
def test_what_may_not_be_done_with_a_parallel_loop(device: tack.Device, statements: str, word: str) -> None:
    body = "\n".join("        " + line for line in statements.splitlines())
    assert word in refused(f"\n    @tack.kernel\n    def k(x, n):\n{body}\n", tack.CompileError, tack.zeros(4, tack.i32), 5)


# -- what crosses a loop


@pytest.mark.parametrize(
    ("update", "start", "fold"),
    [
        ("s += x[i]", 5, lambda s, v: s + v),
        ("s -= x[i]", 5, lambda s, v: s - v),
        ("s *= x[i]", 3, lambda s, v: s * v),
        ("s &= x[i]", -1, lambda s, v: s & v),
        ("s |= x[i]", 4, lambda s, v: s | v),
        ("s ^= x[i]", 9, lambda s, v: s ^ v),
        ("s = min(s, x[i])", 4, min),
        ("s = max(x[i], s)", 4, max),
        ("s = tack.max(s, x[i])", 4, max),
    ],
)
def test_reductions(device: tack.Device, update: str, start: int, fold: Any) -> None:
    text = f"""
    @tack.kernel
    def k(out, x):
        s = {start}
        for i in range(len(x)):
            if x[i] % 3 != 0:
                {update}
        for i in range(len(out)):
            out[i] = s + i
        t = s * 2
        return t - s
    """
    for n in (0, 1, 7, 1000):
        x = np.random.default_rng(n).integers(1, 100, n).astype(np.int64)
        s = start
        for v in x:
            if v % 3:
                s = fold(s, int(v))
        s = (s + 2**63) % 2**64 - 2**63
        out = tack.zeros(2, tack.i64)
        assert kernel(text)(out, here(x)) == s
        assert out.tolist() == [s, (s + 1 + 2**63) % 2**64 - 2**63]


def test_reductions_of_bools(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(x):
        every, some, odd = True, False, False
        for i in range(len(x)):
            every &= x[i] < 40
            some |= x[i] < 0
            odd ^= x[i] == 7
        return every * 4 + some * 2 + odd
    """)
    for n in (0, 1, 2, 7, 64, 100, 1500, 5000):
        x = np.full(n, 30, np.int32)
        assert k(here(x)) == 4
        if n:
            x[n // 2] = 7
            assert k(here(x)) == 5
            x[n // 3] = -1
            assert k(here(x)) == (6 if n // 2 == n // 3 else 7)
            x[-1] = 40
            assert k(here(x)) == {1: 0, 2: 2}.get(n, 3)


def test_reductions_in_inner_loops_over_several_names_and_dimensions(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(x):
        total, least, n = 0.0, x[0, 0], 0
        for i, j in tack.ndrange(x.shape[0], x.shape[1]):
            for m in range(j):
                if m % 2:
                    total += x[i, j]
                    n += 1
            least = min(least, x[i, j])
        return total * 1000 + least * 10 + n
    """)
    x = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    total = sum(float(x[i, j]) * (j // 2) for i in range(3) for j in range(4))
    assert k(x) == total * 1000 - 50 + 3 * sum(j // 2 for j in range(4))


def test_a_reduction_goes_on_in_a_later_loop(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(x):
        s = 0
        for i in range(len(x)):
            s += x[i]
        s = s * 2
        for i in range(len(x)):
            s += 1
        return s
    """)
    assert k(tack.full(100, 3, tack.i32)) == 700


def test_a_float_reduction_is_the_same_on_every_run_and_thread_count(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * x[i]
        return s
    """)
    x = np.random.default_rng(0).standard_normal(100_003).astype(np.float32)
    found = {k(x) for _ in range(5)}
    for threads in (1, 2):
        if device.type == "cpu":
            with tack.device("cpu", num_threads=threads):
                found.add(k(x))
    assert len(found) == 1 and abs(found.pop() - float(np.sum(x.astype(np.float64) ** 2))) < 1.0


@pytest.mark.parametrize("use", ["x[0] = v", "for j in range(3):\n            x[j] = v", "return v"])
@pytest.mark.parametrize(
    "update", ["v = x[i]", "v = v + x[i]", "v += 1\n            x[i] = v", "v += 1\n            v *= 2", "v //= 2", "v = abs(v)"]
)
def test_other_values_do_not_leave_a_parallel_loop(device: tack.Device, update: str, use: str) -> None:
    text = f"""
    @tack.kernel
    def k(x):
        v = 3
        for i in range(len(x)):
            {update}
        {use}
    """
    message = refused(text, tack.CompileError, tack.ones(4, tack.i32))
    assert "'v'" in message and "atomic" in message and "s += e" in message


def test_a_name_of_an_iteration_may_be_bound_again_after_the_loop(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(x):
        v = 3
        for i in range(len(x)):
            v = x[i]
            x[i] = v + 1
        v = 10
        for i in range(len(x)):
            x[i] += v
    """
    assert filled(text, 3) == [11, 11, 11]


def test_a_loop_variable_of_a_parallel_loop_has_no_value_after_it(device: tack.Device) -> None:
    assert "'i'" in refused(
        "@tack.kernel\ndef k(x):\n    for i in range(3):\n        x[i] = 1\n    x[0] = i\n", tack.CompileError, tack.zeros(3)
    )


# -- tack.sequential


@pytest.mark.parametrize("bounds", [(4,), (1, 4), (0, 9, 3), (5, 0, -2), (3, 3), (0,)])
def test_sequential_runs_its_body_step_after_step(device: tack.Device, bounds: tuple[int, ...]) -> None:
    names = ", ".join("abc"[: len(bounds)])
    text = f"""
    @tack.kernel
    def k(out, {names}):
        for t in tack.sequential({names}):
            out[0] += t
            for i in range(1, len(out)):
                out[i] = out[i] * 3 + out[0] + t
            out[1] += 1
    """
    expected = [0] * 5
    for t in range(*bounds):
        expected[0] += t
        for i in range(1, 5):
            expected[i] = expected[i] * 3 + expected[0] + t
        expected[1] += 1
    assert filled(text, 5, *bounds) == expected


def test_sequential_bounds_may_use_the_step_and_steps_may_nest(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(out, n):
        w = 1
        for t in tack.sequential(n):
            for u in tack.sequential(t, n, 2):
                for i in range(t, min(u + 1, len(out))):
                    out[i] += 10 * t + u + w
            w = w + t
        for i in range(len(out)):
            out[i] += w
    """
    expected = [0] * 6
    w = 1
    for t in range(5):
        for u in range(t, 5, 2):
            for i in range(t, min(u + 1, 6)):
                expected[i] += 10 * t + u + w
        w += t
    assert filled(text, 6, 5) == [v + w for v in expected]


def test_a_wavefront(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(a):
        h, w = a.shape
        for d in tack.sequential(2, h + w - 1):
            for i in range(max(1, d - w + 1), min(d, h)):
                a[i, d - i] += min(a[i - 1, d - i], a[i, d - i - 1])
    """
    a = np.random.default_rng(1).integers(0, 9, (7, 5)).astype(np.int32)
    expected = a.copy()
    for i in range(1, 7):
        for j in range(1, 5):
            expected[i, j] += min(expected[i - 1, j], expected[i, j - 1])
    kernel(text)(a)
    assert np.array_equal(a, expected)


def test_reductions_inside_sequential(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(x, n):
        total = 0
        for t in tack.sequential(n):
            s = 0
            for i in range(len(x)):
                s += x[i] + t
            total += s
            for i in range(len(x)):
                x[i] = s % 7 + i
        return total
    """)
    x = tack.ones(5, tack.i64)
    values, total = [1] * 5, 0
    for t in range(4):
        s = sum(v + t for v in values)
        total += s
        values = [s % 7 + i for i in range(5)]
    assert k(x, 4) == total and x.tolist() == values
