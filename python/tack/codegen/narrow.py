"""Takes 64-bit integers that differ between lanes in 32 bits, where that gives the same: twice as many fit a register.

A value of an interval that 32 bits hold is computed in them. So is one of which only the low bits count, since sums, products and the like
of low bits are the low bits of the result: what is stored in a narrower array, and an index, which lies inside its array. Values that are
uniform or affine stay as they are; they cost a scalar. Much depends on numbers that only a launch brings; ``Narrowed.assumptions`` are to
be checked then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..ir.nodes import (
    ArrayParam,
    Block,
    Break,
    Continue,
    For,
    If,
    Instr,
    Leave,
    Node,
    Scope,
    ScratchArray,
    Var,
    While,
)
from ..types import BOOL, DType, i32, i64
from .affine import indices_of
from .params import EntryPlan
from .ranges import Assumption, Interval, Ranges, fits, loop_depth
from .uniform import Flow
from .walk import Walk, nodes, run, variables_set

__all__ = ["Narrowed", "narrow"]

_SIZE = 1200  # instructions of a body that may get another copy
_DEPTH = 4  # of loops
_RING = frozenset({"add", "sub", "mul", "neg", "and", "or", "xor", "not"})  # low bits in, low bits out
_EXACT = frozenset({"quot", "rem", "min", "max", "abs", "rshift"})  # of narrow values, if these are right
# When a comparison of intervals is always true, and when it never is.
_COMPARE: dict[str, tuple[Callable[[Interval, Interval], bool], Callable[[Interval, Interval], bool]]] = {
    "lt": (lambda x, y: x[1] < y[0], lambda x, y: x[0] >= y[1]),
    "le": (lambda x, y: x[1] <= y[0], lambda x, y: x[0] > y[1]),
    "gt": (lambda x, y: x[0] > y[1], lambda x, y: x[1] <= y[0]),
    "ge": (lambda x, y: x[0] >= y[1], lambda x, y: x[1] < y[0]),
    "eq": (lambda x, y: x[0] == x[1] == y[0] == y[1], lambda x, y: x[1] < y[0] or y[1] < x[0]),
    "ne": (lambda x, y: x[1] < y[0] or y[1] < x[0], lambda x, y: x[0] == x[1] == y[0] == y[1]),
}


@dataclass(slots=True)
class Narrowed:
    """The body, and what must hold of a launch for it to be right."""

    body: Block
    assumptions: list[Assumption]


def narrow(entry: EntryPlan, flow: Flow) -> Narrowed | None:
    """None where there is nothing to gain. ``flow``: of the body, with any number of lanes."""
    before = _wide(entry.body, flow)
    if not before or entry.single or entry.reductions or loop_depth(entry.body) > _DEPTH:
        return None
    every = list(nodes(entry.body))
    if len(every) > _SIZE or any(isinstance(n, Instr) and n.op in ("check", "check_index", "record") for n in every):
        return None
    best: Narrowed | None = None
    for assume in (False, True):
        ranges = Ranges(entry.start, entry.step, assume, entry.prologue, entry.body)
        pass_ = _Narrowing(flow, ranges)
        pass_.decide(entry.body, variables_set(entry.prologue))
        after = before - pass_.count
        if after < before:
            best = Narrowed(run(pass_.block(entry.body)), list(ranges.assumptions))
            before = after
        if not before:
            break
    return best


def _costs(instr: Instr) -> bool:
    """Whether a 64-bit value takes work of its own."""
    return instr.type == i64 and instr.op not in ("const", "cast", "get", "freeze")


def _wide(body: Block, flow: Flow) -> int:
    """How many of the values that differ between lanes take 64 bits."""
    return sum(
        1
        for n in nodes(body)
        if isinstance(n, Instr) and ((_costs(n) and flow.form(n) is None) or _converted(n, flow) or _compared(n, flow))
    )


def _converted(instr: Instr, flow: Flow) -> bool:
    """From a 64-bit integer to a float, lane by lane."""
    return instr.op == "cast" and instr.type is not None and instr.type.is_float and instr.args[0].type == i64 and not flow.uniform(instr)


def _compared(instr: Instr, flow: Flow) -> bool:
    return instr.op in _COMPARE and instr.args[0].type == i64 == instr.args[1].type and not flow.uniform(instr)


class _Narrowing:
    def __init__(self, flow: Flow, ranges: Ranges) -> None:
        self.flow, self.ranges = flow, ranges
        self.values: set[Instr] = set()  # that are computed in 32 bits
        self.loops: set[For] = set()  # that count in 32 bits
        self.count = 0
        self._variables: set[Var] = set()
        self._renamed: dict[Var, Var] = {}
        self._now: dict[Instr, Instr] = {}
        self._scopes: dict[Scope, Scope] = {}

    def _fits(self, value: Instr) -> bool:
        return fits(self.ranges.interval(value))

    # ---- which

    def decide(self, body: Block, outer: set[Var]) -> None:
        """``outer``: variables that are set elsewhere too."""
        flow = self.flow
        gets: dict[Var, list[Instr]] = {}
        sets: dict[Var, list[Instr]] = {}
        counters: dict[Var, For] = {}
        every: list[Instr] = []
        for node in nodes(body):
            if isinstance(node, For):
                counters[node.var] = node
            elif isinstance(node, Instr):
                every.append(node)
                if node.op in ("get", "set") and isinstance(node.attr, Var):
                    (gets if node.op == "get" else sets).setdefault(node.attr, []).append(node)
        for var in gets:
            loop = counters.get(var)
            if var.type != i64 or var in outer:
                continue
            if loop is None and var in flow.varying and var in sets:
                self._variables.add(var)
            elif loop is not None and var not in sets and loop in flow.divergent and self._counts_low(loop):
                self._variables.add(var)
                self.loops.add(loop)
        for instr in every:
            if self._can(instr):
                self.values.add(instr)
        self._settle(every, gets)
        self.loops = {loop for loop in self.loops if loop.var in self._variables}
        self.count = sum(1 for i in every if i in self.values and _costs(i))
        self.count += sum(1 for i in every if (_converted(i, flow) or _compared(i, flow)) and all(map(self._at_hand, i.args)))

    def _counts_low(self, loop: For) -> bool:
        return all(self._fits(v) for v in (loop.start, loop.stop, loop.step))

    def _can(self, instr: Instr) -> bool:
        if instr.type != i64 or self.flow.form(instr) is not None:
            return instr.op == "get" and instr.attr in self._variables
        if instr.op == "get":
            return instr.attr in self._variables
        if instr.op in _RING or instr.op in ("select", "freeze"):
            return True
        if instr.op == "lshift":
            k = self.ranges.interval(instr.args[1])
            return k[0] == k[1] and k[0] < 32
        if instr.op == "cast":
            source = instr.args[0].type
            return source is not None and (source == BOOL or source.is_int) and source.bits <= 32
        if instr.op == "rshift":
            k = self.ranges.interval(instr.args[1])
            if k[0] < 0 or k[1] > 31:
                return False
        return instr.op in _EXACT and self._fits(instr) and all(self._fits(a) for a in instr.args)

    def _settle(self, every: list[Instr], gets: dict[Var, list[Instr]]) -> None:
        """Takes out what is needed as it is and does not fit."""
        while True:
            refused: set[Instr] = set()
            for user in every:
                for k, value in enumerate(user.args):
                    if value in self.values and value not in refused and not self._fits(value) and not self._low(user, k):
                        refused.add(value)
            for var in list(self._variables):
                if any(g in refused for g in gets[var]):
                    self._variables.discard(var)
                    refused.update(gets[var])
            if not refused:
                return
            self.values -= refused

    def _low(self, user: Instr, k: int) -> bool:
        """Whether ``user`` looks at the low 32 bits of its argument alone."""
        op = user.op
        if op == "set":
            return user.attr in self._variables
        if user in self.values:
            return op in _RING or op in ("select", "freeze", "lshift")
        if op == "cast":
            return user.type is not None and user.type.is_int and user.type.bits <= 32
        if op in ("load", "store", "atomic"):
            array, indices = indices_of(user)
            first = len(user.args) - len(indices)
            if k < first or not isinstance(array, ArrayParam | ScratchArray):
                return False
            if isinstance(array, ScratchArray):
                return True
            return ("shape", array, k - first) in self.ranges.assumptions or self._ask(array, k - first)
        return False

    def _ask(self, array: ArrayParam, dim: int) -> bool:
        """An index lies inside the array, so that its length bounds it."""
        if not self.ranges.assume:
            return False
        self.ranges.assumptions["shape", array, dim] = None
        return True

    def _at_hand(self, value: Instr) -> bool:
        """Whether 32 bits of it are there, or had for little, and are all of it."""
        return self._fits(value) and (value.op == "const" or value in self.values or self.flow.form(value) is not None)

    # ---- the new body

    def block(self, block: Block) -> Walk[Block]:
        out: list[Node] = []
        for node in block.body:
            if isinstance(node, Instr):
                self._instr(node, out)
            elif isinstance(node, If):
                cond = self._value(node.cond, out)
                then = yield self.block(node.then)
                orelse = yield self.block(node.orelse)
                out.append(If(cond, then, orelse, node.loc))
            elif isinstance(node, For):
                get = self._low_part if node in self.loops else self._value
                bounds = [get(v, out) for v in (node.start, node.stop, node.step)]
                var = self._var(node.var)
                body = yield self.block(node.body)
                orelse = yield self.block(node.orelse)
                out.append(replace(node, var=var, start=bounds[0], stop=bounds[1], step=bounds[2], body=body, orelse=orelse))
            elif isinstance(node, While):
                test = yield self.block(node.test)
                cond = self._value(node.cond, test.body)
                body = yield self.block(node.body)
                orelse = yield self.block(node.orelse)
                out.append(While(test, cond, body, orelse, node.loc))
            elif isinstance(node, Scope):
                scope = self._scopes[node] = Scope(Block(), node.label, node.loc)
                scope.body = yield self.block(node.body)
                out.append(scope)
            elif isinstance(node, Leave):
                out.append(Leave(self._scopes[node.scope], node.loc))
            else:
                out.append(Break(node.loc) if isinstance(node, Break) else Continue(node.loc))
        return Block(out)

    def _var(self, var: Var) -> Var:
        if var not in self._variables:
            return var
        if var not in self._renamed:
            self._renamed[var] = Var(var.name, i32)
        return self._renamed[var]

    def _instr(self, node: Instr, out: list[Node]) -> None:
        if node.op == "get" and isinstance(node.attr, Var):
            var = self._var(node.attr)
            self._now[node] = Instr("get", var.type, (), var, node.loc)
        elif node.op == "set" and isinstance(node.attr, Var):
            low = node.attr in self._variables
            value = (self._low_part if low else self._value)(node.args[0], out)
            out.append(Instr("set", None, (value,), self._var(node.attr), node.loc))
            return
        elif (known := self._known(node)) is not None:
            self._now[node] = Instr("const", BOOL, (), known, node.loc)
        elif node.op == "select" and (kept := self._kept(node)) is not None:
            self._now[node] = self._low_part(kept, out) if node in self.values else self._value(kept, out)
            return
        elif node in self.values:
            if node.op == "cast":
                value = self._value(node.args[0], out)
                self._now[node] = value if value.type == i32 else Instr("cast", i32, (value,), None, node.loc)
                if value.type == i32:
                    return
            else:
                arguments = tuple(self._low_part(a, out) if a.type == i64 else self._value(a, out) for a in node.args)
                if node.op in ("quot", "rem") and arguments[1].op != "const" and self.flow.uniform(node.args[1]):
                    arguments = arguments[0], _divisor(arguments[1], out)
                self._now[node] = Instr(node.op, i32, arguments, node.attr, node.loc)
        elif (_converted(node, self.flow) or _compared(node, self.flow)) and all(map(self._at_hand, node.args)):
            self._now[node] = Instr(node.op, node.type, tuple(self._low_part(a, out) for a in node.args), node.attr, node.loc)
        elif node.op == "cast" and node.args[0] in self.values and node.type is not None and node.type.is_int and node.type.bits <= 32:
            low_part = self._low_part(node.args[0], out)
            self._now[node] = low_part if node.type == i32 else Instr("cast", node.type, (low_part,), None, node.loc)
            if node.type == i32:
                return
        else:
            self._now[node] = Instr(node.op, node.type, tuple(self._value(a, out) for a in node.args), node.attr, node.loc)
        out.append(self._now[node])

    def _known(self, node: Instr) -> bool | None:
        """A comparison's answer, where the intervals tell. They do not of the tests that keep a division from trapping, whose divisor is
        frozen: it is in its interval in lanes that are on alone, and others divide too."""
        if any(a.op == "freeze" for a in node.args):
            return None
        if node.op not in _COMPARE or node.args[0].type != i64 or node.args[1].type != i64:
            return None
        x, y = (self.ranges.interval(a) for a in node.args)
        always, never = _COMPARE[node.op]
        return True if always(x, y) else False if never(x, y) else None

    def _kept(self, node: Instr) -> Instr | None:
        """The operand that a select always takes."""
        cond = self._now.get(node.args[0], node.args[0])
        return node.args[1 if cond.attr else 2] if cond.op == "const" else None

    def _value(self, value: Instr, out: list[Node]) -> Instr:
        """The value in its own type."""
        new = self._now.get(value, value)
        if value in self.values and new.type == i32:
            return _emit(out, "cast", i64, new)
        return new

    def _low_part(self, value: Instr, out: list[Node]) -> Instr:
        """Its low 32 bits."""
        new = self._now.get(value, value)
        if new.type == i32:
            return new
        if new.op == "const" and isinstance(new.attr, int):
            low = ((new.attr - i32.min) % (1 << 32)) + i32.min
            new = Instr("const", i32, (), low)
            out.append(new)
            return new
        return _emit(out, "cast", i32, new)


def _divisor(low: Instr, out: list[Node]) -> Instr:
    """The low part of a divisor that is neither 0 nor -1. Where no lane is on it may be either, and one scalar divides all the same."""
    tests = []
    for k in (0, -1):
        constant_k = Instr("const", i32, (), k)
        tests.append(Instr("eq", BOOL, (low, constant_k)))
        out += (constant_k, tests[-1])
    either, one = Instr("or", BOOL, tuple(tests)), Instr("const", i32, (), 1)
    safe = Instr("select", i32, (either, one, low))
    out += (either, one, safe)
    return safe


def _emit(out: list[Node], op: str, t: DType, value: Instr) -> Instr:
    instr = Instr(op, t, (value,), None, value.loc)
    out.append(instr)
    return instr
