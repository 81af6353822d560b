"""How many registers a value should take: one, or more where results come too late for the next instruction that needs them.

A processor hides latency by overlapping independent work: of the next rounds of a loop unless each waits for the one before, of the next
group of lanes as far ahead as it can look. Where neither is enough, the lanes of two or four registers make the work for each other.
Figures are cycles of current x86 cores with 512-bit registers, of the hottest straight piece of the code.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir.nodes import Block, For, If, Instr, Scope, Var, While
from .affine import access, indices_of
from .uniform import Flow
from .walk import Walk, blocks_of, nodes, run

__all__ = ["registers_each"]

_AHEAD = 320  # instructions that are looked at together
_MOST = 4
_SELDOM = 0.25  # how often lanes take a branch that differs between them
_EXIT = 1.5  # where lanes leave a loop one by one, its mispredicted end and the rounds with few lanes count for as much again
_DIVISIONS = {"div": (13.0, 10.0), "sqrt": (19.0, 12.0), "quot": (40.0, 30.0), "rem": (45.0, 32.0), "frem": (60.0, 60.0)}  # latency, time
_LATENCY = {"select": 1.0, "min": 2.0, "max": 2.0, "set": 0.0, "get": 0.0, "freeze": 0.0, "bitcast": 0.0, "call": 60.0}
_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
_FREE = ("const", "arg", "shape", "index", "get", "set", "freeze", "bitcast", "check", "check_index")
_NUMBER_REGISTERS = {512: 28, 256: 14, 128: 14}


@dataclass(slots=True)
class _Piece:
    """A loop's rounds or the whole body: ``path`` and ``chain`` are the longest ways through it and from round to round."""

    work: float = 0.0
    divisions: float = 0.0
    count: int = 0
    path: float = 0.0
    chain: float = 0.0
    at: dict[Instr, tuple[float, float]] = field(default_factory=dict)  # when values are there, and since what the round was handed
    variables: dict[Var, tuple[float, float]] = field(default_factory=dict)


_NEVER = float("-inf")


def registers_each(body: Block, flow: Flow, lanes: int, width: int, vector_bits: int) -> int:
    """1, 2 or 4. ``lanes`` fill one register with values of ``width`` bits."""
    loop = _hottest(body)
    blocks = (body,) if loop is None else (loop.test, loop.body) if isinstance(loop, While) else (loop.body,)
    piece = _Piece()
    carried = _carried(blocks) if loop is not None else set()
    for var in carried:
        piece.variables[var] = (0.0, 0.0)
    for block in blocks:
        if not run(_walk(block, flow, lanes, width, piece, 1.0)):
            return 1
    piece.chain = max((piece.variables[v][1] for v in carried), default=0.0)
    work = max(piece.work, piece.divisions)
    if work <= 0:
        return 1
    need = piece.chain / work * (_EXIT if loop in flow.divergent else 1.0)
    overlap = _AHEAD / max(1, piece.count)
    if overlap < piece.path / work:
        need = max(need, piece.path / work)
    room = _NUMBER_REGISTERS.get(vector_bits, 14) // max(1, _live(blocks, flow))
    wanted = 1
    while wanted < _MOST and need > 1.2 * wanted and 2 * wanted <= room:
        wanted *= 2
    return wanted


def _hottest(body: Block) -> For | While | None:
    """The innermost loop that is nested deepest; of equally deep ones the longest."""
    best: tuple[int, int] = (0, 0)
    found: For | While | None = None
    stack: list[tuple[Block, int]] = [(body, 0)]
    while stack:
        block, depth = stack.pop()
        for node in block.body:
            if isinstance(node, Instr):
                continue
            inner = depth + isinstance(node, For | While)
            if isinstance(node, For | While):
                size = sum(1 for _ in nodes(node.body)) if inner >= best[0] else 0
                if (inner, size) > best:
                    best, found = (inner, size), node
            stack += [(b, inner) for b in blocks_of(node)]
    return found


