"""Which values integers can have: intervals, from constants, types, conditions and loop bounds.

Told to ``assume``, it takes integer arguments, lengths and indices of the launch for numbers of at most ``MOST`` (divisors that are
arguments for positive ones), and notes which of them it was asked about: the printer has that checked when a launch starts. ``MOST`` is
somewhat below what 31 bits hold, so that a neighbour's index still is such a number.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from itertools import count
from math import inf, isfinite, isqrt, sqrt

from ..ir.nodes import Block, For, If, Instr, ScalarParam, Scope, Table, Var, While
from ..types import DType, i32, i64
from .affine import constant
from .walk import Walk, blocks_of, instructions, run, variables_set

__all__ = ["MOST", "SMALL", "Assumption", "Interval", "Ranges", "fits", "loop_depth"]

Interval = tuple[int, int]
# ("arg", parameter, lowest, most), ("shape", array, dimension) or ("index", dimension): from -MOST or 0 on up to MOST.
Assumption = tuple[object, ...]

Numbers = tuple[float, float]
MOST = i32.max - (1 << 17)
SMALL = 32767  # of weights of bytes and shorts, in fixed point
_STEPS_DOWN = (0, i32.min, i64.min)
_STEPS_UP = (i32.max, i64.max)
_PASSES = 3  # over a loop, after which a variable that is not settled may be anything
_ROUNDING = 2.0**-20  # of f32, generously
_ROUNDS = 64  # of nested loops with constant bounds that are gone through as often as they run


def fits(interval: Interval) -> bool:
    """Whether 32 bits and a sign hold all of it."""
    return i32.min <= interval[0] and interval[1] <= i32.max


def _join(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


def _whole(t: DType | None) -> Interval:
    return (0, 1) if t is None or not t.is_int else (t.min, t.max)


@dataclass(frozen=True, slots=True)
class _Launch:
    """The loop's constant starts and steps per dimension, None where they are not known."""

    start: tuple[int | None, ...]
    step: tuple[int | None, ...]


