"""Inner loops whose rounds may be run by lanes: those that no other round of the same loop can tell the order of.

Kernels are often written as a parallel loop over rows and an inner loop along each. Lanes that take rows then find their elements a row
apart, while the rounds of the inner loop find theirs next to each other. Such a loop becomes a ``LaneLoop``: all of its entry runs one
iteration at a time, and the loop W rounds at a time. What it carries from round to round must be nothing but sums and the like: integers
(and floats, where ``fast_math`` allows that) get a running result for each lane, and the instruction ``fold`` joins these after the loop;
floats are added one after the other, in order, by the instruction ``chain``. So the bits are those of one round at a time.

=======  =====================================================================================================
fold     (value), attr: op; the value's lanes combined, a scalar
chain    (before, operands...), attr: op (add sub mul fma); a scalar that each lane's operands are added to, in order
=======  =====================================================================================================

What a round stores, no other one may touch. That is decided here for one array, by its indices; that two arrays lie apart (or are one and
the same, where that would do) is tested when the code runs (``LaneLoop.pairs``); where it is not so, plain code runs instead.

What all rounds read, one of them may store (``c[i, j] = min(c[i, j], c[i, k] + c[k, j])`` does so where j is k). Then the rounds before
it, it alone, and those after it are three loops, one after the other: one LaneLoop in a loop over ``Parts``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeGuard

from ..ir.arith import identity
from ..ir.nodes import ArrayParam, Block, Break, Continue, For, If, Instr, Leave, LocalArray, Node, Scope, SharedArray, Var, While
from ..types import BOOL, DType, Layout, i64
from .affine import Form, access, constant, indices_of
from .params import EntryPlan
from .walk import EFFECTS, Walk, blocks_of, instructions, nodes, run, variables_set

__all__ = [
    "ArrayPair",
    "Candidate",
    "LaneLoop",
    "Parts",
    "RoundsOfLoop",
    "SharedLocal",
    "bounds_of",
    "candidates",
    "convert",
    "enough_rounds",
    "is_short",
    "neutral_operands",
    "share_locals",
    "stays",
]

_SIZE = 600  # instructions of a body that may get copies
_ROUNDS = 8  # of a loop that is worth it, where they are known
_MOST = 8  # loops that are looked at
_ACCESSES = 64  # of a loop: each store is compared with each of them
_DEPTH = 8  # of an index expression
_FOLDS = {"add": "add", "sub": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "min": "min", "max": "max"}
_INVARIANT = frozenset({"add", "sub", "mul", "neg", "cast", "lshift", "rshift", "and", "or", "xor", "min", "max", "quot", "rem", "select"})
_MEMORY = frozenset({"load", "load_flat", "store", "store_flat"})

ArrayPair = tuple[ArrayParam, ArrayParam, bool]


@dataclass(frozen=True, slots=True)
class SharedLocal(ArrayParam):
    """A local array where all lanes work for one iteration: memory like any other array's."""

    shape: tuple[int, ...] = ()


@dataclass(eq=False, slots=True, repr=False)
class LaneLoop(For):
    """A loop by one from round to round, which lanes share. ``pairs``: arrays whose memory must lie apart; True: or be the same, element by
    element. ``whole``: the bounds of all parts together."""

    pairs: list[ArrayPair] = field(default_factory=list)
    whole: tuple[Instr, Instr] | None = None


@dataclass(eq=False, slots=True, repr=False)
class Parts(For):
    """Runs the parts of a LaneLoop."""


class _Carried:
    """A variable that rounds hand on: how it is combined, where it is set, what computes that, whether lanes have results of their own."""

    def __init__(self, var: Var, op: str, sets: list[Instr], tree: set[Instr], by_lanes: bool) -> None:
        self.var, self.op, self.sets, self.tree, self.by_lanes = var, op, sets, tree, by_lanes


class Candidate:
    """A loop, and the block that it stands in."""

    def __init__(self, block: Block, loop: For, carried: list[_Carried], pairs: list[ArrayPair], rounds: RoundsOfLoop) -> None:
        self.block, self.loop, self.carried, self.pairs, self.rounds = block, loop, carried, pairs, rounds


