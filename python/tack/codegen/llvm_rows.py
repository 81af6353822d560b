"""Arrays of short rows (x[i, 0], x[i, 1], x[i, 2]) whose rows lanes share out: whole rows are moved, and one column picked from them.

How long the rows are is known when a launch starts; the code takes them for as long as the columns that the body names, asks before each
access, and gathers or scatters where they are longer. Rows of which all columns are stored, one after the other, are woven and stored
whole. Processors look ahead for plain stores, not for masked ones: the lines that these will come to are asked for (three columns of 4e6
rows: 0.28 of the time, and 0.6 of plain code's; in cache it costs nothing).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..ir.nodes import ArrayParam, Block, Instr, ScratchArray
from ..types import Layout
from .affine import Access, constant, indices_of
from .lane_loops import ArrayPair
from .llvm_lane_loops import all_apart
from .llvm_text import identifier, llvm_type, suffix
from .streams import AHEAD_BYTES
from .uniform import Flow
from .walk import blocks_of

if TYPE_CHECKING:
    from .llvm_memory import Memory

__all__ = ["WholeRows", "leading_stores", "load_column", "row_lengths", "store_column", "whole_rows"]

_LONGEST = 4


@dataclass(slots=True)
class WholeRows:
    """Stores of all columns of the same rows, by column; ``last`` in the program. ``pairs``: what must lie apart for the others to wait."""

    stores: list[Instr | None]
    last: Instr
    pairs: dict[ArrayPair, None] = field(default_factory=dict)


def _column(instr: Instr, flow: Flow) -> int | None:
    """The column, of an access of the lanes to neighbouring rows of a contiguous array."""
    if instr.op not in ("load", "store") or flow.pair is not None:
        return None
    array, indices = indices_of(instr)
    if not isinstance(array, ArrayParam) or array.layout != Layout.CONTIGUOUS or len(indices) < 2:
        return None
    column = constant(indices[-1])
    if column is None or not 0 <= column < _LONGEST or flow.form(indices[-2]) != 1:
        return None
    return column if all(flow.uniform(i) for i in indices[:-2]) else None


def row_lengths(body: Iterable[Instr], flow: Flow) -> dict[ArrayParam, int]:
    """How long the rows of such arrays are taken to be."""
    out: dict[ArrayParam, int] = {}
    for instr in body:
        column = _column(instr, flow) if flow.lanes > 1 else None
        if column is not None:
            array, _ = indices_of(instr)
            assert isinstance(array, ArrayParam)
            out[array] = max(out.get(array, 0), column + 1)
    return {array: length for array, length in out.items() if length > 1}


def whole_rows(body: Block, flow: Flow, rows: dict[ArrayParam, int]) -> dict[Instr, WholeRows]:
    """The stores that belong to whole rows, and these."""
    out: dict[Instr, WholeRows] = {}
    blocks = [body] if rows else []
    while blocks:
        pending: dict[ArrayParam, WholeRows] = {}
        for node in blocks.pop().body:
            if not isinstance(node, Instr):
                blocks += blocks_of(node)
                pending.clear()
            elif node.op == "atomic":
                pending.clear()
            elif node.op in ("load", "load_flat", "store", "store_flat"):
                _follow(node, flow, rows, pending, out)
    return out


def _follow(
    node: Instr, flow: Flow, rows: dict[ArrayParam, int], pending: dict[ArrayParam, WholeRows], out: dict[Instr, WholeRows]
) -> None:
    """Takes account of an access after stores of some columns."""
    array, indices = indices_of(node)
    if isinstance(array, ScratchArray):
        return
    for other, earlier in pending.items():
        if other is not array:
            earlier.pairs[other, array, False] = None
    column = _column(node, flow) if node.op == "store" and array in rows else None
    if column is None:
        pending.pop(array, None)
        return
    group = pending.get(array)
    if group is None or group.stores[column] is not None or not _same_rows(indices_of(group.last)[1], indices):
        group = pending[array] = WholeRows([None] * rows[array], node)
    group.stores[column] = group.last = node
    if all(group.stores):
        out |= {s: group for s in group.stores if s is not None}
        del pending[array]


def _same_rows(a: tuple[Instr, ...], b: tuple[Instr, ...]) -> bool:
    return all(x is y or (constant(x) is not None and constant(x) == constant(y)) for x, y in zip(a[:-1], b[:-1], strict=True))


def leading_stores(body: Iterable[Instr], flow: Flow) -> set[Instr]:
    """The first store of a column to each such array."""
    out: dict[object, Instr] = {}
    for instr in body:
        if flow.lanes > 1 and instr.op == "store" and _column(instr, flow) is not None:
            out.setdefault(instr.attr, instr)
    return set(out.values())


def _first_row(memory: Memory, array: ArrayParam, split: Access) -> str:
    """The address of lane 0's row."""
    dims = [(d, index) for d, index in split.uniform if d != array.rank - 1]
    return memory.base(array, Access(uniform=dims, even=split.even), False)


