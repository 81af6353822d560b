"""Where paths meet: what a name is after them, and the variables that carry values from each path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from ..ir.nodes import Instr, Loc, Node, Var
from .builder import Exit
from .hir import RESULT
from .meaning import DTypeMeaning, FuncMeaning, Intrinsic, ModuleMeaning, Opaque
from .promote import join_all
from .values import (
    NONE,
    REFUSED,
    ArrayRef,
    Binding,
    Flat,
    NoneValue,
    Num,
    Shape,
    Thing,
    Tuple,
    Unusable,
    describe,
)
from .workgroups import Workgroups

if TYPE_CHECKING:
    from .forks import Fork

__all__ = ["SELECT_LIMIT", "Joins", "Slots", "cost", "same_type"]

# A Var for a number, a list for a tuple, None for what is the same on every path and needs no variable.
Slots: TypeAlias = "Var | list[Slots] | None"

# What is safe to compute though nobody asked for it, and how dear it is beside an addition.
_COST: Final = {
    "const": 0,
    "arg": 0,
    "shape": 0,
    "get": 0,
    "add": 1,
    "sub": 1,
    "mul": 1,
    "neg": 1,
    "abs": 1,
    "shl": 2,
    "shr": 2,
    "and": 1,
    "or": 1,
    "xor": 1,
    "not": 1,
    "lnot": 1,
    "eq": 1,
    "ne": 1,
    "lt": 1,
    "le": 1,
    "gt": 1,
    "ge": 1,
    "min": 1,
    "max": 1,
    "select": 1,
    "cast": 1,
    "bitcast": 0,
    "fma": 1,
    "div": 5,
}
SELECT_LIMIT: Final = 10  # of both arms together: beyond it an if is dearer computed twice than jumped over


def cost(block: list[Node]) -> int:
    """The cost of computing a list speculatively; SELECT_LIMIT + 1 where it must not be (loads, stores, calls, jumps)."""
    total = 0
    for node in block:
        if node.__class__ is not Instr:
            return SELECT_LIMIT + 1
        price = _COST.get(node.op)
        if price is None or total > SELECT_LIMIT:
            return SELECT_LIMIT + 1
        total += price
    return total


def same(a: Thing, b: Thing) -> bool:
    """Whether two things that are no numbers are one and the same."""
    if a is b:
        return True
    if isinstance(a, (ArrayRef, Flat, Shape)):
        if a.__class__ is not b.__class__:
            return False
        left, right = (x.ref if isinstance(x, (Flat, Shape)) else x for x in (a, b))
        return isinstance(left, ArrayRef) and isinstance(right, ArrayRef) and left.array is right.array
    if isinstance(a, FuncMeaning):
        return isinstance(b, FuncMeaning) and a.identity == b.identity
    if isinstance(a, ModuleMeaning):
        return isinstance(b, ModuleMeaning) and a.value is b.value
    if isinstance(a, (DTypeMeaning, Intrinsic, Opaque)):
        return a == b
    return isinstance(a, NoneValue) and isinstance(b, NoneValue)


def same_type(a: Thing, b: Thing) -> bool:
    """Whether two joined things need the same variables."""
    if isinstance(a, Num) and isinstance(b, Num):
        return a.type is b.type and a.index == b.index
    if isinstance(a, Tuple) and isinstance(b, Tuple):
        return len(a.items) == len(b.items) and all(same_type(x, y) for x, y in zip(a.items, b.items, strict=True))
    if isinstance(a, Unusable) and isinstance(b, Unusable):
        return True
    return same(a, b)


class Joins(Workgroups):
    def names_of(self, mask: int) -> list[str]:
        """The local names of a bit mask, in order of first appearance."""
        names = self.frame.fn.names
        found = []
        while mask:
            low = mask & -mask
            found.append(names[low.bit_length() - 1])
            mask ^= low
        return found

    # -- types

    def join_things(self, bindings: Sequence[Binding]) -> Thing:
        """The type that the things of some paths have together, as a thing without a value; an Unusable where they have none.

        The order of the paths does not matter.
        """
        known = [b for b in bindings if b.thing is not REFUSED]
        if not known:
            return REFUSED
        things = [b.thing for b in known]
        first = things[0]
        for thing in things:
            if isinstance(thing, Unusable):
                return thing
        numbers = [thing for thing in things if isinstance(thing, Num)]
        if len(numbers) == len(things):
            joined = join_all(numbers, self.weak_float)
            if joined is not None:
                return Num(joined[0], index=joined[1])
        elif isinstance(first, Tuple):
            rows = [thing.items for thing in things if isinstance(thing, Tuple) and len(thing.items) == len(first.items)]
            if len(rows) == len(things):
                columns = zip(*rows, strict=True)
                items = tuple(self.join_things([Binding(x, b.loc) for x, b in zip(column, known, strict=True)]) for column in columns)
                return next((item for item in items if isinstance(item, Unusable)), Tuple(items))
        elif all(same(first, thing) for thing in things):
            return first
        return self.conflict(known)

    def conflict(self, bindings: list[Binding]) -> Unusable:
        """Says which two of the paths do not join: the first pair, in the order of their lines."""
        ordered = sorted(bindings, key=lambda b: b.loc.line)
        one, other = next(
            (a, b)
            for position, b in enumerate(ordered)
            for a in ordered[:position]
            if not (isinstance(a.thing, Num) and isinstance(b.thing, Num) and join_all([a.thing, b.thing], self.weak_float))
            and not (same(a.thing, b.thing) and not isinstance(a.thing, (Num, Tuple)))
        )
        if isinstance(one.thing, Num) and isinstance(other.thing, Num):
            hint = "Convert one of them: tack.i64(...) or tack.u64(...)."
        elif isinstance(one.thing, Num) or isinstance(other.thing, Num):
            hint = "Give every path a number."
        elif self.in_parallel or not (isinstance(one.thing, ArrayRef) and isinstance(other.thing, ArrayRef)):
            hint = "Use two names, or decide at compile time (x is None, a captured constant)."
        else:
            hint = (
                "Arrays cannot change places between rounds: write both steps in one, from a to b and then from b to a, or copy at its end."
            )
        return Unusable(
            "conflict",
            other.loc,
            f"is {describe(one.thing)} from line {one.loc.line} and {describe(other.thing)} from line {other.loc.line}, which do not join.",
            hint,
        )

    def type_only(self, thing: Thing) -> Thing:
        """The thing without its value."""
        if isinstance(thing, Num):
            return Num(thing.type, index=thing.index)
        if isinstance(thing, Tuple):
            return Tuple(tuple(self.type_only(item) for item in thing.items))
        return thing

    # -- variables

    def slots_for(self, name: str, joined: Thing) -> Slots:
        if isinstance(joined, Num):
            shown = "_value" if name[0] in "%<" else name
            return Var(shown, self.dtype_of(joined.type))
        if isinstance(joined, Tuple):
            return [self.slots_for(f"{name}_{k}", item) for k, item in enumerate(joined.items)]
        return None

    def fill(self, slots: Slots, thing: Thing, loc: Loc) -> None:
        """Sets the variables to a thing's values, in the current block."""
        work: list[tuple[Slots, Thing]] = [(slots, thing)]
        sets: list[tuple[Var, Instr]] = []
        while work:
            slot, value = work.pop()
            if value is REFUSED:
                continue
            if isinstance(slot, Var):
                assert isinstance(value, Num)
                sets.append((slot, self.coerce(value, slot.type, loc)))
            elif isinstance(slot, list):
                assert isinstance(value, Tuple)
                work.extend(zip(slot, value.items, strict=True))
        for var, instr in sets:
            self.emit("set", None, (instr,), var, loc)

    def read(self, slots: Slots, joined: Thing) -> Thing:
        """The thing that the variables hold, read in the current block."""
        if isinstance(slots, Var):
            assert isinstance(joined, Num)
            return Num(joined.type, self.emit("get", slots.type, (), slots), index=joined.index)
        if isinstance(slots, list):
            assert isinstance(joined, Tuple)
            return Tuple(tuple(self.read(s, item) for s, item in zip(slots, joined.items, strict=True)))
        return joined

    # -- meeting

    @staticmethod
    def equal_constants(bindings: list[Binding]) -> bool:
        first = bindings[0].thing
        if not isinstance(first, Num) or first.const is None:
            return False
        return all(
            isinstance(b.thing, Num)
            and b.thing.type is first.type
            and b.thing.const is not None
            and repr(b.thing.const) == repr(first.const)
            for b in bindings
        )

    def meet(
        self, name: str, bindings: list[Binding | None], entry: Binding | None, loc: Loc, given: Thing | None = None
    ) -> tuple[Binding, bool]:
        """What a name is where paths meet, and whether it needs variables. ``given``: its type, where more paths than these decide it."""
        if name == RESULT:  # a function that ends without a return gives None
            bindings = [b or Binding(NONE, self.frame.fn.loc) for b in bindings]
        known = [b for b in bindings if b is not None]
        if len(known) != len(bindings):
            where = known[0].loc if known else loc
            text = f"it is assigned at line {where.line}, but not on every path that leads here."
            thing = Unusable("unbound", where, text, "Assign it on every path, e.g. before the branch or loop.")
            return Binding(thing, where), False
        if entry is not None and all(b is entry for b in known):
            return entry, False
        if self.equal_constants(known):
            return known[0], False
        joined = given if isinstance(given, (Num, Tuple)) else self.join_things(known)
        return Binding(joined, known[-1].loc), isinstance(joined, (Num, Tuple))

    def merge(
        self, exits: list[Exit], names: list[str], entry: dict[str, Binding], loc: Loc
    ) -> tuple[dict[str, Binding] | None, list[tuple[str, Binding, Slots]]]:
        """Joins the bindings at ``exits`` and writes the sets and the jumps there.

        Answers the bindings after them, and the names whose variables must still be read there (``read_all``).
        """
        ends = self.ends(exits)
        if not ends:
            self.leave_through(exits, [])
            return None, []
        env = dict(entry)
        pending: list[tuple[str, Binding, Slots]] = []
        for name in names:
            binding, needs = self.meet(name, [end.get(name) for end in ends], entry.get(name), loc)
            env[name] = binding
            if needs:
                pending.append((name, binding, self.slots_for(name, binding.thing)))
        self.leave_through(exits, pending)
        return env, pending

    def ends(self, exits: list[Exit]) -> list[dict[str, Binding]]:
        """The bindings at every end of every exit."""
        found: list[dict[str, Binding]] = []
        for e in exits:
            if e.fork is None:
                found.append(e.env)
            else:
                found += self.fork_ends(e.fork)
        return found

    def leave_through(self, exits: list[Exit], pending: list[tuple[str, Binding, Slots]]) -> None:
        outer, env = self.block, self.frame.env
        given = {name: binding.thing for name, binding, _ in pending}
        for e in exits:
            self.block = e.block
            if e.fork is not None:
                self.join_fork(e.fork, given)
                if self.frame.env is None:
                    continue
                e.env = self.frame.env
            for name, _, slots in pending:
                self.fill(slots, e.env[name].thing, e.env[name].loc)
            if e.node is not None:
                e.block.append(e.node)
        self.block, self.frame.env = outer, env

    def read_all(self, env: dict[str, Binding], pending: list[tuple[str, Binding, Slots]]) -> None:
        for name, binding, slots in pending:
            env[name] = Binding(self.read(slots, binding.thing), binding.loc)

    # -- defined by the class above

    def fork_ends(self, fork: Fork) -> list[dict[str, Binding]]:
        raise NotImplementedError

    def join_fork(self, fork: Fork, given: Mapping[str, Thing]) -> None:
        raise NotImplementedError
