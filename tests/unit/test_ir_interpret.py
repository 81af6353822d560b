"""The IR interpreter: control flow, memory, reductions, sequences, checks."""

from __future__ import annotations

import math
import random
from typing import Any

import ir_builder as B
import numpy as np
import pytest

from tack.ir import nodes as ir
from tack.ir.interpret import InterpreterError, evaluate, evaluate_extent, run
from tack.ir.verify import verify
from tack.types import BOOL, Layout, f32, f64, i32, i64, u8


def test_saxpy_rounds_every_operation() -> None:
    x = np.linspace(-3, 7, 101, dtype=np.float32)
    y = np.linspace(5, 1, 101, dtype=np.float32)
    expected = np.float32(0.1) * x + y
    assert run(B.saxpy(), [x, y, 0.1]) is None
    np.testing.assert_array_equal(y, expected)


def collatz_steps(n: int, limit: int) -> int:
    count = 0
    while n != 1:
        if count >= limit:
            return -1
        n = 3 * n + 1 if n % 2 else n // 2
        count += 1
    return count


@pytest.mark.parametrize("shuffle", [None, random.Random(7)])
def test_control_flow(shuffle: random.Random | None) -> None:
    n = np.arange(1, 60)
    steps = np.zeros_like(n)
    total = run(B.collatz(), [n, steps, 60], shuffle=shuffle)
    counts = [collatz_steps(int(v), 60) for v in n]
    assert total == sum(c for c in counts if c >= 0)
    assert -1 in counts
    expected = [c * 100 + next((k for k in range(2, 50) if c % k == 0), -1) for c in counts]
    np.testing.assert_array_equal(steps, expected)


def test_arguments_are_checked() -> None:
    x, y = np.zeros(3, np.float32), np.zeros(3, np.float32)
    with pytest.raises(TypeError, match="takes 3 arguments, got 2"):
        run(B.saxpy(), [x, y])
    with pytest.raises(TypeError, match="'y' must be f32 of rank 1"):
        run(B.saxpy(), [x, np.zeros(3), 1.0])
    with pytest.raises(OverflowError, match=r"'limit' is 1001, must be in \[0, 1000\]"):
        run(B.collatz(), [np.ones(1, np.int64), np.zeros(1, np.int64), 1001])


def test_indices_are_checked() -> None:
    x, y = np.zeros(3, np.float32), np.zeros(2, np.float32)
    with pytest.raises(IndexError, match=r"kernel 'saxpy': index \(2,\) is outside 'y' of shape \(2,\)"):
        run(B.saxpy(), [x, y, 1.0])
    a = B.array(0, "a", f32, 2)
    for op, args, text in (("load", (0, -1), r"index \(0, -1\)"), ("load_flat", (6,), "flat index 6")):
        b = B.Builder()
        b.add(ir.Instr(op, f32, tuple(b.const(i) for i in args), a, ir.Loc("k.py", 5)))
        with pytest.raises(IndexError, match=f"at line 5: {text} is outside 'a'"):
            run(ir.Kernel("k", [a], [ir.Segment(b.root)]), [np.zeros((2, 3), np.float32)])


def test_strided_reversed_and_broadcast_views() -> None:
    base = np.arange(20, dtype=np.float32)
    x, y = base[::-2], np.zeros(30, np.float32)[::3]
    run(B.saxpy(), [x, y, 1.0])
    np.testing.assert_array_equal(y, x)
    y[:] = 0
    run(B.saxpy(), [np.broadcast_to(np.float32(4), (10,)), y, 0.5])
    np.testing.assert_array_equal(y, np.full(10, 2, np.float32))


def test_flat_indices_are_row_major() -> None:
    a = B.array(0, "a", i32, 3)
    b = B.Builder()
    b.op("store_flat", None, b.op("load_flat", i32, b.const(23), attr=a), b.const(7), attr=a)
    data = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    run(ir.Kernel("k", [a], [ir.Segment(b.root)], frozenset({0})), [data])
    assert data[0, 1, 3] == 23


def test_reductions_start_from_the_bound_value_and_combine_all() -> None:
    x, i = B.array(0, "x", f64), ir.Var("i", i64)
    s, least = ir.Var("s", f64), ir.Var("least", f64)
    first = B.Builder()
    first.set(s, first.const(10.0, f64))
    first.set(least, first.const(math.nan, f64))
    b = B.Builder()
    value = b.load(x, b.get(i))
    b.set(s, b.op("sub", f64, b.get(s), value))
    b.set(least, b.op("min", f64, b.get(least), value))
    last = B.Builder()
    last.set(s, last.op("add", f64, last.get(s), last.get(least)))
    items: list[Any] = [
        ir.Segment(first.root),
        B.over(x, b.root, i, [ir.Reduction(s, "add"), ir.Reduction(least, "min")]),
        ir.Segment(last.root),
    ]
    kernel = ir.Kernel("k", [x], items, frozenset(), s)
    verify(kernel)
    assert run(kernel, [np.array([1.0, math.nan, 3.0])]) != run(kernel, [np.array([1.0, 2.0])])
    assert run(kernel, [np.array([1.0, 2.0, 4.0])]) == 10.0 - 7.0 + 1.0
    assert math.isnan(run(kernel, [np.zeros(0)]))  # type: ignore[arg-type]


