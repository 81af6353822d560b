"""A coarse model of what code costs: how many lanes pay, and how long an iteration takes."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace

from ..ir.nodes import Array, ArrayParam, Block, For, If, Instr, Scope, ScratchArray, While
from .affine import access, constant, indices_of
from .collapse import collapsible
from .lane_loops import Candidate, LaneLoop, Parts, SharedLocal, bounds_of, candidates, convert, share_locals
from .latency import chains_of, registers_each
from .llvm_atomics import one_element
from .llvm_rows import row_lengths, whole_rows
from .llvm_strides import is_short_step, picks_elements
from .llvm_tables import private_arrays, used_values
from .lower import copy_block
from .machine import SSE4, Machine, branch_work, masks_neighbours, operand_bits, register_work, round_work, scalar_work, select_work
from .params import EntryPlan
from .pieces import is_large
from .plain_code import arrays_written, counts_bits, is_rare, steady_loads
from .tiles import MOVES, find_tiles, tiled_accesses
from .uniform import Flow, analyse
from .walk import Walk, instructions, nodes, run

__all__ = ["MOST_LANES", "choose_lanes", "collapse_flow", "flow_of", "iteration_ns", "locked_cost", "share_rounds", "size_of"]

MOST_LANES = 64
_LOCAL_BYTES = 1 << 16  # local arrays of all lanes together
_ROUNDS = 8  # assumed of a loop whose count is not known
_MANY_ROUNDS = 64  # of one between arguments and lengths, where loops are compared with what is around them
_SLOW = {"div": 4.0, "sqrt": 6.0, "quot": 8.0, "rem": 8.0, "frem": 20.0, "call": 30.0, "freeze": 0.0}
_AT_ONCE = 4.0  # simple operations of a cycle
_NS = 0.25  # of a simple scalar operation
_NS_PER_BYTE = 0.06  # of memory, streamed
_ATOMIC, _LOCKED = 4.0, 24.0  # in simple operations: by a launch that is alone, as those of one thread mostly are, and beside others
_PRIVATE, _PRIVATE_LANE = 4.0, 2.0  # of an atomic that a table replaces: among other scalar code, and of one lane
_TURN = 12.0  # of a lane that takes its turn at an atomic
_FOLDED_LANE = 6.0  # of an atomic with one element for all lanes: floats are added in turn
_GATHER, _SCATTER = 5.0, 8.0  # of one lane, with AVX-512; what a scalar load or store costs is 1
_WOVEN = 4.0  # of one column where whole rows are stored
_SHORT_GATHER = 7.0  # of elements that there is no instruction for, beside ones that there is
_LOCAL = 2.5  # times as much for elements of local arrays: what lanes stored one by one is not there yet when they load it again
_SLOW_GATHER, _SLOW_SCATTER = 6.0, 5.0  # without
_MASKED_GATHER, _MASKED_LANE = 5.0, 2.5  # likewise, of one lane that may be off, the latter of neighbours
_STEADY = 0.5  # of a value that is the same for all lanes or steps evenly: plain code hoists it, or has it in an address
_BRANCH = 6.0  # that plain code may mispredict
_RARELY = 0.02
_LONG_DIVISION = 20.0  # of 64 bits by a number that is not constant: a unit does one at a time
_MASKED_MORE = 1.6  # of a gather with AVX-512, at most: lanes that are off take no memory's time, but their share of the instruction
_CHAIN = 2.0  # of one lane
_EXIT = 24.0  # of a loop that ends somewhere else each time, which the processor mispredicts
_GAIN = 0.95  # of the time of plain code, from which on lanes are taken
_CLEARLY = 0.8  # of the time of another way, from which on lanes share inner loops: what is known of these is coarse
_ASTRAY = 3.25  # how many rounds lanes take over those of one, where they leave a loop one by one by what memory tells
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
    written: set[Array] | None = None  # arrays that the body writes, where that is known
    moved: dict[Instr, float] = field(default_factory=dict)  # loads that are done outside of loops, and how often


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


def choose_lanes(entry: EntryPlan, machine: Machine, wanted: int) -> int:
    """How many iterations the code runs at a time. ``wanted``: what the user asked for, 0 for the model's choice."""
    if entry.single or any(i.op == "record" for i in instructions(entry.body)):
        return 1  # the prints of an iteration follow each other
    collapses = collapse_flow(entry, max(2, machine.bits // 32), machine) is not None
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
    if machine.bits < 128:
        return 1
    usual = max(2, machine.bits // 32)
    flow = flow_of(entry, usual)
    tally = _tally(entry, usual, machine, flow, _ROUNDS)
    total = sum(tally.by_bits.values())
    if not total:
        return min(usual, most)
    mean = sum(bits * weight for bits, weight in tally.by_bits.items()) / total
    width = 8
    while width < 64 and mean > 1.375 * width:
        width *= 2
    lanes = max(2, machine.bits // width)
    lanes = min(lanes * registers_each(entry.body, flow, lanes, width, machine), most)
    if lanes != usual and lanes > 1:
        tally = _tally(entry, lanes, machine, None, _ROUNDS)
    return lanes if entry.by_rounds or tally.vector < _GAIN * tally.scalar else 1


def _tally(entry: EntryPlan, lanes: int, machine: Machine, flow: Flow | None = None, often: float = _MANY_ROUNDS) -> _Tally:
    flow = flow or flow_of(entry, lanes)
    used = used_values(entry.prologue, entry.body)
    private = private_arrays(entry, flow, used)
    tiled = tiled_accesses(find_tiles(entry, flow, machine.bits).values())
    rows = row_lengths(instructions(entry.body), flow)
    tally = _Tally({p.array for p in private}, used, rows, whole_rows(entry.body, flow, rows), tiled, often)
    tally.written = arrays_written(entry.body)
    run(_weigh(entry.body, flow, 1.0, lanes if entry.by_rounds else 1.0, machine, tally))
    return tally


def share_rounds(entry: EntryPlan, machine: Machine, wanted: int) -> None:
    """Lets lanes share the rounds of inner loops instead of the iterations, where that is clearly faster. Changes the entry."""
    body, found = _candidates(entry)
    if not found or is_large(entry.prologue, entry.body):
        return
    lanes = wanted or max(2, machine.bits // 32)
    plain = _tally(entry, lanes, machine)
    costs: dict[int, float] = {}
    for k in range(len(found)):
        trial, again = _candidates(entry)
        convert([again[k]])
        costs[k] = _tally(replace(entry, body=trial, plain=entry.body), lanes, machine).vector
    chosen: list[Candidate] = []
    for k in sorted(costs, key=lambda k: costs[k]):
        loop = found[k].loop
        nested = any(n is loop for c in chosen for n in nodes(c.loop.body)) or any(c.loop is n for c in chosen for n in nodes(loop.body))
        if costs[k] < plain.scalar and not nested:
            chosen.append(found[k])
    convert(chosen)
    shared = replace(entry, body=body, plain=entry.body)
    if not chosen:
        return
    tally = _tally(shared, lanes, machine)
    if tally.vector < _CLEARLY * min(plain.scalar, tally.scalar, plain.vector):
        entry.body, entry.plain = shared.body, shared.plain


def _candidates(entry: EntryPlan) -> tuple[Block, list[Candidate]]:
    """A copy of the body, and the loops in it that lanes could share."""
    if not candidates(entry):
        return entry.body, []
    body = run(copy_block(entry.body, {i: i for i in instructions(entry.prologue)}, {}))
    share_locals(body)
    return body, candidates(replace(entry, body=body))


def collapse_flow(entry: EntryPlan, lanes: int, machine: Machine) -> Flow | None:
    """What differs between lanes that run over the two innermost dimensions as one, if the entry gets such a loop."""
    if lanes == 1 or entry.by_rounds or not collapsible(entry, lanes):
        return None
    flows = [analyse(entry.prologue, entry.body, lanes, entry.rank, s, set(), s is None) for s in (1, None)]
    tallies = [_Tally(), _Tally()]
    for flow, tally in zip(flows, tallies, strict=True):
        run(_weigh(entry.body, flow, 1.0, 1.0, machine, tally))
    # Taken row by row, a short row costs what a vector of iterations costs.
    return flows[1] if tallies[1].vector * (entry.columns or _COLUMNS) < tallies[0].vector * lanes else None


def _weigh(block: Block, flow: Flow, rounds: float, idle: float, machine: Machine, tally: _Tally) -> Walk[None]:
    """``rounds``: how often the block is run; ``idle``: how many times more than that by lanes, since some are off."""
    for node in block.body:
        if isinstance(node, Instr):
            _weigh_one(node, flow, rounds, idle, machine, tally)
        elif isinstance(node, If):
            if node in flow.divergent:
                tally.scalar += _BRANCH * rounds
                tally.vector += branch_work(machine) * rounds * idle / flow.lanes
            inner = min(2.0 * idle, flow.lanes) if node in flow.divergent else idle  # at worst, lanes take turns
            rare = is_rare(node.cond)
            share = 0.5 if rare is None else _RARELY if rare else 1.0 - _RARELY
            yield _weigh(node.then, flow, rounds * share, inner, machine, tally)
            yield _weigh(node.orelse, flow, rounds * (1.0 - share), inner, machine, tally)
        elif isinstance(node, Scope | Parts):
            yield _weigh(node.body, flow, rounds, idle, machine, tally)
        elif isinstance(node, LaneLoop):
            if not (_known_before(node.start) and _known_before(node.stop)):
                tally.scalar += _EXIT * rounds
                tally.vector += _EXIT * rounds
            yield _weigh(node.body, flow, rounds * _often(node, tally), idle / _shared(node, flow.lanes), machine, tally)
        elif isinstance(node, For | While):
            waits = _ASTRAY if _asks_memory(node) else _waits(flow.lanes)
            inner = min(waits * idle, flow.lanes) if node in flow.divergent else idle
            often = rounds * _often(node, tally)
            before = tally.scalar, tally.vector
            if node not in flow.divergent and tally.written is not None:
                for load in steady_loads(node, tally.written):
                    tally.moved.setdefault(load, rounds)
            if node in flow.divergent:
                tally.vector += round_work(machine) * often * inner / flow.lanes
            if isinstance(node, While):
                yield _weigh(node.test, flow, often, inner, machine, tally)
            yield _weigh(node.body, flow, often, inner, machine, tally)
            if node in flow.divergent:
                plain, lanes = (cycles * _AT_ONCE * often for cycles in chains_of(node, flow, machine))
                tally.scalar = max(tally.scalar, before[0] + plain)
                tally.vector = max(tally.vector, before[1] + lanes * inner / flow.lanes)
                tally.scalar += _EXIT * rounds
                tally.vector += _EXIT * rounds * idle / flow.lanes
                if counts_bits(node):
                    tally.scalar = before[0] + rounds
            yield _weigh(node.orelse, flow, rounds, idle, machine, tally)


def _waits(lanes: int) -> float:
    """How many rounds the last of the lanes takes for one of the average."""
    return 1.0 + 0.25 * (lanes.bit_length() - 1)


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


def _weigh_one(instr: Instr, flow: Flow, rounds: float, idle: float, machine: Machine, tally: _Tally) -> None:
    if instr.op in ("const", "arg", "shape", "get", "index", "check", "check_index"):
        return
    lanes = flow.lanes
    rounds = tally.moved.get(instr, rounds)
    if instr.op == "set":
        if instr in flow.masked:
            registers = max(1.0, lanes * operand_bits(instr) / machine.bits)
            tally.vector += select_work(machine) * registers * rounds * idle / lanes
        return
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
        registers = max(1.0, lanes * bits / machine.bits)
        if instr in tally.tiled:
            tally.vector += rounds * idle * MOVES * registers / lanes
        elif step in (-1, 1) and idle > 1.0 and not masks_neighbours(machine.bits, bits):
            tally.vector += rounds * idle * _MASKED_LANE  # lane by lane
        elif step in (-1, 0, 1):
            tally.vector += rounds * idle * registers / lanes
        elif is_short_step(step) and (picks_elements(machine.bits) or (idle == 1.0 and instr.op in ("load", "load_flat"))):
            assert step is not None
            tally.vector += rounds * idle * (2.0 * abs(step) - 1.0) * registers / lanes
        elif instr in tally.whole:
            tally.vector += rounds * idle * _WOVEN * registers / lanes
        elif array in tally.rows and (instr.op == "load" or machine.bits >= 512):
            tally.vector += rounds * idle * (2.0 * tally.rows[array] + 1.0) * registers / lanes
        else:
            loads = instr.op in ("load", "load_flat")
            if isinstance(array, ScratchArray):
                rounds *= _LOCAL
            if machine.bits >= 512:
                gather = _GATHER if bits >= 32 or idle > 1.0 else _SHORT_GATHER
                tally.vector += rounds * min(idle, _MASKED_MORE) * (gather if loads else _SCATTER)
            else:
                one = _SLOW_GATHER if loads else _SLOW_SCATTER
                tally.vector += rounds * (one if idle == 1.0 else (_MASKED_GATHER if loads else _MASKED_LANE) * idle)
        return
    weight = _SLOW.get(str(instr.attr) if instr.op == "math" else instr.op, 1.0)
    if instr.op in ("quot", "rem") and instr.args[1].op != "const" and instr.args[1].type == instr.type and operand_bits(instr) == 64:
        weight = _LONG_DIVISION
    plain = scalar_work(instr, machine, weight)
    if not _changes_width(instr):  # of integers: an address or a load does that for nothing
        tally.scalar += plain * rounds * (1.0 if flow.form(instr) is None else _STEADY)
    if flow.form(instr) is not None:
        tally.vector += plain * rounds * idle / lanes
        return
    bits = instr.type.bits if instr.type is not None else 32
    if instr.op in ("quot", "rem") and (bits <= 32 or machine.bits >= 512):  # through f64, at least while numbers are small
        part = 0.6 if bits > 32 else 0.1 if machine.bits >= 512 else 0.3 if machine.bits >= 256 else 0.5
        tally.vector += part * weight * rounds * idle
    elif instr.op in ("quot", "rem", "frem"):
        tally.vector += (1.3 if machine.bits >= 256 else 2.5) * weight * rounds * idle  # lane by lane
    else:
        registers = max(1.0, lanes * max(bits, operand_bits(instr)) / machine.bits)
        tally.vector += weight * register_work(instr, flow, machine) * rounds * idle * registers / lanes
    if bits > 1:
        tally.by_bits[bits] = tally.by_bits.get(bits, 0.0) + rounds


def locked_cost(entry: EntryPlan) -> float:
    """How many times as long an iteration takes where other threads run the same."""
    tally = _tally(entry, 1, Machine(128, SSE4))
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
