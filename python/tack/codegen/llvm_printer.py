"""Prints an entry point as LLVM IR: ``void symbol(ptr words, i64 begin, i64 end)`` over a piece of the launch's row-major index range.

The last dimension is the one that lanes share: rows are walked by scalar counters, and inside a row groups of W iterations run without a
mask, what is left of it under one. Large bodies are printed once, always under a mask. Entries that only stream through memory get a
second loop whose stores bypass the caches, for launches that are larger than these. Where rows may be short, lanes share the last two
dimensions in a loop of its own. Very large bodies are divided among functions. Versions for other launches are functions of their own,
whose code is what it would be if they were alone (in one function, a stencil's plain code took 1.2 times as long).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from ..ir.nodes import ArrayParam, For, Instr
from ..ir.target import Target
from .affine import access, indices_of
from .collapse import SHORT, Pair, flat_arrays
from .cost import collapse_flow, flow_of, iteration_ns, local_arrays, size_of
from .interior import Inside
from .lane_loops import ArrayPair, LaneLoop, enough_rounds
from .llvm_ahead import Ahead
from .llvm_atomics import ALONE, alone_symbol, signatures
from .llvm_body import Body
from .llvm_memory import Words
from .llvm_names import value_names
from .llvm_ops import Arithmetic
from .llvm_pieces import Pieces
from .llvm_reduce import Accumulators
from .llvm_rows import leading_stores, row_lengths, whole_rows
from .llvm_tables import Tables, private_arrays, used_values
from .llvm_text import Writer
from .llvm_versions import all_fit, has_interior, prefers_plain
from .machine import Machine
from .narrow import Narrowed
from .numbers import never_nan
from .params import EntryPlan
from .pieces import divide
from .streams import address_slice, anchor, far_accesses, leading_loads, streamed_store
from .tiles import find_tiles, worth
from .uniform import Flow
from .walk import instructions, nodes

__all__ = ["EntryPrinter"]

_ONE_COPY = 1200  # instructions of a body beyond which there is no unmasked copy
_UNROLLED, _UNROLLED_SIZE = 4, 16  # iterations between branches of plain code, and statements of a body for which there are several
_ALIGNED_GROUPS = 4  # groups of lanes in a row from which on the row begins with a short one, so that the others are aligned
_STREAM_BYTES = 32 << 20  # stored by a launch, from which on the caches would not keep them


class EntryPrinter:
    def __init__(
        self,
        entry: EntryPlan,
        narrowed: Narrowed | None,
        lanes: int,
        target: Target,
        declare: Callable[[str, str], None],
        stops: bool,
        inside: Inside | None = None,
        once: bool = False,
    ) -> None:
        """``narrowed``: the body in 32 bits, to be run where a launch's numbers allow that. ``once``: under a mask, in one copy."""
        self.stops, self.once = stops, once
        self.inside = inside
        self.general = entry
        self.edges: tuple[str, str, Body] | None = None  # the first and last index of the interior, and what runs outside of it
        self.assumptions = [] if narrowed is None else narrowed.assumptions
        self.wide = replace(entry, symbol=f"{entry.symbol}.wide") if self.assumptions else None
        plain = replace(entry, body=entry.plain or entry.body, plain=None)
        if narrowed is not None:
            entry = replace(entry, body=narrowed.body)
        self.entry, self.lanes, self.target = entry, lanes, target
        self.alone = alone_symbol(entry)
        self.each = 1 if entry.by_rounds else lanes  # iterations that the body is printed for
        self.declare = declare
        self.w = Writer()
        self.bodies: list[Body] = []
        self.versions: list[str] = []  # functions for other launches
        root = {r.var for r in entry.reductions}
        self.flow: Flow = flow_of(entry, lanes)
        self.words = Words(self.w, entry.slots)
        self.arithmetic = arithmetic = Arithmetic(self.w, declare, entry.fast, target)
        self.used = used_values(entry.prologue, entry.body)
        self.body = self._body(self.entry, self.flow)
        division = None if once else divide((entry.prologue, entry.body), self.flow, root)
        self.pieces = self.body.divided = None if division is None else Pieces(entry.symbol, division, bool(self.alone))
        if division is not None:  # the pieces hand on what single statements use
            self.body.memory.whole = {}
        self.reductions = Accumulators(self.body, entry.reductions, self.each) if entry.reductions else None
        self.size = size_of(entry)
        rows = arithmetic.x86_bits > 0 and not entry.by_rounds and not once
        self.stream = streamed_store(entry, self.flow) if rows and not stops else None  # a failed check leaves past the fence
        self.anchor = self.stream or (anchor(entry, self.flow) if rows and target.vector_bits >= 256 else None)
        self.body.memory.leading = leading_loads(entry, self.flow) | leading_stores(instructions(entry.body), self.flow)
        far = far_accesses(entry) if lanes == 1 and self.size <= _UNROLLED_SIZE else []
        self.ahead = Ahead(self.body, far) if far else None
        self.streaming = ""  # i1: whether this launch bypasses the caches
        pairs = None if once else collapse_flow(entry, lanes, Machine.of(target))
        self.collapsed = None if pairs is None else self._body(self.entry, pairs)
        arrays = [] if stops or once or division is not None else private_arrays(entry, self.flow, self.used)
        self.tables = Tables(self.w, self.words, arithmetic, entry, arrays) if arrays else None
        self.body.compact = once
        self.body.tiles = {} if division or once else find_tiles(entry, self.flow, target.vector_bits)
        loops: dict[For, list[ArrayPair]] = {n: n.pairs for n in nodes(entry.body) if isinstance(n, LaneLoop)}
        self.along_rows = loops or {loop: tiles.pairs for loop, tiles in self.body.tiles.items()}
        self.plain = replace(plain, symbol=f"{entry.symbol}.plain") if self.along_rows and not once else None
        self.cost = -1.0 if entry.single else iteration_ns(entry, self.flow, {p.array for p in arrays})

    def _body(self, entry: EntryPlan, flow: Flow) -> Body:
        body = Body(self.w, self.arithmetic, flow, self.words, local_arrays(entry), value_names(entry), {r.var for r in entry.reductions})
        body.memory.used = self.used
        rows = body.memory.rows = row_lengths(instructions(entry.body), flow)
        body.memory.whole = whole_rows(entry.body, flow, rows)
        self.arithmetic.numbers |= never_nan({r.var for r in entry.reductions}, entry.prologue, entry.body)
        self.bodies.append(body)
        return body

    def function(self, inner: bool = False) -> str:
        """``inner``: called by another one alone."""
        w = self.w
        w.lines = []
        done = w.label("exit")
        start = w.label("start")
        w.cbr(w.op("some", "icmp slt i64 %begin, %end"), start, done)
        w.start(start)
        self.body.labels["exit", None] = done
        if self.plain is not None:
            self._plain(self.plain, done)
        if self.wide is not None:
            self._wide(self.wide, done)
        if self.inside is not None and self.tables is None and self.pieces is None:
            self._interior(self.inside, done)
        if self.tables is not None:
            self._private(self.tables, done)
        self._launch(done, self.tables is None)
        w.start(done)
        w.do("ret void")
        about = [f";   words[{k}]: {text}" for k, text in sorted(self.words.about.items())]
        rounds = f", {self.lanes} rounds of inner loops" if self.entry.by_rounds else ""
        head = [f"; {self.each} iteration{'s' if self.each > 1 else ''}{rounds} at a time", *about]
        signature, both = signatures(self.entry.symbol, self.alone, inner)
        pieces = [] if self.pieces is None else self.pieces.functions
        return "\n".join([*pieces, *self.versions, *head, signature, "entry:", *w.entry, *w.lines, "}", "", *both])

    def _plain(self, entry: EntryPlan, done: str) -> None:
        """The body for launches that are better run one iteration at a time."""
        w = self.w
        pairs = list(dict.fromkeys(p for pairs in self.along_rows.values() for p in pairs))
        body = self._body(entry, flow_of(entry, 1))
        rounds, few = (
            (enough_rounds(self.along_rows, self.flow.form, self.lanes), 1) if self.entry.by_rounds else worth(self.body.tiles, self.lanes)
        )
        if entry.block is not None:  # a launch is over blocks
            body.straight(entry.prologue)
            iterations = body.kept[entry.counts[-1]]
        else:
            iterations = w.op("iterations", "sub i64 %end, %begin")
        test = prefers_plain(body, self.along_rows, pairs, rounds, iterations, few)
        if test:
            plain, rows = w.label("plain"), w.label("along.rows")
            w.cbr(test, plain, rows)
            w.start(plain)
            self._version(EntryPrinter(entry, None, 1, self.target, self.declare, self.stops), done)
            w.start(rows)

    def _wide(self, entry: EntryPlan, done: str) -> None:
        """The body in 64 bits, for the few launches that need it: one copy, always under a mask. What follows it is the other one."""
        w = self.w
        narrow, wide = w.label("narrow"), w.label("wide")
        w.cbr(all_fit(w, self.words, self.assumptions, self._ends), narrow, wide)
        w.start(wide)
        self._version(EntryPrinter(entry, None, self.lanes, self.target, self.declare, self.stops, once=True), done)
        w.start(narrow)

    def _version(self, version: EntryPrinter, done: str) -> None:
        """Leaves the launch to another version."""
        self.versions.append(version.function(inner=True))
        self.bodies += version.bodies
        told = f", i1 {ALONE}" if version.alone else ""
        self.w.do(f"call void @{version.entry.symbol}(ptr %words, i64 %begin, i64 %end{told})")
        self.w.br(done)

    def _interior(self, inside: Inside, done: str) -> None:
        """The body for launches whose rows have an interior, lanes there and one iteration at a time outside. The others go on."""
        w, dim = self.w, self.entry.rank - 1
        inner, usual = w.label("inside"), w.label("usual")
        ends = [self._index(dim, v, "end") for v in ("0", self._count(dim))]
        low, high, good = has_interior(w, self.words, inside.interior, ends[0], ends[1])
        fit = all_fit(w, self.words, inside.assumptions, self._ends)
        if fit:
            good = w.op("good", f"and i1 {good}, {fit}")
        w.cbr(good, inner, usual)
        w.start(inner)
        saved = self.entry, self.flow, self.body, self.anchor, self.stream, self.tables, self.used, self.each, self.lanes
        plain = self._body(self.general, flow_of(self.general, 1))
        self.entry, self.anchor, self.stream, self.tables = inside.entry, None, None, None
        self.flow = flow_of(inside.entry, inside.lanes)
        self.each = self.lanes = inside.lanes
        self.used = used_values(self.entry.prologue, self.entry.body)
        self.body = self._body(self.entry, self.flow)
        self.edges = low, high, plain
        for body, entry in ((plain, self.general), (self.body, self.entry)):
            body.labels["exit", None] = done
            body.straight(entry.prologue)
        self._iterations("%begin", "%end")
        self.w.br(done)
        self.edges = None
        self.entry, self.flow, self.body, self.anchor, self.stream, self.tables, self.used, self.each, self.lanes = saved
        w.start(usual)

    def _private(self, tables: Tables, done: str) -> None:
        """A copy of the loop that updates small arrays in tables of its own. What follows it, for the other launches, is bound by its
        atomics: it needs no loop for short rows.
        """
        w = self.w
        private, shared, merge = w.label("private"), w.label("shared"), w.label("private.end")
        w.cbr(tables.pays(), private, shared)
        w.start(private)
        tables.begin()
        memories = [body.memory for body in (self.body, self.collapsed) if body is not None]
        for memory in memories:
            memory.atomics.tables = tables
        self._launch(merge, True)
        for memory in memories:
            memory.atomics.tables = None
        w.start(merge)
        tables.end(self.body.memory)
        w.br(done)
        w.start(shared)

    def _launch(self, done: str, collapses: bool) -> None:
        """What the function does; it ends at the label ``done``, or falls through. ``collapses``: with a loop for short rows, if any."""
        if self.collapsed is not None and collapses:
            self._collapsed(self.collapsed, done)
        if self.entry.single:
            self._stop_if_failed()
        self.body.straight(self.entry.prologue)
        if self.ahead is not None:
            self.ahead.decide()
        if self.entry.single:
            self.body.memory.zero_locals()
            self.body.iteration(self.entry.body, None)
        elif self.reductions is not None:
            self._blocks()
        else:
            if self.stream is not None:
                self._decide_streaming()
            self._iterations("%begin", "%end")
            if self.streaming:
                self._fence()

    def _stop_if_failed(self) -> None:
        """Ends the function where an iteration has failed, in this launch or an earlier one of the call."""
        if not self.stops:
            return
        w = self.w
        failed = w.op("failed", f"load atomic i64, ptr {self.words.records()} monotonic, align 8")  # the buffer's first word
        go_on = w.label("go.on")
        w.cbr(w.op("stopped", f"icmp ne i64 {failed}, 0"), self.body.labels["exit", None], go_on)
        w.start(go_on)

    # ---- index ranges

    def _count(self, dim: int) -> str:
        """How many iterations the loop has along ``dim``."""
        return self.body.kept[self.entry.counts[dim]] if self.entry.counts else self.words.launch("extent", dim)

    def _bound(self, kind: str, dim: int) -> str | None:
        """The loop's start or step along ``dim``; None where it is 0 or 1."""
        known = (self.entry.start if kind == "start" else self.entry.step)[dim]
        if known is not None:
            return None if known == (0 if kind == "start" else 1) else str(known)
        kept = self.entry.first if kind == "start" else self.entry.stride
        return self.body.kept[kept[dim]] if kept else self.words.launch(kind, dim)

    def _ends(self, dim: int) -> list[str]:
        """The first and the last index along ``dim``."""
        last = self.w.op("last", f"sub i64 {self._count(dim)}, 1")
        return [self._index(dim, v, "bound") for v in ("0", last)]

    def _index(self, dim: int, counter: str, hint: str) -> str:
        """start + counter * step."""
        start, step = self._bound("start", dim), self._bound("step", dim)
        value = counter if step is None else self.w.op(hint, f"mul i64 {counter}, {step}")
        return value if start is None else self.w.op(hint, f"add i64 {value}, {start}")

    def _iterations(self, low: str, high: str) -> None:
        """Iterations [low, high) of the linear range, which is not empty."""
        self.body.index = [""] * self.entry.rank
        self._range(low, high, [self._count(d) for d in range(self.entry.rank)], self._row if self.edges is None else self._parts)

    def _range(self, low: str, high: str, counts: list[str], run: Callable[[str, str], None]) -> None:
        """Runs pieces of rows, the last of the dimensions that have these counts; sets the indices of the others."""
        w, rank = self.w, len(counts)
        if rank == 1:
            run(low, high)
            return
        # Divisions only here: after this, counters.
        at = w.once("at", "alloca i64, align 8")
        column = w.once("column", "alloca i64, align 8")
        coords = [w.once(f"coordinate{d}", "alloca i64, align 8") for d in range(rank - 1)]
        w.do(f"store i64 {low}, ptr {at}")
        rest = low
        for d in range(rank - 1, 0, -1):
            count = counts[d]
            place = column if d == rank - 1 else coords[d]
            w.do(f"store i64 {w.op('coordinate', f'urem i64 {rest}, {count}')}, ptr {place}")
            rest = w.op("rest", f"udiv i64 {rest}, {count}")
        w.do(f"store i64 {rest}, ptr {coords[0]}")
        row, done = w.label("row"), w.label("rows.done")
        w.start(row)
        now, first = w.op("now", f"load i64, ptr {at}"), w.op("first", f"load i64, ptr {column}")
        values = [w.op(f"coordinate{d}.now", f"load i64, ptr {c}") for d, c in enumerate(coords)]
        self.body.index[: rank - 1] = [self._index(d, v, f"index{d}") for d, v in enumerate(values)]
        length = w.op("length", f"sub nsw i64 {counts[-1]}, {first}")
        left = w.op("left", f"sub nsw i64 {high}, {now}")
        count = w.op("count", f"select i1 {w.op('whole', f'icmp slt i64 {length}, {left}')}, i64 {length}, i64 {left}")
        run(first, w.op("last", f"add nsw i64 {first}, {count}"))
        after = w.op("after", f"add nsw i64 {now}, {count}")
        w.do(f"store i64 {after}, ptr {at}")
        w.do(f"store i64 0, ptr {column}")
        carry = "1"
        for d in range(rank - 2, -1, -1):
            up = w.op("up", f"add nsw i64 {values[d]}, {carry}")
            if d:
                wrap = w.op("wrap", f"icmp eq i64 {up}, {counts[d]}")
                w.do(f"store i64 {w.op('up', f'select i1 {wrap}, i64 0, i64 {up}')}, ptr {coords[d]}")
                carry = w.op("carry", f"zext i1 {wrap} to i64")
            else:
                w.do(f"store i64 {up}, ptr {coords[d]}")
        w.cbr(w.op("more", f"icmp slt i64 {after}, {high}"), row, done)
        w.start(done)

    def _group(self, at: str, first: str, mask: str | None) -> None:
        """The body for the iterations from ``at`` on."""
        w, body = self.w, self.body
        self._stop_if_failed()
        dim = self.entry.rank - 1
        body.index[dim] = self._index(dim, at, f"index{dim}")
        if self.each > 1 and self.entry.step[dim] is None:
            step = self._bound("step", dim)
            assert step is not None
            t = f"<{self.lanes} x i64>"
            iota = "<" + ", ".join(f"i64 {k}" for k in range(self.lanes)) + ">"
            far = w.op("far", f"mul {t} {body.values.splat('i64', step, 'step', once=not self.entry.stride)}, {iota}")
            body.index_vectors[dim] = w.op(f"index{dim}.lanes", f"add {t} {body.values.splat('i64', body.index[dim], 'index')}, {far}")
        body.memory.zero_locals()
        if body.memory.atomics.tables is not None and self.lanes == 1:
            body.memory.atomics.tables.begin_iteration(at)
        if self.reductions is not None:
            self.reductions.begin_group(w.op("place", f"sub nsw i64 {at}, {first}"))
        body.iteration(self.entry.body, mask)
        if self.reductions is not None:
            self.reductions.end_group(mask)

    def _parts(self, first: str, last: str) -> None:
        """Columns [first, last) of a row: outside of the interior one by one."""
        assert self.edges is not None
        w, (low, high, plain) = self.w, self.edges
        start = self._bound("start", self.entry.rank - 1)
        cuts = [first]
        for border in (low, high):
            column = border if start is None else w.op("column", f"sub i64 {border}, {start}")
            column = w.op("column", f"select i1 {w.op('before', f'icmp slt i64 {column}, {last}')}, i64 {column}, i64 {last}")
            cuts.append(w.op("cut", f"select i1 {w.op('after', f'icmp sgt i64 {column}, {first}')}, i64 {column}, i64 {first}"))
        cuts.append(last)
        for k, (begin, end) in enumerate(pairwise(cuts)):
            some, after = w.label("some.columns"), w.label("columns.done")
            w.cbr(w.op("some", f"icmp slt i64 {begin}, {end}"), some, after)
            w.start(some)
            if k == 1:
                self._row(begin, end)
            else:
                saved = self.entry, self.flow, self.body, self.each, self.lanes
                plain.index = self.body.index
                self.entry, self.flow, self.body, self.each, self.lanes = self.general, plain.flow, plain, 1, 1
                self._row(begin, end)
                self.entry, self.flow, self.body, self.each, self.lanes = saved
            w.start(after)

    def _row(self, first: str, last: str) -> None:
        """Columns [first, last) of a row, which are not empty."""
        w, n = self.w, self.each
        at = w.once("position", "alloca i64, align 8")
        w.do(f"store i64 {first}, ptr {at}")
        done = w.label("row.done")
        if n == 1:
            loop = w.label("iteration")
            if self.size <= _UNROLLED_SIZE and all(isinstance(node, Instr) for node in self.entry.body.body):
                self._several(at, first, last, loop, done)
            w.start(loop)
            now = w.op("i", f"load i64, ptr {at}")
            self._group(now, first, None)
            self._advance(at, now, "1", last, loop, done)
            w.start(done)
            return
        some, part = w.label("some.lanes"), w.label("part")
        count = w.once("lanes.on", "alloca i64, align 8")
        if self.size > _ONE_COPY or self.pieces is not None or self.once:
            w.start(part)
            now = w.op("i", f"load i64, ptr {at}")
            left = w.op("left", f"sub nsw i64 {last}, {now}")
            on = w.op("on", f"select i1 {w.op('full', f'icmp sgt i64 {left}, {n}')}, i64 {n}, i64 {left}")
            self._group(now, first, self.body.values.first_lanes(on))
            self._advance(at, now, str(n), last, part, done)
            w.start(done)
            return
        check, tail = w.label("groups"), w.label("tail")
        if self.anchor is not None:
            self._align(first, last, count, some, check)
        w.start(check)
        now = w.op("i", f"load i64, ptr {at}")
        enough = w.op("enough", f"icmp sge i64 {w.op('left', f'sub nsw i64 {last}, {now}')}, {n}")
        group = w.label("group")
        stream = w.label("group.streamed") if self.stream is not None else ""
        choose = w.label("choose") if stream else group
        w.cbr(enough, choose, tail)
        if stream:
            w.start(choose)
            w.cbr(self.streaming, stream, group)
        for label in filter(None, (group, stream)):
            w.start(label)
            now = w.op("i", f"load i64, ptr {at}")
            self.body.memory.nontemporal = self.stream if label == stream else None
            self._group(now, first, None)
            self.body.memory.nontemporal = None
            after = w.op("i.up", f"add nuw nsw i64 {now}, {n}")
            w.do(f"store i64 {after}, ptr {at}")
            left = w.op("left", f"sub nsw i64 {last}, {after}")
            w.cbr(w.op("more", f"icmp sge i64 {left}, {n}"), label, tail)
        w.start(tail)
        now = w.op("i", f"load i64, ptr {at}")
        left = w.op("left", f"sub nsw i64 {last}, {now}")
        w.do(f"store i64 {left}, ptr {count}")
        w.cbr(w.op("some", f"icmp sgt i64 {left}, 0"), some, done)
        w.start(some)
        now, on = w.op("i", f"load i64, ptr {at}"), w.op("on", f"load i64, ptr {count}")
        self._group(now, first, self.body.values.first_lanes(on))
        if self.anchor is not None:
            self._advance(at, now, on, last, check, done)
        w.start(done)

    def _several(self, at: str, first: str, last: str, rest: str, done: str) -> None:
        """Iterations one by one, several before each branch; what is left goes to ``rest``."""
        w = self.w
        several, check = w.label("several"), w.label("several.next")
        if self.ahead is not None:
            dim = self.entry.rank - 1
            index = lambda i: self._index(dim, i, f"index{dim}")  # noqa: E731
            self.ahead.several(_UNROLLED, at, last, check, index, lambda i: self._group(i, first, None))
        w.start(check)
        now = w.op("i", f"load i64, ptr {at}")
        left = w.op("left", f"sub nsw i64 {last}, {now}")
        w.cbr(w.op("enough", f"icmp sge i64 {left}, {_UNROLLED}"), several, rest)
        w.start(several)
        for k in range(_UNROLLED):
            self._group(now if k == 0 else w.op("i", f"add nuw nsw i64 {now}, {k}"), first, None)
        self._advance(at, now, str(_UNROLLED), last, check, done)

    def _advance(self, at: str, now: str, by: str, last: str, again: str, done: str) -> None:
        w = self.w
        after = w.op("i.up", f"add nuw nsw i64 {now}, {by}")
        w.do(f"store i64 {after}, ptr {at}")
        w.cbr(w.op("more", f"icmp slt i64 {after}, {last}"), again, done)

    # ---- short rows

    def _collapsed(self, body: Body, done: str) -> None:
        """A loop over the last two dimensions as one, where the last one is short and the arrays' rows are as long."""
        w, rank, n = self.w, self.entry.rank, self.lanes
        columns = self._count(rank - 1)
        fits = w.op("short", f"icmp ult i64 {columns}, {SHORT * n}")
        for array in flat_arrays(self.entry):
            same = w.op("same", f"icmp eq i64 {self.words.shape(array, array.rank - 1)}, {columns}")
            fits = w.op("fits", f"and i1 {fits}, {same}")
        flat, rows = w.label("flat"), w.label("rows")
        w.cbr(fits, flat, rows)
        w.start(flat)
        by_rows, self.body = self.body, body
        body.index = [""] * rank
        body.straight(self.entry.prologue)
        pair = Pair(body, columns)
        counts = [self._count(d) for d in range(rank - 2)]
        plane = w.op("plane", f"mul nsw i64 {self._count(rank - 2)}, {columns}")
        at = w.once("position", "alloca i64, align 8")

        def run(first: str, last: str) -> None:
            loop, end = w.label("flat.group"), w.label("flat.done")
            pair.begin(first)
            w.do(f"store i64 {first}, ptr {at}")
            w.start(loop)
            place = w.op("i", f"load i64, ptr {at}")
            left = w.op("left", f"sub nsw i64 {last}, {place}")
            on = w.op("on", f"select i1 {w.op('full', f'icmp sgt i64 {left}, {n}')}, i64 {n}, i64 {left}")
            now = pair.now()
            dims = (rank - 2, rank - 1)
            body.memory.pair = (self._index(dims[0], now[0][0], "index"), self._index(dims[1], now[0][1], "index"))
            for d, lanes in zip(dims, now[1], strict=True):
                start = self._bound("start", d)
                if start is not None:
                    lanes = w.op(f"index{d}.lanes", f"add <{n} x i64> {lanes}, {body.values.splat('i64', start, 'start')}")
                body.index_vectors[d] = lanes
            body.memory.zero_locals()
            body.iteration(self.entry.body, body.values.first_lanes(on))
            pair.advance(now)
            self._advance(at, place, str(n), last, loop, end)
            w.start(end)

        self._range("%begin", "%end", [*counts, plane], run)
        w.br(done)
        w.start(rows)
        self.body = by_rows

    # ---- reductions

    def _blocks(self) -> None:
        """A launch over blocks of iterations."""
        w, entry = self.w, self.entry
        assert self.reductions is not None
        assert entry.block is not None
        size, total = self.body.kept[entry.block], self.body.kept[entry.counts[-1]]
        block = w.once("block.next", "alloca i64, align 8")
        w.do(f"store i64 %begin, ptr {block}")
        loop, done = w.label("block"), w.label("blocks.done")
        w.start(loop)
        now = w.op("block", f"load i64, ptr {block}")
        low = w.op("low", f"mul nsw i64 {now}, {size}")
        end = w.op("end", f"add nsw i64 {low}, {size}")
        high = w.op("high", f"select i1 {w.op('full', f'icmp slt i64 {end}, {total}')}, i64 {end}, i64 {total}")
        self.reductions.begin_block()
        self._iterations(low, high)
        self.reductions.end_block(now)
        after = w.op("block.up", f"add nuw nsw i64 {now}, 1")
        w.do(f"store i64 {after}, ptr {block}")
        w.cbr(w.op("more", f"icmp slt i64 {after}, %end"), loop, done)
        w.start(done)

    # ---- non-temporal stores

    def _decide_streaming(self) -> None:
        assert self.stream is not None
        w = self.w
        array, _ = indices_of(self.stream)
        total = self._count(0)
        for d in range(1, self.entry.rank):
            total = w.op("total", f"mul i64 {total}, {self._count(d)}")
        self.streaming = w.op("streaming", f"icmp uge i64 {total}, {_STREAM_BYTES // array.dtype.itemsize}")

    def _align(self, first: str, last: str, count: str, some: str, check: str) -> None:
        """Steps a few iterations up to where the anchor's address is aligned to the vector: always for non-temporal stores, else in rows
        that are long enough to gain from it."""
        assert self.anchor is not None
        w, body, n = self.w, self.body, self.lanes
        array, _ = indices_of(self.anchor)
        assert isinstance(array, ArrayParam)
        align = w.label("align")
        left = w.op("left", f"sub nsw i64 {last}, {first}")
        wanted = w.op("long", f"icmp sge i64 {left}, {_ALIGNED_GROUPS * n}")
        if self.streaming:
            wanted = w.op("aligned", f"select i1 {self.streaming}, i1 true, i1 {wanted}")
        w.cbr(wanted, align, check)
        w.start(align)
        dim = self.entry.rank - 1
        body.index[dim] = self._index(dim, first, f"index{dim}")
        part = address_slice(self.entry, self.anchor)
        assert part is not None
        for instr in part:
            body.instr(instr, None)
        flat = self.anchor.op in ("load_flat", "store_flat")
        address = w.op("address", f"ptrtoint ptr {body.memory.base(array, access(self.anchor, self.flow.form), flat)} to i64")
        size = array.dtype.itemsize
        over = w.op("over", f"and i64 {w.op('less', f'sub i64 0, {address}')}, {min(size * n, 64) - 1}")
        steps = w.op("steps", f"udiv i64 {over}, {size}")
        on = w.op("on", f"select i1 {w.op('short', f'icmp slt i64 {left}, {steps}')}, i64 {left}, i64 {steps}")
        w.do(f"store i64 {on}, ptr {count}")
        w.cbr(w.op("some", f"icmp sgt i64 {on}, 0"), some, check)

    def _fence(self) -> None:
        """Orders the non-temporal stores before whatever says that the launch is over."""
        w = self.w
        fence, after = w.label("fence"), w.label("fence.done")
        w.cbr(self.streaming, fence, after)
        w.start(fence)
        self.declare("llvm.x86.sse.sfence", "declare void @llvm.x86.sse.sfence()")
        w.do("call void @llvm.x86.sse.sfence()")
        w.start(after)
