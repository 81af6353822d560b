"""Inference of statements: if, loops, jumps, assertions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final, NoReturn

from ..errors import CompileError, CompileNotImplementedError
from ..ir.nodes import Block, Break, Continue, For, Leave, Loc, Node, Scope, Var, While
from ..ir.walk import Walk
from ..types import BOOL, i64
from .builder import Exit, Frame, Loop
from .forks import Fork
from .heads import Heads
from .hir import RESULT, BreakNode, ContinueNode, ForNode, IfNode, Item, Op, ReturnNode, WhileNode
from .joins import Slots
from .meaning import DTypeMeaning, Opaque
from .values import NONE, REFUSED, ArrayRef, Binding, Num, RangeValue, Reduced, Thing, Unusable, canonical, describe

__all__ = ["Statements"]


class Statements(Heads):
    def run(self, items: Sequence[Item], join: bool = True) -> Walk[Fork | None]:
        """Infers statements until one is left for good. Without ``join`` the arms of an if that is the last of them are left apart."""
        frame = self.frame
        last = None if join or not items else items[-1]
        for item in items:
            if frame.env is None:
                return None
            if self.refusals and item.__class__ is Op and self.skipped(item):
                continue
            state = self.state()
            try:
                if item is last and item.__class__ is IfNode:
                    end: Fork | None = yield self.fork(item)
                    return end
                inner = _HANDLERS[item.kind if item.__class__ is Op else item.__class__](self, item)
                if inner is not None:
                    yield inner
            except CompileError as failure:
                self.postpone(failure, state, item)
        return None

    def state(self) -> tuple[Frame, dict[str, Binding] | None, list[Node], int, int, int]:
        frame = self.frame
        return frame, frame.env, self.block, self.passes, self.loop_depth, len(frame.loops)

    def postpone(
        self, failure: CompileError, state: tuple[Frame, dict[str, Binding] | None, list[Node], int, int, int], item: Item
    ) -> None:
        """What is refused in a pass that may not be the last is kept for the end of the pass, and inference goes on after the statement."""
        self.frame, env, self.block, self.passes, self.loop_depth, loops = state
        self.refuse_later(failure)
        self.frame.env = env
        del self.frame.loops[loops:]
        self.without(item)

    def skipped(self, op: Op) -> bool:
        """Whether an operation works on what was refused before: then it gives nothing either, and is not refused itself. Of casts and
        comparisons the type is known."""
        regs = self.frame.regs
        if all(regs[register] is not REFUSED for register in op.args):
            return False
        callee = regs[op.args[0]]
        if op.kind in ("compare", "truth"):
            regs[op.dst] = self.some(BOOL, op.loc)
        elif op.kind == "call" and isinstance(callee, DTypeMeaning):
            regs[op.dst] = self.some(canonical(callee.dtype), op.loc)
        else:
            self.without(op)
        return True

    def without(self, item: Item) -> None:
        """What a refused statement would have computed or bound is REFUSED."""
        frame = self.frame
        env = frame.env
        assert env is not None
        if isinstance(item, Op):
            if item.dst >= 0:
                count = item.attr if item.kind == "unpack" else 1
                frame.regs[item.dst : item.dst + count] = [REFUSED] * count
            names = [item.attr] if item.kind == "bind" else [item.attr[0]] if item.kind == "augbind" else []
        else:
            bound = getattr(item, "bound", 0) | getattr(item, "bound_else", 0)
            names = self.names_of(bound)
        for name in names:
            if not (name in env and isinstance(env[name].thing, Reduced)):
                env[name] = Binding(REFUSED, item.loc)

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

    def if_node(self, node: IfNode) -> Walk[None]:
        fork = yield self.fork(node)
        if fork is not None:
            self.join_fork(fork, {})

    def fork(self, node: IfNode) -> Walk[Fork | None]:
        """The arms of an if, not yet joined. None: it is decided at compile time, and the statements of one arm stand in its place."""
        frame = self.frame
        cond = self.condition(node)
        if cond.const is not None:
            chosen: Fork | None = yield self.run(node.then if cond.const else node.orelse, join=False)
            return chosen
        if node.returns and frame.caller is None and not self.returns_early():
            self.misplaced_return(node.loc)
        assert cond.instr is not None
        entry = frame.env
        assert entry is not None
        outer = self.block
        then = yield self.arm(node.then, entry)
        orelse = yield self.arm(node.orelse, entry)
        self.block = outer
        return Fork(node, cond.instr, entry, then, orelse)

    def condition(self, node: IfNode | WhileNode) -> Num:
        thing = self.thing(node.cond)
        if thing is REFUSED:
            return self.value("const", BOOL, (), node.loc, False)
        return self.truth(thing, node.loc)

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

    def for_node(self, node: ForNode) -> Walk[None]:  # noqa: RET503 - fail() does not return
        iterable = self.thing(node.iterable)
        if iterable is REFUSED:  # a loop all the same, so that what it does to types is seen
            bound = self.value("const", i64, (), node.loc, 0)
            iterable = RangeValue("range", ((bound, bound, bound),))
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
            return self.for_range(node, iterable)
        items = self.items_of(iterable)
        if items is not None:
            return self.unroll(node, items)
        if isinstance(iterable, Opaque):
            self.unusable_capture(iterable, node.loc)
        hint = (
            f"Write for i in range(len({iterable.name})), and {iterable.name}[i] in the loop."
            if isinstance(iterable, ArrayRef)
            else "Write for i in range(n)."
        )
        self.fail(f"a for loop runs over range(...), tack.ndrange(...) or a tuple, not over {describe(iterable)}.", node.loc, hint)

    def enter(self, loop: Loop, entry: dict[str, Binding]) -> None:
        self.frame.loops.append(loop)
        self.frame.env = entry
        self.loop_depth += 1

    def leave(self, loop: Loop, body: list[Node], fork: Fork | None) -> list[Exit]:
        """The ends of a round."""
        self.frame.loops.pop()
        self.loop_depth -= 1
        return [*loop.continues, *self.end_of(body, fork)]

    def for_range(self, node: ForNode, iterable: RangeValue) -> Walk[None]:
        frame = self.frame
        entry = frame.env
        assert entry is not None
        ((first, last, by),) = iterable.bounds
        outer = self.block
        trips = _trips(first, last, by)
        if trips == 0:
            yield self.run(node.orelse)
            return
        start, stop, step = (self.coerce(Num(n.type, n.instr, n.const), i64, node.loc) for n in (first, last, by))
        heads = self.loop_heads(node)
        before = len(outer)
        mark = self.mark()
        self.passes += 1
        for passes in count():
            carried, unbound = self.carry_in(node, entry, heads, passes)
            loop = Loop("for")
            var = Var(node.targets[0] if node.targets else "_i", i64)
            body: list[Node] = []
            self.block = body
            frame.regs[node.item] = Num(i64, self.emit("get", i64, (), var), index=True)
            self.enter(loop, self.head_env(entry, carried, unbound, node.loc))
            fork = yield self.run(node.body, join=False)
            exits = self.leave(loop, body, fork)
            self.block = outer
            if self.settled(carried, entry, self.ends(exits), heads, passes):
                break
            del outer[before:]
            self.rewind(mark)
        self.passes -= 1
        self.settle()
        surely = trips is not None and trips > 0
        late = self.bound_by_every_round(unbound, exits, entry, node.loc) if surely else []
        self.leave_through(exits, carried + late)
        after = Block()
        result = For(var, start, stop, step, Block(body), after, node.loc)
        outer.append(result)
        yield self.after_loop(node, loop, entry, carried + late, unbound, after, reachable=bool(self.ends(exits)) or not surely)

    def bound_by_every_round(
        self, unbound: list[str], exits: list[Exit], entry: dict[str, Binding], loc: Loc
    ) -> list[tuple[str, Binding, Slots]]:
        """Names that every round of a loop that surely runs binds are bound after it."""
        late: list[tuple[str, Binding, Slots]] = []
        for name in unbound:
            ends = self.ends(exits)
            bindings = [b for end in ends if (b := end.get(name)) is not None and not isinstance(b.thing, Unusable)]
            if not bindings or len(bindings) != len(ends):
                continue
            joined = self.join_things(bindings)
            late.append((name, Binding(joined, bindings[0].loc), self.slots_for(name, joined)))
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
    ) -> Walk[None]:
        """What holds after a loop: its else runs where no break left it; then both ways meet."""
        frame = self.frame
        outer = self.block
        if not loop.breaks and reachable:
            frame.env = self.exit_env(entry, carried, unbound, node)
            yield self.run(node.orelse)
            return
        exits = loop.breaks
        if reachable:
            self.block = after.body
            frame.env = self.exit_env(entry, carried, unbound, node)
            fork = yield self.run(node.orelse, join=False)
            exits += self.end_of(after.body, fork)
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

    def while_node(self, node: WhileNode) -> Walk[None]:
        frame = self.frame
        entry = frame.env
        assert entry is not None
        outer = self.block
        heads = self.loop_heads(node)
        before = len(outer)
        mark = self.mark()
        self.passes += 1
        for passes in count():
            carried, unbound = self.carry_in(node, entry, heads, passes)
            loop = Loop("while")
            test: list[Node] = []
            self.block = test
            frame.env = self.head_env(entry, carried, unbound, node.loc)
            self.loop_depth += 1
            yield self.run(node.test)
            self.loop_depth -= 1
            cond = self.condition(node)
            if cond.const is False:  # no round: the test is evaluated once
                del outer[before:]
                self.rewind(mark)
                self.passes -= 1
                self.block, frame.env = outer, entry
                yield self.run(node.test)
                yield self.run(node.orelse)
                return
            tested = self.keep_tested(node)
            cond_instr = self.own(cond, node.loc)
            body: list[Node] = []
            self.block = body
            env = self.head_env(entry, carried, unbound, node.loc)
            self.read_all(env, tested)
            self.enter(loop, env)
            fork = yield self.run(node.body, join=False)
            exits = self.leave(loop, body, fork)
            self.block = outer
            if self.settled(carried, entry, self.ends(exits), heads, passes):
                break
            del outer[before:]
            self.rewind(mark)
        self.passes -= 1
        self.settle()
        self.leave_through(exits, carried)
        after = Block()
        outer.append(While(Block(test), cond_instr, Block(body), after, node.loc))
        names = {name for name, _, _ in tested}
        kept = [c for c in carried if c[0] not in names] + tested
        extended = [name for name in unbound if name not in names]
        yield self.after_loop(node, loop, entry, kept, extended, after, reachable=cond.const is not True)

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

    def unroll(self, node: ForNode, items: tuple[Thing, ...]) -> Walk[None]:
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
            fork = yield self.run(node.body, join=False)
            frame.rounds.pop()
            if fork is not None and not loop.continues:
                self.join_fork(fork, {})
                fork = None
            if loop.continues:
                exits = [*loop.continues, *self.end_of(body, fork)]
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
        fork = None
        if frame.env is not None:
            fork = yield self.run(node.orelse, join=False)
        if fork is not None and not loop.breaks:
            self.join_fork(fork, {})
        if loop.breaks:
            exits = [*loop.breaks, *self.end_of(whole, fork)]
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


_HANDLERS: Final[dict[Any, Callable[[Any, Any], Walk[None] | None]]] = {
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