def _as_long(memory: Memory, array: ArrayParam, length: int) -> str:
    return memory.w.op("as.long", f"icmp eq i64 {memory.words.shape(array, array.rank - 1)}, {length}")


def _pick(memory: Memory, array: ArrayParam, at: str, length: int, column: int, hint: str) -> str:
    """One column of neighbouring rows."""
    w, n, size, name = memory.w, memory.lanes, array.dtype.itemsize, identifier(array.name)
    vt, row = llvm_type(array.dtype, n), 8 * size * length
    if size <= 2 and row in (16, 32, 64):  # a row is an integer
        whole = w.op(f"{name}.rows", f"load <{n} x i{row}>, ptr {at}, align {size}")
        place = w.op("place", f"lshr <{n} x i{row}> {whole}, splat (i{row} {8 * size * column})")
        return w.op(hint, f"trunc <{n} x i{row}> {place} to {vt}")
    wide = llvm_type(array.dtype, n * length)
    whole = w.op(f"{name}.rows", f"load {wide}, ptr {at}, align {size}")
    picked = ", ".join(f"i32 {k * length + column}" for k in range(n))
    return w.op(hint, f"shufflevector {wide} {whole}, {wide} poison, <{n} x i32> <{picked}>")


def load_column(memory: Memory, instr: Instr, split: Access, mask: str | None, hint: str) -> str | None:
    """The column in all lanes; None for other accesses."""
    array, _ = indices_of(instr)
    column = _column(instr, memory.v.flow)
    if column is None or not isinstance(array, ArrayParam) or array not in memory.rows:
        return None
    w, n, named = memory.w, memory.lanes, memory.rows[array]
    vt = llvm_type(array.dtype, n)
    out = w.once(f"{identifier(array.name)}.column", f"alloca {vt}, align 64")
    end = w.label("rows.end")
    at = _first_row(memory, array, split)
    for length in range(named, named + 2 if named == _LONGEST - 1 else named + 1):  # a pixel may have an alpha that nobody asks for
        rows, apart = w.label("rows"), w.label("rows.longer")
        good = _as_long(memory, array, length)
        if mask is not None:
            good = w.op("good", f"and i1 {good}, {memory.readable(array, at, n * length * array.dtype.itemsize)}")
        w.cbr(good, rows, apart)
        w.start(rows)
        w.do(f"store {vt} {_pick(memory, array, at, length, column, hint)}, ptr {out}, align 64")
        w.br(end)
        w.start(apart)
    w.do(f"store {vt} {memory.gather(array.dtype, memory.pointers(array, split, False), mask, hint, vt)}, ptr {out}, align 64")
    w.start(end)
    return w.op(hint, f"load {vt}, ptr {out}, align 64")