def _carried(blocks: tuple[Block, ...]) -> set[Var]:
    """Variables that a round both reads and sets."""
    read: set[Var] = set()
    changed: set[Var] = set()
    for instr in nodes(*blocks):
        if isinstance(instr, Instr) and isinstance(instr.attr, Var):
            (changed if instr.op == "set" else read).add(instr.attr)
    return read & changed


def _live(blocks: tuple[Block, ...], flow: Flow) -> int:
    """About how many vectors are needed at a time: variables, values from outside, and some of those in between."""
    inside: set[Instr] = set()
    outside: set[Instr] = set()
    variables: set[Var] = set()
    for instr in nodes(*blocks):
        if not isinstance(instr, Instr):
            continue
        inside.add(instr)
        if isinstance(instr.attr, Var) and instr.attr in flow.varying:
            variables.add(instr.attr)
        outside |= {a for a in instr.args if a.op != "const" and not flow.uniform(a)}
    return len(variables) + len(outside - inside) + 2


def _walk(block: Block, flow: Flow, lanes: int, width: int, piece: _Piece, often: float) -> Walk[bool]:
    """False for what does not fit the model. ``often``: how much of the work is done, of a branch less than all."""
    for node in block.body:
        if isinstance(node, Instr):
            if not _one(node, flow, lanes, width, piece, often):
                return False
        elif isinstance(node, If | Scope):
            inside = often * _SELDOM if node in flow.divergent else often
            for inner in blocks_of(node):
                if not (yield _walk(inner, flow, lanes, width, piece, inside)):
                    return False
        elif isinstance(node, For | While):
            return False
    return True


def _one(instr: Instr, flow: Flow, lanes: int, width: int, piece: _Piece, often: float) -> bool:
    """Adds an instruction; False for what lanes do by turns."""
    if instr.op == "atomic":
        return False
    after = [piece.at[a] for a in instr.args if a in piece.at]
    ready = max((a for a, _ in after), default=0.0)
    since = max((b for _, b in after), default=_NEVER)
    if instr.op == "get":
        assert isinstance(instr.attr, Var)
        piece.at[instr] = piece.variables.get(instr.attr, (0.0, _NEVER))
        return True
    latency, time = _cost(instr, flow, lanes, width)
    if instr.op not in _FREE and not flow.uniform(instr):
        name = str(instr.attr) if instr.op == "math" else instr.op
        if name in _DIVISIONS:
            piece.divisions += often * time
        else:
            piece.work += often * time
        piece.count += 1
    elif instr.op != "set":
        latency = 0.0 if flow.uniform(instr) else latency
    piece.at[instr] = ready + latency, since + latency
    piece.path = max(piece.path, ready + latency)
    if instr.op == "set":
        assert isinstance(instr.attr, Var)
        old = piece.variables.get(instr.attr, (0.0, _NEVER)) if instr in flow.masked else (0.0, _NEVER)
        piece.variables[instr.attr] = max(ready, old[0]), max(since, old[1])
    return True


def _cost(instr: Instr, flow: Flow, lanes: int, width: int) -> tuple[float, float]:
    """Latency, and the time that it takes a unit for one register of lanes."""
    op = instr.op
    if op in ("load", "load_flat", "store", "store_flat"):
        array, _ = indices_of(instr)
        step = access(instr, flow.form, flow.pair).step
        return (5.0, 0.5 * max(1.0, array.dtype.bits / width)) if step in (-1, 0, 1) else (20.0, float(lanes))
    if op == "table":
        return 20.0, float(lanes)
    of = instr.args[0].type if instr.args and instr.type is not None and instr.type.bits == 1 else instr.type
    registers = 1.0 if of is None or of.bits == 1 else max(1.0, of.bits / width)
    name = str(instr.attr) if op == "math" else op
    if name in _DIVISIONS:
        latency, time = _DIVISIONS[name]
        return latency, time * registers
    if op in _LATENCY:
        return _LATENCY[op], 0.5 * registers
    if op in _COMPARE:
        return 4.0, 0.5 * registers
    if op == "mul" and of is not None and of.is_int:
        return 4.0, registers
    return (1.0 if of is not None and (of.is_int or of.bits == 1) and op != "cast" else 4.0), 0.5 * registers
