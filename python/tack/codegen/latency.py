"""How many registers a value should take: one, or more where results come too late for the next instruction that needs them.

A processor hides latency by overlapping independent work: of the next rounds of a loop unless each waits for the one before, of the next
group of lanes as far ahead as it can look. Where neither is enough, the lanes of two or four registers make the work for each other.
Figures are cycles of current x86 cores with 512-bit registers, of the hottest straight piece of the code.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir.nodes import Block, For, If, Instr, Scope, Var, While
from ..types import DType
from .affine import access, indices_of
from .machine import Machine, by_few_bits, register_work, scalar_work, steps_between, widens_mask
from .uniform import Flow
from .walk import Walk, blocks_of, nodes, run

__all__ = ["chains_of", "registers_each"]

_AHEAD = 320  # instructions that are looked at together
_MOST = 4
_WORTH = 0.7  # of a register's work that the latency is, from which on another register gains: loops have overhead too
_SELDOM = 0.25  # how often lanes take a branch that differs between them
_EXIT = 1.5  # where lanes leave a loop one by one, its mispredicted end and the rounds with few lanes count for as much again
_DIVISIONS = {"div": (13.0, 10.0), "sqrt": (19.0, 12.0), "quot": (40.0, 30.0), "rem": (45.0, 32.0), "frem": (60.0, 60.0)}  # latency, time
_PLAIN = {"load": 5.0, "load_flat": 5.0, "table": 5.0, "div": 12.0, "sqrt": 16.0, "quot": 15.0, "rem": 15.0, "frem": 40.0}  # of one value
_LATENCY = {"select": 1.0, "min": 2.0, "max": 2.0, "set": 0.0, "get": 0.0, "freeze": 0.0, "bitcast": 0.0, "call": 60.0}
_CROSSING = (
    2.0,
    6.0,
    3.0,
    2.0,
)  # to values of twice or half the bits, with SSE4.2, AVX2 (whose registers are two halves), AVX-512 and NEON
_UNIT = 0.33  # of an operation on integers, for which there are three units where registers have at most 256 bits
_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
_BLEND = 1.0
_FREE = ("const", "arg", "shape", "index", "get", "set", "freeze", "bitcast", "check", "check_index")
_NUMBER_REGISTERS = {512: 36, 256: 20, 128: 16}  # some operands stay in memory


@dataclass(slots=True)
class _Ready:
    """When a value is there: after the start of the round, and after each of the variables that the round was handed."""

    at: float = 0.0
    since: dict[Var, float] = field(default_factory=dict)

    def later(self, cycles: float) -> _Ready:
        return _Ready(self.at + cycles, {v: far + cycles for v, far in self.since.items()})


def _last(values: list[_Ready]) -> _Ready:
    since: dict[Var, float] = {}
    for value in values:
        for var, far in value.since.items():
            since[var] = max(since.get(var, 0.0), far)
    return _Ready(max((v.at for v in values), default=0.0), since)


@dataclass(slots=True)
class _Piece:
    """A loop's rounds or the whole body: ``path`` is the longest way through it."""

    machine: Machine
    plain: bool = False  # one lane
    work: float = 0.0
    divisions: float = 0.0
    count: int = 0
    path: float = 0.0
    values: dict[Instr, _Ready] = field(default_factory=dict)
    variables: dict[Var, _Ready] = field(default_factory=dict)

    def longest(self) -> float:
        """The longest way from one round to the next: from a variable to itself, or to another one and back in two rounds."""
        ways = {(a, b): far for b, value in self.variables.items() for a, far in value.since.items() if a in self.variables}
        return max((far if a is b else (far + ways.get((b, a), -far)) / 2 for (a, b), far in ways.items()), default=0.0)


def registers_each(body: Block, flow: Flow, lanes: int, width: int, machine: Machine) -> int:
    """1, 2 or 4. ``lanes`` fill one register with values of ``width`` bits."""
    loop = _hottest(body)
    blocks = (body,) if loop is None else (loop.test, loop.body) if isinstance(loop, While) else (loop.body,)
    piece = _Piece(machine)
    for block in blocks:
        if not run(_walk(block, flow, lanes, width, piece, 1.0)):
            return 1
    work = max(piece.work, piece.divisions)
    if work <= 0:
        return 1
    chain = 0.0 if loop is None else piece.longest()
    need = chain / work * (_EXIT if loop in flow.divergent else 1.0)
    overlap = _AHEAD / max(1, piece.count)
    if overlap < piece.path / work:
        need = max(need, piece.path / work)
    room = _NUMBER_REGISTERS.get(machine.bits, 14) // max(1, _live(blocks, flow))
    wanted = 1
    while wanted < _MOST and need > _WORTH * wanted and 2 * wanted <= room:
        wanted *= 2
    return wanted


