"""Undoes joins where one arm of a branch leaves a variable alone.

Where paths meet, a new variable holds what either of them left: ``if c: j = f(v)`` / ``else: j = v``, then ``v = j``. In lanes, both arms
would set it under masks, and a branch would be taken for the sake of the copies. Setting ``v`` itself in the one arm is the same. Changes
the body; the meaning stays.
"""

from __future__ import annotations

from collections import Counter

from ..ir.nodes import Block, Break, Continue, For, If, Instr, Leave, Node, Var
from .walk import blocks_of, nodes, variables_set

__all__ = ["join_in_place"]


def join_in_place(body: Block) -> None:
    reads, sets = Counter[Var](), Counter[Var]()
    for node in nodes(body):
        if isinstance(node, Instr) and isinstance(node.attr, Var):
            (reads if node.op == "get" else sets)[node.attr] += 1
        elif isinstance(node, For):
            sets[node.var] += 1
    work = [body]
    while work:
        block = work.pop()
        inner = [b for node in block.body if not isinstance(node, Instr) for b in blocks_of(node)]
        if any(isinstance(node, If) for node in block.body):
            _joins(block, reads, sets)
        work += inner


def _joins(block: Block, reads: Counter[Var], sets: Counter[Var]) -> None:
    held: dict[Var, Instr] = {}  # what a variable holds now
    dropped: set[Node] = set()
    for k, node in enumerate(block.body):
        if isinstance(node, Instr):
            if isinstance(node.attr, Var):
                held[node.attr] = node if node.op == "get" else node.args[0]
            continue
        if isinstance(node, If):
            dropped |= _one(block.body, k, node, held, reads, sets)
        changed = variables_set(Block([node]))
        held = {v: value for v, value in held.items() if v not in changed}
    if dropped:
        block.body = [n for n in block.body if n not in dropped]


def _one(body: list[Node], at: int, node: If, held: dict[Var, Instr], reads: Counter[Var], sets: Counter[Var]) -> set[Node]:
    """Tries the variables that an arm of ``node``, at ``body[at]``, only copies; answers the statements of ``body`` to be dropped."""
    dropped: set[Node] = set()
    if any(isinstance(n, Break | Continue | Leave) for n in nodes(node.then, node.orelse)):
        return dropped  # who leaves here does not come to the set behind the branch
    for arm, other in ((node.then, node.orelse), (node.orelse, node.then)):
        for copy in [n for n in arm.body if isinstance(n, Instr) and n.op == "set"]:
            join = copy.attr
            assert isinstance(join, Var)
            mine = [n for n in other.body if isinstance(n, Instr) and n.op == "set" and n.attr is join]
            if sets[join] != 2 or reads[join] != 1 or len(mine) != 1:
                continue
            after = _read_back(body, at, join)
            if after is None:
                continue
            get, back = after
            var = back.attr
            assert isinstance(var, Var)
            if held.get(var) is not copy.args[0] or var.type != join.type or _touches(node, var):
                continue
            mine[0].attr = var
            arm.body = [n for n in arm.body if n is not copy]
            get.attr = var
            dropped.add(back)
            sets[join], reads[join] = 0, 0
            reads[var] += 1
    return dropped


def _read_back(body: list[Node], at: int, join: Var) -> tuple[Instr, Instr] | None:
    """What follows the branch: the read of the join, and the set of a variable by it, which nothing else touches before."""
    get: Instr | None = None
    for node in body[at + 1 :]:
        if not isinstance(node, Instr):
            return None
        if get is None:
            if node.op == "get" and node.attr is join:
                get = node
        elif node.op == "set" and node.args[0] is get:
            var = node.attr
            clean = all(n.attr is not var for n in body[at + 1 : body.index(node)] if isinstance(n, Instr))
            return (get, node) if clean else None
    return None


def _touches(node: If, var: Var) -> bool:
    return any((isinstance(n, Instr) and n.attr is var) or (isinstance(n, For) and n.var is var) for n in nodes(node.then, node.orelse))
