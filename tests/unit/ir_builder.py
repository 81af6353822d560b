"""A few lines to write IR by hand in tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tack.ir import nodes as ir
from tack.types import BOOL, DType, Layout, f32, i64


def array(index: int, name: str, dtype: DType = f32, rank: int = 1, layout: Layout = Layout.CONTIGUOUS) -> ir.ArrayParam:
    return ir.ArrayParam(index, name, dtype, rank, layout)


def extent(*terms: tuple[Any, ...]) -> ir.Extent:
    return ir.Extent(tuple((t[0], *(*t[1:], 0, 0, 0)[:3]) if t[0] != "constant" else (t[0], 0, 0, t[1]) for t in terms))


class Builder:
    """Appends instructions to the innermost open block."""

    def __init__(self) -> None:
        self.root = ir.Block()
        self.stack = [self.root]

    def add(self, node: Any) -> Any:
        self.stack[-1].body.append(node)
        return node

    def op(self, op: str, type: DType | None, *args: ir.Instr, attr: Any = None) -> ir.Instr:
        return self.add(ir.Instr(op, type, args, attr))  # type: ignore[no-any-return]

    def const(self, value: Any, type: DType = i64) -> ir.Instr:
        return self.op("const", type, attr=value)

    def get(self, var: ir.Var) -> ir.Instr:
        return self.op("get", var.type, attr=var)

    def set(self, var: ir.Var, value: ir.Instr) -> ir.Instr:
        return self.op("set", None, value, attr=var)

    def load(self, a: Any, *index: ir.Instr) -> ir.Instr:
        return self.op("load", a.dtype, *index, attr=a)

    def store(self, a: Any, value: ir.Instr, *index: ir.Instr) -> ir.Instr:
        return self.op("store", None, value, *index, attr=a)

    def less(self, a: ir.Instr, b: ir.Instr) -> ir.Instr:
        return self.op("lt", BOOL, a, b)

    @contextmanager
    def inside(self, block: ir.Block) -> Iterator[None]:
        self.stack.append(block)
        yield
        self.stack.pop()

    def loop(self, var: ir.Var, start: ir.Instr, stop: ir.Instr, step: ir.Instr) -> ir.For:
        return self.add(ir.For(var, start, stop, step, ir.Block(), ir.Block()))  # type: ignore[no-any-return]

    def branch(self, cond: ir.Instr) -> ir.If:
        return self.add(ir.If(cond, ir.Block(), ir.Block()))  # type: ignore[no-any-return]


def over(array_: ir.ArrayParam, body: ir.Block, index: ir.Var, reductions: list[ir.Reduction] | None = None) -> ir.Parallel:
    """A parallel loop over the first dimension of an array."""
    return ir.Parallel(
        [index], [extent(("constant", 0))], [extent(("shape", array_.index, 0))], [extent(("constant", 1))], body, reductions or []
    )


def saxpy() -> ir.Kernel:
    """``for i in range(x.shape[0]): y[i] = a * x[i] + y[i]``."""
    x, y, a = array(0, "x"), array(1, "y"), ir.ScalarParam(2, "a", "float", f32)
    b, i = Builder(), ir.Var("i", i64)
    scaled = b.op("mul", f32, b.op("arg", f32, attr=a), b.load(x, b.get(i)))
    j = b.get(i)
    b.store(y, b.op("add", f32, scaled, b.load(y, j)), j)
    return ir.Kernel("saxpy", [x, y, a], [over(x, b.root, i)], frozenset({1}))


def collatz() -> ir.Kernel:
    """Steps to 1 for every element, at most ``limit``: a while loop with break, else and continue, a for loop, a scope, a reduction."""
    n, steps, limit = array(0, "n", i64), array(1, "steps", i64), ir.ScalarParam(2, "limit", "int", i64, 0, 1000)
    i, v, count, total, k = (ir.Var(name, i64) for name in ("i", "v", "count", "total", "k"))
    first = Builder()
    first.set(total, first.const(0))
    b = Builder()
    b.set(v, b.load(n, b.get(i)))
    b.set(count, b.const(0))
    loop = b.add(ir.While(ir.Block(), None, ir.Block(), ir.Block()))  # type: ignore[arg-type]
    with b.inside(loop.test):
        loop.cond = b.op("ne", BOOL, b.get(v), b.const(1))
    with b.inside(loop.body):
        stop = b.branch(b.op("ge", BOOL, b.get(count), b.op("arg", i64, attr=limit)))
        with b.inside(stop.then):
            b.set(count, b.const(-1))
            b.add(ir.Break())
        b.set(count, b.op("add", i64, b.get(count), b.const(1)))
        odd = b.branch(b.op("eq", BOOL, b.op("mod", i64, b.get(v), b.const(2)), b.const(1)))
        with b.inside(odd.then):
            b.set(v, b.op("add", i64, b.op("mul", i64, b.const(3), b.get(v)), b.const(1)))
            b.add(ir.Continue())
        b.set(v, b.op("floordiv", i64, b.get(v), b.const(2)))
    with b.inside(loop.orelse):
        b.set(total, b.op("add", i64, b.get(total), b.get(count)))
    scope = b.add(ir.Scope(ir.Block(), "first_multiple"))
    with b.inside(scope.body):
        search = b.loop(k, b.const(2), b.const(50), b.const(1))
        with b.inside(search.body):
            found = b.branch(b.op("eq", BOOL, b.op("mod", i64, b.get(count), b.get(k)), b.const(0)))
            with b.inside(found.then):
                b.add(ir.Leave(scope))
        b.set(k, b.const(-1))
    at = b.get(i)
    b.store(steps, b.op("add", i64, b.op("mul", i64, b.get(count), b.const(100)), b.get(k)), at)
    items: list[Any] = [ir.Segment(first.root), over(n, b.root, i, [ir.Reduction(total, "add")])]
    return ir.Kernel("collatz", [n, steps, limit], items, frozenset({1}), total)
