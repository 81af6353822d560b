"""Where paths meet: what a name is after them, and the variables that carry values from each path."""

from __future__ import annotations

from typing import Final, TypeAlias

from ..ir.nodes import Instr, Loc, Node, Var
from ..types import i64
from .builder import Exit
from .hir import RESULT
from .meaning import DTypeMeaning, FuncMeaning, Intrinsic, ModuleMeaning, Opaque
from .promote import join_nums
from .values import (
    NONE,
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

__all__ = ["Joins", "Slots", "cost"]

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

    def join_things(self, a: Thing, b: Thing, where_a: Loc, where_b: Loc) -> Thing:
        """The type that two things have together, as a thing without a value; an Unusable where they have none."""
        if isinstance(a, Unusable):
            return a
        if isinstance(b, Unusable):
            return b
        if isinstance(a, Num) and isinstance(b, Num):
            t = join_nums(a, b, self.weak_float)
            if t is not None:
                return Num(t, index=a.index and b.index and t is i64)
        elif isinstance(a, Tuple) and isinstance(b, Tuple):
            if len(a.items) == len(b.items):
                items = tuple(self.join_things(x, y, where_a, where_b) for x, y in zip(a.items, b.items, strict=True))
                return next((item for item in items if isinstance(item, Unusable)), Tuple(items))
        elif same(a, b):
            return a
        first, second = (where_a, where_b) if where_a.line <= where_b.line else (where_b, where_a)
        one, other = (a, b) if first is where_a else (b, a)
        if isinstance(a, Num) and isinstance(b, Num):
            hint = "Convert one of them: tack.i64(...) or tack.u64(...)."
        elif isinstance(a, Num) or isinstance(b, Num):
            hint = "Give every path a number."
        else:
            hint = "Use two names, or decide at compile time (x is None, a captured constant)."
        return Unusable(
            "conflict",
            second,
            f"is {describe(one)} from line {first.line} and {describe(other)} from line {second.line}, which do not join.",
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

    def meet(self, name: str, bindings: list[Binding | None], entry: Binding | None, loc: Loc) -> tuple[Binding, bool]:
        """What a name is where paths meet, and whether it needs variables."""
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
        joined = self.type_only(known[0].thing)
        where = known[0].loc
        for b in known[1:]:
            joined = self.join_things(joined, b.thing, where, b.loc)
        return Binding(joined, known[-1].loc), isinstance(joined, (Num, Tuple))

    def merge(
        self, exits: list[Exit], names: list[str], entry: dict[str, Binding], loc: Loc
    ) -> tuple[dict[str, Binding] | None, list[tuple[str, Binding, Slots]]]:
        """Joins the bindings at ``exits`` and writes the sets and the jumps there.

        Answers the bindings after them, and the names whose variables must still be read there (``read_all``).
        """
        if not exits:
            return None, []
        env = dict(entry)
        pending: list[tuple[str, Binding, Slots]] = []
        for name in names:
            binding, needs = self.meet(name, [e.env.get(name) for e in exits], entry.get(name), loc)
            env[name] = binding
            if needs:
                pending.append((name, binding, self.slots_for(name, binding.thing)))
        self.leave_through(exits, pending)
        return env, pending

    def leave_through(self, exits: list[Exit], pending: list[tuple[str, Binding, Slots]]) -> None:
        outer = self.block
        for e in exits:
            self.block = e.block
            for name, _, slots in pending:
                self.fill(slots, e.env[name].thing, e.env[name].loc)
            if e.node is not None:
                e.block.append(e.node)
        self.block = outer

    def read_all(self, env: dict[str, Binding], pending: list[tuple[str, Binding, Slots]]) -> None:
        for name, binding, slots in pending:
            env[name] = Binding(self.read(slots, binding.thing), binding.loc)