def candidates(entry: EntryPlan) -> list[Candidate]:
    """The loops of an entry that lanes may share, outer ones first."""
    if entry.single:
        return []
    places: list[tuple[Block, For]] = []
    stack = [entry.body]
    size = 0
    while stack:
        block = stack.pop(0)
        for node in block.body:
            size += 1
            if isinstance(node, Instr):
                if node.op in ("atomic", "check", "check_index", "record") or isinstance(node.attr, SharedArray):
                    return []
            elif isinstance(node, For) and not is_short(node):
                places.append((block, node))
            stack += blocks_of(node)
    if not places or size > _SIZE:
        return []
    reads = _reads(entry.prologue, entry.body)
    written = variables_set(entry.prologue)
    out = []
    for block, loop in places[:_MOST]:
        found = _Loop(block, loop, reads, written, entry.fast).candidate()
        if found is not None:
            out.append(found)
    return out


def bounds_of(loop: For) -> tuple[Instr, Instr]:
    """The start and the stop of a loop, or of all its parts together."""
    return loop.whole if isinstance(loop, LaneLoop) and loop.whole is not None else (loop.start, loop.stop)


def enough_rounds(loops: Iterable[For], form: Callable[[Instr], Form], lanes: int) -> int:
    """From how many rounds on lanes gain: elements that lie apart are gathered one by one even where few lanes are on."""
    apart = any(i.op in _MEMORY and access(i, form).step not in (-1, 0, 1) for loop in loops for i in instructions(loop.body))
    return max(lanes, _ROUNDS) if apart else _ROUNDS


def is_short(loop: For) -> bool:
    """Whether lanes are known to have too little to share."""
    start, stop = constant(loop.start), constant(loop.stop)
    return start is not None and stop is not None and stop - start < _ROUNDS


def _reads(*blocks: Block) -> dict[Var, int]:
    out: dict[Var, int] = {}
    for instr in instructions(*blocks):
        if instr.op == "get":
            assert isinstance(instr.attr, Var)
            out[instr.attr] = out.get(instr.attr, 0) + 1
    return out