def chains_of(loop: For | While, flow: Flow, machine: Machine) -> tuple[float, float]:
    """Cycles from one round of an innermost loop to the next, by what rounds hand on, in plain code and with lanes; 0 for other loops.
    Plain code predicts its branches: what is computed to decide them, nothing waits for."""
    blocks = (loop.test, loop.body) if isinstance(loop, While) else (loop.body,)
    found: list[float] = []
    for plain in (True, False):
        piece = _Piece(machine, plain)
        for block in blocks:
            if not run(_walk(block, flow, flow.lanes, 32, piece, 1.0)):
                return 0.0, 0.0
        found.append(piece.longest())
    return found[0], found[1]


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


def _walk(block: Block, flow: Flow, lanes: int, width: int, piece: _Piece, often: float, mask: _Ready | None = None) -> Walk[bool]:
    """False for what does not fit the model. ``often``: how much of the work is done, of a branch less than all. ``mask``: what lanes wait
    for to keep a variable's value."""
    for node in block.body:
        if isinstance(node, Instr):
            if not _one(node, flow, lanes, width, piece, often, mask):
                return False
        elif isinstance(node, If | Scope):
            inside, on = often, mask
            if node in flow.divergent:
                inside *= _SELDOM
            if isinstance(node, If) and node in flow.divergent and not piece.plain:
                on = _last([v for v in (mask, piece.values.get(node.cond)) if v is not None])
            for inner in blocks_of(node):
                if not (yield _walk(inner, flow, lanes, width, piece, inside, on)):
                    return False
        elif isinstance(node, For | While):
            return False
    return True


def _one(instr: Instr, flow: Flow, lanes: int, width: int, piece: _Piece, often: float, mask: _Ready | None) -> bool:
    """Adds an instruction; False for what lanes do by turns."""
    if instr.op == "atomic":
        return False
    if instr.op == "get":
        assert isinstance(instr.attr, Var)
        piece.values[instr] = piece.variables.get(instr.attr, _Ready(since={instr.attr: 0.0}))
        return True
    ready = _last([piece.values[a] for a in instr.args if a in piece.values])
    if instr.op == "set":
        assert isinstance(instr.attr, Var)
        if instr in flow.masked and not piece.plain:
            old = piece.variables.get(instr.attr, _Ready(since={instr.attr: 0.0}))
            ready = _last([ready, old, *([mask] if mask is not None else [])]).later(_BLEND)
        piece.variables[instr.attr] = ready
        return True
    latency, time = max(_plain_latency(instr), 2.0 * scalar_work(instr, piece.machine, 0.0)), 1.0
    if not piece.plain:
        latency, time = _cost(instr, flow, lanes, width, piece.machine)
    if flow.uniform(instr):
        latency = latency if piece.plain else 0.0
    elif instr.op not in _FREE:
        name = str(instr.attr) if instr.op == "math" else instr.op
        if name in _DIVISIONS:
            piece.divisions += often * time
        else:
            piece.work += often * time
        piece.count += 1
    piece.values[instr] = ready.later(latency)
    piece.path = max(piece.path, piece.values[instr].at)
    return True


def _plain_latency(instr: Instr) -> float:
    name = str(instr.attr) if instr.op == "math" else instr.op
    if name in ("quot", "rem") and instr.args[1].op == "const":
        return 5.0  # a product
    if name in _PLAIN:
        return _PLAIN[name]
    if instr.op in _FREE or instr.op in _LATENCY:
        return _LATENCY.get(instr.op, 0.0)
    of = instr.args[0].type if instr.args else instr.type
    if of is None or instr.type is None:
        return 1.0
    if instr.op == "cast" and of.is_int and instr.type.is_int:
        return 0.0  # part of the next instruction
    return 4.0 if of.is_float or instr.type.is_float else 3.0 if instr.op == "mul" and not by_few_bits(instr) else 1.0


def _cost(instr: Instr, flow: Flow, lanes: int, width: int, machine: Machine) -> tuple[float, float]:
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
    work = register_work(instr, flow, machine)
    is_float = of is not None and of.is_float
    time = (0.5 if is_float or machine.bits >= 512 else _UNIT) * work * registers
    return max(_latency(instr, of, machine), work if work > 2.0 else 0.0), time


def _latency(instr: Instr, of: DType | None, machine: Machine) -> float:
    op = instr.op
    if op == "select" and widens_mask(instr):
        return _CROSSING[machine.level] * steps_between(instr.args[0].args[0], instr) + 1.0
    if op in _LATENCY:
        return _LATENCY[op]
    if op in _COMPARE:
        return 4.0 if machine.bits >= 512 or (of is not None and of.is_float) else 1.0
    if op == "cast" and of is not None and of.is_int and instr.args[0].type is not None and instr.args[0].type.is_int:
        return _CROSSING[machine.level] / 2.0 * steps_between(instr.args[0], instr)
    if op == "mul" and of is not None and of.is_int:
        return 4.0
    return 1.0 if of is not None and (of.is_int or of.bits == 1) and op != "cast" else 4.0