class Ranges:
    """Intervals of the integer values of ``blocks``, which run one after the other."""

    def __init__(
        self, start: list[int | None], step: list[int | None], assume: bool, *blocks: Block, small: Container[ScalarParam] = ()
    ) -> None:
        """``small``: arguments that are taken for numbers of 15 bits."""
        self.launch = _Launch(tuple(start), tuple(step))
        self.assume, self.small = assume, small
        self.assumptions: dict[Assumption, None] = {}
        self.of: dict[Instr, Interval] = {}
        self._numbers: dict[Instr, Numbers | None] = {}  # of floats
        self._env: dict[Var, Interval] = {}
        self._changed: list[dict[Var, Interval]] = [{}]  # per structured node around: what its sets may leave
        self._version: dict[Var, int] = {}
        self._read: dict[Instr, int] = {}
        self._rounds = 1  # of the loops around that are gone through as often as they run
        self._divisors = {i.args[0] for i in instructions(*blocks) if i.op == "freeze" and i.args[0].op == "arg"}
        for block in blocks:
            run(self._block(block))

    def interval(self, value: Instr) -> Interval:
        if value.op == "const":
            k = constant(value)
            return (k, k) if k is not None else _whole(value.type)
        return self.of.get(value, _whole(value.type))

    def numbers(self, value: Instr) -> Numbers | None:
        """What a float lies between, if it is never NaN."""
        if value.op == "const":
            assert isinstance(value.attr, int | float)
            number = float(value.attr)
            return (number, number) if number == number else None
        return self._numbers.get(value)

    def saturates(self, cast: Instr) -> bool:
        """Whether a float may lie outside of the integer type that it is made."""
        numbers, t = self.numbers(cast.args[0]), cast.type
        return numbers is None or t is None or not (t.min - 1 < numbers[0] and numbers[1] < t.max + 1)

    # ---- statements

    def _assign(self, var: Var, interval: Interval) -> None:
        self._env[var] = interval
        self._version[var] = self._version.get(var, 0) + 1

    def _block(self, block: Block) -> Walk[None]:
        for node in block.body:
            if isinstance(node, Instr):
                if node.op == "set":
                    assert isinstance(node.attr, Var)
                    value = self.interval(node.args[0])
                    self._assign(node.attr, value)
                    changed = self._changed[-1]
                    changed[node.attr] = _join(changed[node.attr], value) if node.attr in changed else value
                else:
                    self._instr(node)
            elif isinstance(node, If):
                yield self._if(node)
            elif isinstance(node, For | While):
                yield self._loop(node)
            elif isinstance(node, Scope):
                self._changed.append({})
                yield self._block(node.body)
                for var, interval in self._pop().items():
                    self._assign(var, _join(self._env[var], interval))

    def _pop(self) -> dict[Var, Interval]:
        inner = self._changed.pop()
        outer = self._changed[-1]
        for var, interval in inner.items():
            outer[var] = _join(outer[var], interval) if var in outer else interval
        return inner

    def _if(self, node: If) -> Walk[None]:
        before = dict(self._env)
        self._changed.append({})
        ends = []
        for arm, holds in ((node.then, True), (node.orelse, False)):
            self._env = dict(before)
            undo = self._refine(node.cond, holds)
            yield self._block(arm)
            self.of.update(undo)
            ends.append(self._env)
        self._env = before
        for var in self._pop():
            a, b = (end.get(var, _whole(var.type)) for end in ends)
            self._assign(var, _join(a, b))

    def _loop(self, node: For | While) -> Walk[None]:
        entry = self._env
        head = dict(entry)
        rounds = (node.test, node.body) if isinstance(node, While) else (node.body,)
        for var in variables_set(*rounds):  # what was read before the loop says nothing of a later round
            self._version[var] = self._version.get(var, 0) + 1
        changed: dict[Var, Interval] = {}
        before, most = self._rounds, _rounds(node)
        if most is not None and before * most <= _ROUNDS:
            self._rounds *= most
        else:
            most = None
        for attempt in count():
            self._env = dict(head)
            self._changed.append({})
            undo: dict[Instr, Interval] = {}
            if isinstance(node, While):
                yield self._block(node.test)
                undo = self._refine(node.cond, True)
            else:
                self._assign(node.var, self._counter(node))
            yield self._block(node.body)
            self.of.update(undo)
            changed = self._pop()
            grown = False
            for var, interval in changed.items():
                old = head.get(var, _whole(var.type))
                new = _join(old, interval)
                if new != old:
                    grown = True
                    if most is not None:
                        head[var] = new
                    elif attempt >= _PASSES or var.type != i64:
                        head[var] = _whole(var.type)
                    elif attempt:
                        low = new[0] if new[0] == old[0] else max(s for s in _STEPS_DOWN if s <= new[0])
                        head[var] = low, new[1] if new[1] == old[1] else min(s for s in _STEPS_UP if s >= new[1])
                    else:
                        head[var] = new
            if not grown or attempt + 1 == most:
                break
        self._rounds = before
        self._env = dict(entry)
        for var, interval in changed.items():
            self._assign(var, _join(head.get(var, _whole(var.type)), interval))
        if isinstance(node, For):
            self._assign(node.var, _whole(node.var.type))
        left = dict(self._env)
        yield self._block(node.orelse)
        for var in variables_set(node.orelse):  # a round that breaks comes by here without it
            a, b = (end.get(var, _whole(var.type)) for end in (left, self._env))
            self._assign(var, _join(a, b))

    def _counter(self, node: For) -> Interval:
        start, stop, step = (self.interval(v) for v in (node.start, node.stop, node.step))
        if step[0] > 0:
            return start[0], max(start[0], stop[1] - 1)
        if step[1] < 0:
            return min(start[1], stop[0] + 1), start[1]
        return _whole(node.var.type)

    # ---- conditions

    def _refine(self, cond: Instr, holds: bool) -> dict[Instr, Interval]:
        """Makes use of what a condition says; answers the intervals that were."""
        undo: dict[Instr, Interval] = {}
        work = [(cond, holds)]
        while work:
            value, true = work.pop()
            if value.op == "lnot":
                work.append((value.args[0], not true))
            elif value.op == ("and" if true else "or"):
                work += [(a, true) for a in value.args]
            elif value.op in ("lt", "le", "gt", "ge", "eq", "ne"):
                self._compare(value, true, undo)
        return undo

    def _compare(self, value: Instr, true: bool, undo: dict[Instr, Interval]) -> None:
        a, b = value.args
        if a.type is None or not a.type.is_int or a.type != (b.type or a.type):
            return
        op = value.op if true else {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}[value.op]
        x, y = self.interval(a), self.interval(b)
        if op in ("gt", "ge"):
            a, b, x, y, op = b, a, y, x, {"gt": "lt", "ge": "le"}[op]
        if op == "eq":
            both = max(x[0], y[0]), min(x[1], y[1])
            new = both, both
        elif op in ("lt", "le"):
            less = op == "lt"
            new = (x[0], min(x[1], y[1] - less)), (max(y[0], x[0] + less), y[1])
        else:
            return
        for operand, interval in zip((a, b), new, strict=True):
            if operand.op == "const" or interval[0] > interval[1]:  # the latter: never reached
                continue
            self._narrow(operand, interval, undo)
            if operand.op == "mul" and operand.args[0] is operand.args[1]:
                self._root(operand.args[0], interval[1], undo)

    def _narrow(self, operand: Instr, interval: Interval, undo: dict[Instr, Interval]) -> None:
        undo.setdefault(operand, self.interval(operand))
        self.of[operand] = interval
        if operand.op == "get" and isinstance(operand.attr, Var) and self._read.get(operand) == self._version.get(operand.attr, 0):
            self._env[operand.attr] = interval

    def _root(self, value: Instr, square: int, undo: dict[Instr, Interval]) -> None:
        """Of a value whose square is at most ``square``, unless the square may have wrapped."""
        low, high = self.interval(value)
        if value.op != "const" and max(abs(low), abs(high)) < 1 << 31 and square >= 0:
            most = isqrt(square)
            self._narrow(value, (max(low, -most), min(high, most)), undo)

    # ---- values

    def _instr(self, node: Instr) -> None:
        t = node.type
        if t is not None and t.is_float:
            self._numbers[node] = self._float(node)
        if t is None or not t.is_int:
            return
        if node.op == "get":
            assert isinstance(node.attr, Var)
            self._read[node] = self._version.get(node.attr, 0)
            self.of[node] = self._env.get(node.attr, _whole(t))
            return
        low, high = self._value(node, t)
        self.of[node] = (low, high) if t.min <= low and high <= t.max else _whole(t)

    def _float(self, node: Instr) -> Numbers | None:
        op, args = node.op, node.args
        if op == "cast":
            source = args[0].type
            if source is None or not source.is_int:
                return self.numbers(args[0])
            low, high = self.interval(args[0])
            return _outward(float(low), float(high))
        if op in ("min", "max"):  # a number rather than a NaN
            known = [n for n in map(self.numbers, args) if n is not None]
            if not known:
                return None
            if len(known) == 1:
                known.append((-inf, inf))
            of = min if op == "min" else max
            return of(known[0][0], known[1][0]), of(known[0][1], known[1][1])
        if op == "math" and (x := self.numbers(args[0])) is not None:
            if node.attr == "sqrt":
                return _outward(sqrt(x[0]), sqrt(x[1])) if x[0] >= 0 else None
            return _outward(x[0] - 1, x[1] + 1) if node.attr in ("floor", "ceil", "trunc", "rint", "round") else None
        if op not in ("select", "add", "sub", "mul", "fma"):
            return None
        a, b, *c = (self.numbers(a) for a in args[op == "select" :])
        if a is None or b is None:
            return None
        if op == "select":
            return min(a[0], b[0]), max(a[1], b[1])
        if op == "add":
            return _outward(a[0] + b[0], a[1] + b[1])
        if op == "sub":
            return _outward(a[0] - b[1], a[1] - b[0])
        products = [x * y for x in a for y in b]
        if op == "mul":
            return _outward(min(products), max(products))
        return None if c[0] is None else _outward(min(products) + c[0][0], max(products) + c[0][1])

    def _mean(self, node: Instr) -> Interval | None:
        """Of a * t + b * (whole - t), where t lies between 0 and the whole."""
        products = [a for a in node.args if a.op == "mul"]
        if len(products) < 2:
            return None
        for t, a in (products[0].args, products[0].args[::-1]):
            for rest, b in (products[1].args, products[1].args[::-1]):
                for one, other in ((t, rest), (rest, t)):
                    whole = constant(other.args[0]) if other.op == "sub" else None
                    low, high = self.interval(one)
                    if whole is None or low < 0 or high > whole or _plain(other.args[1]) is not _plain(one):
                        continue
                    of = _join(self.interval(a), self.interval(b))
                    return of[0] * whole, of[1] * whole
        return None

    def _assumed(self, key: Assumption, low: int, most: int = MOST) -> Interval:
        if not self.assume:
            return i64.min, i64.max
        self.assumptions[key] = None
        return low, most

    def _value(self, node: Instr, t: DType) -> Interval:
        op = node.op
        if op == "arg" and t == i64 and isinstance(node.attr, ScalarParam):
            most = SMALL if node.attr in self.small else MOST
            lowest = 1 if node in self._divisors else -most
            return self._assumed(("arg", node.attr, lowest, most), lowest, most)
        if op == "shape":
            assert isinstance(node.attr, tuple)
            low, high = self._assumed(("shape", *node.attr), 0)
            return max(low, 0), high
        if op == "index":
            assert isinstance(node.attr, int)
            start, step = self.launch.start[node.attr], self.launch.step[node.attr]
            ahead = start if start is not None and step is not None and step > 0 else -MOST
            return self._assumed(("index", node.attr), ahead)
        if op == "table":
            assert isinstance(node.attr, Table)
            numbers = [int(v) for v in node.attr.values]
            return min(numbers), max(numbers)
        rule = _RULES.get(op)
        arguments = [self.interval(a) for a in node.args]
        if rule is None or (op in ("add", "sub", "mul", "min", "max", "neg", "abs") and node.args[0].type != t):
            return _whole(t)
        if op == "cast":
            source = node.args[0].type
            if source is not None and source.is_float:
                return _truncated(self.numbers(node.args[0]), t)
            return arguments[0]
        if op == "select":
            return _join(*arguments[1:])
        if op == "add" and (mean := self._mean(node)) is not None:
            return mean
        if op == "sub" and (divided := _of_rest(node)) is not None:
            return _rem(*map(self.interval, divided.args))
        if op in ("lshift", "rshift") and constant(node.args[1]) is None:
            return _whole(t) if op == "lshift" else _join((0, 0), arguments[0])
        return rule(*arguments)


