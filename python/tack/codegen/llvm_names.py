"""What values are called in LLVM IR."""

from __future__ import annotations

from ..ir.nodes import Instr, Var
from .llvm_text import identifier
from .params import EntryPlan
from .walk import instructions

__all__ = ["value_names"]


def value_names(entry: EntryPlan) -> dict[Instr, str]:
    """Names for values: the variable they are bound to, or what they are."""
    out: dict[Instr, str] = {}
    for instr in instructions(entry.prologue, entry.body):
        if instr.op == "set" and isinstance(instr.attr, Var):
            out[instr] = instr.attr.name
            out.setdefault(instr.args[0], identifier(instr.attr.name))
        elif instr.op in ("load", "load_flat") and not isinstance(instr.attr, str):
            out.setdefault(instr, identifier(getattr(instr.attr, "name", "t")) + ".value")
    return out
