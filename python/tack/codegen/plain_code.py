"""What LLVM makes of plain code and the model of cost has to know of: loads that leave loops, loops that become one instruction, arms that
are seldom taken."""

from __future__ import annotations

from ..ir.nodes import Array, ArrayParam, Block, For, Instr, Scope, Var, While
from .affine import indices_of
from .walk import instructions, nodes, variables_set

__all__ = ["arrays_written", "counts_bits", "is_rare", "steady_loads"]

_LARGE = 64.0  # numbers above this are the exception, where code asks
_OTHER_SIDE = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def arrays_written(body: Block) -> set[Array]:
    return {indices_of(i)[0] for i in instructions(body) if i.op in ("store", "store_flat", "atomic")}


def steady_loads(loop: For | While, written: set[Array]) -> list[Instr]:
    """Loads whose place no round of the loop changes, from arrays that the code does not write."""
    blocks = (loop.test, loop.body) if isinstance(loop, While) else (loop.body,)
    inside = set(instructions(*blocks))
    changed = variables_set(*blocks) | ({loop.var} if isinstance(loop, For) else set())
    known: dict[Instr, bool] = {}

    def steady(value: Instr) -> bool:
        if value not in known:
            if value not in inside or value.op in ("const", "arg", "shape", "index"):
                known[value] = True
            elif value.op == "get":
                known[value] = value.attr not in changed
            else:
                known[value] = value.op in ("add", "sub", "mul", "neg", "cast") and all(map(steady, value.args))
        return known[value]

    loads: list[Instr] = []
    work = list(blocks)
    while work:
        for node in work.pop().body:
            if isinstance(node, Instr) and node.op in ("load", "load_flat"):
                loads.append(node)
            elif isinstance(node, Scope | For):  # not what only some rounds do
                work.append(node.body)
    return [i for i in loads if isinstance(i.attr, ArrayParam) and i.attr not in written and all(map(steady, i.args))]


def counts_bits(loop: For | While) -> bool:
    """``while v: v &= v - 1; k += 1``, for which there is an instruction."""
    if not isinstance(loop, While) or loop.orelse.body:
        return False
    sets: dict[Var, Instr] = {}
    for node in nodes(loop.test, loop.body):
        if not isinstance(node, Instr) or node.op not in ("const", "get", "set", "and", "add", "sub", "ne", "cast"):
            return False
        if node.op == "set":
            assert isinstance(node.attr, Var)
            sets[node.attr] = node.args[0]
    return any(_without_last(value, var) for var, value in sets.items())


def _without_last(value: Instr, var: Var) -> bool:
    """``v & (v - 1)``."""
    if value.op != "and":
        return False
    for whole, less in (value.args, value.args[::-1]):
        if whole.op == "get" and whole.attr is var and less.op in ("sub", "add") and less.args[0].attr is var:
            step = less.args[1]
            if step.op == "const" and step.attr in ((1,) if less.op == "sub" else (-1, (1 << var.type.bits) - 1)):
                return True
    return False


def is_rare(cond: Instr) -> bool | None:
    """Whether a condition seldom holds (True) or seldom fails (False), as far as can be told: that a float is large is an exception."""
    turned = False
    while cond.op == "lnot":
        cond, turned = cond.args[0], not turned
    if cond.op not in _OTHER_SIDE or cond.args[0].type is None or not cond.args[0].type.is_float:
        return None
    op, (a, b) = cond.op, cond.args
    if a.op == "const":
        a, b, op = b, a, _OTHER_SIDE[op]
    if b.op != "const" or not isinstance(b.attr, float) or b.attr < _LARGE:
        return None
    return (op in ("gt", "ge")) != turned
