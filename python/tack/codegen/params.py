"""Plans a kernel's entry points: what is launched, what is recomputed, which words each entry takes, where scalars live between launches.

A kernel is a schedule of launches. Statements outside loops (segments) that neither read nor write memory are recomputed at the start of
every entry that needs their scalars. The others are launches of one iteration, and the scalars that they hand on live in scratch cells,
as do reductions and the returned scalar. A reduction is two launches: blocks of iterations, whose number depends on the extent alone,
leave partial results; one iteration combines them in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from ..errors import CompileNotImplementedError
from ..ir.nodes import (
    ArrayParam,
    Block,
    Extent,
    For,
    Instr,
    Item,
    Kernel,
    Loc,
    LocalArray,
    Node,
    NoneParam,
    Parallel,
    ScalarParam,
    Segment,
    Sequence,
    Var,
)
from ..ir.reduction import BLOCK_SIZE, BLOCKS
from ..ir.source import ArgumentSpec, ParamSlot, RecordSite, Step
from ..types import i64
from .checks import Checks
from .groups import lower_groups
from .legalize import is_pure, reads, simplify
from .lower import Lowering, MathLibrary, frequent, index_prologue
from .lower_ops import Builder
from .walk import nodes, variables_set

__all__ = ["EntryPlan", "Plan", "ReductionPlan", "Slots", "argument_specs", "plan"]

LOCAL_BYTES = 1 << 18  # of an iteration's local arrays, which lie on the stack
_ONE, _ZERO = Extent.constant(1), Extent.constant(0)


class Slots:
    """The words of an entry's parameter block, in the order in which they are first asked for."""

    def __init__(self) -> None:
        self.order: list[ParamSlot] = []
        self._at: dict[ParamSlot, int] = {}

    def word(self, kind: str, arg: int = 0, dim: int = 0, dtype: str = "i64") -> int:
        slot = ParamSlot(kind, arg, dim, dtype)
        if slot not in self._at:
            self._at[slot] = len(self.order)
            self.order.append(slot)
        return self._at[slot]


@dataclass(slots=True)
class ReductionPlan:
    """``var`` collects in an iteration; ``partials`` is the scratch offset of the blocks' results (8 bytes each)."""

    var: Var
    op: str
    partials: int


@dataclass(slots=True)
class EntryPlan:
    """One function. ``prologue`` runs once per call, ``body`` once per iteration; both lowered and simplified.

    ``start``/``step``: the known constants per dimension, None where they come as words. ``single``: a launch of one iteration.
    ``counts``: of a reduction's entry, whose launch counts blocks: the variables that hold the loop's own extents, set by the prologue,
    and ``block`` the one that holds the iterations of a block; ``first``/``stride`` hold the loop's start and step then.
    """

    symbol: str
    rank: int
    prologue: Block
    body: Block
    single: bool = False
    start: list[int | None] = field(default_factory=list)
    step: list[int | None] = field(default_factory=list)
    columns: int | None = None  # iterations along the last dimension, where known
    reductions: list[ReductionPlan] = field(default_factory=list)
    counts: list[Var] = field(default_factory=list)
    first: list[Var] = field(default_factory=list)
    stride: list[Var] = field(default_factory=list)
    block: Var | None = None
    indices: list[str] = field(default_factory=list)  # names of the loop's variables
    fast: bool = False  # floats may be combined in any order
    plain: Block | None = None  # what the body was before lanes were to share the rounds of inner loops, instead of the iterations
    slots: Slots = field(default_factory=Slots)

    @property
    def by_rounds(self) -> bool:
        """Whether lanes share the rounds of inner loops."""
        return self.plain is not None


@dataclass(slots=True)
class Plan:
    entries: list[EntryPlan]
    steps: list[Step]
    scratch_bytes: int
    result_offset: int
    sites: list[RecordSite]
    stops: bool  # an iteration can fail, and then all entries return


