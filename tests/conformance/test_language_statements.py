"""The kernel language: statements, their order, conditions, and what a kernel may consist of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from language import define, here, kernel, values

import tack

OUT = tack.i64


def run(body: str, n: int = 1, dtype: Any = OUT, **names: Any) -> list[Any]:
    """The array that a kernel without a loop fills."""
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    out = tack.zeros(n, dtype)
    kernel(f"@tack.kernel\ndef k(out):\n{lines}\n", **names)(out)
    return out.tolist()


# -- what a kernel consists of


def test_scalar_statements_loops_and_a_result(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(x, y):
        "Fills, then sums."
        n = len(x)
        scale = x[0] + 1
        for i in range(n):
            x[i] = scale * i
        last = x[n - 1]          # sees what the loop wrote
        total = 0
        for i in range(1, n, 2):
            y[i] = x[i] + last
            total += y[i]
        return total
    """)
    x, y = tack.full(7, 2, tack.i32), tack.zeros(7, tack.i32)
    assert k(x, y) == sum(3 * i + 18 for i in (1, 3, 5))
    assert x.tolist() == [0, 3, 6, 9, 12, 15, 18] and y.tolist() == [0, 21, 0, 27, 0, 33, 0]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("a + 1", 4), ("a / 2", 1.5), ("a > 2", True), ("tack.u64(2 ** 64 - 1)", 2**64 - 1), ("float(a)", 3.0), ("tack.i8(300)", 44)],
)
def test_a_result_is_a_python_number_of_its_kind(device: tack.Device, expression: str, expected: Any) -> None:
    got = kernel(f"@tack.kernel\ndef k(a):\n    return {expression}\n")(3)
    assert got == expected and type(got) is type(expected)


def test_a_result_of_empty_loops(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(x):
        s, m = 5, 2.5
        for i in range(len(x)):
            s += x[i]
            m = max(m, 1.0 * x[i])
        return s + m
    """)
    assert k(tack.zeros(0, tack.i32)) == 7.5
    assert k(tack.full(2, 4, tack.i32)) == 17.0


def test_a_kernel_without_a_loop_is_one_iteration(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(x):
        t = tack.local_array(tack.i32, 3)
        n = 0
        while n < 3:
            t[n] = n * n
            n += 1
        tack.atomic_add(x, 0, t[2])
        x[1] = t[1]
    """)
    x = tack.ones(2, tack.i32)
    k(x)
    assert x.tolist() == [5, 1]


def test_a_kernel_without_arrays(device: tack.Device) -> None:
    assert kernel("@tack.kernel\ndef k(a, b):\n    return a * b\n")(6, 7) == 42
    assert kernel("@tack.kernel\ndef k():\n    pass\n")() is None
    k = kernel("@tack.kernel\ndef k(n):\n    s = 0\n    for i in range(n):\n        s += i\n    return s\n")
    assert k(1000) == 499500


def test_a_kernel_without_a_loop_may_return_early(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(x, limit):
        if limit < 0:
            x[0] = -1
            return 0
        n = 0
        while True:
            n += 1
            if x[n] > limit:
                return n
            if n == 3:
                break
        return -1
    """)
    x = tack.array(np.array([0, 1, 5, 9], np.int32))
    assert [k(x, -1), k(x, 4), k(x, 8), k(x, 20)] == [0, 2, 3, -1]
    assert x[0] == -1


def test_none_is_decided_at_compile_time(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(out, mask=None, gain=None):
        g = 1 if gain is None else gain
        for i in range(len(out)):
            if mask is not None and mask[i] == 0:
                continue
            out[i] += g
    """)
    out = tack.zeros(4, tack.i32)
    k(out)
    k(out, tack.array(np.array([1, 0, 1, 0], np.uint8)))
    k(out, gain=10)
    assert out.tolist() == [12, 11, 12, 11]


def test_a_parallel_loop_may_stand_in_a_condition_known_at_compile_time(device: tack.Device) -> None:
    k = kernel(
        """
    @tack.kernel
    def k(out, y=None):
        total = 0
        if y is None:
            for i in range(len(out)):
                out[i] = i
        elif DOUBLE and len(y.shape) == 1:
            for i in range(len(out)):
                out[i] = 2 * y[i]
                total += y[i]
        else:
            out[0] = y[0]
        return total
    """,
        DOUBLE=True,
    )
    out = tack.zeros(3, tack.i32)
    assert k(out) == 0 and out.tolist() == [0, 1, 2]
    assert k(out, tack.full(3, 4, tack.i32)) == 12 and out.tolist() == [8, 8, 8]


