"""Undoes joins where one arm of a branch leaves a variable alone, and branches that only choose what is stored.

Where paths meet, a new variable holds what either of them left: ``if c: j = f(v)`` / ``else: j = v``, then ``v = j``. In lanes, both arms
would set it under masks, and a branch would be taken for the sake of the copies. Setting ``v`` itself in the one arm is the same.

Where both arms end with a store to one place, of what takes a few operations, all are computed and one is chosen: one store, no mask, and
nothing to mispredict (LLVM does not see it through the addresses). Changes the body; the meaning stays.
"""

from __future__ import annotations

from collections import Counter

from ..ir.nodes import Block, Break, Continue, For, If, Instr, Leave, Node, Var
from .walk import blocks_of, nodes, variables_set

__all__ = ["choose_stored", "join_in_place"]

_FREE = frozenset({"const", "get", "arg", "shape", "index", "sequence"})
_CHEAP = frozenset(
    {
        *("add", "sub", "mul", "neg", "abs", "min", "max", "fma", "cast", "bitcast", "select", "and", "or", "xor", "not", "lnot"),
        *("eq", "ne", "lt", "le", "gt", "ge"),
    }
)
_FEW = 8  # operations of both arms, those of addresses included


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


def choose_stored(body: Block) -> None:
    """Stores once what two arms of a branch would store in one place."""
    blocks = [body]
    for block in blocks:
        blocks += [b for node in block.body if not isinstance(node, Instr) for b in blocks_of(node)]
    for block in reversed(blocks):  # inner ones first
        if any(isinstance(node, If) for node in block.body):
            block.body = [m for n in block.body for m in (_chosen(n) if isinstance(n, If) else None) or (n,)]


def _chosen(node: If) -> list[Node] | None:
    arms = node.then.body, node.orelse.body
    stores: list[Instr] = []
    before: list[Instr] = []
    for arm in arms:
        *rest, last = arm or (None,)
        if not isinstance(last, Instr) or last.op not in ("store", "store_flat"):
            return None
        for instr in rest:
            if not isinstance(instr, Instr) or instr.op not in _FREE | _CHEAP:
                return None
            before.append(instr)
        stores.append(last)
    one, other = stores
    if (one.op, one.attr, one.args[0].type) != (other.op, other.attr, other.args[0].type):
        return None
    if sum(i.op in _CHEAP for i in before) > _FEW:
        return None
    same: dict[object, Instr] = {}
    alike: dict[Instr, Instr] = {}
    for i in before:
        alike[i] = same.setdefault((i.op, i.type, repr(i.attr) if i.op == "const" else i.attr, *(alike.get(a, a) for a in i.args)), i)
    if [alike.get(a, a) for a in one.args[1:]] != [alike.get(a, a) for a in other.args[1:]]:
        return None
    value = Instr("select", one.args[0].type, (node.cond, one.args[0], other.args[0]), None, node.loc)
    return [*before, value, Instr(one.op, None, (value, *one.args[1:]), one.attr, one.loc)]