def argument_specs(kernel: Kernel) -> list[ArgumentSpec]:
    kinds = {"int": "integer", "uint": "unsigned", "float": "floating", "bool": "boolean", "strong": "strong"}
    out: list[ArgumentSpec] = []
    for p in kernel.params:
        if isinstance(p, ArrayParam):
            written = p.index in kernel.written
            out.append(ArgumentSpec(p.name, "array", p.dtype, p.rank, p.layout, read_only=not written, written=written, texture=p.texture))
        elif isinstance(p, ScalarParam):
            spec = ArgumentSpec(p.name, kinds[p.kind], p.dtype)
            if p.low is not None:
                spec.min = p.low
            if p.high is not None:
                spec.max = p.high
            out.append(spec)
        else:
            assert isinstance(p, NoneParam)
            out.append(ArgumentSpec(p.name, "none", i64))
    return out


def plan(kernel: Kernel, symbol: str, math: MathLibrary, contract: bool, checked: bool) -> Plan:
    """Plans and lowers ``kernel``; ``symbol`` is the prefix of the entries' names, ``checked`` puts in the checks of debug mode."""
    return _Planner(kernel, symbol, math, contract, checked).run()


def refuse(kernel: Kernel, loc: Loc | None, message: str) -> CompileNotImplementedError:
    """The error for what this compiler does not do (yet)."""
    place = f"{loc.file}:{loc.line}: " if loc else ""
    return CompileNotImplementedError(
        f"{place}Kernel '{kernel.name}': {message}",
        message=message,
        file=loc.file if loc else None,
        line=loc.line if loc else None,
        column=loc.column if loc else None,
        kernel=kernel.name,
    )