def _outward(low: float, high: float) -> Numbers | None:
    """Bounds of what is rounded; None where an infinity may have met its like."""
    if not (isfinite(low) and isfinite(high)):
        return None
    return low - abs(low) * _ROUNDING, high + abs(high) * _ROUNDING


def _truncated(numbers: Numbers | None, t: DType) -> Interval:
    """Of a float made an integer, which saturates."""
    if numbers is None:
        return _whole(t)
    low, high = (t.min if v <= t.min else t.max if v >= t.max else int(v) for v in numbers)
    return low, high


def _plain(value: Instr) -> Instr:
    """The value before conversions to wider integers."""
    while value.op == "cast" and value.type is not None and (source := value.args[0].type) is not None and source.is_int:
        if value.type.bits <= source.bits or (source.is_signed and not value.type.is_signed):
            break
        value = value.args[0]
    return value


def _of_rest(node: Instr) -> Instr | None:
    """The quotient x / y, of x - (x / y) * y."""
    x, product = node.args
    if product.op != "mul" or product.args[0].op != "quot":
        return None
    quotient, y = product.args
    same = quotient.args[1] is y or (constant(y) is not None and constant(y) == constant(quotient.args[1]))
    return quotient if quotient.args[0] is x and same else None


def _rounds(node: For | While) -> int | None:
    """How often a loop between constants runs, at least 1."""
    if not isinstance(node, For):
        return None
    start, stop, step = constant(node.start), constant(node.stop), constant(node.step)
    return None if start is None or stop is None or not step else max(1, len(range(start, stop, step)))


