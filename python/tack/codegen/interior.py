"""Finds what is known away from the borders: of iterations whose neighbours lie inside the arrays, whatever a body does at borders.

``(x + dx) % w``, ``min(max(x + dx, 0), w - 1)`` and ``if x + dx >= 0 and x + dx < w`` compare the last index, which lanes share, with
numbers of the launch. All but a few iterations of a row answer all these alike. For them there is a body without the comparisons, in which
the lanes' accesses are neighbours again; the others run one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..ir.nodes import Block, Break, Continue, For, If, Instr, Leave, Node, Scope, While
from ..types import BOOL, i64
from .affine import constant
from .params import EntryPlan
from .ranges import Assumption, Ranges
from .walk import Walk, nodes, run

__all__ = ["Inside", "Interior", "Linear", "find_interior"]

_SIZE = 300  # instructions of a body that is worth more copies
_SMALL = 1 << 12  # of what an index may be off by, unless the launch says it
_OPPOSITE = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of numbers of a launch (shape, arg and index instructions by what they ask for), and something between two constants."""

    terms: dict[tuple[str, object], int]
    low: int
    high: int

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        terms = dict(self.terms)
        for key, k in other.terms.items():
            terms[key] = terms.get(key, 0) + sign * k
        ends = (other.low, other.high) if sign > 0 else (-other.high, -other.low)
        return Linear({key: k for key, k in terms.items() if k}, self.low + ends[0], self.high + ends[1])


@dataclass(slots=True)
class Interior:
    """``body`` is right where the last index is at least all of ``lows`` (their ``high``) and below all of ``highs`` (their ``low``)."""

    body: Block = field(default_factory=Block)
    lows: list[Linear] = field(default_factory=list)
    highs: list[Linear] = field(default_factory=list)


@dataclass(slots=True)
class Inside:
    """The interior of rows, and the entry that is right there; ``assumptions``: what must hold of a launch for that."""

    interior: Interior
    entry: EntryPlan
    lanes: int
    assumptions: list[Assumption]


def find_interior(entry: EntryPlan) -> Interior | None:
    """None where the body compares its last index with no borders."""
    if entry.single or entry.reductions or entry.by_rounds or not entry.step or entry.step[-1] != 1:
        return None
    every = list(nodes(entry.body))
    if len(every) > _SIZE or any(isinstance(n, Instr) and n.op in ("check", "check_index", "record", "atomic") for n in every):
        return None
    if not any(isinstance(n, Instr) and n.op in ("load", "load_flat") for n in every):
        return None
    pass_ = _Pass(entry)
    pass_.out.body = run(pass_.block(entry.body))
    return pass_.out if pass_.out.lows and pass_.out.highs else None


