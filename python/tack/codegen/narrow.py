"""Takes integers that differ between lanes in fewer bits, where that gives the same: more of them fit a register.

A value of an interval that 32 bits hold is computed in them. So is one of which only the low bits count, since sums, products and the like
of low bits are the low bits of the result: what is stored in a narrower array, and an index, which lies inside its array. Values that are
uniform or affine stay as they are; they cost a scalar. Much depends on numbers that only a launch brings; ``Narrowed.assumptions`` are to
be checked then. What 16 and then 8 bits hold goes on to them, group by group, where that saves more than the ways there and back cost.
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
    ScalarParam,
    Scope,
    ScratchArray,
    Var,
    While,
)
from ..types import BOOL, DType, i8, i16, i32, i64, u8, u16, u32
from .affine import constant, indices_of
from .llvm_ops import INSIDE
from .lower_ops import Builder
from .params import EntryPlan
from .ranges import Assumption, Interval, Ranges, loop_depth
from .uniform import Flow
from .walk import Walk, blocks_of, nodes, run, variables_set

__all__ = ["Narrowed", "narrow"]

_SIZE = 1200  # instructions of a body that may get another copy
_DEPTH = 4  # of loops
_KINDS = {32: (i32, u32), 16: (i16, u16), 8: (i8, u8)}
_RING = frozenset({"add", "sub", "mul", "neg", "and", "or", "xor", "not"})  # low bits in, low bits out
_THROUGH = _RING | {"select", "freeze"}
_EXACT = frozenset({"quot", "rem", "min", "max", "abs", "rshift"})  # of narrow values, if these are right
# What narrow operations save, in vector instructions of twice the width: 1 if not named. There are none of 8 bits for these.
_SAVED = {8: {"lshift": 0.0, "rshift": -0.5, "mul": -3.0, "quot": -6.0, "rem": -6.0}}
_THERE, _BACK = 4.0, 3.0  # the low bits of a wide value (of two registers, put together); a wide value again
_SHORTER_THERE, _SHORTER_BACK = 1.5, 1.0  # saved by conversions that have less far to go
_PRODUCT = 4.0  # what a product instead of a division saves
_OFTEN = 8.0  # rounds of a loop
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


def narrow(entry: EntryPlan, flow_of: Callable[[EntryPlan], Flow]) -> Narrowed | None:
    """None where there is nothing to gain. ``flow_of``: what differs between any number of lanes."""
    if entry.single or loop_depth(entry.body) > _DEPTH:
        return None
    every = list(nodes(entry.body))
    if len(every) > _SIZE or any(isinstance(n, Instr) and n.op in ("check", "check_index", "record") for n in every):
        return None
    out: Narrowed | None = None
    small: frozenset[ScalarParam] = frozenset()
    for bits in _KINDS:
        flow = flow_of(entry)
        wide = _wide(entry.body, flow, bits)
        best, gained = None, 0.0
        if bits == 32:
            ways = [(False, small)]
            if not entry.reductions:  # whose entries are printed once
                weights = _weights(entry, flow)
                ways += [(True, small)] + [(True, weights)] * bool(weights)
        else:  # what is assumed says little of fewer bits, but costs nothing where it is asked for anyway
            ways = [(out is not None and bool(out.assumptions), small)]
        for assume, these in ways:
            if gained >= wide:
                break
            ranges = Ranges(entry.start, entry.step, assume, entry.prologue, entry.body, small=these)
            pass_ = _Narrowing(flow, ranges, bits)
            pass_.decide(entry.body, variables_set(entry.prologue) | {r.var for r in entry.reductions})
            if pass_.gain > gained:
                best, gained, small = Narrowed(run(pass_.block(entry.body)), list(ranges.assumptions)), pass_.gain, these
        if best is not None:
            out = Narrowed(best.body, list(dict.fromkeys([*(out.assumptions if out else ()), *best.assumptions])))
            entry = replace(entry, body=out.body)
    return out


def _weights(entry: EntryPlan, flow: Flow) -> frozenset[ScalarParam]:
    """The integer arguments that small numbers of the lanes are multiplied by, and that tell nothing of sizes or places."""
    ranges = Ranges(entry.start, entry.step, False, entry.prologue, entry.body)
    of: dict[Instr, frozenset[ScalarParam]] = {}  # uniform values of arguments
    found: set[ScalarParam] = set()
    other: set[ScalarParam] = set()
    for node in nodes(entry.prologue, entry.body):
        if isinstance(node, For):
            for bound in (node.start, node.stop, node.step):
                other |= of.get(bound, frozenset())
        if not isinstance(node, Instr):
            continue
        if node.op == "arg":
            of[node] = frozenset([node.attr]) if isinstance(node.attr, ScalarParam) and node.type == i64 else frozenset()
        elif flow.uniform(node):
            of[node] = frozenset().union(*(of.get(a, frozenset()) for a in node.args))
        for k, value in enumerate(node.args):
            if not of.get(value):
                continue
            if node.op == "mul" and not flow.uniform(node):
                low, high = ranges.interval(node.args[1 - k])
                (found if u16.min - u16.max <= low and high <= u16.max else other).update(of[value])
            elif node.op in ("set", "load", "store", "load_flat", "store_flat", "atomic", "freeze"):
                other |= of[value]
    return frozenset(found - other)


def _int(t: DType | None, more_than: int = 0) -> bool:
    return t is not None and t.is_int and t.bits > more_than


def _costs(instr: Instr) -> bool:
    """Whether an integer takes work of its own."""
    if instr.op == "cast":
        return instr.args[0].type is not None and instr.args[0].type.is_float
    return instr.op not in ("const", "get", "freeze")


def _wide(body: Block, flow: Flow, bits: int) -> int:
    """How many of the values that differ between lanes take more bits."""
    return sum(
        1
        for n in nodes(body)
        if isinstance(n, Instr)
        and ((_int(n.type, bits) and _costs(n) and flow.form(n) is None) or _converted(n, flow, bits) or _compared(n, flow, bits))
    )


def _converted(instr: Instr, flow: Flow, bits: int) -> bool:
    """From a wide integer to a float, lane by lane."""
    return (
        instr.op == "cast" and instr.type is not None and instr.type.is_float and _int(instr.args[0].type, bits) and not flow.uniform(instr)
    )


def _compared(instr: Instr, flow: Flow, bits: int) -> bool:
    if instr.op not in _COMPARE or flow.uniform(instr):
        return False
    return _int(instr.args[0].type, bits) and instr.args[0].type == instr.args[1].type


class _Narrowing:
    """Of what takes more than ``bits``."""

    def __init__(self, flow: Flow, ranges: Ranges, bits: int) -> None:
        self.flow, self.ranges, self.bits = flow, ranges, bits
        self.values: dict[Instr, DType] = {}  # that are computed in fewer bits, and the type that is right for all that they can be
        self.loops: set[For] = set()  # that count so
        self.gain = 0.0
        self._variables: dict[Var, DType] = {}
        self._renamed: dict[Var, Var] = {}
        self._now: dict[Instr, Instr] = {}
        self._scopes: dict[Scope, Scope] = {}

    def _kind(self, *values: Instr) -> DType | None:
        """The narrow type that holds all that these can be."""
        intervals = [self.ranges.interval(v) for v in values]
        for t in _KINDS[self.bits]:
            if all(t.min <= low and high <= t.max for low, high in intervals):
                return t
        return None

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
        for var, reads in gets.items():
            loop = counters.get(var)
            if not _int(var.type, self.bits) or var in outer:
                continue
            t = self._kind(*reads) or self._any(var.type)
            if loop is None and var in flow.varying and var in sets:
                self._variables[var] = t
            elif loop is not None and var not in sets and loop in flow.divergent and self._counts_low(loop):
                self._variables[var] = _KINDS[self.bits][0]
                self.loops.add(loop)
        for instr in every:
            if _int(instr.type, self.bits) and (kind := self._can(instr)) is not None:
                self.values[instr] = kind
        bounds = {v for loop in counters.values() for v in (loop.start, loop.stop, loop.step)}
        self._settle(every, gets, bounds)
        if self.bits < 32:
            self._keep_what_pays(body, gets, sets)
            self.gain += sum(_PRODUCT for i in every if self._product(i) is not None)
        else:
            self.gain = sum(1 for i in every if i in self.values and _costs(i)) + sum(1 for i in every if self.follows(i))
        self.loops = {loop for loop in self.loops if loop.var in self._variables}

    def _any(self, t: DType) -> DType:
        """For low bits."""
        return _KINDS[self.bits][0 if t.is_signed else 1]

    def _counts_low(self, loop: For) -> bool:
        return self._kind(loop.start, loop.stop, loop.step) == _KINDS[self.bits][0]

    def follows(self, instr: Instr) -> bool:
        """Whether a comparison, or a conversion to a float, takes the narrow values."""
        if not (_compared(instr, self.flow, self.bits) or _converted(instr, self.flow, self.bits)):
            return False
        if self.bits < 32 and not any(a in self.values for a in instr.args):
            return False
        return self._kind(*instr.args) is not None and all(
            a.op == "const" or a in self.values or self.flow.form(a) is not None for a in instr.args
        )

    def _can(self, instr: Instr) -> DType | None:
        """The type in which it can be computed in fewer bits, as far as itself and its arguments tell."""
        op, args, t = instr.op, instr.args, instr.type
        assert t is not None
        mine = self._kind(instr) or self._any(t)
        if op == "get":
            return mine if instr.attr in self._variables else None
        if self.flow.form(instr) is not None:
            return None
        if op in _THROUGH:
            return mine
        if op == "lshift":
            k = constant(args[1])
            return mine if k is not None and k < self.bits else None
        if op == "cast":
            source = args[0].type
            assert source is not None
            if source.is_float:
                return None if self.ranges.saturates(instr) else self._kind(instr)
            return mine
        if op == "rshift":
            k_low, k_high = self.ranges.interval(args[1])
            if k_low < 0 or k_high >= self.bits:
                return None
        return self._kind(instr, *args) if op in _EXACT else None

    def _settle(self, every: list[Instr], gets: dict[Var, list[Instr]], bounds: set[Instr]) -> None:
        """Takes out what is needed as it is and does not fit."""
        loose = {v for v in self.values if self._kind(v) is None}
        refused = loose & bounds
        while True:
            for user in every:
                for k, value in enumerate(user.args):
                    if value in loose and value in self.values and not self._low(user, k):
                        refused.add(value)
            for var in list(self._variables):
                if any(g in refused for g in gets[var]):
                    del self._variables[var]
                    refused.update(gets[var])
            if not refused:
                return
            for value in refused:
                self.values.pop(value, None)
            refused = set()

    def _low(self, user: Instr, k: int) -> bool:
        """Whether ``user`` looks at the low bits of its argument alone."""
        op = user.op
        if op == "set":
            return user.attr in self._variables
        if user in self.values:
            return op in _THROUGH or op in ("lshift", "cast")
        if op == "cast":
            return _int(user.type) and not _int(user.type, self.bits)
        if op in ("load", "store", "atomic") and self.bits == 32:
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

    # ---- whether it pays

    def _keep_what_pays(self, body: Block, gets: dict[Var, list[Instr]], sets: dict[Var, list[Instr]]) -> None:
        """Takes out the groups of values that hand on to each other which cost more than they save."""
        often = _how_often(body)
        leader: dict[Instr, Instr] = {v: v for v in self.values}

        def group(value: Instr) -> Instr:
            while leader[value] is not value:
                leader[value] = leader[leader[value]]
                value = leader[value]
            return value

        for user in often:
            narrow_args = [a for a in user.args if a in self.values]
            together = [*narrow_args, user] if user in self.values else narrow_args if self.follows(user) else []
            for value in together[1:]:
                leader[group(value)] = group(together[0])
        for var in self._variables:
            ends = [*gets[var], *(s.args[0] for s in sets.get(var, ()) if s.args[0] in self.values)]
            for value in ends[1:]:
                leader[group(value)] = group(ends[0])
        gains: dict[Instr, float] = {}
        converted: set[tuple[Instr, bool]] = set()  # (value, whether back)
        for user, times in often.items():
            inside = user in self.values or (user.op == "set" and user.attr in self._variables)
            for value in user.args:
                if value not in self.values:
                    continue
                gain = 0.0
                if user.op == "cast" and not inside:
                    bits = user.type.bits if _int(user.type) and user.type is not None else 64
                    gain = _THERE if bits == self.bits else _SHORTER_THERE if bits < self.bits else 0.0
                elif not inside and not self.follows(user) and (value, True) not in converted:
                    converted.add((value, True))
                    gain = -_BACK
                gains[group(value)] = gains.get(group(value), 0.0) + gain * times
            if user in self.values:
                gains[group(user)] = gains.get(group(user), 0.0) + self._saves(user, converted) * times
            elif self.follows(user):
                at = group(next(a for a in user.args if a in self.values))
                gains[at] = gains.get(at, 0.0) + times
        self.gain = sum(gain for gain in gains.values() if gain > 0)
        lost = {v for v in self.values if gains[group(v)] <= 0}
        for var in [v for v in self._variables if any(g in lost for g in gets[v])]:
            del self._variables[var]
        for value in lost:
            del self.values[value]

    def _saves(self, value: Instr, converted: set[tuple[Instr, bool]]) -> float:
        if value.op == "cast":
            source = value.args[0].type
            assert source is not None
            if not source.is_float and source.bits == self.bits:
                return _BACK
            return _SHORTER_BACK if not source.is_float and source.bits < self.bits else 0.0
        gain = _SAVED.get(self.bits, {}).get(value.op, 1.0) if _costs(value) else 0.0
        for a in value.args:
            if _int(a.type, self.bits) and a not in self.values and self.flow.form(a) is None and (a, False) not in converted:
                converted.add((a, False))
                gain -= _THERE
        return gain

    def _product(self, node: Instr) -> tuple[int, int] | None:
        """A division of 32 bits by a constant as a product and a shift that stay inside of them: factor and count."""
        if node.op not in ("quot", "rem") or self.bits != 16 or node in self.values or self.flow.form(node) is not None:
            return None
        d, (low, high) = constant(node.args[1]), self.ranges.interval(node.args[0])
        if d is None or d < 2 or low < 0 or node.type is None or node.type.bits != 32:
            return None
        for count in range(d.bit_length(), 32):
            factor = (1 << count) // d + 1
            if factor * high > u32.max:
                return None
            if (factor * d - (1 << count)) * high < 1 << count:
                return factor, count
        return None

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
                t = _KINDS[self.bits][0] if node in self.loops else None
                bounds = [self._value(v, out) if t is None else self._low_part(v, t, out) for v in (node.start, node.stop, node.step)]
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
            self._renamed[var] = Var(var.name, self._variables[var])
        return self._renamed[var]

    def _instr(self, node: Instr, out: list[Node]) -> None:
        b = Builder(out, node.loc)
        t = self.values.get(node)
        if node.op == "set" and isinstance(node.attr, Var):
            narrow_type = self._variables.get(node.attr)
            value = self._value(node.args[0], out) if narrow_type is None else self._low_part(node.args[0], narrow_type, out)
            b.emit("set", None, (value,), self._var(node.attr))
        elif node.op == "get" and isinstance(node.attr, Var):
            var = self._var(node.attr)
            self._now[node] = b.cast(b.emit("get", var.type, (), var), t or var.type)
        elif (known := self._known(node)) is not None:
            self._now[node] = b.const(BOOL, known)
        elif node.op == "select" and (kept := self._kept(node)) is not None:
            self._now[node] = self._value(kept, out) if t is None else self._low_part(kept, t, out)
        elif t is not None:
            self._now[node] = self._narrow(node, t, b)
        elif self.follows(node):
            kind = self._kind(*node.args)
            assert kind is not None
            self._now[node] = b.emit(node.op, node.type, tuple(self._low_part(a, kind, out) for a in node.args), node.attr)
        elif node.op == "cast" and node.args[0] in self.values and _int(node.type):
            assert node.type is not None
            self._now[node] = b.cast(self._now[node.args[0]], node.type)
        elif (product := self._product(node)) is not None:
            assert node.type is not None
            x = b.cast(self._value(node.args[0], out), u32)
            whole = b.emit("rshift", u32, (b.mul(x, b.const(u32, product[0])), b.const(u32, product[1])))
            rest = node.op == "rem"
            self._now[node] = b.cast(b.sub(x, b.mul(whole, b.const(u32, constant(node.args[1]) or 0))) if rest else whole, node.type)
        else:
            self._now[node] = b.emit(node.op, node.type, tuple(self._value(a, out) for a in node.args), node.attr)

    def _narrow(self, node: Instr, t: DType, b: Builder) -> Instr:
        """A narrow value."""
        if node.op == "cast":
            source = node.args[0]
            if source in self.values:
                return b.cast(self._now[source], t)
            inside = source.type is not None and source.type.is_float
            return b.emit("cast", t, (self._value(source, b.out),), INSIDE if inside else None)
        arguments = tuple(self._low_part(a, t, b.out) if _int(a.type) else self._value(a, b.out) for a in node.args)
        if node.op in ("quot", "rem") and arguments[1].op != "const" and self.flow.uniform(node.args[1]):
            arguments = arguments[0], _divisor(arguments[1], b)
        return b.emit(node.op, t, arguments, node.attr)

    def _known(self, node: Instr) -> bool | None:
        """A comparison's answer, where the intervals tell. They do not of the tests that keep a division from trapping, whose divisor is
        frozen: it is in its interval in lanes that are on alone, and others divide too."""
        if node.op not in _COMPARE or any(a.op == "freeze" for a in node.args):
            return None
        if not _int(node.args[0].type) or node.args[0].type != node.args[1].type:
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
        return Builder(out, value.loc).cast(new, value.type) if value in self.values and value.type is not None else new

    def _low_part(self, value: Instr, t: DType, out: list[Node]) -> Instr:
        """Its low bits."""
        new = self._now.get(value, value)
        b = Builder(out, value.loc)
        if new.op == "const" and isinstance(new.attr, int):
            return b.const(t, (new.attr - t.min) % (1 << t.bits) + t.min)
        return b.cast(new, t)


def _how_often(body: Block) -> dict[Instr, float]:
    """All instructions, and how many times they run."""
    out: dict[Instr, float] = {}
    stack = [(body, 1.0)]
    while stack:
        block, times = stack.pop()
        for node in block.body:
            if isinstance(node, Instr):
                out[node] = times
            else:
                stack += [(b, times * _OFTEN if isinstance(node, For | While) else times) for b in blocks_of(node)]
    return out


def _divisor(low: Instr, b: Builder) -> Instr:
    """The low part of a divisor that is neither 0 nor -1. Where no lane is on it may be either, and one scalar divides all the same."""
    unsafe = b.compare("eq", low, b.like(low, 0))
    if low.type is not None and low.type.is_signed:
        unsafe = b.either(unsafe, b.compare("eq", low, b.like(low, -1)))
    return b.select(unsafe, b.like(low, 1), low)