def store_column(memory: Memory, instr: Instr, split: Access, mask: str | None) -> bool:
    """Stores the lanes' values in their rows' column, and touches nothing else; False for other accesses."""
    array, _ = indices_of(instr)
    column = _column(instr, memory.v.flow)
    if column is None or not isinstance(array, ArrayParam) or array not in memory.rows:
        return False
    w, length = memory.w, memory.rows[array]
    masks = memory.arithmetic.x86_bits >= 512  # of bytes, too
    group = memory.whole.get(instr) if masks or mask is None else None
    if group is None and not masks:
        return False
    end = w.label("rows.end")
    if group is not None:
        whole = _as_long(memory, array, length)
        if group.pairs:
            whole = w.op("whole", f"and i1 {whole}, {all_apart(w, memory.words, list(group.pairs))}")
        together, one = w.label("rows.whole"), w.label("rows.column")
        w.cbr(whole, together if instr is group.last else end, one)
        if instr is group.last:
            w.start(together)
            _store_rows(memory, array, _woven(memory, group, length), range(length), split, mask)
            w.br(end)
        w.start(one)
    if masks:
        rows, apart = w.label("rows"), w.label("rows.longer")
        w.cbr(_as_long(memory, array, length), rows, apart)
        w.start(rows)
        _store_rows(memory, array, _spread(memory, instr, length), range(column, column + 1), split, mask, instr in memory.leading)
        w.br(end)
        w.start(apart)
    memory.scatter(array.dtype, memory.v.vector(instr.args[0]), memory.pointers(array, split, False), mask)
    w.start(end)
    return True


def _woven(memory: Memory, group: WholeRows, length: int) -> str:
    """Whole rows, as two operands of one shuffle, which LLVM knows how to do well."""
    w, n = memory.w, memory.lanes
    columns = [s.args[0] for s in group.stores if s is not None]
    assert columns[0].type is not None
    t, texts = llvm_type(columns[0].type), [memory.v.vector(v) for v in columns]
    halves = []
    for pair in (texts[: (length + 1) // 2], texts[(length + 1) // 2 :]):
        if length == 2:
            halves.append(pair[0])
            continue
        order = ", ".join(f"i32 {k}" if k < n * len(pair) else "i32 poison" for k in range(2 * n))
        second = pair[1] if len(pair) > 1 else "poison"
        halves.append(w.op("half", f"shufflevector <{n} x {t}> {pair[0]}, <{n} x {t}> {second}, <{2 * n} x i32> <{order}>"))
    half = f"<{n if length == 2 else 2 * n} x {t}>"
    order = ", ".join(f"i32 {k % length * n + k // length}" for k in range(n * length))
    return w.op("woven", f"shufflevector {half} {halves[0]}, {half} {halves[1]}, <{n * length} x i32> <{order}>")


def _spread(memory: Memory, instr: Instr, length: int) -> str:
    """Rows with the value in each column."""
    n, (value, *_) = memory.lanes, instr.args
    assert value.type is not None
    vt = llvm_type(value.type, n)
    places = ", ".join(f"i32 {k // length}" for k in range(n * length))
    return memory.w.op("spread", f"shufflevector {vt} {memory.v.vector(value)}, {vt} poison, <{n * length} x i32> <{places}>")


def _store_rows(
    memory: Memory, array: ArrayParam, value: str, columns: range, split: Access, mask: str | None, leading: bool = False
) -> None:
    """Stores these columns of the lanes' rows."""
    w, n, length = memory.w, memory.lanes, memory.rows[array]
    total = n * length
    wide, at = llvm_type(array.dtype, total), _first_row(memory, array, split)
    if mask is None and len(columns) == length:
        w.do(f"store {wide} {value}, ptr {at}, align {array.dtype.itemsize}")
        return
    if mask is None:
        on = "<" + ", ".join(f"i1 {'true' if k % length in columns else 'false'}" for k in range(total)) + ">"
    else:
        places = ", ".join(f"i32 {k // length if k % length in columns else n}" for k in range(total))
        lanes = f"<{n} x i1>"
        on = w.op("spread.mask", f"shufflevector {lanes} {mask}, {lanes} zeroinitializer, <{total} x i32> <{places}>")
    if leading and mask is None:
        for line in range(0, total * array.dtype.itemsize, 64):
            memory.prefetch(w.op("ahead", f"getelementptr i8, ptr {at}, i64 {AHEAD_BYTES + line}"), 1)
    name = f"llvm.masked.store.{suffix(array.dtype, total)}.p0"
    memory.arithmetic.declare(name, f"declare void @{name}({wide}, ptr, <{total} x i1>)")
    w.do(f"call void @{name}({wide} {value}, ptr align {array.dtype.itemsize} {at}, <{total} x i1> {on})")