@pytest.mark.needs("f64")
def test_arguments_by_position_keyword_and_default(device: tack.Device) -> None:
    k = kernel("@tack.kernel\ndef k(out, /, a, b=2, c=0.5, d=True, e=-3):\n    out[0] = a + 10 * b + 100 * c + 1000 * d + 1e4 * e\n")
    out = tack.zeros(1, tack.f64)

    def call(*args: Any, **kwargs: Any) -> float:
        k(out, *args, **kwargs)
        return float(out[0])

    assert call(1) == 1 + 20 + 50 + 1000 - 3e4
    assert call(a=1) == call(1) == call(1, 2, 0.5, True, -3) == call(e=-3, d=True, c=0.5, b=2, a=1)
    assert call(1, d=False, e=0) == 71


def test_defaults_are_those_of_the_definition(device: tack.Device) -> None:
    names = define("""
    N = 5
    @tack.kernel
    def k(out, a=N, b=N * 2, c=np.float32(0.5)):
        out[0] = a + b + c
    N = 100
    """)
    out = tack.zeros(1)
    names["k"](out)
    assert out[0] == 15.5


# -- assignment


def test_tuples_unpack_and_swap(device: tack.Device) -> None:
    assert run(
        """
a, b = 1, 2
a, b = b, a
(c, d), e = (3, (4, 5)), 6
[f, (g, h)] = d, (7, 8)
p = q = a + 1
out[0], out[1] = b, a
out[2], (out[3], z) = c, (e, p + q)
out[4] = z + f[0] + f[1] + g + h
""",
        5,
    ) == [1, 2, 3, 6, 6 + 4 + 5 + 15]


def test_shapes_unpack(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(out, a):
        h, w = a.shape
        (n,) = out.shape
        for i in range(n):
            out[i] = 100 * h + w + a.ndim * 10000 + a.size * 100000 + len(a)
    """)
    out = tack.zeros(2, tack.i64)
    k(out, tack.zeros((3, 4)))
    assert out.tolist() == [1200000 + 20000 + 304 + 3] * 2


def test_plain_assignment_evaluates_the_right_side_first(device: tack.Device) -> None:
    assert run("n = 0\nout[(n := n + 1)] = (n := n + 10) + 0\nout[0] = n", 12) == [11] + [0] * 10 + [10]


def test_augmented_assignment_evaluates_the_index_once_and_reads_before_the_right_side(device: tack.Device) -> None:
    names = define("""
    @tack.func
    def bump(a, n):
        a[0] = 100
        return n
    @tack.kernel
    def k(out):
        out[0] = 5
        out[0] += bump(out, 2)
        n = 0
        out[(n := n + 1)] += (n := n * 10)
        out[2] = n
    """)
    out = tack.zeros(3, tack.i64)
    names["k"](out)
    assert out.tolist() == [7, 10, 10]


def test_other_expressions_evaluate_from_left_to_right(device: tack.Device) -> None:
    expressions = [
        "(n := n + 1) + 10 * (n := n + 1) + 100 * n",
        "(n := n * 2) - n * (n := 7)",
        "min((n := n + 1), (n := n + 1)) + n",
    ]
    setup = "n = 1"
    n = 1
    expected = [(n := n + 1) + 10 * (n := n + 1) + 100 * n, (n := n * 2) - n * (n := 7), min((n := n + 1), (n := n + 1)) + n]
    assert list(values(expressions, OUT, setup=setup)) == expected


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "**"])
def test_augmented_operators(device: tack.Device, op: str) -> None:
    got = run(f"a = 13\na {op}= 3\nout[0] = a\nout[1] = 13\nout[1] {op}= 3", 2)
    assert got == [eval(f"13 {op} 3")] * 2


@pytest.mark.needs("f64")
def test_annotations_that_name_dtypes_convert_and_others_are_ignored(device: tack.Device) -> None:
    names = define("""
    from __future__ import annotations
    import tack as t
    @tack.kernel
    def k(out, a: t.i8, b: "tack.f32", c: int, d: "no such thing" = 4, e: undefined.name = 5):
        x: t.u8 = c + 298 + a
        y: 'np.int16' = a
        z: int = 7.5
        w: tack.f32
        w = 0.1
        out[0] = x
        out[1] = a
        out[2] = b
        out[3] = y.dtype == tack.i16
        out[4] = z
        out[5] = c + d + e
        out[6] = w
    """)
    out = tack.zeros(7, tack.f64)
    names["k"](out, 3, 0.1, 2)
    assert out.tolist()[:6] == [303 % 256, 3, float(np.float32(0.1)), 1, 7.5, 11]


def test_a_walrus_in_conditions_and_tests_of_loops(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(out, x):
        for i in range(len(x)):
            n = 0
            while (v := x[i] >> n) > 0 and v != 3:
                n += 1
            if (m := n * 2) > 2:
                out[i] = m + v
            else:
                out[i] = -m
    """)
    x = np.array([0, 1, 3, 8, 12, 13], np.int32)

    def one(x: int) -> int:
        n = 0
        while (v := x >> n) > 0 and v != 3:
            n += 1
        return m + v if (m := n * 2) > 2 else -m

    out = tack.zeros(6, tack.i32)
    k(out, here(x))
    assert out.tolist() == [one(int(v)) for v in x]


