"""The walks of ``ir.walk``, which operations do more than compute their value, and which variables a block changes."""

from __future__ import annotations

from ..ir.nodes import Block, For, Instr, Var
from ..ir.walk import Walk, blocks_of, instructions, nodes, run

__all__ = ["CHECKED", "EFFECTS", "Walk", "blocks_of", "instructions", "nodes", "run", "variables_set"]

# Operations of debug mode alone.
CHECKED = ("assert_", "inside")
# Operations that do more than compute their value.
EFFECTS = frozenset(
    {
        *("store", "store_flat", "atomic", "barrier", "block_reduce", "print", *CHECKED),
        *("check", "check_index", "record", "report", "set_cell", "combine", "keep"),
    }
)


def variables_set(*blocks: Block) -> set[Var]:
    """The variables that the blocks may change: sets and loop variables."""
    out: set[Var] = set()
    for node in nodes(*blocks):
        if isinstance(node, For):
            out.add(node.var)
        elif isinstance(node, Instr) and node.op == "set":
            assert isinstance(node.attr, Var)
            out.add(node.attr)
    return out
