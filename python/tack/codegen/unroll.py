"""Unrolls loops over the columns of short rows (a pixel's channels), so that lanes find whole rows next to each other. Changes the body."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, mul, sub

from ..ir.nodes import ArrayParam, Block, Break, Continue, For, Instr, Leave, Node
from .affine import constant, indices_of
from .lower import copy_block
from .walk import blocks_of, instructions, nodes, run

__all__ = ["unroll_columns"]

_LONGEST, _SIZE = 4, 100  # rounds, and instructions and nodes of a round
_FOLDED: dict[str, Callable[[int, int], int]] = {"add": add, "sub": sub, "mul": mul}


def unroll_columns(prologue: Block, body: Block) -> None:
    outer = {i: i for i in instructions(prologue, body)}
    work = [body]
    while work:
        block = work.pop()
        out: list[Node] = []
        for node in block.body:
            rounds = _rounds(node) if isinstance(node, For) else None
            if isinstance(node, For) and rounds is not None:
                for k in rounds:
                    out += _round(node, k, dict(outer))
                continue
            if not isinstance(node, Instr):
                work += blocks_of(node)
            out.append(node)
        block.body = out


def _rounds(loop: For) -> range | None:
    """What the loop counts through, if it is over the columns of an array that has more dimensions."""
    start, stop, step = constant(loop.start), constant(loop.stop), constant(loop.step)
    if start is None or stop is None or step != 1 or not 0 <= start < stop <= _LONGEST or loop.orelse.body:
        return None
    every = list(nodes(loop.body))
    if len(every) > _SIZE or any(isinstance(n, For | Break | Continue | Leave) for n in every):
        return None
    counters = {n for n in every if isinstance(n, Instr) and n.op == "get" and n.attr is loop.var}
    for n in every:
        if isinstance(n, Instr) and n.op in ("load", "store"):
            array, indices = indices_of(n)
            if isinstance(array, ArrayParam) and array.rank > 1 and indices[-1] in counters:
                return range(start, stop)
    return None


def _round(loop: For, k: int, values: dict[Instr, Instr]) -> list[Node]:
    """A copy of the body, in which the counter is a number."""
    body = run(copy_block(loop.body, values, {}))
    for n in instructions(body):
        if n.op == "get" and n.attr is loop.var:
            n.op, n.attr = "const", k
        elif n.op in _FOLDED and n.type == loop.var.type:
            a, b = map(constant, n.args)
            if a is not None and b is not None:
                n.op, n.args, n.attr = "const", (), _FOLDED[n.op](a, b)
    return body.body
