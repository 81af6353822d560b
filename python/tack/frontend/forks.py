"""Ifs whose arms are inferred and not yet joined: all ends of nested ifs that lead to one place meet there together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.nodes import Block, If, Instr, Loc, Node
from ..ir.walk import Walk
from ..types import BOOL
from .builder import Exit
from .hir import IfNode, Item
from .joins import SELECT_LIMIT, Joins, Slots, cost
from .values import REFUSED, Binding, Num, Thing, Tuple

__all__ = ["Arm", "Fork", "Forks"]


class Arm:
    """An arm of an if: its statements, and the bindings at its end (None: it is left before) or the if that stands there."""

    __slots__ = ("block", "env", "fork")

    def __init__(self) -> None:
        self.block: list[Node] = []
        self.env: dict[str, Binding] | None = None
        self.fork: Fork | None = None


class Fork:
    """An if whose arms end where the if itself ends, and where what stands around it may end too."""

    __slots__ = ("cond", "entry", "node", "orelse", "then")

    def __init__(self, node: IfNode, cond: Instr, entry: dict[str, Binding], then: Arm, orelse: Arm) -> None:
        self.node = node
        self.cond = cond
        self.entry = entry
        self.then = then
        self.orelse = orelse


class _Joined:
    """A fork or an arm written out: its statements, and the bindings of the names that meet; None: nothing goes on."""

    __slots__ = ("block", "values")

    def __init__(self, block: list[Node], values: Mapping[str, Binding] | None) -> None:
        self.block = block
        self.values = values


class Forks(Joins):
    def arm(self, items: Sequence[Item], entry: dict[str, Binding]) -> Walk[Arm]:
        arm = Arm()
        self.block = arm.block
        self.frame.env = dict(entry)
        arm.fork = yield self.run(items, join=False)
        arm.env = None if arm.fork is not None else self.frame.env
        return arm

    def end_of(self, block: list[Node], fork: Fork | None) -> list[Exit]:
        """The end of a list of statements as an exit; none where it is left before."""
        if fork is not None:
            return [Exit(block, {}, None, fork)]
        return [] if self.frame.env is None else [Exit(block, self.frame.env, None)]

    def fork_ends(self, fork: Fork) -> list[dict[str, Binding]]:
        found: list[dict[str, Binding]] = []
        work = [fork.orelse, fork.then]
        while work:
            arm = work.pop()
            if arm.fork is not None:
                work += (arm.fork.orelse, arm.fork.then)
            elif arm.env is not None:
                found.append(arm.env)
        return found

    def join_fork(self, fork: Fork, given: Mapping[str, Thing]) -> None:
        """Writes a fork into the current block, and the bindings after it into the frame. ``given``: types that names must have there."""
        outer = self.block
        ends = self.fork_ends(fork)
        names: dict[str, Thing] = {}
        env = dict(fork.entry)
        where: dict[str, Loc] = {}
        if len(ends) > 1:
            for name in self.names_of(fork.node.bound & fork.node.live_out):
                bindings = [end.get(name) for end in ends]
                binding, needs = self.meet(name, bindings, fork.entry.get(name), fork.node.loc, given.get(name))
                env[name] = binding
                if needs:
                    names[name] = binding.thing
                    where[name] = binding.loc
        joined = self.fork_written(fork, names)
        outer += joined.block
        self.block = outer
        if len(ends) > 1:
            assert joined.values is not None
            for name in names:
                env[name] = Binding(joined.values[name].thing, where[name])
            self.frame.env = env
        else:
            self.frame.env = ends[0] if ends else None

    def fork_written(self, root: Fork, names: Mapping[str, Thing]) -> _Joined:
        """The statements of a fork, inner ones first."""
        done: dict[Fork, _Joined] = {}
        work = [root]
        while work:
            fork = work[-1]
            inner = [arm.fork for arm in (fork.then, fork.orelse) if arm.fork is not None and arm.fork not in done]
            if inner:
                work += inner
                continue
            work.pop()
            then, orelse = (self.arm_written(arm, done) for arm in (fork.then, fork.orelse))
            done[fork] = self.arms_written(fork, then, orelse, names)
        return done[root]

    @staticmethod
    def arm_written(arm: Arm, done: dict[Fork, _Joined]) -> _Joined:
        if arm.fork is None:
            return _Joined(arm.block, arm.env)
        inner = done.pop(arm.fork)
        arm.block += inner.block
        return _Joined(arm.block, inner.values)

    def arms_written(self, fork: Fork, then: _Joined, orelse: _Joined, names: Mapping[str, Thing]) -> _Joined:
        loc = fork.node.loc
        if then.values is None or orelse.values is None:
            # At most one arm goes on: it becomes what follows the if, so that what it computes can be used there.
            if then.values is None and orelse.values is None:
                return _Joined([If(fork.cond, Block(then.block), Block(orelse.block), loc)], None)
            if then.values is None:
                return _Joined([If(fork.cond, Block(then.block), Block(), loc), *orelse.block], orelse.values)
            return _Joined([If(fork.cond, Block(), Block(orelse.block), loc), *then.block], then.values)
        left, right = then.values, orelse.values
        values: dict[str, Binding] = {}
        differing: list[str] = []
        for name in names:
            pair = [left[name], right[name]]
            if pair[0] is pair[1] or self.equal_constants(pair):
                values[name] = pair[0]
            else:
                differing.append(name)
        if cost(then.block) + cost(orelse.block) + len(differing) <= SELECT_LIMIT:
            self.block = then.block + orelse.block
            for name in differing:
                values[name] = Binding(self.select(fork.cond, names[name], left[name].thing, right[name].thing, loc), right[name].loc)
            return _Joined(self.block, values)
        slots: list[tuple[str, Slots]] = [(name, self.slots_for(name, names[name])) for name in differing]
        for block, bindings in ((then.block, left), (orelse.block, right)):
            self.block = block
            for name, slot in slots:
                self.fill(slot, bindings[name].thing, bindings[name].loc)
        self.block = [If(fork.cond, Block(then.block), Block(orelse.block), loc)]
        for name, slot in slots:
            values[name] = Binding(self.read(slot, names[name]), right[name].loc)
        return _Joined(self.block, values)

    def select(self, cond: Instr, joined: Thing, a: Thing, b: Thing, loc: Loc) -> Thing:
        if isinstance(joined, Tuple) and isinstance(a, Tuple) and isinstance(b, Tuple):
            parts = zip(joined.items, a.items, b.items, strict=True)
            return Tuple(tuple(self.select(cond, j, x, y, loc) for j, x, y in parts))
        if a is REFUSED or b is REFUSED:
            return a if b is REFUSED else b
        if not (isinstance(joined, Num) and isinstance(a, Num) and isinstance(b, Num)):
            return joined
        dtype = self.dtype_of(joined.type)
        left, right = self.coerce(a, dtype, loc), self.coerce(b, dtype, loc)
        if dtype is BOOL and (left is cond or right is cond):
            return self.value("or" if left is cond else "and", BOOL, (cond, right if left is cond else left), loc)
        result = self.value("select", joined.type, (cond, left, right), loc)
        result.index = joined.index
        return result
