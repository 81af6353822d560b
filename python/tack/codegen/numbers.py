"""Finds floats that are never NaN, as the smallest so far of a loop that starts from a number: their minimum is one instruction."""

from __future__ import annotations

from ..ir.nodes import Block, Instr, Var
from .walk import nodes

__all__ = ["never_nan"]


def never_nan(given: set[Var], *blocks: Block) -> set[Instr]:
    """``given``: variables that others set too, to anything."""
    sets: dict[Var, list[Instr]] = {}
    values: list[Instr] = []
    for node in nodes(*blocks):
        if isinstance(node, Instr):
            if node.op == "set" and isinstance(node.attr, Var):
                sets.setdefault(node.attr, []).append(node.args[0])
            elif node.type is not None and node.type.is_float:
                values.append(node)
    if not any(v.op in ("min", "max") for v in values):
        return set()
    # All are taken for numbers until one is found that may not be: loops feed back what they are.
    numbers = set(values)
    variables = {v for v in sets if v not in given}
    while True:
        wrong = {v for v in values if v in numbers and not _is_number(v, numbers, variables)}
        numbers -= wrong
        lost = {v for v in variables if any(value.type is not None and value.type.is_float and value not in numbers for value in sets[v])}
        variables -= lost
        if not wrong and not lost:
            return numbers


def _is_number(value: Instr, numbers: set[Instr], variables: set[Var]) -> bool:
    op, args = value.op, value.args
    if op == "const":
        return value.attr == value.attr
    if op == "get":
        return value.attr in variables
    if op in ("min", "max"):  # a number rather than a NaN
        return any(a in numbers for a in args)
    if op == "select":
        return args[1] in numbers and args[2] in numbers
    if op in ("neg", "abs"):
        return args[0] in numbers
    if op == "cast":
        source = args[0].type
        return source is not None and (not source.is_float or args[0] in numbers)
    return False
