"""Prints the body of an iteration for W lanes: instructions, and structured control flow with masks where lanes part.

A mask is None (all lanes on) or the name of a <W x i1>. Code under a mask runs only while a lane of it is on, so a uniform load or a
uniform branch there is safe. Lanes that jump are noted in a ``gone`` variable of their target; after a node in which lanes may have
gone, the mask is what it was without them. Masks are joined by ``select``, never by ``and``: a lane that is off may hold poison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..ir.nodes import Block, Break, Continue, For, If, Instr, Leave, Node, Scope, ScratchArray, Var, While
from ..ir.records import MAX_VALUES
from ..types import BOOL
from .affine import constant
from .lane_loops import LaneLoop, SharedLocal
from .llvm_division import Division, divide, wrap, wraps
from .llvm_lane_loops import chain, fold, print_rounds
from .llvm_memory import Memory, Values, Words
from .llvm_ops import Arithmetic
from .llvm_records import check, record
from .llvm_reduce import combine
from .llvm_text import Writer, identifier, llvm_type, shared_name
from .llvm_tiles import print_tiled
from .lower import LibraryCall
from .pieces import Piece
from .tiles import Tiles
from .uniform import Flow, Target
from .walk import Walk, run

__all__ = ["WORDS", "Body", "Divided"]

_SHORT, _COPIES = 24, 6  # statements of a loop that is printed several times, and how often
WORDS = frozenset({"arg", "shape", "sequence"})  # values that every function has at hand


class Divided(Protocol):
    """How a large body is divided among functions, and what prints them."""

    groups: dict[Block, list[Node | Piece]]

    def call(self, body: Body, piece: Piece, mask: str | None) -> None:
        """Prints a piece as a function, and its call in ``body``."""

    def own(self, var: Var) -> bool:
        """Whether one piece alone touches the variable."""


class Body:
    """Prints blocks; one object for one function, whose copies of the body share variables."""

    def __init__(
        self,
        writer: Writer,
        arithmetic: Arithmetic,
        flow: Flow,
        words: Words,
        locals_: list[ScratchArray | SharedLocal],
        hints: dict[Instr, str],
        root: set[Var],
    ) -> None:
        self.w, self.arithmetic, self.flow, self.words = writer, arithmetic, flow, words
        self.lanes = flow.lanes
        self.values = Values(writer, arithmetic, flow)
        self.memory = Memory(self.values, words, locals_)
        self.values.bring = self.bring
        self.hints = hints
        self.divided: Divided | None = None
        self.tiles: dict[For, Tiles] = {}
        self.compact = False  # whether loops whose rounds lanes share are printed once, under a mask, and others without tiles
        self.calls: set[str] = set()  # functions that write records
        self._said = ""
        self.slots: dict[Var, str] = {}
        self.gone: dict[Target, str] = {}
        self.labels: dict[Target, str] = {}  # ("exit", None): where the function ends
        self.kept: dict[Var, str] = {}
        self.math_calls: dict[tuple[LibraryCall, int], None] = {}  # library functions and lanes, in order of appearance
        self.divisions: dict[Division, None] = {}  # functions that divide lane by lane, likewise
        self._word_vectors: dict[str, str] = {}
        self.index: list[str] = []  # the launch's indices; the last one is lane 0's
        self.index_vectors: dict[int, str] = {}  # lane by lane, of those that are no lane 0 and a constant step
        self.mask_type = f"<{self.lanes} x i1>"
        self._root = root
        self.loops: list[tuple[Target, Target]] = [(("break", None), ("continue", None))]  # (break, continue) of the loops around

    def _masked_variables(self) -> list[Var]:
        masked = dict.fromkeys(i.attr for i in self.hints if i in self.flow.masked and isinstance(i.attr, Var))
        return [v for v in masked if v not in self._root and not (self.divided and self.divided.own(v))]

    def said(self) -> str:
        """Memory for the values of a record."""
        if not self._said:
            self._said = self.w.once("said", f"alloca [{MAX_VALUES} x i64], align 8")
        return self._said

    # ---- variables and masks

    def slot(self, var: Var) -> str:
        """The variable's memory; LLVM keeps it in registers."""
        if var not in self.slots:
            t = llvm_type(var.type, self.lanes_of(var))
            self.slots[var] = self.w.once(
                identifier(var.name) + ".var", f"alloca {t}, align {max(8, var.type.itemsize * self.lanes_of(var))}"
            )
        return self.slots[var]

    def lanes_of(self, var: Var) -> int:
        return self.lanes if var in self.flow.varying else 1

    def get(self, var: Var, hint: str) -> str:
        return self.w.op(hint, f"load {llvm_type(var.type, self.lanes_of(var))}, ptr {self.slot(var)}")

    def put(self, var: Var, value: str) -> None:
        self.w.do(f"store {llvm_type(var.type, self.lanes_of(var))} {value}, ptr {self.slot(var)}")

    def _both(self, mask: str | None, cond: str, hint: str) -> str:
        """The mask's lanes where ``cond`` holds."""
        return (
            cond
            if mask is None
            else self.w.op(hint, f"select {self.mask_type} {mask}, {self.mask_type} {cond}, {self.mask_type} zeroinitializer")
        )

    def _without(self, mask: str | None, cond: str, hint: str) -> str:
        """The mask's lanes where ``cond`` does not hold."""
        return self.w.op(
            hint, f"select {self.mask_type} {cond}, {self.mask_type} zeroinitializer, {self.mask_type} {mask or self.values.all_on}"
        )

    def gone_lanes(self, target: Target) -> str:
        if target not in self.gone:
            self.gone[target] = self.w.once(f"gone.{target[0]}", f"alloca {self.mask_type}, align 8")
        return self.gone[target]

    def _clear(self, target: Target) -> None:
        if target in self.flow.targets:
            self.w.do(f"store {self.mask_type} zeroinitializer, ptr {self.gone_lanes(target)}")

    def _remaining(self, mask: str | None, targets: tuple[Target, ...]) -> str | None:
        for target in targets:
            away = self.w.op("away", f"load {self.mask_type}, ptr {self.gone_lanes(target)}")
            mask = self._without(mask, away, "stay")
        return mask

    # ---- blocks

    def iteration(self, block: Block, mask: str | None) -> None:
        """The body for one group of lanes."""
        end = self.w.label("iteration.end")
        for var in self._masked_variables():
            self.put(var, "poison")  # so that nothing is carried from group to group
        self.labels["continue", None] = end
        self._clear(("continue", None))
        run(self.block(block, mask))
        self.w.start(end)

    def straight(self, block: Block) -> None:
        """A block that runs once, outside the loop over iterations."""
        run(self.block(block, None))

    def block(self, block: Block, mask: str | None) -> Walk[None]:
        """Prints a block. It ends with the current LLVM block open, or closed by a jump that all lanes take."""
        yield self._statements(block.body if self.divided is None else self.divided.groups.get(block, block.body), mask)

    def _statements(self, statements: Sequence[Node | Piece], mask: str | None) -> Walk[None]:
        end: str | None = None
        last = len(statements) - 1
        for k, node in enumerate(statements):
            if isinstance(node, Instr):
                self.instr(node, mask)
                continue
            if isinstance(node, Break | Continue | Leave):
                self._jump(node, mask)
                break
            if isinstance(node, If):
                yield self._if(node, mask)
            elif isinstance(node, For):
                yield self._for(node, mask)
            elif isinstance(node, While):
                yield self._while(node, mask)
            elif isinstance(node, Scope):
                yield self._scope(node, mask)
            else:
                assert self.divided is not None
                self.divided.call(self, node, mask)
            left = node.exits if isinstance(node, Piece) else self.flow.exits.get(node)
            if left and k < last:
                mask = self._remaining(mask, left)
                assert mask is not None
                end = end or self.w.label("block.end")
                rest = self.w.label("rest")
                self.w.cbr(self.values.any(mask), rest, end)
                self.w.start(rest)
        if end is not None:
            self.w.start(end)

    def _jump(self, node: Break | Continue | Leave, mask: str | None) -> None:
        if isinstance(node, Leave):
            target: Target = ("leave", node.scope)
        else:
            target = self.loops[-1][0 if isinstance(node, Break) else 1]
        if node in self.flow.divergent:
            gone = self.gone_lanes(target)
            old = self.w.op("away", f"load {self.mask_type}, ptr {gone}")
            new = (
                self.values.all_on
                if mask is None
                else self.w.op("away", f"select {self.mask_type} {mask}, {self.mask_type} {mask}, {self.mask_type} {old}")
            )
            self.w.do(f"store {self.mask_type} {new}, ptr {gone}")
        else:
            self.w.br(self.labels[target])

    def _scope(self, node: Scope, mask: str | None) -> Walk[None]:
        end = self.labels["leave", node] = self.w.label(f"{identifier(node.label or 'scope')}.end")
        self._clear(("leave", node))
        yield self.block(node.body, mask)
        self.w.start(end)

    def _if(self, node: If, mask: str | None) -> Walk[None]:
        w = self.w
        then, end = w.label("if.then"), w.label("if.end")
        orelse = w.label("if.else") if node.orelse.body else end
        if node not in self.flow.divergent:
            w.cbr(self.values.scalar(node.cond), then, orelse)
            w.start(then)
            yield self.block(node.then, mask)
            w.br(end)
            if node.orelse.body:
                w.start(orelse)
                yield self.block(node.orelse, mask)
            w.start(end)
            return
        cond = self.values.vector(node.cond)
        if node.then.body:
            inside = self._both(mask, cond, "then.mask")
            after = w.label("if.other") if node.orelse.body else end
            w.cbr(self.values.any(inside), then, after)
            w.start(then)
            yield self.block(node.then, inside)
            w.start(after)
        if node.orelse.body:
            outside = self._without(mask, cond, "else.mask")
            w.cbr(self.values.any(outside), orelse, end)
            w.start(orelse)
            yield self.block(node.orelse, outside)
            w.start(end)

    # ---- loops

    def _for(self, node: For, mask: str | None) -> Walk[None]:
        """A For is counted by one scalar for all lanes unless its start or step differ; lanes drop out at their own stop."""
        if isinstance(node, LaneLoop) and self.lanes > 1:
            yield print_rounds(self, node)
            return
        if node in self.tiles and not self.compact:
            yield print_tiled(self, node, self.tiles[node], mask)
            return
        flow, w, var = self.flow, self.w, node.var
        own = [not flow.uniform(v) for v in (node.start, node.stop, node.step)]
        step = constant(node.step)
        t, name = llvm_type(var.type), identifier(var.name)
        sign = "s" if var.type.is_signed else "u"
        simple = step in (1, -1)
        counter = w.once(f"{name}.next", f"alloca {t}, align 8")
        trips = w.once(f"{name}.trip", f"alloca {t}, align 8")
        wide = own[0] or own[2]  # the counter itself differs
        vt = llvm_type(var.type, self.lanes)
        vector = w.once(f"{name}.lanes", f"alloca {vt}, align 64") if wide else ""
        if wide:
            w.do(f"store {vt} {self.values.vector(node.start)}, ptr {vector}")
        else:
            w.do(f"store {t} {self.values.scalar(node.start)}, ptr {counter}")
        count = ""
        if not simple:
            w.do(f"store {t} 0, ptr {trips}")
            count = self._trip_count(node, any(own))

        def test() -> tuple[str, bool]:
            """Whether there is another round, for all or (True) by lanes; sets the variable."""
            if wide:
                now = w.op(name, f"load {vt}, ptr {vector}")
            else:
                now = w.op(name, f"load {t}, ptr {counter}")
            if simple:
                cmp = f"icmp {sign}{'lt' if step == 1 else 'gt'}"
                if any(own):
                    lanes = now if wide else self.values.splat(t, now, name)
                    more, by_lanes = w.op("more", f"{cmp} {vt} {lanes}, {self.values.vector(node.stop)}"), True
                else:
                    more, by_lanes = w.op("more", f"{cmp} {t} {now}, {self.values.scalar(node.stop)}"), False
            else:
                round_ = w.op("trip", f"load {t}, ptr {trips}")
                if any(own):
                    more, by_lanes = w.op("more", f"icmp ult {vt} {self.values.splat(t, round_, 'trip')}, {count}"), True
                else:
                    more, by_lanes = w.op("more", f"icmp ult {t} {round_}, {count}"), False
            return more, by_lanes

        def enter() -> None:
            now = w.op(name, f"load {vt}, ptr {vector}") if wide else w.op(name, f"load {t}, ptr {counter}")
            if wide == (var in flow.varying):
                self.put(var, now)
            else:
                self.put(var, self.values.splat(t, now, name))

        def advance() -> None:
            if wide:
                now = w.op(name, f"load {vt}, ptr {vector}")
                w.do(f"store {vt} {w.op(f'{name}.up', f'add {vt} {now}, {self.values.vector(node.step)}')}, ptr {vector}")
            else:
                now = w.op(name, f"load {t}, ptr {counter}")
                flag = ("nsw " if var.type.is_signed else "nuw ") if step == 1 else ""
                w.do(f"store {t} {w.op(f'{name}.up', f'add {flag}{t} {now}, {self.values.scalar(node.step)}')}, ptr {counter}")
            if not simple:
                now = w.op("trip", f"load {t}, ptr {trips}")
                w.do(f"store {t} {w.op('trip.up', f'add nuw {t} {now}, 1')}, ptr {trips}")

        yield self._loop(node, mask, None, test, enter, advance)

    def rounds(self, node: LaneLoop, now: str, mask: str | None) -> Walk[None]:
        """The rounds from ``now`` on that lanes run together."""
        continues: Target = ("continue", node)
        latch = self.labels[continues] = self.w.label("rounds.next")
        self._clear(continues)
        self.put(node.var, now)
        self.loops.append((("break", node), continues))
        yield self.block(node.body, mask)
        self.loops.pop()
        self.w.start(latch)

    def _trip_count(self, node: For, by_lanes: bool) -> str:
        """How often the loop runs, unsigned; 0 for a step of 0."""
        w, var = self.w, node.var
        n = self.lanes if by_lanes else 1
        t, cond = llvm_type(var.type, n), "i1" if n == 1 else f"<{n} x i1>"
        get = self.values.vector if by_lanes else self.values.scalar
        start, stop, step = get(node.start), get(node.stop), get(node.step)
        if by_lanes:
            step = w.op("step", f"freeze {t} {step}")  # a divisor below: a lane that is off may hold poison
        zero, one = self.arithmetic.splat(var.type, n, 0), self.arithmetic.splat(var.type, n, 1)
        sign = "s" if var.type.is_signed else "u"
        up = w.op("up", f"icmp {sign}gt {t} {step}, {zero}")
        low = w.op("low", f"select {cond} {up}, {t} {start}, {t} {stop}")
        high = w.op("high", f"select {cond} {up}, {t} {stop}, {t} {start}")
        size = w.op("size", f"select {cond} {up}, {t} {step}, {t} {w.op('down', f'sub {t} {zero}, {step}')}")
        still = w.op("still", f"icmp eq {t} {step}, {zero}")
        safe = w.op("stride", f"select {cond} {still}, {t} {one}, {t} {size}")
        some = w.op("some", f"icmp {sign}lt {t} {low}, {high}")
        runs = w.op("runs", f"select {cond} {still}, {cond} {self.arithmetic.splat(BOOL, n, False)}, {cond} {some}")
        span = w.op("span", f"sub {t} {w.op('length', f'sub {t} {high}, {low}')}, {one}")
        full = w.op("trips", f"add {t} {w.op('whole', f'udiv {t} {span}, {safe}')}, {one}")
        return w.op("trips", f"select {cond} {runs}, {t} {full}, {t} {zero}")

    def _while(self, node: While, mask: str | None) -> Walk[None]:
        def test() -> tuple[str, bool]:
            by_lanes = not self.flow.uniform(node.cond)
            return (self.values.vector(node.cond) if by_lanes else self.values.scalar(node.cond)), by_lanes

        yield self._loop(node, mask, node.test, test, None, None)

    def _rounds_printed(self, node: For | While) -> int:
        """How often a loop's body is printed. Of short ones taken one by one several rounds follow each other, each with its own exit: the
        branches of a few rounds are predicted better than one branch back that is taken all but once.
        """
        if self.lanes > 1 or not isinstance(node, For) or constant(node.step) != 1 or constant(node.stop) is not None:
            return 1
        body = node.body.body
        short = len(body) <= _SHORT and all(isinstance(n, Instr) and n.op not in ("atomic", "call", "record", "check") for n in body)
        return _COPIES if short else 1

    def _loop(
        self,
        node: For | While,
        mask: str | None,
        prelude: Block | None,
        test: Callable[[], tuple[str, bool]],
        enter: Callable[[], None] | None,
        advance: Callable[[], None] | None,
    ) -> Walk[None]:
        """Head (test), body, latch. ``live`` holds the lanes still in the loop where they leave one by one."""
        w, flow = self.w, self.flow
        divergent = node in flow.divergent
        head, body, latch = w.label("loop.head"), w.label("loop.body"), w.label("loop.next")
        finished, end = w.label("loop.done"), w.label("loop.end")
        breaks: Target = ("break", node)
        continues: Target = ("continue", node)
        counted = breaks in flow.targets
        self.labels[breaks] = finished if counted else end
        self.labels[continues] = latch
        self._clear(breaks)
        live = ""
        if divergent:
            live = w.once("live", f"alloca {self.mask_type}, align 8")
            w.do(f"store {self.mask_type} {mask or self.values.all_on}, ptr {live}")
        w.start(head)
        inside = w.op("live", f"load {self.mask_type}, ptr {live}") if divergent else mask
        if prelude is not None:
            yield self.block(prelude, inside)
        more, by_lanes = test()
        if by_lanes:
            inside = self._both(inside, more, "live")
            more = self.values.any(inside)
        w.cbr(more, body, finished)
        w.start(body)
        for left in reversed(range(self._rounds_printed(node))):
            self._clear(continues)
            if enter is not None:
                enter()
            self.loops.append((breaks, continues))
            yield self.block(node.body, inside)
            self.loops.pop()
            w.start(latch)
            if advance is not None:
                advance()
            if left:
                body, latch = w.label("loop.body"), w.label("loop.next")
                self.labels[continues] = latch
                more, _ = test()
                w.cbr(more, body, finished)
                w.start(body)
        if divergent:
            gone = tuple(t for t in flow.inner_exits.get(node, ()) if t != continues)
            rest = self._remaining(inside, gone)
            w.do(f"store {self.mask_type} {rest or self.values.all_on}, ptr {live}")
            if gone and rest is not None:
                w.cbr(self.values.any(rest), head, finished)
        w.br(head)
        w.start(finished)
        if node.orelse.body:
            gone = tuple(t for t in flow.inner_exits.get(node, ()) if t != continues)
            after = self._remaining(mask, gone)
            if gone and after is not None:
                orelse = w.label("loop.else")
                w.cbr(self.values.any(after), orelse, end)
                w.start(orelse)
            yield self.block(node.orelse, after)
        w.start(end)

    # ---- instructions

    def instr(self, node: Instr, mask: str | None) -> None:
        op, flow, values, w = node.op, self.flow, self.values, self.w
        if op == "const":
            return
        hint = self.hints.get(node, "t")
        if op == "get":
            assert isinstance(node.attr, Var)
            name = self.get(node.attr, identifier(node.attr.name))
        elif op == "set":
            self._set(node, mask)
            return
        elif op in ("load", "load_flat"):
            name = self.memory.load(node, mask, hint)
        elif op in ("store", "store_flat"):
            self.memory.store(node, mask)
            return
        elif op == "atomic":
            name = self.memory.atomics.atomic(node, mask, hint)
        elif op in WORDS:
            self.word(node)
            return
        elif op == "index":
            assert isinstance(node.attr, int)
            by_lanes = self.lanes > 1 and flow.form(node) is None
            name = self.index_vectors[node.attr] if by_lanes else self.index[node.attr]
        elif op == "cell":
            assert isinstance(node.attr, int)
            assert node.type is not None
            name = self.memory.cell(node.type, node.attr, hint)
        elif op == "set_cell":
            assert isinstance(node.attr, int)
            assert node.args[0].type is not None
            self.memory.set_cell(node.args[0].type, node.attr, values.scalar(node.args[0]))
            return
        elif op == "keep":
            assert isinstance(node.attr, Var)
            self.kept[node.attr] = values.scalar(node.args[0])
            return
        elif op == "combine":
            combine(self, node)
            return
        elif op == "chain":
            name = chain(self, node, mask, hint)
        elif op == "fold":
            name = fold(self, node)
        elif op in ("check", "check_index"):
            check(self, node, mask)
            return
        elif op == "record":
            record(self, node)
            return
        elif op == "call":
            name = self._call(node, mask, hint)
        elif op == "table":
            name = self.memory.table(node, mask, hint)
        elif flow.form(node) is None and op == "select" and flow.uniform(node.args[0]):
            assert node.type is not None
            t = llvm_type(node.type, self.lanes)
            name = w.op(
                hint, f"select i1 {values.scalar(node.args[0])}, {t} {values.vector(node.args[1])}, {t} {values.vector(node.args[2])}"
            )
        elif flow.form(node) is None and op in ("quot", "rem"):
            name = divide(self, node, hint)
        elif flow.form(node) is None:
            name = self.arithmetic.emit(node, self.lanes, [values.vector(a) for a in node.args], hint)
        elif wraps(node):
            name = wrap(self, node, hint)
        else:
            name = self.arithmetic.emit(node, 1, [values.scalar(a) for a in node.args], hint)
        values.names[node] = name
        if node in flow.vectors:
            self.spread(node, name, hint)

    def _call(self, node: Instr, mask: str | None, hint: str) -> str:
        """A shared function of the math library. It runs all lanes: those that are off get an argument that takes no slow path."""
        assert isinstance(node.attr, tuple)
        assert node.type is not None
        call: LibraryCall = node.attr  # type: ignore[assignment]
        n = 1 if self.flow.uniform(node) else self.lanes
        self.math_calls[call, n] = None
        arguments = []
        for value in node.args:
            assert value.type is not None
            t = llvm_type(value.type, n)
            text = self.values.scalar(value) if n == 1 else self.values.vector(value)
            if mask is not None and n > 1 and value.op != "const":
                text = self.w.op("on", f"select {self.mask_type} {mask}, {t} {text}, {t} {self.arithmetic.splat(value.type, n, 1)}")
            arguments.append(f"{t} {text}")
        return self.w.op(hint, f"call fastcc {llvm_type(node.type, n)} {shared_name(*call, n)}({', '.join(arguments)})")

    def computed(self, node: Instr) -> None:
        """Called for a value that a piece inside has computed."""

    def spread(self, node: Instr, name: str, hint: str) -> None:
        """The vector of a uniform or affine value."""
        assert node.type is not None
        t = llvm_type(node.type)
        vector = self.values.splat(t, name, hint)
        step = self.flow.form(node)
        if step:
            vt = llvm_type(node.type, self.lanes)
            vector = self.w.op(f"{hint}.lanes", f"add {vt} {vector}, {self.values.steps(node.type, step)}")
        self.values.vectors[node] = vector

    def bring(self, value: Instr) -> None:
        """Names a value that was computed in another function: here, a word of the parameter block."""
        assert value.op in WORDS, value
        self.word(value)

    def word(self, node: Instr) -> None:
        attr, words = node.attr, self.words
        if node.op == "arg":
            name = words.scalar(attr)  # type: ignore[arg-type]
        elif node.op == "shape":
            name = words.shape(*attr)  # type: ignore[misc]
        else:
            assert isinstance(attr, int)
            name = words.sequence(attr)
        self.values.names[node] = name
        if node in self.flow.vectors:
            if name not in self._word_vectors:
                assert node.type is not None
                self._word_vectors[name] = self.values.splat(llvm_type(node.type), name, name[1:], once=True)
            self.values.vectors[node] = self._word_vectors[name]

    def _set(self, node: Instr, mask: str | None) -> None:
        var = node.attr
        assert isinstance(var, Var)
        if var not in self.flow.varying:
            self.put(var, self.values.scalar(node.args[0]))
            return
        value = self.values.vector(node.args[0])
        if node in self.flow.masked and mask is not None:
            t = llvm_type(var.type, self.lanes)
            old = self.get(var, f"{identifier(var.name)}.old")
            value = self.w.op(identifier(var.name), f"select {self.mask_type} {mask}, {t} {value}, {t} {old}")
        self.put(var, value)
