"""The text form of the IR against golden files. ``pytest --update-golden`` is not offered: change the files by hand, and look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ir_builder as B
import pytest

from tack.ir import nodes as ir
from tack.ir.text import extent_text, function_to_text, to_text
from tack.ir.verify import verify, verify_function
from tack.types import BOOL, f32, f64, i32, i64, u8

GOLDEN = Path(__file__).parent.parent / "golden"


def everything() -> ir.Kernel:
    """One of each: parameters of all kinds, sequences, segments, two dimensions, local arrays, atomics, values that cannot be moved."""
    image, counts, scale = B.array(0, "image", u8, 2), B.array(1, "counts", i32), ir.ScalarParam(2, "scale", "strong", f32)
    steps, unused = ir.ScalarParam(3, "steps", "int", i64), ir.NoneParam(4, "mask")
    t, y, x, v, w = ir.Var("t", i64), ir.Var("y", i64), ir.Var("x", i64), ir.Var("v", f32), ir.Var("v", i32)
    local = ir.LocalArray("window", f32, (3, 3))
    b = B.Builder()
    element = b.op("cast", f32, b.load(image, b.get(y), b.get(x)))
    b.set(v, b.op("mul", f32, element, b.op("arg", f32, attr=scale)))
    old = b.get(v)
    b.set(v, b.op("fma", f32, b.get(v), b.const(0.5, f32), b.op("math", f32, b.get(v), attr="sqrt")))
    b.store(local, b.op("sub", f32, b.get(v), old), b.const(1), b.const(2))
    bright = b.branch(b.op("and", BOOL, b.op("gt", BOOL, b.get(v), b.const(1.0, f32)), b.op("lnot", BOOL, b.const(False, BOOL))))
    with b.inside(bright.then):
        index = b.op("cast", i64, b.get(v))
        b.set(w, b.op("atomic", i32, b.const(1, i32), index, attr=("add", counts)))
        b.op("atomic", i32, b.const(0, i32), b.get(w), index, attr=("cas", counts))
    moved = b.load(counts, b.const(0))
    b.op("store_flat", None, b.op("bits", i32, moved, attr="popcount"), b.const(1), attr=counts)
    b.op("print", None, b.load(local, b.const(1), b.const(2)), moved, attr="{} {}")
    b.op("assert_", None, b.op("le", BOOL, b.get(x), b.op("shape", i64, attr=(image, 1))), attr="inside")
    zero, one = B.extent(("constant", 0)), B.extent(("constant", 1))
    halves = B.extent(("shape", 0, 1), ("sequence", 0), ("sub",), ("constant", 2), ("floordiv",))
    loop = ir.Parallel([y, x], [zero, zero], [B.extent(("shape", 0, 0)), halves], [one, one], b.root)
    first = B.Builder()
    first.store(counts, first.op("neg", i32, first.const(3, i32)), first.const(0))
    items: list[Any] = [ir.Sequence(t, zero, B.extent(("scalar", 3)), one, [ir.Segment(first.root), loop])]
    options, uses = {"block": 64, "exact": True}, frozenset({"print", "atomic:add:i32"})
    return ir.Kernel("everything", [image, counts, scale, steps, unused], items, frozenset({1}), None, options, uses)


@pytest.mark.parametrize("kernel", [B.saxpy, B.collatz, everything], ids=lambda f: f.__name__)
def test_golden(kernel: Any) -> None:
    made = kernel()
    verify(made)
    assert to_text(made) == (GOLDEN / f"ir_{made.name}.txt").read_text(encoding="utf-8")


def test_text_is_stable() -> None:
    assert to_text(everything()) == to_text(everything())


def test_function() -> None:
    b, p, r = B.Builder(), ir.Var("p", f64), ir.Var("r", f64)
    scope = b.add(ir.Scope(ir.Block(), "cube"))
    with b.inside(scope.body):
        square = b.op("mul", f64, b.get(p), b.get(p))
        b.set(r, b.op("mul", f64, square, b.get(p)))
        b.add(ir.Leave(scope))
    function = ir.Function("cube", [p], b.root, [r])
    verify_function(function)
    assert function_to_text(function) == "function cube(p: f64) -> r: f64\n  scope cube:\n    r = (p * p) * p\n    leave cube\n"


def test_extents() -> None:
    terms = [("shape", 0, 1), ("constant", 1), ("sub",), ("scalar", 1), ("constant", 2), ("mul",), ("min",), ("neg",)]
    assert extent_text(B.extent(*terms)) == "-min(arg0.shape[1] - 1, arg1 * 2)"
    select = [("shape", 0, 0), ("constant", 4), ("lt",), ("constant", 1), ("constant", 2), ("select",), ("constant", 3), ("mul",)]
    assert extent_text(B.extent(*select)) == "select(arg0.shape[0] < 4, 1, 2) * 3"


def test_long_chains_and_deep_nesting() -> None:
    b = B.Builder()
    value = b.const(1)
    for _ in range(5000):
        value = b.op("add", i64, value, b.const(1))
    b.set(ir.Var("s", i64), value)
    for _ in range(3000):
        b.stack.append(b.branch(b.const(True, BOOL)).then)
    text = to_text(ir.Kernel("long", [], [ir.Segment(b.root)]))
    assert max(len(line.strip()) for line in text.splitlines()) < 300
    assert text.count("if true:") == 3000
