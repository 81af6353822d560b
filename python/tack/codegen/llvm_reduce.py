"""Prints reductions: 64 running results per block of iterations, folded in an order that the extent alone decides.

Iteration ``c`` of a row piece contributes to running result ``(c - first) % 64``, whatever the number of lanes; at the end of a block the
64 are folded by halves. So the bits depend neither on threads nor on the SIMD width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..ir.arith import identity
from ..ir.nodes import Instr
from ..ir.reduction import WIDTH
from ..types import BOOL, DType, u8
from .llvm_text import identifier, llvm_type
from .params import ReductionPlan

if TYPE_CHECKING:
    from .llvm_body import Body

__all__ = ["Accumulators", "combine", "fold_two"]

_INT = {"add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}


def fold_two(body: Body, op: str, dtype: DType, lanes: int, a: str, b: str) -> str:
    """Two results as one."""
    if op in ("min", "max"):
        return body.arithmetic.minmax(op, dtype, lanes, a, b, op)
    name = f"f{op} {body.arithmetic.fast}".rstrip() if dtype.is_float else _INT[op]
    return body.w.op(op, f"{name} {llvm_type(dtype, lanes)} {a}, {b}")


def _held(dtype: DType) -> DType:
    """What a running result has in memory: bools are bytes, since LLVM packs vectors of them into bits."""
    return u8 if dtype == BOOL else dtype


class Accumulators:
    """The running results of one entry's reductions. ``each``: iterations that the body runs together."""

    def __init__(self, body: Body, reductions: list[ReductionPlan], each: int) -> None:
        self.body, self.reductions, self.each = body, reductions, each
        self.shelves = [body.w.once("running", f"alloca [{WIDTH} x {llvm_type(_held(r.var.type))}], align 64") for r in reductions]
        self._before: list[tuple[str, str]] = []

    def begin_block(self) -> None:
        w = self.body.w
        for r, shelf in zip(self.reductions, self.shelves, strict=True):
            held = _held(r.var.type)
            value = identity(r.op, r.var.type)
            splat = self.body.arithmetic.splat(held, WIDTH, value if held.is_float else int(value))
            w.do(f"store {llvm_type(held, WIDTH)} {splat}, ptr {shelf}, align 64")

    def begin_group(self, offset: str) -> None:
        """Gives the variables the running results of a group of lanes; ``offset`` is its place in its row."""
        w, n = self.body.w, self.each
        place = w.op("place", f"and i64 {offset}, {WIDTH - 1}")
        self._before = []
        for r, shelf in zip(self.reductions, self.shelves, strict=True):
            held = _held(r.var.type)
            at = w.op("running.at", f"getelementptr {llvm_type(held)}, ptr {shelf}, i64 {place}")
            value = w.op(f"{identifier(r.var.name)}.running", f"load {llvm_type(held, n)}, ptr {at}, align {held.itemsize}")
            if r.var.type == BOOL:
                value = w.op("running", f"trunc {llvm_type(held, n)} {value} to {llvm_type(BOOL, n)}")
            self.body.put(r.var, value)
            self._before.append((at, value))

    def end_group(self, mask: str | None) -> None:
        w, n = self.body.w, self.each
        for r, (at, before) in zip(self.reductions, self._before, strict=True):
            t = llvm_type(r.var.type, n)
            value = self.body.get(r.var, "running")
            if mask is not None:
                value = w.op("running", f"select <{n} x i1> {mask}, {t} {value}, {t} {before}")
            held = _held(r.var.type)
            if r.var.type == BOOL:
                value = w.op("running", f"zext {t} {value} to {llvm_type(held, n)}")
            w.do(f"store {llvm_type(held, n)} {value}, ptr {at}, align {held.itemsize}")

    def end_block(self, block: str) -> None:
        """Folds the running results and stores them as the block's partial result."""
        w = self.body.w
        for r, shelf in zip(self.reductions, self.shelves, strict=True):
            dtype = _held(r.var.type)
            half = WIDTH // 2
            value = ""
            while half:
                upper = w.op("upper", f"getelementptr {llvm_type(dtype)}, ptr {shelf}, i64 {half}")
                t = llvm_type(dtype, half)
                low = w.op("low", f"load {t}, ptr {shelf}, align {dtype.itemsize}")
                high = w.op("high", f"load {t}, ptr {upper}, align {dtype.itemsize}")
                value = fold_two(self.body, r.op, dtype, half, low, high)
                w.do(f"store {t} {value}, ptr {shelf}, align {dtype.itemsize}")
                half //= 2
            place = w.op("partial.place", f"mul nsw i64 {block}, 8")
            first = self.body.memory.cell_at(r.partials)
            at = w.op("partial.at", f"getelementptr i8, ptr {first}, i64 {place}")
            w.do(f"store {llvm_type(dtype)} {value}, ptr {at}, align 8")


def combine(body: Body, node: Instr) -> None:
    """Folds the blocks' partial results, in order, into the reduction's cell."""
    assert isinstance(node.attr, tuple)
    op, partials, cell, dtype = cast("tuple[object, ...]", node.attr)
    assert isinstance(op, str)
    assert isinstance(dtype, DType)
    assert isinstance(partials, int)
    assert isinstance(cell, int)
    w, t = body.w, llvm_type(dtype)
    blocks = body.values.scalar(node.args[0])
    total = w.once("total", f"alloca {t}, align 8")
    k_at = w.once("block.next", "alloca i64, align 8")
    w.do(f"store {t} {body.memory.cell(dtype, cell, 'before')}, ptr {total}")
    w.do(f"store i64 0, ptr {k_at}")
    first = body.memory.cell_at(partials)
    head, more, done = w.label("combine.head"), w.label("combine.next"), w.label("combine.done")
    w.start(head)
    k = w.op("block", f"load i64, ptr {k_at}")
    w.cbr(w.op("more", f"icmp slt i64 {k}, {blocks}"), more, done)
    w.start(more)
    place = w.op("partial.place", f"mul nsw i64 {k}, 8")
    at = w.op("partial.at", f"getelementptr i8, ptr {first}, i64 {place}")
    sofar = w.op("so.far", f"load {t}, ptr {total}")
    partial = w.op("partial", f"load {llvm_type(_held(dtype))}, ptr {at}, align 8")
    if dtype == BOOL:
        partial = w.op("partial", f"trunc {llvm_type(u8)} {partial} to {t}")
    folded = fold_two(body, op, dtype, 1, sofar, partial)
    w.do(f"store {t} {folded}, ptr {total}")
    w.do(f"store i64 {w.op('block.up', f'add nsw i64 {k}, 1')}, ptr {k_at}")
    w.br(head)
    w.start(done)
    body.memory.set_cell(dtype, cell, w.op("total", f"load {t}, ptr {total}"))
