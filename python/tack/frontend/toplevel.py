"""Inference of a kernel's top level: segments of scalar statements, parallel loops and their reductions, tack.sequential."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

from ..errors import CompileError, CompileNotImplementedError
from ..ir.nodes import Block, Extent, Instr, Item, Loc, Node, Parallel, Reduction, ScratchArray, Segment, Sequence, SharedArray, Var
from ..ir.symbols import INFIX
from ..ir.walk import Walk
from ..types import i64, u64
from .builder import Loop
from .extents import NotAnExtent, extent_of
from .functions import Functions
from .hir import RESULT, ForNode, IfNode, Op, WhileNode
from .hir import Item as HirItem
from .joins import same_type
from .liveness import live_into
from .meaning import Intrinsic
from .values import ArrayRef, Binding, Flat, NoneValue, Num, RangeValue, Reduced, Shape, Thing, Tuple, Unusable, describe

__all__ = ["TopLevel"]

_REDUCTIONS: Final = {"add": "add", "sub": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "min": "min", "max": "max"}
_NO_UPDATE: Final = frozenset(("read", "bound"))
_FORMS: Final = (
    "Update it only by s += e, s -= e, s *= e, s &= e, s |= e, s ^= e, s = min(s, e) or s = max(s, e), "
    "or store into an array (tack.atomic_add, ...)."
)
_PURE: Final = frozenset(
    (
        *(
            "const",
            "arg",
            "shape",
            "get",
            "add",
            "sub",
            "mul",
            "div",
            "floordiv",
            "mod",
            "pow",
            "neg",
            "abs",
            "shl",
            "shr",
            "and",
            "or",
            "xor",
        ),
        *("not", "lnot", "eq", "ne", "lt", "le", "gt", "ge", "min", "max", "select", "cast", "bitcast", "fma", "math", "bits"),
    )
)
_MAX_AGAIN: Final = 64  # instructions of a value that is computed again where it is used, instead of kept in memory


class _Home:
    """Where the current bindings were computed: the segment before the loop, and the variables that carry values out of it."""

    __slots__ = ("block", "cache", "vars")

    def __init__(self, block: list[Node], cache: dict[tuple[object, ...], Instr]) -> None:
        self.block = block
        self.cache = cache  # arguments and shapes that the segment has at hand
        self.vars: dict[Instr, Var] = {}

    def snapshot(self) -> Callable[[], None]:
        """What takes back all that is written here from now on."""
        length, cache, variables = len(self.block), dict(self.cache), dict(self.vars)

        def restore() -> None:
            del self.block[length:]
            self.cache, self.vars = dict(cache), dict(variables)

        return restore


class TopLevel(Functions):
    items: list[Item]
    result: Var | None = None
    sequences: list[Var]
    spoiled: dict[tuple[str, ForNode], str]  # names that a loop updates, and does more with: what
    reduced_types: dict[str, list[Binding]]  # of the loop being inferred: what its updates made of the names' types

    def kernel_body(self, body: list[HirItem]) -> Walk[list[Item]]:
        """All items of the kernel. A segment is open, in which the parameters are bound."""
        self.items = []
        self.sequences = []
        self.reduced_types = {}
        self.spoiled = {}
        if self.frame.fn.early_returns and not _has_loops(body):  # one iteration: it returns as a function does
            loc = self.frame.fn.loc
            thing = yield self.body_with_returns(self.frame.fn, loc)
            if self.frame.env is not None:
                self.frame.env = {RESULT: Binding(thing, loc)}
        else:
            yield self.top(body)
        self.set_result()
        self.close_segment()
        if self.segment_atomics and any(not isinstance(item, Segment) for item in self.items):
            self.fail(
                "an atomic outside the parallel loops is refused.",
                self.segment_atomics[0],
                "Statements outside loops run once: write a plain update, a[i] += v.",
                CompileNotImplementedError,
            )
        self.check_groups(self.items)
        return [item for item in self.items if not self.idle(item)]

    def returns_early(self) -> bool:
        """Whether the kernel has no parallel loop, so that it may return anywhere."""
        return not _has_loops(self.frame.fn.body)

    # -- segments

    def open_segment(self) -> None:
        self.block = []
        self.head = []
        self.head_cache = {}

    def close_segment(self) -> _Home:
        """Ends the current segment. One that does nothing is dropped in the end, when no value is asked of it any more."""
        segment = Segment(Block(self.head + self.block))
        home = _Home(segment.body.body, self.head_cache)
        self.items.append(segment)
        return home

    @contextmanager
    def back_in(self, home: _Home) -> Iterator[None]:
        """Writes at the end of a segment that is closed already."""
        state = self.block, self.head, self.head_cache
        self.block = self.head = home.block
        self.head_cache = home.cache
        yield
        self.block, self.head, self.head_cache = state

    def idle(self, item: Item) -> bool:
        if isinstance(item, Segment):
            return all(isinstance(node, Instr) and node.op in _PURE for node in item.body.body)
        if isinstance(item, Sequence):
            item.items = [inner for inner in item.items if not self.idle(inner)]
            return not item.items
        return False

    def carry(self, home: _Home, env: dict[str, Binding], names: Iterable[str]) -> dict[str, Binding]:
        """Bindings of an item before as bindings of the current one. What is not in ``names`` is not read here and stays as it is."""
        carried = dict(env)
        again: dict[Instr, Instr] = {}
        for name in names:
            binding = env.get(name)
            if binding is not None:
                carried[name] = Binding(self.carry_thing(name, home, binding.thing, again), binding.loc)
        return carried

    def carry_thing(self, name: str, home: _Home, thing: Thing, again: dict[Instr, Instr]) -> Thing:
        if isinstance(thing, Num):
            if thing.instr is None:
                return thing
            return Num(thing.type, self.carry_instr(name, home, thing.instr, again), param=thing.param, index=thing.index)
        if isinstance(thing, Tuple):
            return Tuple(tuple(self.carry_thing(f"{name}_{k}", home, item, again) for k, item in enumerate(thing.items)))
        ref = thing.ref if isinstance(thing, (Flat, Shape)) else thing
        if isinstance(ref, ArrayRef) and isinstance(ref.array, ScratchArray):
            kind, call = ("shared", "shared") if isinstance(ref.array, SharedArray) else ("local", "local_array")
            return Unusable(
                "elsewhere", Loc("", 0), f"is a {kind} array that was made outside this loop.", f"Call tack.{call} inside the loop."
            )
        return thing

    def carry_instr(self, name: str, home: _Home, root: Instr, again: dict[Instr, Instr]) -> Instr:
        """The value of an instruction of the home segment: computed again if that needs no memory, else read from a variable."""
        if root in again:
            return again[root]
        order = self.pure_order(root, again)
        if order is None:
            var = home.vars.get(root)
            if var is None:
                assert root.type is not None
                var = home.vars[root] = Var(name if name[0] not in "%<" else "_value", root.type)
                home.block.append(Instr("set", None, (root,), var))
            again[root] = self.emit("get", var.type, (), var)
            return again[root]
        for instr in order:
            if instr.op == "arg":
                again[instr] = self.argument(instr.attr)  # type: ignore[arg-type]
            elif instr.op == "shape":
                again[instr] = self.shape(*instr.attr)  # type: ignore[misc]
            else:
                again[instr] = self.emit(instr.op, instr.type, tuple(again[a] for a in instr.args), instr.attr, instr.loc)
        return again[root]

    @staticmethod
    def pure_order(root: Instr, again: dict[Instr, Instr]) -> list[Instr] | None:
        """What a value is computed of, operands first; None if it reads memory or is long."""
        order: list[Instr] = []
        seen: set[Instr] = set()
        work: list[tuple[Instr, bool]] = [(root, False)]
        while work:
            instr, done = work.pop()
            if done:
                order.append(instr)
            elif instr not in seen and instr not in again:
                seen.add(instr)
                if instr.op not in _PURE or len(seen) > _MAX_AGAIN:
                    return None
                work.append((instr, True))
                work.extend((a, False) for a in instr.args)
        return order

    # -- statements

    def top(self, body: list[HirItem]) -> Walk[None]:
        for item in body:
            if self.frame.env is None:
                return
            state = self.state()
            try:
                yield self.top_item(item)
            except CompileError as failure:
                self.postpone(failure, state, item)

    def top_item(self, item: HirItem) -> Walk[None]:
        if isinstance(item, ForNode):
            iterable = self.thing(item.iterable)
            if isinstance(iterable, RangeValue):
                self.refuse_else(item)
                yield self.sequence(item, iterable) if iterable.kind == "sequential" else self.parallel(item, iterable)
                return
        elif isinstance(item, IfNode) and item.kind == "if":
            known = self.condition(item).const
            if known is not None:  # decided at compile time: the arm stands in the place of the if
                yield self.top(item.then if known else item.orelse)
                return
        yield self.run((item,))

    def refuse_else(self, node: ForNode) -> None:
        if node.has_else:
            self.fail("else on a parallel loop is refused.", node.loc, "Write the statements after the loop.", CompileNotImplementedError)

    def extents(self, iterable: RangeValue, node: ForNode) -> tuple[list[Extent], list[Extent], list[Extent]]:
        columns: tuple[list[Extent], list[Extent], list[Extent]] = ([], [], [])
        for bounds in iterable.bounds:
            for number, column in zip(bounds, columns, strict=True):
                column.append(self.extent(number, node))
        return columns

    def extent(self, number: Num, node: ForNode) -> Extent:
        if number.const is not None:
            value = int(number.const)
            if not i64.min <= value <= i64.max:
                raise self.unfit(value, i64, node.loc)
            return Extent.constant(value)
        assert number.instr is not None
        try:
            return extent_of(number.instr, self.sequences)
        except NotAnExtent as failure:
            instr: Instr = failure.args[0]
            self.fail(*_not_an_extent(instr, number.instr, node))

    # -- parallel loops

    def parallel(self, node: ForNode, iterable: RangeValue) -> Walk[None]:
        frame = self.frame
        env = frame.env
        assert env is not None
        start, stop, step = self.extents(iterable, node)
        updates = self.reductions(node, env)
        home = self.close_segment()
        reads = self.names_of(live_into(node.body, frame.fn.bits))
        mark = self.mark()
        restore = home.snapshot()
        self.reduced_types = {name: [Binding(self.type_only(env[name].thing), env[name].loc)] for name in updates}
        self.passes += 1
        while True:
            reduced = {name: self.reduce_into(name, op, env[name], home) for name, op in updates.items()}
            body, indices = yield self.iteration(node, iterable, env, home, reads, reduced)
            if all(same_type(self.join_things(self.reduced_types[name]), Num(r.type)) for name, (r, _, _) in reduced.items()):
                break
            self.rewind(mark)
            restore()
        self.passes -= 1
        self.settle()
        reductions = [Reduction(var, op) for _, var, op in reduced.values()]
        self.items.append(Parallel(indices, start, stop, step, Block(self.head + body), reductions, node.loc))
        self.open_segment()
        frame.env = self.after_parallel(node, env, home, reduced)

    def iteration(
        self,
        node: ForNode,
        iterable: RangeValue,
        env: dict[str, Binding],
        home: _Home,
        reads: list[str],
        reduced: dict[str, tuple[Reduced, Var, str]],
    ) -> Walk[tuple[list[Node], list[Var]]]:
        """The body of a parallel loop, inferred for one iteration."""
        frame = self.frame
        self.open_segment()
        body = self.block
        names = (
            [*node.targets, *("_i", "_j", "_k", "_l")[len(node.targets) :]]
            if len(node.targets) < len(iterable.bounds)
            else list(node.targets)
        )
        indices = [Var(names[d], i64) for d in range(len(iterable.bounds))]
        inside = self.carry(home, env, [name for name in reads if name not in reduced])
        for name, (thing, _, _) in reduced.items():
            inside[name] = Binding(thing, env[name].loc)
        numbers = tuple(Num(i64, self.emit("get", i64, (), var), index=True) for var in indices)
        first = node.body[0]
        as_tuple = len(numbers) > 1 or (isinstance(first, Op) and first.kind == "unpack")
        if len(numbers) == 1 and isinstance(first, Op) and first.kind == "unpack" and first.attr != 1:
            ways = f"Write for {', '.join('ijkl'[: first.attr])} in tack.ndrange({', '.join('nmlk'[: first.attr])}) for so many dimensions."
            self.fail(f"the loop gives one index, which is unpacked to {first.attr} names.", first.loc, ways if first.attr <= 4 else "")
        frame.regs[node.item] = Tuple(numbers) if as_tuple else numbers[0]
        frame.env = inside
        frame.loops.append(Loop("parallel"))
        self.in_parallel = True
        yield self.run(node.body)
        self.in_parallel = False
        frame.loops.pop()
        return body, indices

    def after_parallel(
        self, node: ForNode, env: dict[str, Binding], home: _Home, reduced: dict[str, tuple[Reduced, Var, str]]
    ) -> dict[str, Binding]:
        """Bindings after the loop, in a new segment. What an iteration assigned is gone with it, but for reductions."""
        live = node.live_out
        bits = self.frame.fn.bits
        after = self.carry(home, env, [name for name in self.names_of(live) if name not in reduced and not bits[name] & node.bound])
        for name in self.names_of(node.bound & live):
            if name in reduced:
                thing, var, _ = reduced[name]
                after[name] = Binding(Num(thing.type, self.emit("get", var.type, (), var)), node.loc)
            else:
                loop = f"the parallel loop at line {node.loc.line}"
                text = f"is assigned inside {loop}, whose iterations are independent: it has no one value after it."
                after[name] = Binding(Unusable("private", node.loc, text, self.spoiled.get((name, node), "") + _FORMS), node.loc)
        return after

    # -- reductions

    def reductions(self, node: ForNode, env: dict[str, Binding]) -> dict[str, str]:
        """The names that the loop reduces into, with the operation: bound before, read after, and only updated in one way."""
        wanted = {name for name in self.names_of(node.bound & node.live_out) if name in env and isinstance(env[name].thing, Num)}
        if not wanted:
            return {}
        found: dict[str, dict[str, Loc]] = {name: {} for name in wanted}
        reads: dict[str, int] = dict.fromkeys(wanted, 0)
        work: list[list[HirItem]] = [node.body]
        while work:
            for item in work.pop():
                if isinstance(item, Op):
                    self.note_update(item, found, reads)
                elif isinstance(item, IfNode):
                    work += (item.then, item.orelse)
                elif isinstance(item, ForNode):
                    work += (item.body, item.orelse)
                elif isinstance(item, WhileNode):
                    work += (item.test, item.body, item.orelse)
        for name, ops in found.items():
            if len(ops) > 1 and ops.keys() - {"bound"}:  # it is updated as well: what is it beside that?
                other = ops.get("read") or ops.get("bound") or list(ops.values())[1]
                what = "read" if "read" in ops else "assigned" if "bound" in ops else "updated in another way"
                self.spoiled[name, node] = f"At line {other.line} it is {what}. "
        return {name: next(iter(ops)) for name, ops in found.items() if len(ops) == 1 and not ops.keys() & _NO_UPDATE and reads[name] == 0}

    def note_update(self, op: Op, found: dict[str, dict[str, Loc]], reads: dict[str, int]) -> None:
        """Notes what one op does to the names, and where: the operation of an update, or one of _NO_UPDATE; and reads of updates."""
        attr = op.attr
        if op.kind == "bind" and attr in found:
            found[attr].setdefault("bound", op.loc)
        elif op.kind == "path" and isinstance(attr, tuple) and attr[0] in found:
            found[attr[0]].setdefault("read", op.loc)
        elif op.kind == "augread" and isinstance(attr, tuple) and attr[0] in found:
            reads[attr[0]] += 1
        elif op.kind == "augbind" and isinstance(attr, tuple) and attr[0] in found:
            name, operation = attr
            if isinstance(operation, tuple):
                meaning = self.callee(operation)
                operation = meaning.name if isinstance(meaning, Intrinsic) and meaning.name in ("min", "max") else "bound"
            found[str(name)].setdefault(_REDUCTIONS.get(operation, "bound"), op.loc)
            reads[str(name)] -= 1

    def callee(self, path: tuple[str, ...]) -> object:
        from .capabilities import resolve

        return None if path[0] in self.frame.fn.bits else resolve(self.frame.environment, path)

    def reduce_into(self, name: str, op: str, binding: Binding, home: _Home) -> tuple[Reduced, Var, str]:
        """The variable of a reduction, set to what the name holds before the loop."""
        thing = binding.thing
        joined = self.join_things(self.reduced_types[name])
        assert isinstance(thing, Num)
        assert isinstance(joined, Num)
        var = Var(name, self.dtype_of(joined.type))
        with self.back_in(home):
            self.emit("set", None, (self.coerce(thing, var.type, binding.loc),), var, binding.loc)
        return Reduced(joined.type, var), var, op

    def reduced_type(self, name: str, reduced: Reduced, thing: Num, loc: Loc) -> None:
        joined = self.gather(self.reduced_types[name], [Binding(thing, loc)])
        if isinstance(joined, Unusable):
            self.fail(f"'{name}' {joined.text}", loc, joined.hint)

    # -- tack.sequential

    def sequence(self, node: ForNode, iterable: RangeValue) -> Walk[None]:
        frame = self.frame
        env = frame.env
        assert env is not None
        starts, stops, steps = self.extents(iterable, node)
        home = self.close_segment()
        restore = home.snapshot()
        mark = self.mark()
        outer_items = self.items
        heads = self.loop_heads(node)
        carried_names = self.names_of(node.bound & node.live_head)
        reads = [name for name in self.names_of(node.live_head) if name not in carried_names]
        self.passes += 1
        for passes in count():
            var = Var(node.targets[0] if node.targets else "_t", i64)
            self.items = []
            with self.back_in(home):
                carried, _ = self.carry_in(node, env, heads, passes)
            self.open_segment()
            inside = self.carry(home, env, reads)
            self.read_all(inside, carried)
            for name in carried_names:
                if name not in env:
                    inside[name] = Binding(self.not_in_first_round(name, node.loc), node.loc)
            frame.regs[node.item] = Num(i64, self.emit("get", i64, (), var), index=True)
            frame.env = inside
            frame.loops.append(Loop("sequential"))
            self.sequences.append(var)
            yield self.top(node.body)
            self.sequences.pop()
            frame.loops.pop()
            end = frame.env
            assert end is not None
            if self.settled(carried, env, [end], heads, passes):
                break
            self.rewind(mark)
            restore()
        self.passes -= 1
        self.settle()
        for name, _, slots in carried:
            self.fill(slots, end[name].thing, end[name].loc)
        self.close_segment()
        items, self.items = self.items, outer_items
        self.items.append(Sequence(var, starts[0], stops[0], steps[0], items, node.loc))
        self.open_segment()
        unchanged = [name for name in self.names_of(node.live_out) if not frame.fn.bits[name] & node.bound]
        after = self.carry(home, env, unchanged)
        self.read_all(after, [c for c in carried if frame.fn.bits[c[0]] & node.live_out])
        for name in self.names_of(node.bound & node.live_out):
            if name not in env:
                text = f"the loop at line {node.loc.line} assigns it, and may run zero times."
                after[name] = Binding(Unusable("unbound", node.loc, text, "Assign it before the loop."), node.loc)
        frame.env = after

    # -- the result

    def set_result(self) -> None:
        """``return v`` sets the result in the last segment."""
        env = self.frame.env
        binding = env.get(RESULT) if env is not None else None
        if binding is None or isinstance(binding.thing, NoneValue):
            return
        thing = binding.thing
        if isinstance(thing, Unusable):
            self.fail(f"the result {thing.text}", binding.loc, "Return a number on every path.")
        if not isinstance(thing, Num):
            self.fail(f"a kernel returns one number, not {describe(thing)}.", binding.loc, "Store more values into an array.")
        self.result = Var("_result", self.dtype_of(thing.type))
        self.emit("set", None, (self.own(thing, binding.loc),), self.result, binding.loc)


def _has_loops(body: list[HirItem]) -> bool:
    """Whether a parallel loop may be among the statements, as far as their text tells: a for over the result of a call."""
    work = [body]
    while work:
        calls: set[int] = set()
        for item in work.pop():
            if isinstance(item, Op):
                if item.kind == "call":
                    calls.add(item.dst)
            elif isinstance(item, IfNode):
                work += (item.then, item.orelse)
            elif isinstance(item, ForNode) and item.iterable in calls:
                return True
    return False


def _not_an_extent(instr: Instr, whole: Instr, node: ForNode) -> tuple[str, Loc, str]:
    """What to say of the bound ``whole``, which cannot be told before the launch because of ``instr``."""
    work, loads = [whole], False
    for _ in range(1000):  # of what it is computed of; enough to find the load that the user wrote
        if not work or loads:
            break
        inner = work.pop()
        loads = inner.op in ("load", "load_flat")
        work += inner.args
    sources = "Loop bounds come from scalar arguments, shapes and captured values"
    if loads:
        hint = f"{sources}: pass the value as an argument, n = int(a[0]) at the call."
        return "the bounds of a parallel loop depend on an element of an array.", node.loc, hint
    if instr.op == "get":
        what = "a value that statements before it compute on the device, which is not known before the launch"
        hint = f"{sources}: compute it before the call, and pass it as an argument."
    elif instr.type is not None and instr.type.is_float:
        what = f"'{instr.attr if instr.op == 'math' else INFIX.get(instr.op, instr.op)}' of floats; they are computed with integers"
        hint = f"{sources}. Write integer arithmetic, (n + 1) // 2, or compute it before the call and pass it as an argument."
    else:
        name = instr.attr if instr.op == "bits" else INFIX.get(instr.op, instr.op)
        what = f"'{name}'{f' of tack.{instr.type}' if instr.type is u64 else ''}, which no bound is computed with"
        hint = f"{sources}: compute it before the call, and pass it as an argument."
    return f"the bounds of a parallel loop depend on {what}.", node.loc, hint
