"""Gives what a loop hands on from round to round variables of the loop's own, where lanes leave the loop one by one.

A variable that is read in the loop and after it must keep the value of each lane's last round, so that every round would wait for the mask
of the one before. With a variable for the loop alone, which ``uniform`` finds to need no mask, the rounds depend on each other by the
values only, and the one that is read afterwards is a masked copy beside. A counter that steps alike in all lanes becomes one scalar.
Changes the body; the meaning stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ..ir.nodes import Block, For, Instr, Node, Var, While
from .uniform import Flow
from .walk import blocks_of, nodes

__all__ = ["split_carried"]

_NEAR = 64  # statements


def split_carried(body: Block, results: set[Var], find: Callable[[], Flow]) -> None:
    """``results`` are read when the iteration is over. ``find`` analyses the body; it is asked only if there is something to do."""
    places = [p for p in _loops(body) if _innermost(p[1])]
    if not places:
        return
    reads = Counter(i.attr for i in nodes(body) if isinstance(i, Instr) and i.op == "get")
    flow: Flow | None = None
    inserted: dict[Block, list[tuple[Node, list[Node]]]] = {}
    for block, loop in places:
        wanted = [v for v in _carried(loop) if v not in results and reads[v] > _reads(loop)[v] > 0]
        if not wanted:
            continue
        flow = flow or find()
        if loop in flow.divergent:
            before = [n for v in wanted for n in _split(loop, v, _held(block, loop, v))]
            inserted.setdefault(block, []).append((loop, before))
    for block, pairs in inserted.items():
        in_front = dict(pairs)
        block.body = [m for n in block.body for m in (*in_front.get(n, ()), n)]


def _loops(body: Block) -> list[tuple[Block, For | While]]:
    out: list[tuple[Block, For | While]] = []
    stack = [body]
    while stack:
        block = stack.pop()
        for node in block.body:
            if isinstance(node, For | While):
                out.append((block, node))
            if not isinstance(node, Instr):
                stack += blocks_of(node)
    return out


def _rounds(loop: For | While) -> tuple[Block, ...]:
    return (loop.test, loop.body) if isinstance(loop, While) else (loop.body,)


def _innermost(loop: For | While) -> bool:
    return not any(isinstance(n, For | While) for n in nodes(*_rounds(loop)))


def _reads(loop: For | While) -> Counter[object]:
    return Counter(i.attr for i in nodes(*_rounds(loop)) if isinstance(i, Instr) and i.op == "get")


def _carried(loop: For | While) -> list[Var]:
    """Variables that the loop sets, always outside of branches."""
    direct = Counter(i.attr for block in _rounds(loop) for i in block.body if isinstance(i, Instr) and i.op == "set")
    every = Counter(i.attr for i in nodes(*_rounds(loop)) if isinstance(i, Instr) and i.op == "set")
    return [v for v, n in direct.items() if isinstance(v, Var) and every[v] == n]


def _held(block: Block, loop: For | While, var: Var) -> Instr | None:
    """What the variable holds in front of the loop, if that was set shortly before."""
    at = block.body.index(loop)
    for node in reversed(block.body[max(0, at - _NEAR) : at]):
        if not isinstance(node, Instr):
            return None
        if node.op == "set" and node.attr is var:
            return node.args[0]
    return None


def _split(loop: For | While, var: Var, held: Instr | None) -> list[Node]:
    """Renames ``var`` inside the loop; answers what belongs in front of it."""
    own = Var(var.name, var.type)
    for instr in nodes(*_rounds(loop)):
        if isinstance(instr, Instr) and instr.op == "get" and instr.attr is var:
            instr.attr = own
    for block in _rounds(loop):
        out: list[Node] = []
        for node in block.body:
            out.append(node)
            if isinstance(node, Instr) and node.op == "set" and node.attr is var:
                out.append(Instr("set", None, node.args, own, node.loc))
        block.body = out
    if held is not None:
        return [Instr("set", None, (held,), own, loop.loc)]
    now = Instr("get", var.type, (), var, loop.loc)
    return [now, Instr("set", None, (now,), own, loop.loc)]