def _corners(f: Callable[[int, int], int], a: Interval, b: Interval) -> Interval:
    values = [f(x, y) for x in a for y in b]
    return min(values), max(values)


def _and(a: Interval, b: Interval) -> Interval:
    tops = [x[1] for x in (a, b) if x[0] >= 0]
    return (0, min(tops)) if tops else (i64.min, i64.max)


def _or(a: Interval, b: Interval) -> Interval:
    if a[0] < 0 or b[0] < 0:
        return i64.min, i64.max
    return 0, (1 << max(a[1].bit_length(), b[1].bit_length())) - 1


def _quot(a: Interval, b: Interval) -> Interval:
    if b[0] < 1:
        return i64.min, i64.max
    return _corners(lambda x, y: abs(x) // y * (1 if x >= 0 else -1), a, b)


def _rem(a: Interval, b: Interval) -> Interval:
    if b[0] < 1:
        return i64.min, i64.max
    return (max(a[0], 1 - b[1]) if a[0] < 0 else 0), (min(a[1], b[1] - 1) if a[1] > 0 else 0)


def _abs(a: Interval) -> Interval:
    top = max(abs(a[0]), abs(a[1]))
    return (0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))), top


_RULES: dict[str, Callable[..., Interval]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": lambda a, b: _corners(lambda x, y: x * y, a, b),
    "neg": lambda a: (-a[1], -a[0]),
    "abs": _abs,
    "not": lambda a: (-a[1] - 1, -a[0] - 1),
    "and": _and,
    "or": _or,
    "xor": _or,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "lshift": lambda a, k: (a[0] << k[0], a[1] << k[0]),
    "rshift": lambda a, k: (a[0] >> k[0], a[1] >> k[0]),
    "quot": _quot,
    "rem": _rem,
    "freeze": lambda a: a,
    "cast": lambda a: a,
    "select": lambda *a: a[0],
}


def loop_depth(block: Block) -> int:
    """How deep loops are nested: each level is gone through several times."""
    deepest, stack = 0, [(block, 0)]
    while stack:
        body, level = stack.pop()
        deepest = max(deepest, level)
        for node in body.body:
            if not isinstance(node, Instr):
                stack += [(b, level + isinstance(node, For | While)) for b in blocks_of(node)]
    return deepest
