"""Inference of statements: if, loops, jumps, assertions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn

from ..errors import CompileError, CompileNotImplementedError
from ..ir.nodes import Block, Break, Continue, For, If, Instr, Leave, Loc, Node, Scope, Var, While
from ..types import BOOL, i64
from .builder import Exit, Loop
from .hir import RESULT, BreakNode, ContinueNode, ForNode, IfNode, Item, Op, ReturnNode, WhileNode
from .joins import SELECT_LIMIT, Joins, Slots, cost, same_type
from .meaning import Opaque
from .values import NONE, ArrayRef, Binding, Num, RangeValue, Reduced, Thing, Tuple, Unusable, describe

__all__ = ["Statements"]

_MAX_PASSES: Final = 12  # over a loop's body: types only go up, and there are few steps


class Statements(Joins):
    def run(self, items: Iterable[Item]) -> None:
        """Infers statements until one is left for good."""
        frame = self.frame
        for item in items:
            if frame.env is None:
                return
            _HANDLERS[item.kind if item.__class__ is Op else item.__class__](self, item)

    def unreachable(self) -> bool:
        return self.frame.env is None

    # -- ops

    def op_binary(self, op: Op) -> None:
        regs = self.frame.regs
        regs[op.dst] = self.binary(op.attr, regs[op.args[0]], regs[op.args[1]], op.loc)  # type: ignore[arg-type]

    def op_unary(self, op: Op) -> None:
        self.frame.regs[op.dst] = self.unary(str(op.attr), self.thing(op.args[0]), op.loc)

    def op_compare(self, op: Op) -> None:
        self.frame.regs[op.dst] = self.compare(str(op.attr), self.thing(op.args[0]), self.thing(op.args[1]), op.loc)

    def op_truth(self, op: Op) -> None:
        self.frame.regs[op.dst] = self.truth(self.thing(op.args[0]), op.loc)

    def op_augbind(self, op: Op) -> None:
        env = self.frame.env
        assert env is not None
        name = str(op.attr[0])
        thing = self.thing(op.args[0])
        binding = env.get(name)
        if binding is not None and isinstance(binding.thing, Reduced):
            var = binding.thing.var
            assert isinstance(thing, Num)
            self.reduced_type(name, binding.thing, thing, op.loc)
            self.emit("set", None, (self.coerce(thing, var.type, op.loc),), var, op.loc)
            return
        env[name] = Binding(self.bindable(thing, op.loc), op.loc)

    def reduced_type(self, name: str, reduced: Reduced, thing: Num, loc: Loc) -> None:
        raise NotImplementedError

    # -- if

    def if_node(self, node: IfNode) -> None:
        frame = self.frame
        cond = self.truth(self.thing(node.cond), node.loc)
        if cond.const is not None:
            self.run(node.then if cond.const else node.orelse)
            return
        if node.returns and frame.caller is None and not self.returns_early():
            self.misplaced_return(node.loc)
        assert cond.instr is not None
        entry = frame.env
        assert entry is not None
        outer = self.block
        then, orelse = self.arm(node.then, entry), self.arm(node.orelse, entry)
        self.block = outer
        if then.dead or orelse.dead:
            frame.env = self.one_arm(node, cond.instr, then, orelse)
            return
        env = dict(entry)
        pending: list[tuple[str, Binding, Slots]] = []
        for name in self.names_of(node.bound & node.live_out):
            binding, needs = self.meet(name, [then.env.get(name), orelse.env.get(name)], entry.get(name), node.loc)
            env[name] = binding
            if needs:
                pending.append((name, binding, None))
        frame.env = env
        if cost(then.block) + cost(orelse.block) + len(pending) <= SELECT_LIMIT:
            outer += then.block
            outer += orelse.block
            for name, binding, _ in pending:
                thing = self.select(cond.instr, binding.thing, then.env[name].thing, orelse.env[name].thing, node.loc)
                env[name] = Binding(thing, binding.loc)
            return
        pending = [(name, binding, self.slots_for(name, binding.thing)) for name, binding, _ in pending]
        self.leave_through([Exit(then.block, then.env, None), Exit(orelse.block, orelse.env, None)], pending)
        outer.append(If(cond.instr, Block(then.block), Block(orelse.block), node.loc))
        self.read_all(env, pending)

    def arm(self, items: list[Item], entry: dict[str, Binding]) -> _Arm:
        self.block = []
        self.frame.env = dict(entry)
        self.run(items)
        return _Arm(self.block, self.frame.env)

    def one_arm(self, node: IfNode, cond: Instr, then: _Arm, orelse: _Arm) -> dict[str, Binding] | None:
        """At most one arm goes on: it becomes what follows the if, so that what it computes can be used there."""
        if then.dead and orelse.dead:
            self.block.append(If(cond, Block(then.block), Block(orelse.block), node.loc))
            return None
        live, left = (orelse, then) if then.dead else (then, orelse)
        empty = Block()
        self.block.append(If(cond, Block(left.block), empty, node.loc) if left is then else If(cond, empty, Block(left.block), node.loc))
        self.block += live.block
        return live.env

    def select(self, cond: Instr, joined: Thing, a: Thing, b: Thing, loc: Loc) -> Thing:
        if isinstance(joined, Tuple) and isinstance(a, Tuple) and isinstance(b, Tuple):
            parts = zip(joined.items, a.items, b.items, strict=True)
            return Tuple(tuple(self.select(cond, j, x, y, loc) for j, x, y in parts))
        if not (isinstance(joined, Num) and isinstance(a, Num) and isinstance(b, Num)):
            return joined
        dtype = self.dtype_of(joined.type)
        left, right = self.coerce(a, dtype, loc), self.coerce(b, dtype, loc)
        if dtype is BOOL and (left is cond or right is cond):
            return self.value("or" if left is cond else "and", BOOL, (cond, right if left is cond else left), loc)
        result = self.value("select", joined.type, (cond, left, right), loc)
        result.index = joined.index
        return result

    def returns_early(self) -> bool:
        raise NotImplementedError

    def misplaced_return(self, loc: Loc) -> NoReturn:
        if self.in_parallel:
            self.fail("return inside a parallel loop is refused.", loc, "Write continue to end this iteration.", CompileNotImplementedError)
        self.fail(
            "a kernel returns only in its last statement.",
            loc,
            "Write return a if c else b at the end. Loops over an empty range run nothing, so no early return is needed.",
            CompileNotImplementedError,
        )

    # -- loops

    def for_node(self, node: ForNode) -> None:
        iterable = self.thing(node.iterable)
        if isinstance(iterable, RangeValue):
            if iterable.kind != "range":
                what = f"tack.{iterable.kind}"
                hint = "Write nested loops over range." if iterable.kind == "ndrange" else "Write for i in range(...), or while."
                self.fail(f"{what} inside another loop or a function is refused.", node.loc, hint, CompileNotImplementedError)
            if self.frame.caller is None and not self.in_parallel:
                self.fail(
                    "a parallel loop inside if, while or another loop is refused.",
                    node.loc,
                    "Put the condition inside the loop, make it a loop over tack.sequential(...), or split the kernel.",
                    CompileNotImplementedError,
                )
            self.for_range(node, iterable)
            return
        items = self.items_of(iterable)
        if items is not None:
            self.unroll(node, items)
            return
        if isinstance(iterable, Opaque):
            self.unusable_capture(iterable, node.loc)
        hint = (
            f"Write for i in range(len({iterable.name})), and {iterable.name}[i] in the loop."
            if isinstance(iterable, ArrayRef)
            else "Write for i in range(n)."
        )
        self.fail(f"a for loop runs over range(...), tack.ndrange(...) or a tuple, not over {describe(iterable)}.", node.loc, hint)

    def loop_heads(self, node: ForNode | WhileNode) -> dict[str, Thing]:
        """The types at the loop's head that the last visit found, by name; the same loop met again starts from them."""
        return self.loop_types.setdefault((*self.frame.key, *self.frame.rounds, id(node)), {})

    def carry_in(
        self, node: ForNode | WhileNode, entry: dict[str, Binding], heads: dict[str, Thing]
    ) -> tuple[list[tuple[str, Binding, Slots]], list[str]]:
        """Variables for what a round hands to the next, set in the current block; and the names that are unbound at first."""
        carried: list[tuple[str, Binding, Slots]] = []
        unbound: list[str] = []
        for name in self.names_of(node.bound & node.live_head):
            binding = entry.get(name)
            if binding is None or isinstance(binding.thing, Unusable):  # unusable before, e.g. at the head of a loop around this one
                unbound.append(name)
                continue
            if isinstance(binding.thing, Reduced):
                continue
            joined = self.type_only(binding.thing)
            if isinstance(heads.get(name), (Num, Tuple, Unusable)):  # arrays made in the last pass are not those of this one
                joined = self.join_things(joined, heads[name], binding.loc, node.loc)
            heads[name] = joined
            slots = self.slots_for(name, joined)
            self.fill(slots, binding.thing, binding.loc)
            carried.append((name, Binding(joined, binding.loc), slots))
        return carried, unbound

    def settled(self, carried: list[tuple[str, Binding, Slots]], exits: list[Exit], heads: dict[str, Thing]) -> bool:
        """Whether the types at the ends of a round are those at its start. If not, the joined ones are kept for the next pass."""
        stable = True
        for name, binding, _ in carried:
            joined = binding.thing
            for e in exits:
                end = e.env[name]
                joined = self.join_things(joined, end.thing, binding.loc, end.loc)
            if not same_type(joined, binding.thing):
                heads[name] = joined
                stable = False
        return stable

    def head_env(
        self, entry: dict[str, Binding], carried: list[tuple[str, Binding, Slots]], unbound: list[str], loc: Loc
    ) -> dict[str, Binding]:
        env = dict(entry)
        self.read_all(env, carried)
        for name in unbound:
            env.setdefault(name, Binding(self.not_in_first_round(name, loc), loc))  # what made it unusable before is the better reason
        return env

    def not_in_first_round(self, name: str, loc: Loc) -> Unusable:
        return Unusable(
            "unbound", loc, "it is assigned in the loop, but not before its first round reads it.", "Assign it before the loop."
        )

    def enter(self, loop: Loop, entry: dict[str, Binding]) -> None:
        self.frame.loops.append(loop)
        self.frame.env = entry
        self.loop_depth += 1

    def leave(self, loop: Loop, body: list[Node]) -> list[Exit]:
        """The ends of a round."""
        self.frame.loops.pop()
        self.loop_depth -= 1
        exits = loop.continues
        if self.frame.env is not None:
            exits.append(Exit(body, self.frame.env, None))
        return exits

    def for_range(self, node: ForNode, iterable: RangeValue) -> None:
        frame = self.frame
        entry = frame.env
        assert entry is not None
        ((first, last, by),) = iterable.bounds
        outer = self.block
        trips = _trips(first, last, by)
        if trips == 0:
            self.run(node.orelse)
            return
        start, stop, step = (self.coerce(Num(n.type, n.instr, n.const), i64, node.loc) for n in (first, last, by))
        heads = self.loop_heads(node)
        before = len(outer)
        mark = self.mark()
        for _ in range(_MAX_PASSES):
            carried, unbound = self.carry_in(node, entry, heads)
            loop = Loop("for")
            var = Var(node.targets[0] if node.targets else "_i", i64)
            body: list[Node] = []
            self.block = body
            frame.regs[node.item] = Num(i64, self.emit("get", i64, (), var), index=True)
            self.enter(loop, self.head_env(entry, carried, unbound, node.loc))
            self.run(node.body)
            exits = self.leave(loop, body)
            self.block = outer
            if self.settled(carried, exits, heads):
                break
            del outer[before:]
            self.rewind(mark)
        else:
            raise AssertionError("the types of a loop do not settle")
        surely = trips is not None and trips > 0
        late = self.bound_by_every_round(unbound, exits, entry, node.loc) if surely else []
        self.leave_through(exits, carried + late)
        after = Block()
        result = For(var, start, stop, step, Block(body), after, node.loc)
        outer.append(result)
        self.after_loop(node, loop, entry, carried + late, unbound, after, reachable=bool(exits) or not surely)

    def bound_by_every_round(
        self, unbound: list[str], exits: list[Exit], entry: dict[str, Binding], loc: Loc
    ) -> list[tuple[str, Binding, Slots]]:
        """Names that every round of a loop that surely runs binds are bound after it."""
        late: list[tuple[str, Binding, Slots]] = []
        for name in unbound:
            bindings = [b for e in exits if (b := e.env.get(name)) is not None and not isinstance(b.thing, Unusable)]
            if not bindings or len(bindings) != len(exits):
                continue
            joined, where = self.type_only(bindings[0].thing), bindings[0].loc
            for b in bindings[1:]:
                joined = self.join_things(joined, b.thing, where, b.loc)
            late.append((name, Binding(joined, where), self.slots_for(name, joined)))
        return late

    def after_loop(
        self,
        node: ForNode | WhileNode,
        loop: Loop,
        entry: dict[str, Binding],
        carried: list[tuple[str, Binding, Slots]],
        unbound: list[str],
        after: Block,
        *,
        reachable: bool,
    ) -> None:
        """What holds after a loop: its else runs where no break left it; then both ways meet."""
        frame = self.frame
        outer = self.block
        if not loop.breaks and reachable:
            frame.env = self.exit_env(entry, carried, unbound, node)
            self.run(node.orelse)
            return
        exits = loop.breaks
        if reachable:
            self.block = after.body
            frame.env = self.exit_env(entry, carried, unbound, node)
            self.run(node.orelse)
            if frame.env is not None:
                exits.append(Exit(after.body, frame.env, None))
            self.block = outer
        names = self.names_of((node.bound | node.bound_else) & node.live_out)
        env, pending = self.merge(exits, names, entry, node.loc)
        if env is not None:
            self.read_all(env, pending)
        frame.env = env

    def exit_env(
        self, entry: dict[str, Binding], carried: list[tuple[str, Binding, Slots]], unbound: list[str], node: ForNode | WhileNode
    ) -> dict[str, Binding]:
        env = dict(entry)
        live = node.live_out if not node.orelse else -1
        bits = self.frame.fn.bits
        found = set()
        for name, binding, slots in carried:
            found.add(name)
            if bits[name] & live:
                env[name] = Binding(self.read(slots, binding.thing), binding.loc)
        for name in unbound:
            if name not in found:
                text = f"the loop at line {node.loc.line} assigns it, and may run zero times."
                env[name] = Binding(Unusable("unbound", node.loc, text, "Assign it before the loop."), node.loc)
        return env

    def while_node(self, node: WhileNode) -> None:
        frame = self.frame
        entry = frame.env
        assert entry is not None
        outer = self.block
        heads = self.loop_heads(node)
        before = len(outer)
        mark = self.mark()
        for _ in range(_MAX_PASSES):
            carried, unbound = self.carry_in(node, entry, heads)
            loop = Loop("while")
            test: list[Node] = []
            self.block = test
            frame.env = self.head_env(entry, carried, unbound, node.loc)
            self.loop_depth += 1
            self.run(node.test)
            self.loop_depth -= 1
            cond = self.truth(self.thing(node.cond), node.loc)
            if cond.const is False:  # no round: the test is evaluated once
                del outer[before:]
                self.rewind(mark)
                self.block, frame.env = outer, entry
                self.run(node.test)
                self.run(node.orelse)
                return
            tested = self.keep_tested(node)
            cond_instr = self.own(cond, node.loc)
            body: list[Node] = []
            self.block = body
            env = self.head_env(entry, carried, unbound, node.loc)
            self.read_all(env, tested)
            self.enter(loop, env)
            self.run(node.body)
            exits = self.leave(loop, body)
            self.block = outer
            if self.settled(carried, exits, heads):
                break
            del outer[before:]
            self.rewind(mark)
        else:
            raise AssertionError("the types of a loop do not settle")
        self.leave_through(exits, carried)
        after = Block()
        outer.append(While(Block(test), cond_instr, Block(body), after, node.loc))
        names = {name for name, _, _ in tested}
        kept = [c for c in carried if c[0] not in names] + tested
        extended = [name for name in unbound if name not in names]
        self.after_loop(node, loop, entry, kept, extended, after, reachable=cond.const is not True)

    def keep_tested(self, node: WhileNode) -> list[tuple[str, Binding, Slots]]:
        """Variables for the names that a while's test binds, so that its body and what follows can read them."""
        env = self.frame.env
        assert env is not None
        tested: list[tuple[str, Binding, Slots]] = []
        for name in self.names_of(node.bound_test):
            binding = env.get(name)
            if binding is None or isinstance(binding.thing, Unusable):
                continue
            joined = self.type_only(binding.thing)
            slots = self.slots_for(name, joined)
            self.fill(slots, binding.thing, binding.loc)
            tested.append((name, Binding(joined, binding.loc), slots))
        return tested

    # -- loops over tuples

    def unroll(self, node: ForNode, items: tuple[Thing, ...]) -> None:
        frame = self.frame
        entry = frame.env
        assert entry is not None
        outer = self.block
        whole: list[Node] = []
        loop = Loop("unrolled")
        loop.scope = Scope(Block(whole), "loop", node.loc)
        frame.loops.append(loop)
        names = self.names_of(node.bound & node.live_head)
        for number, item in enumerate(items):
            if frame.env is None:
                break
            frame.rounds.append(number)
            start = frame.env
            frame.env = dict(start)
            body: list[Node] = []
            self.block = body
            loop.continues = []
            loop.round_scope = Scope(Block(body), "round", node.loc)
            frame.regs[node.item] = item
            self.run(node.body)
            frame.rounds.pop()
            if loop.continues:
                exits = loop.continues
                if frame.env is not None:
                    exits.append(Exit(body, frame.env, None))
                env, pending = self.merge(exits, names, start, node.loc)
                whole.append(loop.round_scope)
                self.block = whole
                if env is not None:
                    self.read_all(env, pending)
                frame.env = env
            elif self.unreachable():  # what ended the round is still to be written there
                whole.append(loop.round_scope)
            else:
                whole += body
        frame.loops.pop()
        self.block = whole
        if frame.env is not None:
            self.run(node.orelse)
        if loop.breaks:
            exits = loop.breaks
            if frame.env is not None:
                exits.append(Exit(whole, frame.env, None))
            out = self.names_of((node.bound | node.bound_else) & node.live_out)
            env, pending = self.merge(exits, out, entry, node.loc)
            outer.append(loop.scope)
            self.block = outer
            if env is not None:
                self.read_all(env, pending)
            frame.env = env
            return
        self.block = outer
        if frame.env is None:
            outer.append(loop.scope)
        else:
            outer += whole

    # -- jumps

    def break_node(self, node: BreakNode) -> None:
        loop = self.loop_around("break", node.loc)
        if loop.kind == "parallel":
            self.fail(
                "break of a parallel loop is refused.",
                node.loc,
                "Its iterations are independent: write continue to end this one.",
                CompileNotImplementedError,
            )
        if loop.kind == "sequential":
            self.fail(
                "break of a tack.sequential loop is refused.",
                node.loc,
                "Its steps are known before it starts: give it fewer.",
                CompileNotImplementedError,
            )
        self.dead_end(Leave(loop.scope, node.loc) if loop.scope is not None else Break(node.loc), loop.breaks)

    def continue_node(self, node: ContinueNode) -> None:
        loop = self.loop_around("continue", node.loc)
        if loop.kind == "parallel":
            self.end_iteration(node.loc)
            return
        if loop.kind == "sequential":
            self.fail(
                "continue of a tack.sequential loop is refused.",
                node.loc,
                "Put the condition inside the parallel loops.",
                CompileNotImplementedError,
            )
        self.dead_end(Leave(loop.round_scope, node.loc) if loop.round_scope is not None else Continue(node.loc), loop.continues)

    def loop_around(self, word: str, loc: Loc) -> Loop:
        if not self.frame.loops:
            self.fail(f"'{word}' outside a loop.", loc, kind=CompileError)
        return self.frame.loops[-1]

    def return_node(self, node: ReturnNode) -> None:
        frame = self.frame
        if frame.caller is None and frame.scope is None:
            self.misplaced_return(node.loc)
        thing: Thing = NONE if node.value < 0 else self.thing(node.value)
        assert frame.scope is not None
        frame.env = {RESULT: Binding(self.bindable(thing, node.loc), node.loc)}
        self.dead_end(Leave(frame.scope, node.loc), frame.returns)