class RoundsOfLoop:
    """Which elements the rounds of a loop touch."""

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.inside = set(instructions(loop.body))
        self.changed = variables_set(loop.body)
        self.alone: dict[object, tuple[Instr, int]] = {}  # rounds that others must not run beside: a value, and what is to be added
        self._keys: dict[Instr, object] = {}

    def pairs(self, shared: bool = False) -> list[ArrayPair] | None:
        """The arrays that must lie apart (one with itself: its elements must); None where a round may touch what another one stores.
        ``shared``: lanes share the rounds, so that local arrays are as others, and there may be one round that touches what others store.
        """
        accesses: list[tuple[ArrayParam | LocalArray, Instr]] = []
        for instr in instructions(self.loop.body):
            if instr.op in _MEMORY:
                array, _ = indices_of(instr)
                if not isinstance(array, ArrayParam | LocalArray) or (isinstance(array, LocalArray) and not shared):
                    return None
                accesses.append((array, instr))
            elif instr.op in EFFECTS:
                return None
        stores = [(a, i) for a, i in accesses if i.op in ("store", "store_flat")]
        if len(accesses) > _ACCESSES:
            return None
        pairs: dict[tuple[ArrayParam, ArrayParam], bool] = {}
        for array, store in stores:
            for other, instr in accesses:
                apart = self._apart(store, instr)
                if other is array:
                    if not apart and not (shared and self._meet_once(store, instr)):
                        return None
                    continue
                if not (_is_argument(array) and _is_argument(other)):
                    continue
                key = (array, other) if array.index < other.index else (other, array)
                alike = (array.dtype, array.rank, array.layout) == (other.dtype, other.rank, other.layout)
                pairs[key] = pairs.get(key, True) and apart and alike
        views = dict.fromkeys(a for a, _ in stores if isinstance(a, ArrayParam) and a.layout != Layout.CONTIGUOUS)
        return [*((a, b, same) for (a, b), same in pairs.items()), *((a, a, True) for a in views)]

    def _apart(self, store: Instr, other: Instr) -> bool:
        """Whether accesses of different rounds, to one array, never meet."""
        first, second = indices_of(store)[1], indices_of(other)[1]
        if store.op.endswith("flat") != other.op.endswith("flat") or len(first) != len(second):
            return False
        for a, b in zip(first, second, strict=True):
            x, y = self._linear(a), self._linear(b)
            if x is None or y is None or x[0] != y[0] or x[2] != y[2]:
                continue
            step, difference = x[0], x[1] - y[1]
            if step == 0:
                if difference:
                    return True
            elif difference == 0 or abs(difference) % abs(step):
                return True
        return False

    def _meet_once(self, store: Instr, other: Instr) -> bool:
        """Whether accesses of different rounds, to one array, meet in one round of either's at most, which is noted."""
        first, second = indices_of(store)[1], indices_of(other)[1]
        if store.op.endswith("flat") != other.op.endswith("flat") or len(first) != len(second):
            return False
        for a, b in zip(first, second, strict=True):
            x, y, fixed = self._linear(a), self._linear(b), b
            if x is not None and y is not None and x[0] == 0:
                x, y, fixed = y, x, a
            if x is not None and y is not None and x[0] == 1 and not x[2] and y[0] == 0:
                self.alone[y[1] - x[1], y[2]] = fixed, -x[1]
                return len(self.alone) == 1
        return False

    def outside(self, value: Instr, before: list[Node]) -> Instr:
        """What is the same in all rounds, in front of the loop; adds to ``before`` what computes it there."""
        out: dict[Instr, Instr] = {}
        stack = [(value, False)]
        while stack:
            now, ready = stack.pop()
            if now in out or now not in self.inside:
                continue
            if ready:
                out[now] = Instr(now.op, now.type, tuple(out.get(a, a) for a in now.args), now.attr, now.loc)
            else:
                stack.append((now, True))
                stack += [(a, False) for a in now.args]
        before += out.values()
        return out.get(value, value)

    def _linear(self, index: Instr) -> tuple[int, int, object] | None:
        """An index as a multiple of the loop's variable, a constant, and what is the same in all rounds."""
        step, total = 0, 0
        rest: dict[object, int] = {}
        work = [(index, 1)]
        for _ in range(1 << _DEPTH):
            if not work:
                return step, total, frozenset((k, n) for k, n in rest.items() if n)
            value, factor = work.pop()
            k = constant(value)
            if k is not None:
                total += k * factor
            elif value.op == "get" and value.attr is self.loop.var:
                step += factor
            elif value.op in ("add", "sub") and value.type == i64:
                work += [(value.args[0], factor), (value.args[1], factor if value.op == "add" else -factor)]
            elif value.op == "mul" and value.type == i64 and any(constant(a) is not None for a in value.args):
                known, other = (value.args[0], value.args[1]) if constant(value.args[0]) is not None else (value.args[1], value.args[0])
                work.append((other, factor * (constant(known) or 0)))
            else:
                key = self._key(value, 0)
                if key is None:
                    return None
                rest[key] = rest.get(key, 0) + factor
        return None

    def _key(self, value: Instr, depth: int) -> object:
        """What tells values apart that are the same in all rounds; None for others."""
        if value.op == "const":
            return ("const", value.type, value.attr)
        if value.op == "get":
            return None if value.attr is self.loop.var or value.attr in self.changed else ("get", value.attr)
        if value.op in ("arg", "shape", "index", "sequence"):
            return (value.op, value.attr)
        if value in self._keys:
            return self._keys[value]
        key: object = None
        if value not in self.inside:
            key = value
        elif value.op in _INVARIANT and depth < _DEPTH:
            parts = [self._key(a, depth + 1) for a in value.args]
            if all(p is not None for p in parts):
                key = (value.op, value.type, tuple(parts))
        self._keys[value] = key
        return key

    def along(self, access: Instr) -> bool:
        """Whether rounds go from element to element of a row."""
        *outer, inner = [self._linear(i) for i in indices_of(access)[1]]
        return inner is not None and inner[0] == 1 and all(o is not None and o[0] == 0 for o in outer)