class _Planner:
    def __init__(self, kernel: Kernel, symbol: str, math: MathLibrary, contract: bool, checked: bool) -> None:
        self.kernel, self.symbol, self.math, self.contract = kernel, symbol, math, contract
        self.checks = Checks(kernel, checked)
        self.arrays = {p.index: p for p in kernel.params if isinstance(p, ArrayParam)}
        self.scalars = {p.index: p for p in kernel.params if isinstance(p, ScalarParam)}
        self.order: list[Segment | Parallel] = []
        self.path: dict[Item, tuple[Sequence, ...]] = {}
        self._collect(kernel.items, ())
        self.shared = frequent(math, [item.body for item in self.order])
        self._check()
        self.position = {item: k for k, item in enumerate(self.order)}
        self.reads = {item: self._needs(item) for item in self.order}
        self.writes = {item: variables_set(item.body) for item in self.order if isinstance(item, Segment)}
        self.resident: dict[Var, int] = {}  # scratch offset
        self.launched: set[Segment] = set()
        self.scratch = 0
        self._place()
        self.entries: list[EntryPlan] = []
        self.steps: list[Step] = []

    def _collect(self, items: list[Item], path: tuple[Sequence, ...]) -> None:
        for item in items:
            self.path[item] = path
            if isinstance(item, Sequence):
                self._collect(list(item.items), (*path, item))
            else:
                self.order.append(item)

    def _check(self) -> None:
        """Refuses what is not there (yet)."""
        for item in self.order:
            size = 0
            seen: set[LocalArray] = set()
            for node in nodes(item.body):
                if not isinstance(node, Instr):
                    continue
                array: object = node.attr[1] if node.op == "atomic" and isinstance(node.attr, tuple) else node.attr
                if node.op == "atomic" and isinstance(array, LocalArray):
                    raise refuse(
                        self.kernel,
                        node.loc,
                        f"atomics work on array arguments; '{array.name}' is a local array, which no one else sees: use plain statements",
                    )
                if isinstance(array, LocalArray) and array not in seen:
                    seen.add(array)
                    size += array.dtype.itemsize * prod(array.shape)
                    if size > LOCAL_BYTES:
                        raise refuse(
                            self.kernel,
                            node.loc,
                            f"local arrays of {size} bytes; the limit is {LOCAL_BYTES}. Pass a scratch array as an argument",
                        )

    def _needs(self, item: Segment | Parallel) -> set[Var]:
        out = reads(item.body)
        if isinstance(item, Parallel):
            out -= set(item.indices)
            out |= {r.var for r in item.reductions}
        return out

    def _place(self) -> None:
        """Decides which variables live in scratch and which segments are launched."""
        segments = [s for s in self.order if isinstance(s, Segment)]
        resident: set[Var] = set() if self.kernel.result is None else {self.kernel.result}
        for item in self.order:
            if isinstance(item, Parallel):
                resident |= {r.var for r in item.reductions}
        for segment in segments:
            resident |= {v for v in self.writes[segment] if self._carried(v, segment, segments)}
        launched = {s for s in segments if not is_pure(s.body, self.checks.checked)}
        while True:
            launched |= {s for s in segments if self.writes[s] & resident}
            handed = {v for s in launched for v in self.writes[s] for item in self.order if item is not s and v in self.reads[item]}
            if handed <= resident:
                break
            resident |= handed
        self.launched = launched
        for var in self._in_order(resident):
            self.resident[var] = self.scratch
            self.scratch += 8

    def _in_order(self, variables: set[Var]) -> list[Var]:
        """In order of appearance, so that the text is the same in every process."""
        out: dict[Var, None] = {}
        for item in self.order:
            for node in nodes(item.body):
                var = node.var if isinstance(node, For) else node.attr if isinstance(node, Instr) else None
                if isinstance(var, Var) and var in variables:
                    out[var] = None
            if isinstance(item, Parallel):
                out |= {r.var: None for r in item.reductions}
        return list(out)

    def _carried(self, var: Var, segment: Segment, segments: list[Segment]) -> bool:
        """Whether recomputing ``segment`` cannot give ``var``: its value passes from step to step of a sequence, or out of it."""
        path = self.path[segment]
        if any(self.path[s] != path for s in segments if var in self.writes[s]):
            return True
        if not path:
            return False
        readers = [item for item in self.order if var in self.reads[item]]
        return any(self.path[r][: len(path)] != path or self.position[r] <= self.position[segment] for r in readers)

    # ---- entries

    def run(self) -> Plan:
        self._schedule(self.kernel.items)
        result = self.kernel.result
        return Plan(
            self.entries, self.steps, self.scratch, -1 if result is None else self.resident[result], self.checks.sites, self.checks.stops
        )

    def _schedule(self, items: list[Item]) -> None:
        for item in items:
            if isinstance(item, Sequence):
                begin = len(self.steps)
                self.steps.append(Step("sequence_begin", 0, [item.start], [item.stop], [item.step]))
                self._schedule(list(item.items))
                self.steps[begin].match = len(self.steps)
                self.steps.append(Step("sequence_end", match=begin))
            elif isinstance(item, Parallel):
                self._parallel(item)
            elif item in self.launched:
                self._segment(item)

    def _add(self, entry: EntryPlan, start: list[Extent], stop: list[Extent], step: list[Extent]) -> None:
        entry.symbol = f"{self.symbol}_{len(self.entries)}"
        simplify(entry.prologue, entry.body, [r.var for r in entry.reductions])
        if "workgroups" in self.kernel.uses:
            lower_groups(entry.prologue, entry.body, int(str(self.kernel.options["block"])), entry.single)
        self.steps.append(Step("launch", len(self.entries), start, stop, step))
        self.entries.append(entry)

    def _lowering(self) -> Lowering:
        return Lowering(self.math, self.contract, self.checks.checked, self.shared)

    def _prologue(self, item: Segment | Parallel, needed: set[Var], lowering: Lowering) -> list[Node]:
        """Brings the scalars that ``item`` reads: from scratch, from the sequences' counters, by recomputing pure segments."""
        path = self.path[item]
        needed = set(needed)
        before: list[Segment] = []
        for earlier in reversed(self.order[: self.position[item]]):
            if isinstance(earlier, Segment) and earlier not in self.launched and self.writes[earlier] & needed:
                before.append(earlier)
                needed |= self.reads[earlier]
        b = Builder()
        for depth, sequence in enumerate(path):
            if sequence.var in needed:
                b.emit("set", None, (b.emit("sequence", i64, (), depth),), sequence.var)
        inner = {s.var for s in path}
        for other in self.path.values():
            for sequence in other:
                if sequence.var in needed and sequence.var not in inner:
                    raise refuse(
                        self.kernel,
                        item.loc,
                        f"'{sequence.var.name}' is read after its tack.sequential loop; compute its last value from the bounds",
                    )
        for var, offset in self.resident.items():
            if var in needed:
                b.emit("set", None, (b.emit("cell", var.type, (), offset),), var)
        for segment in reversed(before):
            b.out += lowering.block(segment.body).body
        return b.out

    def _segment(self, item: Segment) -> None:
        handed = [v for v in self.resident if v in self.writes[item]]
        lowering = self._lowering()
        prologue = self._prologue(item, self.reads[item] | set(handed), lowering)
        body = lowering.block(item.body)
        self.checks.rewrite(body, [], self.path[item])
        b = Builder(body.body, item.loc)
        for var in handed:
            b.emit("set_cell", None, (b.emit("get", var.type, (), var),), self.resident[var])
        entry = EntryPlan("", 1, Block(prologue), body, single=True)
        self._add(entry, [_ZERO], [_ONE], [_ONE])

    def _parallel(self, item: Parallel) -> None:
        lowering = self._lowering()
        outer = {v for w in self.writes.values() for v in w} | set(self.resident)
        private = variables_set(item.body) & outer
        reduced = {r.var for r in item.reductions}
        prologue = self._prologue(item, self.reads[item] - reduced, lowering)
        head = index_prologue(item.indices)
        b = Builder(head)
        for var in self._in_order(private):
            own = lowering.variables[var] = Var(var.name, var.type)
            if var not in reduced and var in self.reads[item]:
                b.emit("set", None, (b.emit("get", var.type, (), var),), own)
        body = lowering.block(item.body)
        self.checks.rewrite(body, item.indices, self.path[item])
        body.body[:0] = head
        rank = len(item.indices)
        entry = EntryPlan("", rank, Block(prologue), body, indices=[v.name for v in item.indices])
        if not item.reductions:
            entry.start = [_constant(e) for e in item.start]
            entry.step = [_constant(e) for e in item.step]
            first, stop, step = entry.start[-1], _constant(item.stop[-1]), entry.step[-1]
            if first is not None and stop is not None and step:
                entry.columns = len(range(first, stop, step))
            self._add(entry, item.start, item.stop, item.step)
            return
        self._reduction(item, entry, lowering)

    # ---- reductions

    def _reduction(self, item: Parallel, entry: EntryPlan, lowering: Lowering) -> None:
        partials: list[ReductionPlan] = []
        for r in item.reductions:
            partials.append(ReductionPlan(lowering.variables[r.var], r.op, self.scratch))
            self.scratch += 8 * BLOCKS
        entry.reductions = partials
        entry.rank = len(item.indices)
        # The loop's own extents, as variables that the prologue sets.
        b = Builder()
        n, block, _ = _geometry(b, self._total(item, b, entry))
        entry.block, entry_total = Var("block", i64), Var("total", i64)
        b.emit("set", None, (block,), entry.block)
        b.emit("set", None, (n,), entry_total)
        entry.counts.append(entry_total)
        entry.start = [_constant(e) for e in item.start]
        entry.step = [_constant(e) for e in item.step]
        keep = [*entry.counts, *entry.first, *entry.stride, entry.block]
        entry.prologue.body += lowering.block(Block(b.out)).body
        entry.prologue.body += [n for v in keep for n in _use(v)]
        # The runtime sees the loop's own ranges too: the number of blocks tells nothing of a loop that is too long.
        self.steps.append(Step("check", len(self.entries), item.start, item.stop, item.step))
        self._add(entry, [_ZERO], [Extent(_blocks_extent(item))], [_ONE])
        # One iteration combines the partial results with what the variables held before.
        lowering = self._lowering()
        b = Builder(loc=item.loc)
        _, _, blocks = _geometry(b, self._total(item, b, None))
        count = Var("blocks", i64)
        b.emit("set", None, (blocks,), count)
        prologue = self._prologue(item, set(), lowering) + lowering.block(Block(b.out)).body
        body = Builder(loc=item.loc)
        for r, p in zip(item.reductions, partials, strict=True):
            body.emit("combine", None, (body.emit("get", i64, (), count),), (r.op, p.partials, self.resident[r.var], r.var.type))
        self._add(EntryPlan("", 1, Block(prologue), Block(body.out), single=True), [_ZERO], [_ONE], [_ONE])

    def _total(self, item: Parallel, b: Builder, entry: EntryPlan | None) -> Instr:
        """The number of iterations; notes the loop's own bounds as variables of ``entry``."""
        total: Instr | None = None
        for d in range(len(item.indices)):
            start, stop, step = (self._evaluate(e[d], b) for e in (item.start, item.stop, item.step))
            span = b.emit("floordiv", i64, (b.sub(start, stop), step))
            count = b.emit("max", i64, (b.emit("neg", i64, (span,)), b.const(i64, 0)))
            if entry is not None:
                for kept, value, name in ((entry.counts, count, "count"), (entry.first, start, "start"), (entry.stride, step, "step")):
                    var = Var(f"{name}{d}", i64)
                    kept.append(var)
                    b.emit("set", None, (value,), var)
            total = count if total is None else b.mul(total, count)
        assert total is not None
        return total

    def _evaluate(self, extent: Extent, b: Builder) -> Instr:
        """The extent's value as instructions."""
        stack: list[Instr] = []
        for op, arg, dim, value in extent.terms:
            if op == "constant":
                stack.append(b.const(i64, value))
            elif op == "shape":
                stack.append(b.emit("shape", i64, (), (self.arrays[arg], dim)))
            elif op == "scalar":
                param = self.scalars[arg]
                stack.append(b.cast(b.emit("arg", param.dtype, (), param), i64))
            elif op == "sequence":
                stack.append(b.emit("sequence", i64, (), arg))
            elif op == "neg":
                stack.append(b.emit("neg", i64, (stack.pop(),)))
            elif op in ("popcount", "clz"):
                stack.append(b.emit("bits", i64, (stack.pop(),), op))
            elif op == "select":
                no, yes, cond = stack.pop(), stack.pop(), stack.pop()
                stack.append(b.select(b.compare("ne", cond, b.const(i64, 0)), yes, no))
            else:
                right, left = stack.pop(), stack.pop()
                if op in ("lt", "le", "eq", "ne"):
                    stack.append(b.cast(b.compare(op, left, right), i64))
                else:
                    stack.append(b.emit(op, i64, (left, right)))
        return stack[0]