class _Arm:
    """An arm of an if: its statements and the bindings at its end."""

    __slots__ = ("block", "dead", "env")

    def __init__(self, block: list[Node], env: dict[str, Binding] | None) -> None:
        self.block = block
        self.dead = env is None
        self.env: dict[str, Binding] = env or {}


def _trips(first: Num, last: Num, by: Num) -> int | None:
    """The number of rounds where it is known."""
    if first.const is None or last.const is None or by.const is None:
        return None
    return len(range(int(first.const), int(last.const), int(by.const)))


_HANDLERS: Final[dict[Any, Callable[[Any, Any], None]]] = {
    "const": Statements.op_const,
    "path": Statements.op_path,
    "augread": Statements.op_path,
    "attribute": Statements.op_attribute,
    "binary": Statements.op_binary,
    "unary": Statements.op_unary,
    "truth": Statements.op_truth,
    "compare": Statements.op_compare,
    "call": Statements.op_call,
    "index": Statements.op_index,
    "tuple": Statements.op_tuple,
    "text": Statements.op_text,
    "unpack": Statements.op_unpack,
    "bind": Statements.op_bind,
    "augbind": Statements.op_augbind,
    "convert": Statements.op_convert,
    "store": Statements.op_store,
    "assert": Statements.op_assert,
    "expression": Statements.op_expression,
    IfNode: Statements.if_node,
    ForNode: Statements.for_node,
    WhileNode: Statements.while_node,
    BreakNode: Statements.break_node,
    ContinueNode: Statements.continue_node,
    ReturnNode: Statements.return_node,
}