class _Pass:
    def __init__(self, entry: EntryPlan) -> None:
        self.index = ("index", entry.rank - 1)
        self.ranges = Ranges(entry.start, entry.step, False, entry.prologue, entry.body)
        self.out = Interior()
        self._now: dict[Instr, Instr] = {}
        self._linear: dict[Instr, Linear | None] = {}
        self._old: dict[Instr, Instr] = {}
        self._rests: set[tuple[Instr, Instr]] = set()  # wrapped indices, and what their divisors are
        self._scopes: dict[Scope, Scope] = {}

    # ---- what is known

    def linear(self, value: Instr) -> Linear | None:
        if value not in self._linear:
            self._linear[value] = self._sum(value)
        return self._linear[value]

    def _sum(self, value: Instr) -> Linear | None:
        value = self._now.get(value, value)
        op = value.op
        if value.type != i64:
            return None
        if (k := constant(value)) is not None:
            return Linear({}, k, k) if abs(k) < _SMALL else None
        if op in ("index", "shape", "arg"):
            return Linear({(op, value.attr): 1}, 0, 0)
        if op == "freeze":
            return self.linear(value.args[0])
        if op in ("add", "sub"):
            a, b = map(self.linear, value.args)
            if a is not None and b is not None:
                return a.plus(b, 1 if op == "add" else -1)
        low, high = self.ranges.interval(self._old.get(value, value))
        return Linear({}, low, high) if low > -_SMALL and high < _SMALL else None

    def _difference(self, a: Instr, b: Instr) -> tuple[Linear, int] | None:
        """a - b without the last index, and the index's sign in it."""
        x, y = self.linear(a), self.linear(b)
        if x is None or y is None:
            return None
        d = x.plus(y, -1)
        sign = d.terms.get(self.index, 0)
        if sign not in (1, -1) or sum(key[0] == "index" for key in d.terms) > 1:
            return None
        return d.plus(Linear({self.index: sign}, 0, 0), -1), sign

    def _less(self, a: Instr, b: Instr, most: int, wanted: bool | None = None) -> bool | None:
        """Whether a - b <= most in the interior, which is ``wanted`` to be so or not."""
        found = self._difference(a, b)
        if found is None:
            return None
        rest, sign = found
        rest = rest.plus(Linear({}, most, most), -1)  # sign * index + rest <= 0
        border = Linear({}, 0, 0).plus(rest, -1) if sign > 0 else rest  # index <= border, or index >= border
        beyond = any(k > 0 for k in border.terms.values()) if wanted is None else wanted is (sign > 0)  # towards the row's end
        one = Linear({}, 1, 1)
        if sign > 0:
            self._require(border.plus(one), beyond)
            return beyond
        self._require(border, beyond)
        return not beyond

    def _require(self, border: Linear, beyond: bool) -> None:
        (self.out.highs if beyond else self.out.lows).append(border)

    def _compare(self, op: str, a: Instr, b: Instr) -> bool | None:
        if op in ("eq", "ne"):
            found = self._difference(a, b)
            if found is None:
                return None
            rest, sign = found
            border = Linear({}, 0, 0).plus(rest, -1) if sign > 0 else rest  # index == border
            beyond = any(k > 0 for k in border.terms.values())
            self._require(border if beyond else border.plus(Linear({}, 1, 1)), beyond)
            return op == "ne"
        if op in ("gt", "ge"):
            a, b, op = b, a, "lt" if op == "gt" else "le"
        return self._less(a, b, -1 if op == "lt" else 0)

    def _wraps(self, node: Instr) -> bool:
        """Whether a remainder is its dividend in the interior."""
        x, safe = node.args
        if safe.op != "select" or constant(safe.args[1]) != 1:
            return False
        y = self.linear(safe.args[2])  # the divisor, replaced by 1 where that would trap
        v = self.linear(x)
        if y is None or v is None or v.terms.get(self.index) != 1 or not y.terms or any(k < 0 for k in y.terms.values()):
            return False
        zero = Instr("const", i64, (), 0)
        return self._less(zero, x, 0, True) is True and self._less(x, safe.args[2], -1, True) is True

    # ---- the body

    def _value(self, value: Instr) -> Instr:
        return self._now.get(value, value)

    def block(self, block: Block) -> Walk[Block]:
        out: list[Node] = []
        for node in block.body:
            if isinstance(node, Instr):
                self._instr(node, out)
            elif isinstance(node, If):
                cond = self._value(node.cond)
                if cond.op == "const":
                    arm = yield self.block(node.then if cond.attr else node.orelse)
                    out += arm.body
                    continue
                then = yield self.block(node.then)
                orelse = yield self.block(node.orelse)
                out.append(If(cond, then, orelse, node.loc))
            elif isinstance(node, For):
                start, stop, step = map(self._value, (node.start, node.stop, node.step))
                body = yield self.block(node.body)
                orelse = yield self.block(node.orelse)
                out.append(replace(node, start=start, stop=stop, step=step, body=body, orelse=orelse))
            elif isinstance(node, While):
                test = yield self.block(node.test)
                body = yield self.block(node.body)
                orelse = yield self.block(node.orelse)
                out.append(While(test, self._value(node.cond), body, orelse, node.loc))
            elif isinstance(node, Scope):
                scope = self._scopes[node] = Scope(Block(), node.label, node.loc)
                scope.body = yield self.block(node.body)
                out.append(scope)
            elif isinstance(node, Leave):
                out.append(Leave(self._scopes[node.scope], node.loc))
            else:
                out.append(Break(node.loc) if isinstance(node, Break) else Continue(node.loc))
        return Block(out)

    def _instr(self, node: Instr, out: list[Node]) -> None:
        kept = self._kept(node)
        if isinstance(kept, bool):
            kept = Instr("const", BOOL, (), kept, node.loc)
            out.append(kept)
        elif kept is None:
            kept = Instr(node.op, node.type, tuple(map(self._value, node.args)), node.attr, node.loc)
            self._old[kept] = node
            out.append(kept)
        self._now[node] = kept

    def _kept(self, node: Instr) -> Instr | bool | None:
        """What the instruction comes to: a value that is there, or a constant."""
        op = node.op
        args = [self._value(a) for a in node.args]
        known = [a.attr if a.op == "const" and a.type == BOOL else None for a in args]
        if op in _OPPOSITE and node.args[0].type == i64:
            if op == "lt" and args[0].op == "xor" and args[0].args in self._rests and constant(args[1]) == 0:
                return False  # signs differ
            return self._compare(op, *node.args)
        if op in ("min", "max") and node.type == i64:
            first = self._compare("le" if op == "min" else "ge", *node.args)
            return None if first is None else args[0 if first else 1]
        if op == "rem" and node.type == i64 and self._wraps(node):
            self._rests.add((args[0], args[1]))
            return args[0]
        if op in ("and", "or") and node.type == BOOL:
            for k, other in ((known[0], args[1]), (known[1], args[0])):
                if k is not None:
                    return other if k is (op == "and") else op == "or"
        if op == "lnot" and known[0] is not None:
            return not known[0]
        if op == "select" and known[0] is not None:
            return args[1 if known[0] else 2]
        return None