# -- conditions


NUMBERS = [0, 1, -1, 7, 0.0, -0.0, 0.5, float("nan"), float("inf"), True, False]


@pytest.mark.needs("f64")
def test_the_truth_of_numbers_is_pythons(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(out, a, x):
        out[0] = 1 if a else 0
        out[1] = not a
        if a:
            out[2] = 1
        elif not a:
            out[2] = 2
        n = 0
        while a and n < 1:
            n += 1
        out[3] = n
        out[4] = bool(a)
        out[5] = 1 if x[0] else 0
    """)
    for value in NUMBERS:
        out = tack.zeros(6, tack.i32)
        k(out, value, here(np.array([value])))
        t = bool(value)
        assert out.tolist() == [t, not t, 1 if t else 2, t, t, t], value


@pytest.mark.parametrize("a", [0, 3, -2])
@pytest.mark.parametrize("b", [0, 5])
@pytest.mark.needs("f64")
def test_and_or_give_an_operand(device: tack.Device, a: int, b: int) -> None:
    expressions = ["a and b", "a or b", "a and b or 9", "not a or b", "(a or b) and (b or a)", "a and 0.5", "a or 0.25"]
    got = values(expressions, tack.f64, a, b, params="a, b")
    assert list(got) == [float(eval(e, {"a": a, "b": b})) for e in expressions]


def test_and_or_evaluate_only_what_decides(device: tack.Device) -> None:
    names = define("""
    @tack.func
    def count(c, v):
        c[0] += 1
        return v
    @tack.kernel
    def k(c, out, a):
        out[0] = count(c, a) and count(c, 5)
        out[1] = count(c, a) or count(c, 7)
        out[2] = c[0]
        out[3] = 1 if a == 0 or 10 // a > 2 else 0
    """)
    for a in (0, 3):
        c, out = tack.zeros(1, tack.i32), tack.zeros(4, tack.i32)
        names["k"](c, out, a)
        assert out.tolist() == [a and 5, a or 7, 3, 1]


def test_comparisons_chain_and_evaluate_the_middle_once(device: tack.Device) -> None:
    names = define("""
    @tack.func
    def count(c, v):
        c[0] += 1
        return v
    @tack.kernel
    def k(c, out, a):
        out[0] = 0 < count(c, a) < 10
        out[1] = 0 < count(c, a) <= 3 != count(c, a) > 1
        out[2] = c[0]
    """)
    for a, counted in ((5, 2), (3, 3), (2, 3), (0, 2)):
        c, out = tack.zeros(1, tack.i32), tack.zeros(3, tack.i32)
        names["k"](c, out, a)
        assert out.tolist() == [0 < a < 10, 0 < a <= 3 != a > 1, counted], a


def test_conditional_expressions_evaluate_one_arm(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(out, x):
        for i in range(len(x)):
            out[i] = x[i + 1] if i + 1 < len(x) else 0.5 if i % 2 else -1
    """)
    x = np.arange(5, dtype=np.float32)
    out = tack.zeros(5)
    k(out, here(x))
    assert out.tolist() == [1, 2, 3, 4, -1]