class _Loop(RoundsOfLoop):
    """Looks at one loop."""

    def __init__(self, block: Block, loop: For, reads: dict[Var, int], outer: set[Var], fast: bool) -> None:
        """``reads``: how often the entry reads its variables; ``outer``: those that its prologue sets."""
        RoundsOfLoop.__init__(self, loop)
        self.block, self.reads, self.outer, self.fast = block, reads, outer, fast

    def candidate(self) -> Candidate | None:
        loop = self.loop
        if loop.orelse.body or constant(loop.step) != 1 or loop.var.type != i64 or loop.var in self.changed or loop.var in self.outer:
            return None
        if not run(stays(loop.body, True, frozenset())):
            return None
        inner = _reads(loop.body)
        if inner.get(loop.var, 0) != self.reads.get(loop.var, 0):
            return None
        carried_vars = run(_read_first(loop.body, set()))
        carried: list[_Carried] = []
        for var in dict.fromkeys(i.attr for i in instructions(loop.body) if isinstance(i.attr, Var) and i.attr in self.changed):
            if var in carried_vars or inner.get(var, 0) != self.reads.get(var, 0):
                found = self._carried(var)
                if found is None:
                    return None
                carried.append(found)
        pairs = self.pairs(shared=True)
        return None if pairs is None else Candidate(self.block, loop, carried, pairs, self)

    # ---- what rounds hand on

    def _carried(self, var: Var) -> _Carried | None:
        """A variable that the loop updates by one operation only, and looks at for that alone."""
        t = var.type
        depends: set[Instr] = set()  # on what earlier rounds left
        sets: list[Instr] = []
        for node in nodes(self.loop.body):
            if isinstance(node, For) and (node.var is var or any(v in depends for v in (node.start, node.stop, node.step))):
                return None
            if isinstance(node, If) and node.cond in depends:
                return None
            if not isinstance(node, Instr):
                continue
            if node.op == "get" and node.attr is var:
                depends.add(node)
            elif any(a in depends for a in node.args):
                if (node.op == "set" and node.attr is not var) or node.op in EFFECTS or (node.type != t and node.op != "set"):
                    return None
                if node.op != "set":
                    depends.add(node)
            if node.op == "set" and node.attr is var:
                sets.append(node)
        if any(isinstance(n, While) and n.cond in depends for n in nodes(self.loop.body)):
            return None
        ops: set[str] = set()
        tree: set[Instr] = set()
        for node in sets:
            if not _update(node.args[0], var, depends, tree, ops):
                return None
        used = {a for i in self.inside for a in i.args}
        if {i for i in depends if i.op != "get" or i in used} != tree or len(ops) != 1:
            return None
        (op,) = ops
        if t.is_int or (t.is_float and (self.fast or (op in ("min", "max") and all(_one_zero(v) for v in _combined(tree, op))))):
            return _Carried(var, "add" if op in ("sub", "fma") else op, sets, tree, True)
        if not t.is_float or op not in ("add", "sub", "mul", "fma") or len(sets) != 1 or not self._plain(sets[0]):
            return None
        if sum(i.op == op for i in tree) != 1:
            return None
        return _Carried(var, op, sets, tree, False)

    def _plain(self, node: Instr) -> bool:
        """Whether a round comes by it once at most."""
        stack = [self.loop.body]
        while stack:
            block = stack.pop()
            if node in block.body:
                return True
            stack += [b for n in block.body if isinstance(n, If) for b in blocks_of(n)]
        return False


def _combined(tree: set[Instr], op: str) -> list[Instr]:
    """What is combined with the variable."""
    return [a for i in tree if i.op == op for a in i.args if a not in tree]


def _one_zero(value: Instr) -> bool:
    """Whether a float is never -0, so that its minimum or maximum with others is the same in any order."""
    work = [value]
    while work:
        value = work.pop()
        if value.op == "select":
            work += value.args[1:]
        elif not (
            value.op == "abs"
            or (value.op == "math" and value.attr == "fabs")
            or (value.op == "cast" and value.args[0].type is not None and value.args[0].type.is_int)
            or (value.op == "mul" and value.args[0] is value.args[1])
            or (value.op == "const" and str(value.attr) != "-0.0")
        ):
            return False
    return True


