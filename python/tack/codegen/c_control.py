"""Prints structured control flow without goto: a scope is ``do { } while (false)``, a jump through several of them sets a flag."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..ir.nodes import Block, Break, Continue, For, If, Leave, Loc, Scope, While
from ..types import i32, i64, u32, u64
from .affine import constant
from .c_expr import INT, SHIFT, UNARY, Expr, bounds, is_small
from .walk import Walk

if TYPE_CHECKING:
    from .c_body import Body

__all__ = ["Control", "Frame"]

_DEEPEST = 64  # levels of conditions inside conditions that are printed so


@dataclass(slots=True)
class Frame:
    """A construct of C that ``break`` leaves and that is open: a loop, or a scope. ``node`` is None for the loop over iterations.

    ``flags``: set by jumps from inside to constructs around this one: name of the flag -> (frame, "break" or "continue").
    """

    node: For | While | Scope | None
    broke: str = ""  # of a loop with an else: the flag that a break sets
    flags: dict[str, tuple[Frame, str]] = field(default_factory=dict)


class Control:
    """The open constructs of one function, and how jumps get out of them."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.frames: list[Frame] = []

    # ---- jumps

    def jump(self, node: Break | Continue | Leave) -> None:
        if isinstance(node, Leave):
            (target,) = [f for f in self.frames if f.node is node.scope]
            self._go(target, "break", node.loc)
            return
        loops = [f for f in self.frames if not isinstance(f.node, Scope)]
        if not loops:
            self.body.w.do("return;", node.loc)
            return
        if isinstance(node, Continue):
            self._go(loops[-1], "continue", node.loc)
            return
        if loops[-1].broke:
            self.body.w.do(f"{loops[-1].broke} = true;", node.loc)
        self._go(loops[-1], "break", node.loc)

    def end_iteration(self, loc: Loc | None) -> None:
        """Ends the iteration, from anywhere inside."""
        if self.frames and self.frames[0].node is None:
            self._go(self.frames[0], "continue", loc)
        else:
            self.body.w.do("return;", loc)

    def iterate(self, block: Block) -> None:
        """The body of a loop over iterations, whose head is printed."""
        frame = self._opened(None)
        self.body.print(block)
        popped = self.frames.pop()
        assert popped is frame

    def _go(self, target: Frame, how: str, loc: Loc | None) -> None:
        w = self.body.w
        top = self.frames[-1]
        if top is target:
            w.do(f"{how};", loc)
            return
        flag = next((name for name, goal in top.flags.items() if goal == (target, how)), "")
        flag = flag or self.body.names.new("leave")
        for frame in reversed(self.frames):
            if frame is target:
                break
            frame.flags[flag] = target, how
        w.do(f"{flag} = true;", loc)
        w.do("break;", loc)

    def _opened(self, node: For | While | Scope | None) -> Frame:
        frame = Frame(node)
        self.frames.append(frame)
        return frame

    def _closed(self, frame: Frame, mark: tuple[int, int]) -> None:
        """After a construct's end: goes on to where the jumps out of it lead. ``mark``: before its beginning."""
        popped = self.frames.pop()
        assert popped is frame
        w = self.body.w
        for flag, (target, how) in frame.flags.items():
            if self.frames[-1] is target:
                w.insert(mark, f"bool {flag} = false;")
                w.do(f"if ({flag}) {how};")
            else:
                w.do(f"if ({flag}) break;")

    # ---- blocks

    def when(self, node: If, cond: Expr) -> Walk[None]:
        body, w = self.body, self.body.w
        if self._is_long(node):
            yield self._guards(node, cond)
            return
        if not node.then.body:  # the other arm alone
            w.open(f"if (!{cond.at(UNARY)}) {{", node.loc)
            yield body.block(node.orelse)
            w.close()
            return
        w.open(f"if ({cond.text}) {{", node.loc)
        yield body.block(node.then)
        chained = braces = 0
        while node.orelse.body:
            w.middle("} else {")
            begin = len(w.lines)
            inner = body.before_last(node.orelse)
            if inner is None:
                yield body.block(node.orelse)
                break
            node, cond = inner
            if len(w.lines) == begin:  # an elif
                w.lines[-1] = w.lines[-1].replace("else", f"else if ({cond.text})")
            else:
                w.open(f"if ({cond.text}) {{", node.loc)
                braces += 1
            yield body.block(node.then)
            chained += 1
        body.close(chained)
        for _ in range(1 + braces):
            w.close()

    def _is_long(self, node: If | None) -> bool:
        """Whether so many conditions are each the end of an arm of the one before."""
        for _ in range(_DEEPEST):
            if node is None:
                return False
            node = self.body.last_if(node.orelse) or self.body.last_if(node.then)
        return True

    def _guards(self, node: If, cond: Expr) -> Walk[None]:
        """A long chain, without nesting: the arm that does not go on with it ends what goes around the whole."""
        body, w = self.body, self.body.w
        mark = w.mark()
        frame = self._opened(Scope(Block(), "chain"))
        w.open("do {", node.loc)
        opened = 0
        while True:
            negated = body.last_if(node.orelse) is None
            done, rest = (node.orelse, node.then) if negated else (node.then, node.orelse)
            w.open(f"if (!{cond.at(UNARY)}) {{" if negated else f"if ({cond.text}) {{", node.loc)
            yield body.block(done)
            w.do("break;")
            w.close()
            inner = body.before_last(rest)
            if inner is None:
                yield body.block(rest)
                break
            opened += 1
            node, cond = inner
        body.close(opened)
        w.close("} while (false);")
        self._closed(frame, mark)

    def scope(self, node: Scope) -> Walk[None]:
        w = self.body.w
        if node not in self.body.facts.left:
            w.open("{")
            yield self.body.block(node.body)
            w.close()
            return
        mark = w.mark()
        frame = self._opened(node)
        w.open("do {", node.loc)
        yield self.body.block(node.body)
        w.close("} while (false);")
        self._closed(frame, mark)

    # ---- loops

    def _begin(self, node: For | While) -> tuple[Frame, tuple[int, int]]:
        """Before a loop: the flag that tells its else whether something broke it."""
        w = self.body.w
        mark = w.mark()
        frame = self._opened(node)
        if node.orelse.body and node in self.body.facts.broken:
            frame.broke = self.body.names.new("broke")
            w.do(f"bool {frame.broke} = false;", node.loc)
        return frame, mark

    def _else(self, node: For | While, frame: Frame, mark: tuple[int, int]) -> Walk[None]:
        """After a loop."""
        w = self.body.w
        self._closed(frame, mark)
        if not node.orelse.body:
            return
        if frame.broke:
            w.open(f"if (!{frame.broke}) {{")
        else:
            w.open("{")
        yield self.body.block(node.orelse)
        w.close()

    def loop(self, node: While) -> Walk[None]:
        body, w = self.body, self.body.w
        frame, mark = self._begin(node)
        w.open("while (true) {", node.loc)
        begin = len(w.lines)
        yield body.block(node.test)
        cond = body.value(node.cond)
        if len(w.lines) == begin:  # the test is one expression
            w.lines[begin - 1] = w.lines[begin - 1].replace("true", cond.text)
        else:
            w.do(f"if (!{cond.at(UNARY)}) break;", node.loc)
        if body.h.dialect.progress:
            w.do(body.h.dialect.progress)
        yield body.block(node.body)
        w.close()
        yield self._else(node, frame, mark)

    def counted(self, node: For) -> Walk[None]:
        """A loop that runs as often as its bounds say at its start."""
        body, w, t = self.body, self.body.w, node.var.type
        step = constant(node.step)
        name = node.var.name.lstrip("_") or "k"
        start = body.value(node.start)
        if step not in (1, -1):
            start = body.held(node.start, start, f"{name}_first", node.loc)
        stop = body.held(node.stop, body.value(node.stop), f"{name}_stop", node.loc)
        by = body.held(node.step, body.value(node.step), f"{name}_by", node.loc)
        counter = body.names.new(name)
        low, high = bounds(t)
        if step is not None and step != 0:
            interval = (start.low, max(start.low, stop.high - 1)) if step > 0 else (min(start.high, stop.low + 1), start.high)
            plain = step in (1, -1) or (low <= stop.low + step and stop.high + step <= high)
        else:
            interval, plain = (low, high), False
        reach = (interval[0] + min(step or 0, 0), interval[1] + max(step or 0, 0))  # what the counter is after the last round
        reach = min(reach[0], start.low), max(reach[1], start.high)
        small = t == i64 and plain and INT[0] <= reach[0] and reach[1] <= INT[1]
        n = body.h.type(i32 if small else t)
        body.counters[node.var] = Expr(counter, low=interval[0], high=interval[1], small=small or is_small(t))
        if plain:
            test = f"{counter} {'<' if step and step > 0 else '>'} {stop.at(SHIFT)}"
            head = f"{n} {counter} = {start.text}; {test}; {_advance(counter, step)}"
        else:
            wide = body.h.type(u64 if t.bits == 64 else u32)
            left = body.names.new(f"{name}_left")
            w.do(f"{wide} {left} = {body.h.trips(t)}({start.text}, {stop.text}, {by.text});", node.loc)
            head = f"{n} {counter} = {start.text}; {left} != 0; --{left}, {counter} = ({n})(({wide}){counter} + {by.at(SHIFT)})"
        frame, mark = self._begin(node)
        w.open(f"for ({head}) {{", node.loc)
        yield body.block(node.body)
        w.close()
        yield self._else(node, frame, mark)


def _advance(counter: str, step: int | None) -> str:
    if step in (1, -1):
        return f"{'++' if step == 1 else '--'}{counter}"
    assert step is not None
    return f"{counter} {'+' if step > 0 else '-'}= {abs(step)}"
