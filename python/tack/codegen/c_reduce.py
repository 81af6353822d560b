"""Prints reductions for groups of threads: thread l of a group has running result l of 64, and the group folds them by halves.

The order is the one of ``ir.reduction``, whatever the device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..ir.arith import identity
from ..ir.nodes import Instr
from ..ir.reduction import BLOCKS, WIDTH
from ..types import BOOL, DType, i64, u32, u64
from .c_expr import ADD, MUL, Expr
from .c_records import stopped

if TYPE_CHECKING:
    from .c_body import Body
    from .params import EntryPlan

__all__ = ["COMBINERS", "index_name", "index_range", "is_combination", "print_blocks", "print_combination"]

_MOST_ITERATIONS = 1 << 48  # more than any device launches
COMBINERS = 256  # threads that combine blocks' results


def index_name(entry: EntryPlan, dim: int) -> str:
    """What the loop's variable along ``dim`` is called."""
    given = entry.indices[dim].lstrip("_") if dim < len(entry.indices) else ""
    return given or f"i{dim}"


def index_range(entry: EntryPlan, dim: int) -> tuple[int, int]:
    """What the loop's variable along ``dim`` may be."""
    start, step = entry.start[dim], entry.step[dim]
    if start is None or step is None:
        return i64.min, i64.max
    most = entry.columns - 1 if dim == entry.rank - 1 and entry.columns is not None else _MOST_ITERATIONS
    return start + min(0, most * step), start + max(0, most * step)


def _folded(body: Body, op: str, dtype: DType, a: Expr, b: Expr) -> str:
    zero = Instr("const", dtype, (), False if dtype == BOOL else 0.0 if dtype.is_float else 0)
    return body.ops.emit(Instr(op, dtype, (zero, zero)), [a, b]).text


def print_blocks(body: Body, entry: EntryPlan, checks: bool) -> None:
    """The whole of a reduction's entry: a group runs one block of iterations and leaves one partial result."""
    w, h, names = body.w, body.h, body.names
    number = h.type(i64)
    body.print(entry.prologue)
    lane, block = names.new("lane"), names.new("block_index")
    w.do(f"const {h.type(u32)} {lane} = {h.dialect.thread};")
    w.do(f"const {number} {block} = {h.dialect.group};")
    assert entry.block is not None
    low, high = names.new("low"), names.new("high")
    total = body.kept[entry.counts[-1]]
    w.do(f"const {number} {low} = {block} * {body.kept[entry.block]};")
    end = f"{h.minmax('min', i64)}({low} + {body.kept[entry.block]}, {total})"
    w.do(f"const {number} {high} = {f'{stopped(body)} ? {low} : {end}' if checks else end};")
    for r in entry.reductions:
        name = body.variables[r.var] = names.new(r.var.name)
        w.do(f"{h.type(r.var.type)} {name} = {body.ops.constant(r.var.type, identity(r.op, r.var.type)).text};")
    _iterations(body, entry, lane, low, high)
    shelves = []
    for r in entry.reductions:
        shelf = names.new(f"{r.var.name}_running")
        shelves.append(shelf)
        w.do(f"{h.dialect.shared} {h.type(r.var.type)} {shelf}[{WIDTH}];")
        w.do(f"{shelf}[{lane}] = {body.variables[r.var]};")
    w.do(h.dialect.barrier)
    half = names.new("distance")
    w.open(f"for ({h.type(u32)} {half} = {WIDTH // 2}; {half} > 0; {half} >>= 1) {{")
    w.open(f"if ({lane} < {half}) {{")
    for r, shelf in zip(entry.reductions, shelves, strict=True):
        mine, other = (body.ops.value(r.var.type, f"{shelf}[{at}]") for at in (lane, f"{lane} + {half}"))
        w.do(f"{shelf}[{lane}] = {_folded(body, r.op, r.var.type, mine, other)};")
    w.close()
    w.do(h.dialect.barrier)
    w.close()
    w.open(f"if ({lane} == 0) {{")
    for r, shelf in zip(entry.reductions, shelves, strict=True):
        w.do(body.memory.set_cell(r.var.type, f"{r.partials // 8} + {block}", body.ops.value(r.var.type, f"{shelf}[0]")))
    w.close()


