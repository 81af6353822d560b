"""The IR verifier: what is well formed passes, and each rule refuses what breaks it."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ir_builder as B
import pytest

from tack.ir import nodes as ir
from tack.ir.verify import ATOMICS, BIT_FUNCTIONS, MATH_FUNCTIONS, OPERATIONS, InvalidIR, operations_table, verify, verify_function
from tack.types import BOOL, Layout, f32, f64, i32, i64, u8


def segment(build: Callable[[B.Builder], Any], *params: Any, written: frozenset[int] = frozenset()) -> ir.Kernel:
    b = B.Builder()
    build(b)
    return ir.Kernel("k", list(params), [ir.Segment(b.root)], written)


def refused(kernel: ir.Kernel, text: str) -> None:
    with pytest.raises(InvalidIR, match=text):
        verify(kernel)


def test_good_kernels_pass() -> None:
    verify(B.saxpy())
    verify(B.collatz())


def test_table_names_every_operation_of_the_nodes_docstring() -> None:
    lines = inspect.cleandoc(ir.Instr.__doc__ or "").splitlines()  # from 3.13 on the compiler cleans it
    columns = [re.split("  +", line)[0] for line in lines if re.match("[a-z]", line)]
    documented = {word.strip(",") for column in columns for word in column.split()} - {"op"}
    assert documented == set(OPERATIONS)
    table = operations_table()
    for name in (*(OPERATIONS.keys() - {"math", "bits"}), *MATH_FUNCTIONS, *BIT_FUNCTIONS):
        assert f"{name} |" in table


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda b: b.op("nonsense", f32), "no operation 'nonsense'"),
        (lambda b: b.op("add", f32, b.const(1.0, f32)), "takes 2 arguments, has 1"),
        (lambda b: b.op("add", f32, b.const(1.0, f32), b.const(1.0, f64)), "argument 1 is f64, must be f32"),
        (lambda b: b.op("add", f64, b.const(1.0, f32), b.const(1.0, f32)), "its type is f64, must be f32"),
        (lambda b: b.op("add", BOOL, b.const(True, BOOL), b.const(True, BOOL)), "does not work on bool"),
        (lambda b: b.op("div", i64, b.const(1), b.const(2)), "does not work on i64"),
        (lambda b: b.op("shl", f32, b.const(1.0, f32), b.const(1.0, f32)), "does not work on f32"),
        (lambda b: b.op("lt", i64, b.const(1), b.const(2)), "its type is i64, must be bool"),
        (lambda b: b.op("not", BOOL, b.const(True, BOOL)), "does not work on bool"),
        (lambda b: b.op("select", i64, b.const(1), b.const(1), b.const(2)), "argument 0 is i64, must be bool"),
        (lambda b: b.const(1.5, i32), "1.5 is no value of i32"),
        (lambda b: b.const(300, u8), "300 is no value of u8"),
        (lambda b: b.const(0.1, f32), "0.1 is no value of f32"),
        (lambda b: b.const(True, i64), "True is no value of i64"),
        (lambda b: b.op("bitcast", f64, b.const(1, i32)), "differ in size"),
        (lambda b: b.op("math", f32, b.const(1.0, f32), attr="sine"), "no math function 'sine'"),
        (lambda b: b.op("math", f32, b.const(1.0, f32), attr="isnan"), "must be bool"),
        (lambda b: b.op("math", f32, b.const(1.0, f32), attr="pow"), "takes 2 arguments"),
        (lambda b: b.op("bits", f32, b.const(1.0, f32), attr="clz"), "does not work on f32"),
        (lambda b: b.op("get", f64, attr=ir.Var("v", f32)), "is no var, or does not fit"),
        (lambda b: b.set(ir.Var("v", f32), b.const(1.0, f64)), "argument 0 is f64, must be f32"),
        (lambda b: b.op("set", i64, b.const(1), attr=ir.Var("v", i64)), "has no value, but the type i64"),
        (lambda b: b.op("assert_", None, b.const(1), attr="text"), "argument 0 is i64, must be bool"),
        (lambda b: b.op("neg", i64, b.set(ir.Var("v", i64), b.const(1))), "has no value"),
        (lambda b: b.branch(b.const(1)), "the condition is i64, must be bool"),
        (lambda b: b.loop(ir.Var("i", f32), b.const(1), b.const(1), b.const(1)), "is no integer"),
        (lambda b: b.loop(ir.Var("i", i32), b.const(1, i32), b.const(1), b.const(1, i32)), "stop is i64, must be i32"),
        (lambda b: b.add(ir.Break()), "Break: is outside any loop"),
        (lambda b: b.add(ir.Continue()), "Continue: is outside any loop"),
        (lambda b: b.add(ir.Leave(ir.Scope(ir.Block()))), "names a scope that is not around it"),
        (lambda b: b.add("statement"), "is no statement"),
        (lambda b: [b.add(n) for n in [ir.Instr("const", i64, (), 1)] * 2], "stands at two places"),
    ],
)
def test_refusals(build: Callable[[B.Builder], Any], text: str) -> None:
    refused(segment(build), text)


def test_values_die_with_their_block() -> None:
    def inner_used_outside(b: B.Builder) -> None:
        branch = b.branch(b.const(True, BOOL))
        with b.inside(branch.then):
            value = b.const(1)
        b.op("neg", i64, value)

    def sibling(b: B.Builder) -> None:
        branch = b.branch(b.const(True, BOOL))
        with b.inside(branch.then):
            value = b.const(1)
        with b.inside(branch.orelse):
            b.op("neg", i64, value)

    def test_used_in_body(b: B.Builder) -> None:
        loop = b.add(ir.While(ir.Block(), None, ir.Block(), ir.Block()))  # type: ignore[arg-type]
        with b.inside(loop.test):
            loop.cond = b.const(True, BOOL)
        with b.inside(loop.body):
            b.op("lnot", BOOL, loop.cond)

    for build in (inner_used_outside, sibling, test_used_in_body):
        refused(segment(build), "not computed before it")
    forward = ir.Instr("const", i64, (), 1)
    refused(segment(lambda b: (b.op("neg", i64, forward), b.add(forward))), "neg: i64: uses const 1: i64, which is not computed")
    one, two = B.Builder(), B.Builder()
    two.op("neg", i64, one.const(1))
    refused(ir.Kernel("k", [], [ir.Segment(one.root), ir.Segment(two.root)]), "not computed before it")


def test_while_condition_comes_from_its_test() -> None:
    def build(b: B.Builder) -> None:
        loop = b.add(ir.While(ir.Block(), None, ir.Block(), ir.Block()))  # type: ignore[arg-type]
        with b.inside(loop.body):
            loop.cond = b.const(True, BOOL)

    refused(segment(build), "the condition uses const True: bool, which is not computed before it")


def test_jumps() -> None:
    def loop_with(where: str, node: Any) -> Callable[[B.Builder], None]:
        def build(b: B.Builder) -> None:
            loop = b.loop(ir.Var("i", i64), b.const(0), b.const(3), b.const(1))
            with b.inside(getattr(loop, where)):
                b.add(node)

        return build

    verify(segment(loop_with("body", ir.Break())))
    verify(segment(loop_with("body", ir.Continue())))
    refused(segment(loop_with("orelse", ir.Break())), "outside any loop")
    x, body, i = B.array(0, "x"), ir.Block([ir.Continue()]), ir.Var("i", i64)
    verify(ir.Kernel("k", [x], [B.over(x, body, i)]))
    refused(ir.Kernel("k", [x], [B.over(x, ir.Block([ir.Break()]), i)]), "Break: is outside any loop")


def test_arrays() -> None:
    x, y = B.array(0, "x"), B.array(0, "y", f32, 2)
    refused(segment(lambda b: b.load(y, b.const(0)), y), "takes 2 arguments, has 1")
    refused(segment(lambda b: b.load(x, b.const(0, i32)), x), "argument 0 is i32, must be i64")
    refused(segment(lambda b: b.store(x, b.const(0.0, f32), b.const(0)), x), "writes the array 'x', which is not in written")
    refused(segment(lambda b: b.store(x, b.const(0.0, f64), b.const(0)), x, written=frozenset({0})), "argument 0 is f64, must be f32")
    refused(segment(lambda b: b.load(y, b.const(0), b.const(0)), x), "'y' is no parameter of this kernel")
    refused(segment(lambda b: b.op("shape", i64, attr=(x, 1)), x), "is no dimension")
    strided = B.array(0, "x", layout=Layout.INNER)
    refused(segment(lambda b: b.op("load_flat", f32, b.const(0), attr=strided), strided), "is no flat")
    refused(segment(lambda b: None, replace(x, read_only=True), written=frozenset({0})), "read-only array 'x'")
    refused(segment(lambda b: None, replace(x, index=1)), "says index 1 but stands at 0")
    local = ir.LocalArray("t", i32, (2, -1))
    refused(segment(lambda b: b.load(local, b.const(0), b.const(0))), "has the shape")


def test_atomics() -> None:
    x = B.array(0, "x")
    for kind in ATOMICS:
        values = 2 if kind == "cas" else 1

        def build(b: B.Builder, kind: str = kind, values: int = values) -> None:
            b.op("atomic", f32, *[b.const(1.0, f32)] * values, b.const(0), attr=(kind, x))

        kernel = segment(build, x, written=frozenset({0}))
        if kind in ("and", "or", "xor"):
            refused(kernel, f"atomic {kind} needs integers")
        else:
            verify(kernel)
    refused(
        segment(lambda b: b.op("atomic", f32, b.const(1.0, f32), b.const(0), attr=("nand", x)), x, written=frozenset({0})), "is no atomic"
    )


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        ([("shape", 0, 0), ("add",)], "add takes 2 values, there are 1"),
        ([("shape", 0, 0), ("constant", 1)], "leaves 2 values"),
        ([], "leaves 0 values"),
        ([("shape", 0, 1)], "no dimension 1 of parameter 0"),
        ([("shape", 3, 0)], "no dimension 0 of parameter 3"),
        ([("scalar", 0)], "parameter 0 is no scalar"),
        ([("sequence", 0)], "sequence 0 is not around this loop"),
        ([("power",)], "no operation 'power'"),
    ],
)
def test_extents(terms: list[Any], text: str) -> None:
    x, i = B.array(0, "x"), ir.Var("i", i64)
    loop = B.over(x, ir.Block(), i)
    loop.stop = [B.extent(*terms)]
    refused(ir.Kernel("k", [x], [loop]), text)


def test_sequences_scope_their_variable() -> None:
    x, i, t = B.array(0, "x"), ir.Var("i", i64), ir.Var("t", i64)
    loop = B.over(x, ir.Block(), i)
    loop.stop = [B.extent(("sequence", 0))]
    one = B.extent(("constant", 1))
    verify(ir.Kernel("k", [x], [ir.Sequence(t, one, one, one, [loop])]))
    refused(ir.Kernel("k", [x], [ir.Sequence(t, one, loop.stop[0], one, [])]), "sequence 0 is not around")


def test_loops_and_reductions() -> None:
    x, i = B.array(0, "x"), ir.Var("i", i64)
    refused(ir.Kernel("k", [x], [B.over(x, ir.Block(), ir.Var("i", i32))]), "an index 'i' is i32, must be i64")
    for reductions, text in (
        ([ir.Reduction(ir.Var("s", f32), "div")], "no reduction operator 'div'"),
        ([ir.Reduction(ir.Var("s", f32), "xor")], "needs integers or bools"),
        ([ir.Reduction(ir.Var("s", BOOL), "add")], "reduction add of the bool"),
        ([ir.Reduction(i, "add")], "is reduced twice, or is an index too"),
    ):
        refused(ir.Kernel("k", [x], [B.over(x, ir.Block(), i, reductions)]), text)
    flat = B.over(x, ir.Block(), i)
    flat.step = []
    refused(ir.Kernel("k", [x], [flat]), "one extent per index")


def test_functions() -> None:
    x = B.array(0, "x")
    b, p, r = B.Builder(), ir.Var("p", f32), ir.Var("r", f32)
    b.set(r, b.op("neg", f32, b.get(p)))
    verify_function(ir.Function("f", [p], b.root, [r]))
    other = B.Builder()
    other.load(x, other.const(0))
    with pytest.raises(InvalidIR, match="no parameter of this kernel"):
        verify_function(ir.Function("f", [p], other.root, [r]))


def test_place_is_named() -> None:
    place = ir.Loc("user.py", 12)
    with pytest.raises(InvalidIR, match=r"user\.py:12: kernel 'k': Break"):
        verify(ir.Kernel("k", [], [ir.Segment(ir.Block([ir.Break(place)]))]))


def test_deep_nesting_and_long_chains_take_linear_time_and_no_recursion() -> None:
    def chain(n: int) -> ir.Kernel:
        b = B.Builder()
        value = b.const(1)
        for _ in range(n):
            value = b.op("add", i64, value, value)
        for _ in range(n):
            b.stack.append(b.branch(b.const(True, BOOL)).then)
        return ir.Kernel("k", [], [ir.Segment(b.root)])

    small, large = chain(2000), chain(40000)
    verify(small)  # warm
    begin = time.perf_counter()
    verify(small)
    middle = time.perf_counter()
    verify(large)
    assert time.perf_counter() - middle < 200 * (middle - begin)  # 20 times the size; quadratic would be 400