def _geometry(b: Builder, total: Instr) -> tuple[Instr, Instr, Instr]:
    """Iterations, iterations of a block, blocks: of a reduction over ``total`` iterations."""
    up = b.add(total, b.const(i64, BLOCKS - 1))
    block = b.emit("max", i64, (b.emit("floordiv", i64, (up, b.const(i64, BLOCKS))), b.const(i64, BLOCK_SIZE)))
    blocks = b.emit("floordiv", i64, (b.sub(b.add(total, block), b.const(i64, 1)), block))
    return total, block, blocks


def _blocks_extent(item: Parallel) -> tuple[tuple[str, int, int, int], ...]:
    """The number of blocks of a reduction, for the runtime: as ``_geometry`` has it."""
    total: list[tuple[str, int, int, int]] = []
    for d in range(len(item.indices)):
        span = (*item.start[d].terms, *item.stop[d].terms, ("sub", 0, 0, 0), *item.step[d].terms, ("floordiv", 0, 0, 0))
        total += [*span, ("neg", 0, 0, 0), ("constant", 0, 0, 0), ("max", 0, 0, 0)]
        if d:
            total.append(("mul", 0, 0, 0))
    block = [*total, ("constant", 0, 0, BLOCKS - 1), ("add", 0, 0, 0), ("constant", 0, 0, BLOCKS), ("floordiv", 0, 0, 0)]
    block += [("constant", 0, 0, BLOCK_SIZE), ("max", 0, 0, 0)]
    return (*total, *block, ("add", 0, 0, 0), ("constant", 0, 0, 1), ("sub", 0, 0, 0), *block, ("floordiv", 0, 0, 0))


def _constant(extent: Extent) -> int | None:
    return extent.terms[0][3] if len(extent.terms) == 1 and extent.terms[0][0] == "constant" else None


def _use(var: Var) -> list[Node]:
    """Keeps a variable that the printer itself reads."""
    get = Instr("get", var.type, (), var)
    return [get, Instr("keep", None, (get,), var)]
