"""Divides large bodies into pieces, runs of statements that become functions of their own.

What a compiler does for a function (placing phis, scheduling, allocating registers) grows faster than the function. With a bound on the
size of one, compile time grows with the length of a kernel. Blocks are divided from the inside to the outside, so that nothing large
stays: neither in a long block nor in a deep nest of small ones, as a long elif chain is. Pieces may hold the calls of others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir.nodes import Block, For, If, Instr, Node, Scope, Var, While
from .uniform import Flow, Target
from .walk import Walk, blocks_of, nodes, run

__all__ = ["Division", "Piece", "divide", "is_large"]

# In lines of LLVM IR, as estimated here. Measured on kernels of nine kinds (statements, branches, loops, calls): pieces of 2000 lines
# compile fastest; with 500 the calls cost more than they save, with 8000 LLVM takes up to twice as long.
_LARGE = 5000  # of an entry from which on it is divided
_PIECE = 2000  # of a function, about
_LEAST = 200  # of a run of statements that is worth a call

_LINES = {
    **dict.fromkeys(("const", "arg", "shape"), 0),
    **dict.fromkeys(("load", "load_flat", "store", "store_flat", "table", "set", "min", "max", "mulhi"), 3),
    **dict.fromkeys(("check", "check_index", "record", "combine", "call"), 15),
    "atomic": 30,
}
_HEADS = {If: 10, For: 25, While: 20, Scope: 3}


@dataclass(eq=False, slots=True)
class Piece:
    """``exits``: where lanes may have gone inside, beyond its end. ``changes``: variables that may be set inside.
    ``handed``: values that are used outside. ``parent``: the piece that holds its call, None for the entry's own function."""

    nodes: list[Node]
    exits: tuple[Target, ...]
    changes: set[Var] = field(default_factory=set)
    handed: set[Instr] = field(default_factory=set)
    parent: Piece | None = None
    depth: int = 1


@dataclass(slots=True)
class Division:
    """``groups``: what divided blocks consist of. ``variables``, ``targets``: the innermost function (None: the entry's own) that has all
    accesses to a variable, and that has a loop or scope."""

    groups: dict[Block, list[Node | Piece]] = field(default_factory=dict)
    variables: dict[Var, Piece | None] = field(default_factory=dict)
    targets: dict[Node, Piece | None] = field(default_factory=dict)


def divide(blocks: tuple[Block, ...], flow: Flow, root: set[Var]) -> Division | None:
    """Divides the blocks of an entry; None where they are small. ``root``: variables that the printer reads and sets outside of them."""
    if not is_large(*blocks):
        return None
    out = Division()
    for block in blocks:
        run(_divide(block, flow, out))
    _place(blocks, out, root)
    return out


def is_large(*blocks: Block) -> bool:
    """Whether an entry of these blocks is divided."""
    return sum(map(_own_size, nodes(*blocks))) > _LARGE


def _own_size(node: Node) -> int:
    return _LINES.get(node.op, 1) if isinstance(node, Instr) else _HEADS.get(type(node), 2)


def _divide(block: Block, flow: Flow, out: Division) -> Walk[tuple[int, list[Piece]]]:
    """Answers what is left of the block in the function around it, and the pieces in it."""
    sizes: list[int] = []
    pieces: list[list[Piece]] = []
    for node in block.body:
        size, held = _own_size(node), []
        for inner in blocks_of(node):
            rest, found = yield _divide(inner, flow, out)
            size += rest
            held += found
        sizes.append(size)
        pieces.append(held)
    if sum(sizes) <= _PIECE:
        return sum(sizes), [p for held in pieces for p in held]
    group: list[Node | Piece] = []
    out.groups[block] = group
    left, outer = 0, []
    start, total = 0, 0
    # What the printer keeps for the entry stays in its own function.
    end = next((k for k, node in enumerate(block.body) if isinstance(node, Instr) and node.op == "keep"), len(sizes))
    for k in range(end + 1):
        if k < end and (total + sizes[k] <= _PIECE or k == start):
            total += sizes[k]
            continue
        statements, inside = block.body[start:k], [p for held in pieces[start:k] for p in held]
        if total < _LEAST:
            group += statements
            left += total
            outer += inside
        else:
            piece = Piece(statements, tuple(dict.fromkeys(t for n in statements for t in flow.exits.get(n, ()))))
            for p in inside:
                p.parent = piece
            group.append(piece)
            outer.append(piece)
            left += 10
        if k < end:
            start, total = k, sizes[k]
    group += block.body[end:]
    return left + sum(sizes[end:]), outer


def _place(blocks: tuple[Block, ...], out: Division, root: set[Var]) -> None:
    """Finds where values, variables, loops and scopes are at home, and which values leave their piece."""
    homes: dict[Instr, Piece | None] = {}
    uses: list[tuple[Instr, Piece | None]] = []
    out.variables = dict.fromkeys(root)
    stack: list[tuple[Node | Piece, Piece | None]] = [(n, None) for b in reversed(blocks) for n in reversed(_statements(b, out))]
    while stack:
        node, home = stack.pop()
        if isinstance(node, Piece):
            node.depth = 1 if home is None else home.depth + 1
            stack += [(n, node) for n in reversed(node.nodes)]
            continue
        if isinstance(node, Instr):
            homes[node] = home
            uses += [(a, home) for a in node.args if homes[a] is not home]
            if node.op in ("get", "set"):
                assert isinstance(node.attr, Var)
                _touch(node.attr, home, out, node.op == "set")
            continue
        if isinstance(node, For):
            _touch(node.var, home, out, True)
            uses += [(v, home) for v in (node.start, node.stop, node.step)]
        elif isinstance(node, If | While):
            uses.append((node.cond, home))
        out.targets[node] = home
        stack += [(n, home) for b in reversed(blocks_of(node)) for n in reversed(_statements(b, out))]
    for value, user in uses:
        home = homes[value]
        around = _common(home, user)
        while home is not around:
            assert home is not None
            home.handed.add(value)
            home = home.parent


def _statements(block: Block, out: Division) -> list[Node | Piece]:
    return out.groups.get(block) or list(block.body)


def _touch(var: Var, home: Piece | None, out: Division, changes: bool) -> None:
    out.variables[var] = _common(out.variables[var], home) if var in out.variables else home
    while changes and home is not None and var not in home.changes:
        home.changes.add(var)
        home = home.parent


def _common(a: Piece | None, b: Piece | None) -> Piece | None:
    """The innermost piece that holds both; None for the entry's own function."""
    while a is not b:
        if a is None or b is None:
            return None
        if a.depth >= b.depth:
            a = a.parent
        else:
            b = b.parent
    return a