def _update(value: Instr, var: Var, depends: set[Instr], tree: set[Instr], ops: set[str]) -> bool:
    """Whether ``value`` is what ``var`` held, combined with something by operations of one kind (or not, as a select decides)."""
    work = [value]
    while work:
        value = work.pop()
        if value not in depends:
            return False
        tree.add(value)
        held = [a in depends for a in value.args]
        if value.op == "get":
            continue
        if value.op == "select":
            if held != [False, True, True]:
                return False
            work += value.args[1:]
            continue
        if value.op not in (*_FOLDS, "fma") or sum(held) != 1:
            return False
        if (value.op == "sub" and not held[0]) or (value.op == "fma" and not held[2]):
            return False
        ops.add(value.op)
        work.append(value.args[held.index(True)])
    return True


def stays(block: Block, own: bool, scopes: frozenset[Scope], continues: bool = True) -> Walk[bool]:
    """Whether all jumps stay inside of the loop whose body this is. ``own``: break and continue are the loop's. ``continues``: whether it
    may have the latter.
    """
    for node in block.body:
        if isinstance(node, Instr):
            continue
        if own and (isinstance(node, Break) or (isinstance(node, Continue) and not continues)):
            return False
        if isinstance(node, Leave) and node.scope not in scopes:
            return False
        inner = scopes | {node} if isinstance(node, Scope) else scopes
        for b in blocks_of(node):
            # The else of an inner loop jumps for the loop around it.
            if not (yield stays(b, own and not (isinstance(node, For | While) and b is not node.orelse), inner, continues)):
                return False
    return True


def _read_first(block: Block, known: set[Var]) -> Walk[set[Var]]:
    """Variables that a round may read before it sets them. Adds to ``known`` those that are surely set after the block."""
    out: set[Var] = set()
    for node in block.body:
        if isinstance(node, Instr):
            if node.op == "get" and node.attr not in known:
                assert isinstance(node.attr, Var)
                out.add(node.attr)
            elif node.op == "set":
                assert isinstance(node.attr, Var)
                known.add(node.attr)
        elif isinstance(node, If):
            then, orelse = set(known), set(known)
            out |= yield _read_first(node.then, then)
            out |= yield _read_first(node.orelse, orelse)
            known |= then & orelse
        elif isinstance(node, While):
            out |= yield _read_first(node.test, known)
            out |= yield _read_first(node.body, set(known))
            out |= yield _read_first(node.orelse, set(known))
        elif isinstance(node, For):
            out |= yield _read_first(node.body, known | {node.var})
            out |= yield _read_first(node.orelse, set(known))
        elif isinstance(node, Scope):
            leaves = any(isinstance(n, Leave) and n.scope is node for n in nodes(node.body))
            out |= yield _read_first(node.body, set(known) if leaves else known)
    return out


def _is_argument(array: ArrayParam | LocalArray) -> TypeGuard[ArrayParam]:
    return isinstance(array, ArrayParam) and not isinstance(array, SharedLocal)


# ---- the change


def share_locals(body: Block) -> None:
    """Makes local arrays one for all lanes."""
    found: dict[LocalArray, SharedLocal] = {}
    for instr in instructions(body):
        array = instr.attr
        if isinstance(array, LocalArray):
            if array not in found:
                found[array] = SharedLocal(-1 - len(found), array.name, array.dtype, len(array.shape), Layout.CONTIGUOUS, shape=array.shape)
            instr.attr = found[array]


def convert(chosen: Iterable[Candidate]) -> None:
    """Makes the loops LaneLoops. None of them lies in another one."""
    for found in chosen:
        loop = found.loop
        before: list[Node] = []
        after: list[Node] = []
        for carried in found.carried:
            if carried.by_lanes:
                _by_lanes(loop, carried, before, after)
            else:
                _in_order(loop, carried)
        new: For = LaneLoop(loop.var, loop.start, loop.stop, loop.step, loop.body, loop.orelse, loop.loc, found.pairs)
        for value, more in found.rounds.alone.values():
            new = _parts(loop, found.pairs, found.rounds.outside(value, before), more, before)
        at = found.block.body.index(loop)
        found.block.body[at : at + 1] = [*before, new, *after]