def _iterations(body: Body, entry: EntryPlan, lane: str, low: str, high: str) -> None:
    """The loops over a block's iterations, row by row."""
    w, names, number = body.w, body.names, body.h.type(i64)
    counts = [body.kept[v] for v in entry.counts[:-1]]
    first, stride = ([body.kept[v] for v in part] for part in (entry.first, entry.stride))
    rank = entry.rank

    def index(dim: int, place: str, level: int) -> None:
        name = names.new(index_name(entry, dim))
        known = entry.start[dim], entry.step[dim]
        scaled = place if known[1] == 1 else f"{f'({place})' if level < MUL else place} * {stride[dim]}"
        w.do(f"const {number} {name} = {scaled if known[0] == 0 else f'{first[dim]} + {scaled}'};")
        low_high = index_range(entry, dim)
        body.index[dim] = Expr(name, low=low_high[0], high=low_high[1])

    body.index = [Expr("")] * rank
    at = names.new("at")
    if rank == 1:
        w.open(f"for ({number} {at} = {low} + {lane}; {at} < {high}; {at} += {WIDTH}) {{")
        index(0, at, MUL)
        body.looped(entry.body)
        w.close()
        return
    row, column, end = names.new("row"), names.new("column"), names.new("end")
    w.do(f"{number} {row} = {low};  // of the blocks' iterations, the first one of this row")
    w.open(f"while ({row} < {high}) {{")
    w.do(f"const {number} {column} = {row} % {counts[-1]};")
    w.do(f"const {number} {end} = {body.h.minmax('min', i64)}({row} - {column} + {counts[-1]}, {high});")
    rest = names.new("rest")
    w.do(f"{number} {rest} = {row} / {counts[-1]};")
    for dim in range(rank - 2, -1, -1):
        if dim:
            index(dim, f"{rest} % {counts[dim]}", MUL)
            w.do(f"{rest} /= {counts[dim]};")
        else:
            index(dim, rest, MUL)
    w.open(f"for ({number} {at} = {row} + {lane}; {at} < {end}; {at} += {WIDTH}) {{")
    index(rank - 1, f"{at} - {row} + {column}", ADD)
    body.looped(entry.body)
    w.close()
    w.do(f"{row} = {end};")
    w.close()


def is_combination(entry: EntryPlan) -> bool:
    """Whether the entry is the one that combines blocks' results."""
    return entry.single and any(isinstance(node, Instr) and node.op == "combine" for node in entry.body.body)


def print_combination(body: Body, entry: EntryPlan) -> None:
    """The whole of an entry that folds the blocks' partial results, in order, into the reductions' cells: by one thread, for which the
    group has brought them together, since a fold waits for each of its operands.
    """
    w, h, names = body.w, body.h, body.names
    body.print(entry.prologue)
    lane, shelf = names.new("lane"), names.new("partials")
    w.do(f"const {h.type(u32)} {lane} = {h.dialect.thread};")
    w.do(f"{h.dialect.shared} {h.type(u64)} {shelf}[{BLOCKS}];")
    nodes = [node for node in entry.body.body if isinstance(node, Instr)]
    for k, node in enumerate(nodes):
        if node.op != "combine":
            continue
        assert isinstance(node.attr, tuple)
        op, partials, cell, dtype = cast("tuple[str, int, int, DType]", node.attr)
        blocks = body.held(node.args[0], body.value(node.args[0]), "blocks", node.loc).at(MUL)
        at = names.new("k")
        w.open(f"for ({h.type(i64)} {at} = {lane}; {at} < {blocks}; {at} += {COMBINERS}) {{", node.loc)
        w.do(f"{shelf}[{at}] = {body.p.scratch()}[{partials // 8} + {at}];")
        w.close()
        w.do(h.dialect.barrier)
        w.open(f"if ({lane} == 0) {{")
        total = names.new("total")
        w.do(f"{h.type(dtype)} {total} = {body.memory.cell(dtype, str(cell // 8)).text};")
        w.open(f"for ({h.type(i64)} {at} = 0; {at} < {blocks}; ++{at}) {{")
        w.do(f"{total} = {_folded(body, op, dtype, body.ops.value(dtype, total), body.memory.of_word(dtype, f'{shelf}[{at}]'))};")
        w.close()
        w.do(body.memory.set_cell(dtype, str(cell // 8), body.ops.value(dtype, total)))
        w.close()
        if k + 1 < len(nodes):
            w.do(h.dialect.barrier)
