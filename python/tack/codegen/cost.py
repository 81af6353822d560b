"""A coarse model of what code costs: how many lanes pay, and how long an iteration takes."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace

from ..ir.nodes import Array, ArrayParam, Block, For, If, Instr, Scope, ScratchArray, While
from .affine import access, constant, indices_of
from .collapse import collapsible
from .lane_loops import Candidate, LaneLoop, Parts, SharedLocal, bounds_of, candidates, convert, share_locals
from .latency import registers_each
from .llvm_atomics import one_element
from .llvm_rows import row_lengths, whole_rows
from .llvm_strides import is_short_step, picks_elements
from .llvm_tables import private_arrays, used_values
from .lower import copy_block
from .params import EntryPlan
from .pieces import is_large
from .tiles import MOVES, find_tiles, tiled_accesses
from .uniform import Flow, analyse
from .walk import Walk, instructions, nodes, run

__all__ = ["MOST_LANES", "choose_lanes", "collapse_flow", "flow_of", "iteration_ns", "locked_cost", "share_rounds", "size_of"]

MOST_LANES = 64
_LOCAL_BYTES = 1 << 16  # local arrays of all lanes together
_ROUNDS = 8  # assumed of a loop whose count is not known
_MANY_ROUNDS = 64  # of one between arguments and lengths, where loops are compared with what is around them
_SLOW = {"div": 4.0, "sqrt": 6.0, "quot": 8.0, "rem": 8.0, "frem": 20.0, "call": 30.0, "freeze": 0.0}
_NS = 0.25  # of a simple scalar operation
_NS_PER_BYTE = 0.06  # of memory, streamed
_ATOMIC, _LOCKED = 4.0, 24.0  # in simple operations: by a launch that is alone, as those of one thread mostly are, and beside others
_PRIVATE, _PRIVATE_LANE = 4.0, 2.0  # of an atomic that a table replaces: among other scalar code, and of one lane
_TURN = 8.0  # of a lane that takes its turn at an atomic
_FOLDED_LANE = 6.0  # of an atomic with one element for all lanes: floats are added in turn
_GATHER, _SCATTER = 5.0, 6.0  # of one lane; what a scalar load or store costs is 1
_WOVEN = 4.0  # of one column where whole rows are stored
_SHORT_GATHER = 7.0  # of elements that there is no instruction for, beside ones that there is
_SLOW_GATHER = 10.0  # without AVX-512, but in code that lanes leave one by one, where plain code mispredicts its branches
_MASKED_LANE = 4.0  # of one lane of a masked store
_CHAIN = 2.0  # of one lane
_CLEARLY = 0.8  # of the time of another way, from which on lanes share inner loops: what is known of these is coarse
_APART, _ASTRAY = 1.5, 3.0  # how many rounds lanes take over those of one, where they leave a loop one by one; by what memory tells
_COLUMNS = 4  # assumed of a short dimension whose length is not known


@dataclass(slots=True)
class _Tally:
    """Costs of an iteration in simple operations: with one lane, and with many (per iteration). ``by_bits``: weight by width.
    ``private``: arrays that have tables; ``used``: instructions whose values something reads."""

    private: Container[Array] = ()
    used: set[Instr] = field(default_factory=set)
    rows: dict[ArrayParam, int] = field(default_factory=dict)  # of arrays whose columns are picked from whole rows
    whole: Container[Instr] = ()  # stores that belong to whole rows
    tiled: set[Instr] = field(default_factory=set)  # accesses that are moved by tiles
    often: float = _ROUNDS  # rounds of a loop between arguments and lengths
    scalar: float = 0.0
    vector: float = 0.0
    atomics: float = 0.0  # how many, without those that tables replace
    by_bits: dict[int, float] = field(default_factory=dict)


def size_of(entry: EntryPlan) -> int:
    """Instructions and structured nodes of the body."""
    return sum(1 for _ in nodes(entry.body))


def local_arrays(entry: EntryPlan) -> list[ScratchArray | SharedLocal]:
    """In order of appearance."""
    found: dict[ScratchArray | SharedLocal, None] = {}
    for instr in instructions(entry.body):
        array: object = instr.attr[1] if instr.op == "atomic" and isinstance(instr.attr, tuple) else instr.attr
        if isinstance(array, ScratchArray | SharedLocal):
            found[array] = None
    return list(found)


def local_bytes(entry: EntryPlan) -> int:
    """Of one lane."""
    total = 0
    for array in local_arrays(entry):
        size = array.dtype.itemsize
        for n in array.shape:
            size *= n
        total += size
    return total


def flow_of(entry: EntryPlan, lanes: int) -> Flow:
    """What differs between so many lanes along the last dimension, or in the loops that they share."""
    if entry.by_rounds:
        return analyse(entry.prologue, entry.body, lanes, entry.rank, 0, set())
    root = {r.var for r in entry.reductions}
    return analyse(entry.prologue, entry.body, lanes, entry.rank, entry.step[-1] if entry.step else None, root)


def choose_lanes(entry: EntryPlan, vector_bits: int, wanted: int) -> int:
    """How many iterations the code runs at a time. ``wanted``: what the user asked for, 0 for the model's choice."""
    if entry.single or any(i.op == "record" for i in instructions(entry.body)):
        return 1  # the prints of an iteration follow each other
    collapses = collapse_flow(entry, max(2, vector_bits // 32), vector_bits) is not None
    most = MOST_LANES
    while most > 1 and local_bytes(entry) * most > _LOCAL_BYTES and not entry.by_rounds:
        most //= 2
    while entry.columns is not None and most > 1 and most >= 2 * entry.columns and not collapses and not entry.by_rounds:
        most //= 2  # lanes share a row
    if wanted > 0:
        lanes = 1
        while lanes * 2 <= min(wanted, most):
            lanes *= 2
        return lanes
    if vector_bits < 128:
        return 1
    usual = max(2, vector_bits // 32)
    flow = flow_of(entry, usual)
    tally = _tally(entry, usual, vector_bits, flow, _ROUNDS)
    total = sum(tally.by_bits.values())
    if not total:
        return min(usual, most)
    mean = sum(bits * weight for bits, weight in tally.by_bits.items()) / total
    width = 8
    while width < 64 and mean > 1.375 * width:
        width *= 2
    if tally.vector >= 0.9 * tally.scalar and not entry.by_rounds:
        return 1
    lanes = max(2, vector_bits // width)
    return min(lanes * registers_each(entry.body, flow, lanes, width, vector_bits), most)


def _tally(entry: EntryPlan, lanes: int, vector_bits: int, flow: Flow | None = None, often: float = _MANY_ROUNDS) -> _Tally:
    flow = flow or flow_of(entry, lanes)
    used = used_values(entry.prologue, entry.body)
    private = private_arrays(entry, flow, used)
    tiled = tiled_accesses(find_tiles(entry, flow, vector_bits).values())
    rows = row_lengths(instructions(entry.body), flow)
    tally = _Tally({p.array for p in private}, used, rows, whole_rows(entry.body, flow, rows), tiled, often)
    run(_weigh(entry.body, flow, 1.0, lanes if entry.by_rounds else 1.0, vector_bits, tally))
    return tally


def share_rounds(entry: EntryPlan, vector_bits: int, wanted: int) -> None:
    """Lets lanes share the rounds of inner loops instead of the iterations, where that is clearly faster. Changes the entry."""
    body, found = _candidates(entry)
    if not found or is_large(entry.prologue, entry.body):
        return
    lanes = wanted or max(2, vector_bits // 32)
    plain = _tally(entry, lanes, vector_bits)
    costs: dict[int, float] = {}
    for k in range(len(found)):
        trial, again = _candidates(entry)
        convert([again[k]])
        costs[k] = _tally(replace(entry, body=trial, plain=entry.body), lanes, vector_bits).vector
    chosen: list[Candidate] = []
    for k in sorted(costs, key=lambda k: costs[k]):
        loop = found[k].loop
        nested = any(n is loop for c in chosen for n in nodes(c.loop.body)) or any(c.loop is n for c in chosen for n in nodes(loop.body))
        if costs[k] < plain.scalar and not nested:
            chosen.append(found[k])
    convert(chosen)
    shared = replace(entry, body=body, plain=entry.body)
    if chosen and _tally(shared, lanes, vector_bits).vector < _CLEARLY * min(plain.scalar, plain.vector):
        entry.body, entry.plain = shared.body, shared.plain


def _candidates(entry: EntryPlan) -> tuple[Block, list[Candidate]]:
    """A copy of the body, and the loops in it that lanes could share."""
    if not candidates(entry):
        return entry.body, []
    body = run(copy_block(entry.body, {i: i for i in instructions(entry.prologue)}, {}))
    share_locals(body)
    return body, candidates(replace(entry, body=body))


def collapse_flow(entry: EntryPlan, lanes: int, vector_bits: int) -> Flow | None:
    """What differs between lanes that run over the two innermost dimensions as one, if the entry gets such a loop."""
    if lanes == 1 or entry.by_rounds or not collapsible(entry, lanes):
        return None
    flows = [analyse(entry.prologue, entry.body, lanes, entry.rank, s, set(), s is None) for s in (1, None)]
    tallies = [_Tally(), _Tally()]
    for flow, tally in zip(flows, tallies, strict=True):
        run(_weigh(entry.body, flow, 1.0, 1.0, max(vector_bits, 128), tally))
    # Taken row by row, a short row costs what a vector of iterations costs.
    return flows[1] if tallies[1].vector * (entry.columns or _COLUMNS) < tallies[0].vector * lanes else None


def _weigh(block: Block, flow: Flow, rounds: float, idle: float, vector_bits: int, tally: _Tally) -> Walk[None]:
    """``rounds``: how often the block is run; ``idle``: how many times more than that by lanes, since some are off."""
    for node in block.body:
        if isinstance(node, Instr):
            _weigh_one(node, flow, rounds, idle, vector_bits, tally)
        elif isinstance(node, If):
            inner = min(2.0 * idle, flow.lanes) if node in flow.divergent else idle  # at worst, lanes take turns
            yield _weigh(node.then, flow, rounds * 0.5, inner, vector_bits, tally)
            yield _weigh(node.orelse, flow, rounds * 0.5, inner, vector_bits, tally)
        elif isinstance(node, Scope | Parts):
            yield _weigh(node.body, flow, rounds, idle, vector_bits, tally)
        elif isinstance(node, LaneLoop):
            yield _weigh(node.body, flow, rounds * _often(node, tally), idle / _shared(node, flow.lanes), vector_bits, tally)
        elif isinstance(node, For | While):
            inner = min((_ASTRAY if _asks_memory(node) else _APART) * idle, flow.lanes) if node in flow.divergent else idle
            often = rounds * _often(node, tally)
            if isinstance(node, While):
                yield _weigh(node.test, flow, often, inner, vector_bits, tally)
            yield _weigh(node.body, flow, often, inner, vector_bits, tally)
            yield _weigh(node.orelse, flow, rounds, idle, vector_bits, tally)


def _asks_memory(loop: For | While) -> bool:
    """Whether a loop ends by what it finds in an array, such as a place in a hash table: lanes then leave it at any time."""
    return isinstance(loop, While) and any(i.op in ("load", "load_flat") for i in instructions(loop.test))


def _often(loop: For | While, tally: _Tally) -> float:
    return tally.often if isinstance(loop, For) and all(_known_before(b) for b in bounds_of(loop)) else _ROUNDS


def _shared(loop: LaneLoop, lanes: int) -> float:
    """How many rounds of a loop lanes run together."""
    bounds = bounds_of(loop)
    start, stop = (constant(b) for b in bounds)
    if start is not None and stop is not None:
        count = max(1, stop - start)
        return count / -(-count // lanes)
    # Between numbers from memory (the rows of a sparse matrix, neighbours in a list) there are few.
    return lanes if all(_known_before(b) for b in bounds) else min(lanes, _ROUNDS / 2)


def _known_before(bound: Instr) -> bool:
    """Whether a loop's bound comes from arguments, lengths and counters alone."""
    work, seen = [bound], set[Instr]()
    while work:
        value = work.pop()
        if value.op in ("load", "load_flat", "atomic", "table"):
            return False
        work += [a for a in value.args if a not in seen]
        seen.update(value.args)
    return True


def _weigh_one(instr: Instr, flow: Flow, rounds: float, idle: float, vector_bits: int, tally: _Tally) -> None:
    if instr.op in ("const", "arg", "shape", "get", "set", "index", "check", "check_index"):
        return
    lanes = flow.lanes
    if instr.op == "chain":
        tally.vector += _CHAIN * rounds * idle
        return
    if instr.op in ("load", "load_flat", "store", "store_flat", "atomic"):
        array, _ = indices_of(instr)
        bits = array.dtype.bits
        step = access(instr, flow.form, flow.pair).step
        if instr.op == "atomic":
            tally.scalar += (_PRIVATE if array in tally.private else _ATOMIC) * rounds
            if array in tally.private:
                tally.vector += _PRIVATE_LANE * rounds
                return
            tally.atomics += rounds
            if one_element(instr, flow, tally.used):
                tally.vector += (_ATOMIC / lanes + _FOLDED_LANE) * rounds
                tally.by_bits[bits] = tally.by_bits.get(bits, 0.0) + rounds
            else:
                tally.vector += (_ATOMIC + _TURN) * rounds
            return
        tally.scalar += rounds
        if step == 0 and not isinstance(array, ScratchArray):
            tally.vector += rounds * idle / lanes
            return
        tally.by_bits[bits] = tally.by_bits.get(bits, 0.0) + rounds
        if instr in tally.tiled:
            tally.vector += rounds * idle * MOVES * max(1.0, lanes * bits / vector_bits) / lanes
        elif step in (-1, 1) and idle > 1.0 and instr.op in ("store", "store_flat") and vector_bits < (512 if bits < 32 else 256):
            tally.vector += rounds * _MASKED_LANE  # no such instruction: lane by lane, with branches
        elif step in (-1, 0, 1):
            tally.vector += rounds * idle * max(1.0, lanes * bits / vector_bits) / lanes
        elif is_short_step(step) and (picks_elements(vector_bits) or (idle == 1.0 and instr.op in ("load", "load_flat"))):
            assert step is not None
            tally.vector += rounds * idle * (2.0 * abs(step) - 1.0) * max(1.0, lanes * bits / vector_bits) / lanes
        elif instr in tally.whole:
            tally.vector += rounds * idle * _WOVEN * max(1.0, lanes * bits / vector_bits) / lanes
        elif array in tally.rows and (instr.op == "load" or vector_bits >= 512):
            tally.vector += rounds * idle * (2.0 * tally.rows[array] + 1.0) * max(1.0, lanes * bits / vector_bits) / lanes
        else:
            gather = _SLOW_GATHER if vector_bits < 512 and idle == 1.0 else _GATHER if bits >= 32 or idle > 1.0 else _SHORT_GATHER
            tally.vector += rounds * (gather if instr.op in ("load", "load_flat") else _SCATTER)
        return
    weight = _SLOW.get(str(instr.attr) if instr.op == "math" else instr.op, 1.0)
    if not _changes_width(instr):  # of integers: an address or a load does that for nothing
        tally.scalar += weight * rounds
    if flow.form(instr) is not None:
        tally.vector += weight * rounds * idle / lanes
        return
    bits = instr.type.bits if instr.type is not None else 32
    if instr.op in ("quot", "rem") and (bits <= 32 or vector_bits >= 512):  # through f64, at least while numbers are small
        part = 0.6 if bits > 32 else 0.1 if vector_bits >= 512 else 0.3 if vector_bits >= 256 else 0.5
        tally.vector += part * weight * rounds * idle
    elif instr.op in ("quot", "rem", "frem"):
        tally.vector += (1.3 if vector_bits >= 256 else 2.5) * weight * rounds  # lane by lane
    else:
        if bits == 64 and vector_bits < 512 and instr.op == "mul" and instr.type is not None and instr.type.is_int:
            weight *= 4.0  # only AVX-512 has an instruction for it
        tally.vector += weight * rounds * idle * max(1.0, lanes * bits / vector_bits) / lanes
    if bits > 1:
        tally.by_bits[bits] = tally.by_bits.get(bits, 0.0) + rounds


def locked_cost(entry: EntryPlan) -> float:
    """How many times as long an iteration takes where other threads run the same."""
    tally = _tally(entry, 1, 128)
    return 1.0 + tally.atomics * (_LOCKED - _ATOMIC) / max(1.0, tally.scalar)


def _changes_width(instr: Instr) -> bool:
    of = instr.args[0].type if instr.op == "cast" else None
    return of is not None and of.is_int and instr.type is not None and instr.type.is_int


def iteration_ns(entry: EntryPlan, flow: Flow, private: Container[Array] = ()) -> float:
    """A generous estimate of an iteration's time; negative where loops have no known count. ``private``: arrays that have tables."""
    if entry.by_rounds:
        return -1.0
    total = 0.0
    stack: list[tuple[Block, float]] = [(entry.body, 1.0)]
    while stack:
        block, rounds = stack.pop()
        for node in block.body:
            if isinstance(node, Instr):
                total += rounds * _ns(node, flow, private)
            elif isinstance(node, If):
                stack += [(node.then, rounds), (node.orelse, rounds)]
            elif isinstance(node, Scope):
                stack.append((node.body, rounds))
            elif isinstance(node, For):
                start, stop, step = constant(node.start), constant(node.stop), constant(node.step)
                if start is None or stop is None or not step:
                    return -1.0
                stack += [(node.body, rounds * len(range(start, stop, step))), (node.orelse, rounds)]
            elif isinstance(node, While):
                return -1.0
    return max(total, _NS / flow.lanes)


def _ns(instr: Instr, flow: Flow, private: Container[Array]) -> float:
    if instr.op in ("const", "arg", "shape", "get", "set", "index", "sequence"):
        return 0.0
    if instr.op == "atomic":
        return (_PRIVATE if indices_of(instr)[0] in private else _LOCKED) * _NS
    if instr.op in ("load", "load_flat", "store", "store_flat"):
        array, _ = indices_of(instr)
        if isinstance(array, ScratchArray):
            return _NS
        step = access(instr, flow.form).step
        if flow.lanes > 1 and step is None:
            return _GATHER * _NS
        return array.dtype.itemsize * _NS_PER_BYTE if step != 0 or flow.lanes == 1 else _NS / flow.lanes
    return _SLOW.get(str(instr.attr) if instr.op == "math" else instr.op, 1.0) * _NS / flow.lanes
