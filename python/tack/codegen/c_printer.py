"""Prints a planned kernel in a C-like language: one function for each entry, a thread for each iteration, helpers before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..ir.nodes import ArrayParam, Block, Instr
from ..ir.reduction import WIDTH
from ..ir.source import EntryPoint
from ..ir.target import Target
from ..types import i32, i64
from .affine import indices_of
from .c_body import Body
from .c_expr import INT, Expr
from .c_facts import STORES, Facts
from .c_helpers import Helpers
from .c_memory import Parameters
from .c_names import Names, legal
from .c_records import stopped
from .c_reduce import COMBINERS, index_name, index_range, is_combination, print_blocks, print_combination
from .dialects import Dialect
from .legalize import simplify
from .lower import LibraryCall, Lowering, MathLibrary
from .params import EntryPlan, Plan
from .walk import instructions

__all__ = ["Text", "print_text"]


@dataclass(slots=True)
class Text:
    """The text and what the runtime needs to know of its entries."""

    text: str
    entries: list[EntryPoint] = field(default_factory=list)


def print_text(name: str, plan: Plan, target: Target, options: dict[str, object], math: MathLibrary, dialect: Dialect) -> Text:
    """Prints all entries of a kernel."""
    out = Text("")
    helpers = Helpers(dialect)
    block = options.get("block") or 0
    assert isinstance(block, int)
    words = 1 + max((len(site.values) for site in plan.sites), default=0)
    calls: dict[LibraryCall, str] = {}
    written = frozenset(index for entry in plan.entries for index in _written(entry))
    functions = [_Entry(entry, helpers, written, calls, words, plan.stops).function(block, target.block, out) for entry in plan.entries]
    printed: set[LibraryCall] = set()
    while len(printed) < len(calls):  # a shared function may call others
        for call in [c for c in calls if c not in printed]:
            printed.add(call)
            _print_shared(call, calls[call], helpers, math, calls)
    head = [f"// tack kernel {legal(name)} for {target.arch}, {dialect.title}", *dialect.head]
    types, definitions = helpers.text()
    text = "\n".join([*definitions, *(f"\n{f}" for f in functions), ""])
    out.text = "\n".join([*head, *types, *helpers.own(text), text])
    return out


def _written(entry: EntryPlan) -> Iterator[int]:
    """The array parameters that an entry stores to."""
    for instr in instructions(entry.body):
        if instr.op in STORES:
            array, _ = indices_of(instr)
            if isinstance(array, ArrayParam):
                yield array.index


def _print_shared(call: LibraryCall, name: str, helpers: Helpers, math: MathLibrary, calls: dict[LibraryCall, str]) -> None:
    """A function of the math library that is called rather than inlined. It reads and writes no memory."""
    function = math(*call)
    body = Lowering(math, False, False).block(function.body)
    result = function.results[0]
    simplify(Block(), body, [result])
    last = Instr("get", result.type, (), result)
    body.body += [last, Instr("return", None, (last,))]
    names = Names(helpers.dialect.reserved)
    printer = Body(helpers, Parameters(helpers, names, frozenset()), names, Facts.of(body, outer=frozenset(function.params)), 0)
    printer.calls = calls
    params = []
    for var in function.params:
        printer.variables[var] = names.new(var.name)
        params.append((var.type, printer.variables[var]))
    printer.print(body)
    helpers.outlined(name, result.type, params, printer.w.lines)


class _Entry:
    def __init__(
        self, entry: EntryPlan, helpers: Helpers, written: frozenset[int], calls: dict[LibraryCall, str], words: int, stops: bool
    ) -> None:
        self.entry, self.h, self.stops = entry, helpers, stops
        self.names = Names(helpers.dialect.reserved)
        self.p = Parameters(helpers, self.names, written)
        root = frozenset(r.var for r in entry.reductions)
        apart = entry.reductions or is_combination(entry)
        self.blocks = [entry.prologue, entry.body] if apart else [Block([*entry.prologue.body, *entry.body.body])]
        self.body = Body(helpers, self.p, self.names, Facts.of(*self.blocks, outer=root), words)
        self.body.calls = calls

    def function(self, block: int, usual: int, out: Text) -> str:
        """The definition; adds the entry to ``out``."""
        entry, body, w = self.entry, self.body, self.body.w
        group = block
        whole = True
        if entry.reductions:
            group = WIDTH
            print_blocks(body, entry, self.stops)
        elif is_combination(entry):
            group = COMBINERS
            print_combination(body, entry)
        else:
            whole = False
            if entry.single:
                group = 1
            self._threads()
            if not entry.single:
                self._place()
            if self.stops and "present" not in body.place:
                w.do(f"if ({stopped(body)}) return;")
            body.arrays(self.blocks[0])
            body.print(self.blocks[0])
        d = self.h.dialect
        head = d.entry(entry.symbol, group or usual)
        declarations = self.p.declarations()
        params, begin = d.parameters(list(declarations.values()))
        lines = [f"{head}{', '.join(params)}) {{", *(f"  {line}" for line in (*begin, *self.p.head)), *w.lines, "}"]
        rank = 1 if entry.reductions else entry.rank
        out.entries.append(EntryPoint(entry.symbol, list(declarations), rank, -1.0, group=group, whole_groups=whole))
        return "\n".join(lines)

    def _threads(self) -> None:
        """The thread's and the group's number, where the body asks for them."""
        used = {i.op for i in instructions(self.entry.body)}
        d = self.h.dialect
        for op, name, dtype, text, most in (("thread_id", "thread", i32, d.thread, INT[1]), ("block_id", "block", i64, d.group, 1 << 32)):
            if op in used:
                held = self.names.new(name)
                self.body.w.do(f"const {self.h.type(dtype)} {held} = ({self.h.type(dtype)}){text};")
                self.body.place[op] = Expr(held, high=most, small=dtype == i32)

    def _place(self) -> None:
        """Which iteration the thread runs, if any."""
        entry, w, h, names = self.entry, self.body.w, self.h, self.names
        d, number = h.dialect, h.type(i64)
        rank = entry.rank
        extents = [self.p.launch("extent", dim) for dim in range(rank)]
        plain = rank == 1 and entry.start[0] == 0 and entry.step[0] == 1
        at = names.new(index_name(entry, 0) if plain else "iteration")
        w.do(f"const {number} {at} = ({number}){d.group} * {d.group_size} + {d.thread};")
        total = " * ".join(extents)
        if any(i.op == "present" for i in instructions(entry.body)):
            present = names.new("present")
            w.do(f"const bool {present} = {at} < {total}{f' && !({stopped(self.body)})' if self.stops else ''};")
            self.body.place["present"] = Expr(present, high=1, small=True)
        else:
            w.do(f"if ({at} >= {total}) return;")
        self.body.index = [Expr("")] * rank
        if plain:
            low, high = index_range(entry, 0)
            self.body.index[0] = Expr(at, low=low, high=high)
            return
        rest = at
        for dim in range(rank - 1, -1, -1):
            if dim:
                self._index(dim, f"{rest} % {extents[dim]}")
            else:
                self._index(dim, rest)
            if dim > 1:
                before, rest = rest, names.new("rest")
                w.do(f"const {number} {rest} = {before} / {extents[dim]};")
            elif dim:
                rest = f"{rest} / {extents[dim]}"

    def _index(self, dim: int, place: str) -> None:
        """start + place * step."""
        entry, number = self.entry, self.h.type(i64)
        start, step = entry.start[dim], entry.step[dim]
        factor = self.p.launch("step", dim) if step is None else str(step)
        scaled = place if step == 1 else f"{place} * {factor}"
        text = scaled if start == 0 else f"{self.p.launch('start', dim) if start is None else start} + {scaled}"
        name = self.names.new(index_name(entry, dim))
        low, high = index_range(entry, dim)
        small = INT[0] <= low and high <= INT[1]
        held = self.h.type(i32) if small else number
        self.body.w.do(f"const {held} {name} = {f'({held})({text})' if small else text};")
        self.body.index[dim] = Expr(name, low=low, high=high, small=small)