def _parts(loop: For, pairs: list[ArrayPair], alone: Instr, more: int, before: list[Node]) -> Parts:
    """The rounds before ``alone`` + ``more``, this one, and those after it. The sum may wrap where that is no round of the loop's."""

    def emit(out: list[Node], op: str, t: DType, *args: Instr, attr: int | Var | None = None) -> Instr:
        out.append(instr := Instr(op, t, args, attr, loop.loc))
        return instr

    one = emit(before, "const", i64, attr=1)
    last = emit(before, "add", i64, alone, emit(before, "const", i64, attr=more))
    first = emit(before, "min", i64, emit(before, "max", i64, last, loop.start), loop.stop)
    next_ = emit(before, "min", i64, emit(before, "add", i64, first, one), loop.stop)
    there = emit(before, "eq", BOOL, first, last)
    second = emit(before, "select", i64, there, next_, first)
    body: list[Node] = []
    part = Var("part", i64)
    now = emit(body, "get", i64, attr=part)
    begins, ends = emit(body, "lt", BOOL, now, one), emit(body, "le", BOOL, now, one)
    low = emit(body, "select", i64, begins, loop.start, emit(body, "select", i64, ends, first, second))
    high = emit(body, "select", i64, begins, first, emit(body, "select", i64, ends, second, loop.stop))
    body.append(LaneLoop(loop.var, low, high, loop.step, loop.body, loop.orelse, loop.loc, pairs, (loop.start, loop.stop)))
    zero, count = emit(before, "const", i64, attr=0), emit(before, "const", i64, attr=3)
    return Parts(part, zero, count, one, Block(body), Block(), loop.loc)


def _by_lanes(loop: For, carried: _Carried, before: list[Node], after: list[Node]) -> None:
    """A variable for the loop alone, whose lanes are folded when it ends."""
    var, t, op = carried.var, carried.var.type, carried.op
    own = Var(var.name, t)
    for instr in instructions(loop.body):
        if instr.attr is var and instr.op in ("get", "set"):
            instr.attr = own
    idle = op in ("min", "max")  # what was there counts as often as one likes
    start = Instr("get", t, (), var, loop.loc) if idle else Instr("const", t, (), identity(op, t), loop.loc)
    before += [start, Instr("set", None, (start,), own, loop.loc)]
    lanes = Instr("get", t, (), own, loop.loc)
    folded = Instr("fold", t, (lanes,), op, loop.loc)
    held = Instr("get", t, (), var, loop.loc)
    total = Instr(op, t, (held, folded), None, loop.loc)
    after += [lanes, folded, held, total, Instr("set", None, (total,), var, loop.loc)]


def _in_order(loop: For, carried: _Carried) -> None:
    """``v = select(c, op(v, e), v)`` becomes a chain of e, or of what changes nothing where c does not hold."""
    (place,) = carried.sets
    value, t = place.args[0], carried.var.type
    conditions: list[tuple[Instr, bool]] = []
    while value.op == "select":
        yes = value.args[1].op != "get"
        conditions.append((value.args[0], yes))
        value = value.args[1 if yes else 2]
    held = next(a for a in value.args if a in carried.tree)
    operands = [a for a in value.args if a is not held]
    new: list[Node] = []
    for cond, yes in conditions:
        for k, idle in enumerate(neutral_operands(carried.op)):
            none = Instr("const", t, (), idle, place.loc)
            operands[k] = Instr("select", t, (cond, operands[k], none) if yes else (cond, none, operands[k]), None, place.loc)
            new += [none, operands[k]]
    chain = Instr("chain", t, (held, *operands), carried.op, place.loc)
    place.args = (chain,)
    gone = carried.tree - {held}
    for block in _blocks(loop.body):
        block.body = [m for n in block.body if n not in gone for m in ((*new, chain, n) if n is place else (n,))]


def neutral_operands(op: str) -> tuple[float, ...]:
    """Operands of an operation of floats that leave every number as it is, zeros' signs included."""
    return {"add": (-0.0,), "sub": (0.0,), "mul": (1.0,), "fma": (-0.0, 1.0)}[op]


def _blocks(block: Block) -> Iterable[Block]:
    stack = [block]
    while stack:
        now = stack.pop()
        yield now
        stack += [b for n in now.body for b in blocks_of(n)]