def test_variables_of_an_iteration_are_private_and_local_arrays_start_at_zero() -> None:
    x, i, v = B.array(0, "x", i64), ir.Var("i", i64), ir.Var("v", i64)
    local = ir.LocalArray("t", i64, (2,))
    first = B.Builder()
    first.set(v, first.const(5))
    b = B.Builder()
    at = b.get(i)
    b.set(v, b.op("add", i64, b.get(v), at))
    b.store(local, b.op("add", i64, b.load(local, b.const(1)), b.get(v)), b.const(1))
    b.store(x, b.load(local, b.const(1)), at)
    kernel = ir.Kernel("k", [x], [ir.Segment(first.root), B.over(x, b.root, i)], frozenset({0}))
    data = np.zeros(4, np.int64)
    run(kernel, [data], shuffle=random.Random(3))
    np.testing.assert_array_equal(data, [5, 6, 7, 8])


def test_a_variable_that_was_never_set_is_an_error() -> None:
    b = B.Builder()
    b.get(ir.Var("ghost", f32))
    with pytest.raises(InterpreterError, match="'ghost' is read before it is set"):
        run(ir.Kernel("k", [], [ir.Segment(b.root)]), [])


def test_atomics() -> None:
    x, y = B.array(0, "x", i32), B.array(1, "y", f32)
    b = B.Builder()
    for position, (kind, value) in enumerate(
        [("add", 5), ("sub", 7), ("min", -3), ("max", 99), ("and", 12), ("or", 3), ("xor", 6), ("exchange", 42)]
    ):
        b.op("atomic", i32, b.const(value, i32), b.const(position), attr=(kind, x))
    b.store(x, b.op("atomic", i32, b.const(10, i32), b.const(1, i32), b.const(8), attr=("cas", x)), b.const(9))
    b.op("atomic", i32, b.const(11, i32), b.const(1, i32), b.const(10), attr=("cas", x))
    b.op("atomic", f32, b.const(-0.0, f32), b.const(1.0, f32), b.const(0), attr=("cas", y))  # bit patterns are compared
    b.op("atomic", f32, b.const(math.nan, f32), b.const(1), attr=("max", y))
    kernel = ir.Kernel("k", [x, y], [ir.Segment(b.root)], frozenset({0, 1}))
    verify(kernel)
    data, floats = np.full(11, 10, np.int32), np.zeros(2, np.float32)
    run(kernel, [data, floats])
    np.testing.assert_array_equal(data, [15, 3, -3, 99, 8, 11, 12, 42, 1, 10, 10])
    np.testing.assert_array_equal(floats, [0, 0])


def test_for_loops() -> None:
    out, k, j = B.array(0, "out", i64), ir.Var("k", i64), ir.Var("j", i64)

    def outcome(start: int, stop: int, step: int) -> list[int]:
        b = B.Builder()
        b.set(k, b.const(-7))
        b.set(j, b.const(0))
        loop = b.loop(k, b.const(start), b.const(stop), b.const(step))
        with b.inside(loop.body):
            b.set(j, b.op("add", i64, b.op("mul", i64, b.get(j), b.const(10)), b.get(k)))
            b.set(k, b.const(1000))  # does not change the iteration
            last = b.branch(b.op("eq", BOOL, b.get(j), b.const(12)))
            with b.inside(last.then):
                b.add(ir.Break())
        with b.inside(loop.orelse):
            b.set(j, b.op("neg", i64, b.get(j)))
        b.store(out, b.get(k), b.const(0))
        b.store(out, b.get(j), b.const(1))
        data = np.zeros(2, np.int64)
        run(ir.Kernel("k", [out], [ir.Segment(b.root)], frozenset({0})), [data])
        return [int(v) for v in data]

    assert outcome(0, 3, 1) == [1000, 12]  # 0, 1, 2: left by break
    assert outcome(3, 0, -2) == [1000, -31]
    assert outcome(3, 0, 1) == [-7, 0]
    assert outcome(0, 3, 0) == [-7, 0]


