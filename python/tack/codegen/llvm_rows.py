"""Arrays of short rows (x[i, 0], x[i, 1], x[i, 2]) whose rows lanes share out: whole rows are moved, and one column picked from them.

How long the rows are is known when a launch starts; the code takes them for as long as the columns that the body names, asks before each
access, and gathers or scatters where they are longer. Processors look ahead for plain stores, not for masked ones: the lines that these
will come to are asked for (three columns of 4e6 rows: 0.28 of the time, and 0.6 of plain code's; in cache it costs nothing).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..ir.nodes import ArrayParam, Instr
from ..types import Layout
from .affine import Access, constant, indices_of
from .llvm_text import identifier, llvm_type, suffix
from .streams import AHEAD_BYTES
from .uniform import Flow

if TYPE_CHECKING:
    from .llvm_memory import Memory

__all__ = ["leading_stores", "load_column", "row_lengths", "store_column"]

_LONGEST = 4


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


def load_column(memory: Memory, instr: Instr, split: Access, hint: str) -> str | None:
    """The column in all lanes; None for other accesses."""
    array, _ = indices_of(instr)
    column = _column(instr, memory.v.flow)
    if column is None or not isinstance(array, ArrayParam) or array not in memory.rows:
        return None
    w, n, length = memory.w, memory.lanes, memory.rows[array]
    vt, wide = llvm_type(array.dtype, n), llvm_type(array.dtype, n * length)
    out = w.once(f"{identifier(array.name)}.column", f"alloca {vt}, align 64")
    rows, apart, end = w.label("rows"), w.label("rows.longer"), w.label("rows.end")
    w.cbr(_as_long(memory, array, length), rows, apart)
    w.start(rows)
    all_ = w.op(f"{identifier(array.name)}.rows", f"load {wide}, ptr {_first_row(memory, array, split)}, align {array.dtype.itemsize}")
    picked = ", ".join(f"i32 {k * length + column}" for k in range(n))
    w.do(f"store {vt} {w.op(hint, f'shufflevector {wide} {all_}, {wide} poison, <{n} x i32> <{picked}>')}, ptr {out}, align 64")
    w.br(end)
    w.start(apart)
    w.do(f"store {vt} {memory.gather(array.dtype, memory.pointers(array, split, False), None, hint, vt)}, ptr {out}, align 64")
    w.start(end)
    return w.op(hint, f"load {vt}, ptr {out}, align 64")


def store_column(memory: Memory, instr: Instr, split: Access) -> bool:
    """Stores all lanes' values in their rows' column, and touches nothing else; False for other accesses."""
    array, _ = indices_of(instr)
    column = _column(instr, memory.v.flow)
    if column is None or not isinstance(array, ArrayParam) or array not in memory.rows or memory.arithmetic.x86_bits < 512:
        return False
    w, n, length = memory.w, memory.lanes, memory.rows[array]
    total = n * length
    vt, wide, value = llvm_type(array.dtype, n), llvm_type(array.dtype, total), memory.v.vector(instr.args[0])
    rows, apart, end = w.label("rows"), w.label("rows.longer"), w.label("rows.end")
    w.cbr(_as_long(memory, array, length), rows, apart)
    w.start(rows)
    places = ", ".join(f"i32 {k // length}" if k % length == column else "i32 poison" for k in range(total))
    spread = w.op("spread", f"shufflevector {vt} {value}, {vt} poison, <{total} x i32> <{places}>")
    mask = "<" + ", ".join(f"i1 {'true' if k % length == column else 'false'}" for k in range(total)) + ">"
    name = f"llvm.masked.store.{suffix(array.dtype, total)}.p0"
    memory.arithmetic.declare(name, f"declare void @{name}({wide}, ptr, <{total} x i1>)")
    at = _first_row(memory, array, split)
    if instr in memory.leading:
        for line in range(0, total * array.dtype.itemsize, 64):
            memory.prefetch(w.op("ahead", f"getelementptr i8, ptr {at}, i64 {AHEAD_BYTES + line}"), 1)
    w.do(f"call void @{name}({wide} {spread}, ptr align {array.dtype.itemsize} {at}, <{total} x i1> {mask})")
    w.br(end)
    w.start(apart)
    memory.scatter(array.dtype, value, memory.pointers(array, split, False), None)
    w.start(end)
    return True