def test_sequences_see_what_earlier_steps_wrote() -> None:
    x, t, i = B.array(0, "x", i64), ir.Var("t", i64), ir.Var("i", i64)
    b = B.Builder()
    at = b.get(i)
    b.store(x, b.op("add", i64, b.load(x, b.op("sub", i64, at, b.const(1))), b.get(t)), at)
    one = B.extent(("constant", 1))
    until = B.extent(("sequence", 0), ("constant", 1), ("add",))
    loop = ir.Parallel([i], [B.extent(("sequence", 0))], [until], [one], b.root)
    kernel = ir.Kernel("k", [x], [ir.Sequence(t, one, B.extent(("shape", 0, 0)), one, [loop])], frozenset({0}))
    verify(kernel)
    data = np.zeros(6, np.int64)
    run(kernel, [data])
    np.testing.assert_array_equal(data, [0, 1, 3, 6, 10, 15])


def test_extents_wrap_and_never_trap() -> None:
    args = [np.zeros((4, 5)), -3]
    cases: list[tuple[list[Any], int]] = [
        ([("shape", 0, 1), ("scalar", 1), ("floordiv",)], -2),
        ([("shape", 0, 1), ("constant", 0), ("mod",)], 0),
        ([("constant", i64.max), ("constant", 1), ("add",)], i64.min),
        ([("scalar", 1), ("constant", 0), ("lt",), ("constant", 7), ("constant", 8), ("select",)], 7),
        ([("sequence", 1), ("sequence", 0), ("sub",), ("neg",)], -10),
    ]
    for terms, expected in cases:
        assert evaluate_extent(B.extent(*terms), args, [20, 30]) == expected


def test_print_and_assert() -> None:
    b, lines = B.Builder(), list[str]()
    b.op("print", None, b.const(3), b.const(0.5, f64), attr="{} and {}")
    b.op("assert_", None, b.const(False, BOOL), attr="broken {{}}")
    with pytest.raises(AssertionError, match="kernel 'k': broken {}"):
        run(ir.Kernel("k", [], [ir.Segment(b.root)]), [], output=lines.append)
    assert lines == ["3 and 0.5"]


def test_math_takes_the_library_or_python() -> None:
    b, p, r = B.Builder(), ir.Var("p", f32), ir.Var("r", f32)
    b.set(r, b.op("math", f32, b.get(p), attr="exp"))
    function = ir.Function("f", [p], b.root, [r])
    assert evaluate(function, [1.0]) == (float(np.float32(math.e)),)
    assert evaluate(function, [1000.0]) == (math.inf,)
    double = B.Builder()
    double.set(r, double.op("add", f32, double.get(p), double.get(p)))
    library = {("exp", f32): ir.Function("exp", [p], double.root, [r])}
    assert evaluate(function, [3.0], math_library=lambda name, t: library.get((name, t))) == (6.0,)
    with pytest.raises(InterpreterError, match="no math function 'exp' of f32"):
        evaluate(function, [3.0], math_library=lambda name, t: None)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("log", [0.0], -math.inf),
        ("log", [-1.0], math.nan),
        ("pow", [0.0, -1.0], math.inf),
        ("pow", [-0.0, -3.0], -math.inf),
        ("pow", [-2.0, 0.5], math.nan),
        ("pow", [-10.0, 309.0], -math.inf),
        ("atanh", [-1.0], -math.inf),
        ("sinh", [-1e4], -math.inf),
        ("rsqrt", [-0.0], -math.inf),
        ("rsqrt", [-1.0], math.nan),
        ("fmod", [1.0, 0.0], math.nan),
        ("floor", [-0.5], -1.0),
        ("ceil", [-0.5], -0.0),
        ("round", [2.5], 2.0),
        ("sqrt", [-0.0], -0.0),
    ],
)
def test_ieee_answers(name: str, args: list[float], expected: float) -> None:
    b, r = B.Builder(), ir.Var("r", f64)
    params = [ir.Var(f"p{i}", f64) for i in range(len(args))]
    b.set(r, b.op("math", f64, *[b.get(p) for p in params], attr=name))
    (result,) = evaluate(ir.Function("f", params, b.root, [r]), args)
    np.testing.assert_array_equal(np.array(result), np.array(expected))
    assert math.copysign(1, result) == math.copysign(1, expected) or math.isnan(expected)


def test_deep_nesting_needs_no_stack() -> None:
    b, v = B.Builder(), ir.Var("v", u8)
    for _ in range(5000):
        b.stack.append(b.branch(b.const(True, BOOL)).then)
    b.set(v, b.const(9, u8))
    assert run(ir.Kernel("k", [], [ir.Segment(b.root)], frozenset(), v), []) == 9


def test_layouts_do_not_matter_here() -> None:
    x = B.array(0, "x", f32, 1, Layout.GENERAL)
    b = B.Builder()
    b.store(x, b.const(1.0, f32), b.const(1))
    data = np.zeros(6, np.float32)
    run(ir.Kernel("k", [x], [ir.Segment(b.root)], frozenset({0})), [data[::3]])
    np.testing.assert_array_equal(data, [0, 0, 0, 1, 0, 0])
