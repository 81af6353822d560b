"""Prints loops whose accesses are moved by tiles: squares of elements, turned round in registers, that wait for their rounds in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.nodes import ArrayParam, For, Instr
from ..types import DType, i32
from .affine import access, indices_of
from .llvm_text import identifier, llvm_type, suffix
from .tiles import Tiles
from .walk import Walk

if TYPE_CHECKING:
    from .llvm_body import Body

__all__ = ["print_tiled"]

_AHEAD_BYTES = 512  # of a row that is fetched before its tile: processors foresee few streams that cross pages


def print_tiled(body: Body, node: For, tiles: Tiles, mask: str | None) -> Walk[None]:
    """Fills the tiles of loads, runs their rounds, empties those of stores."""
    w, values, name = body.w, body.values, identifier(node.var.name)
    start, stop = values.scalar(node.start), values.scalar(node.stop)
    accesses = [*tiles.loads, *tiles.stores]
    columns = min(_columns(body, i) for i in accesses)
    at = w.once(f"{name}.next", "alloca i64, align 8")
    round_ = w.once(f"{name}.round", "alloca i64, align 8")
    shelves = {}
    for k, i in enumerate(accesses):
        shelves[i] = w.once(f"tile{k}", f"alloca [{columns * body.lanes} x {llvm_type(indices_of(i)[0].dtype)}], align 64")
    tile, loop, full, end = (w.label(f"tile{x}") for x in ("", ".round", ".full", ".end"))
    w.do(f"store i64 {start}, ptr {at}")
    w.cbr(w.op("some", f"icmp slt i64 {start}, {stop}"), tile, end)
    w.start(tile)
    now = w.op(name, f"load i64, ptr {at}")
    left = w.op("left", f"sub i64 {stop}, {now}")
    count = w.op("rounds", f"select i1 {w.op('few', f'icmp ult i64 {left}, {columns}')}, i64 {left}, i64 {columns}")
    on = values.first_of(columns, count)
    _address(body, node, tiles, now)
    for i in tiles.loads:
        _fill(body, i, shelves[i], columns, on, mask)
    w.do(f"store i64 0, ptr {round_}")
    w.start(loop)
    number = w.op("round", f"load i64, ptr {round_}")
    body.memory.tiles = {i: (shelf, number) for i, shelf in shelves.items()}
    body.put(node.var, w.op(name, f"add nsw i64 {now}, {number}"))
    body.loops.append((("break", node), ("continue", node)))
    yield body.block(node.body, mask)
    body.loops.pop()
    body.memory.tiles = {}
    up = w.op("round.up", f"add nuw nsw i64 {number}, 1")
    w.do(f"store i64 {up}, ptr {round_}")
    w.cbr(w.op("more", f"icmp slt i64 {up}, {count}"), loop, full)
    w.start(full)
    if tiles.stores:
        _address(body, node, tiles, now)
    for i in tiles.stores:
        _empty(body, i, shelves[i], columns, count, on, mask)
    after = w.op(f"{name}.up", f"add nsw i64 {now}, {count}")
    w.do(f"store i64 {after}, ptr {at}")
    w.cbr(w.op("more", f"icmp slt i64 {after}, {stop}"), tile, end)
    w.start(end)


def _columns(body: Body, instr: Instr) -> int:
    """Elements of a row that are moved together: a register of them."""
    return min(body.lanes, max(128, body.arithmetic.x86_bits) // indices_of(instr)[0].dtype.bits)


def _address(body: Body, node: For, tiles: Tiles, now: str) -> None:
    """What the addresses of the tile's first round are made of."""
    body.put(node.var, now)
    for i in tiles.slice:
        body.instr(i, None)


def _rows(body: Body, instr: Instr, columns: int, on: str, mask: str | None) -> list[tuple[str, str]]:
    """Each lane's first element of the tile, and which ones are there. Lanes that are off point to memory that nothing else uses: accesses
    under a mask take hundreds of cycles where no memory is, even if they touch nothing, and loads wait for such stores.
    """
    w, n = body.w, body.lanes
    array, _ = indices_of(instr)
    assert isinstance(array, ArrayParam)
    pad = "" if mask is None else w.once("pad", f"alloca [{columns} x {llvm_type(array.dtype)}], align 64")
    pointers = body.memory.pointers(array, access(instr, body.flow.form), instr.op.endswith("flat"))
    out = []
    for lane in range(n):
        at = w.op("row.at", f"extractelement <{n} x ptr> {pointers}, i64 {lane}")
        here = on
        if mask is not None:
            live = w.op("row.on", f"extractelement <{n} x i1> {mask}, i64 {lane}")
            here = w.op("row.on", f"select i1 {live}, <{columns} x i1> {on}, <{columns} x i1> zeroinitializer")
            at = w.op("row.at", f"select i1 {live}, ptr {at}, ptr {pad}")
        ahead = w.op("ahead", f"getelementptr i8, ptr {at}, i64 {_AHEAD_BYTES}")
        body.memory.prefetch(ahead, int(instr.op.startswith("store")))
        out.append((at, here))
    return out


def _fill(body: Body, instr: Instr, shelf: str, columns: int, on: str, mask: str | None) -> None:
    w, dtype = body.w, indices_of(instr)[0].dtype
    t = llvm_type(dtype, columns)
    name = f"llvm.masked.load.{suffix(dtype, columns)}.p0"
    body.arithmetic.declare(name, f"declare {t} @{name}(ptr, <{columns} x i1>, {t})")
    rows = [
        w.op("row", f"call {t} @{name}(ptr align {dtype.itemsize} {at}, <{columns} x i1> {here}, {t} zeroinitializer)")
        for at, here in _rows(body, instr, columns, on, mask)
    ]
    for first in range(0, body.lanes, columns):
        for k, value in enumerate(_turned(body, dtype, rows[first : first + columns])):
            w.do(f"store {t} {value}, ptr {_place(body, dtype, shelf, k, first)}, align {dtype.itemsize * columns}")


def _empty(body: Body, instr: Instr, shelf: str, columns: int, count: str, on: str, mask: str | None) -> None:
    w, dtype = body.w, indices_of(instr)[0].dtype
    t = llvm_type(dtype, columns)
    rows = _rows(body, instr, columns, on, mask)
    values: list[str] = []
    for first in range(0, body.lanes, columns):
        places = [_place(body, dtype, shelf, k, first) for k in range(columns)]
        values += _turned(body, dtype, [w.op("round", f"load {t}, ptr {p}, align {dtype.itemsize * columns}") for p in places])
    whole, part, end = (w.label(f"rows.{x}") for x in ("whole", "part", "stored"))
    if mask is None:  # stores under masks are slow on some machines
        w.cbr(w.op("whole", f"icmp eq i64 {count}, {columns}"), whole, part)
        w.start(whole)
        for (at, _), value in zip(rows, values, strict=True):
            w.do(f"store {t} {value}, ptr {at}, align {dtype.itemsize}")
        w.br(end)
        w.start(part)
    name = f"llvm.masked.store.{suffix(dtype, columns)}.p0"
    body.arithmetic.declare(name, f"declare void @{name}({t}, ptr, <{columns} x i1>)")
    for (at, here), value in zip(rows, values, strict=True):
        w.do(f"call void @{name}({t} {value}, ptr align {dtype.itemsize} {at}, <{columns} x i1> {here})")
    w.start(end)


def _place(body: Body, dtype: DType, shelf: str, round_: int, lane: int) -> str:
    return body.w.op("tile.at", f"getelementptr {llvm_type(dtype)}, ptr {shelf}, i64 {round_ * body.lanes + lane}")


def _turned(body: Body, dtype: DType, rows: list[str]) -> list[str]:
    """The columns of a square whose rows these are. First inside the 128 bits that x86 shuffles cheaply, then these among themselves."""
    n, out = len(rows), list(rows)
    inner = min(n, 128 // dtype.bits)
    if inner == 4:
        for k in range(0, n, 4):
            out[k : k + 4] = _turned_by_fours(body, dtype, out[k : k + 4], n)
    distance = 1 if inner != 4 else 4
    while distance < n:
        for k in range(n):
            if k & distance == 0:
                one, other = out[k], out[k + distance]
                low = [e if e & distance == 0 else n + e - distance for e in range(n)]
                high = [e + distance if e & distance == 0 else n + e for e in range(n)]
                out[k], out[k + distance] = (_shuffle(body, dtype, n, one, other, order) for order in (low, high))
        distance *= 2
    return out


def _turned_by_fours(body: Body, dtype: DType, rows: list[str], n: int) -> list[str]:
    """Four rows, whose squares of four columns are turned each."""

    def mixed(one: str, other: str, order: tuple[int, int, int, int]) -> str:
        return _shuffle(body, dtype, n, one, other, [q + (e % 4) + (n if e >= 4 else 0) for q in range(0, n, 4) for e in order])

    low, high = (0, 4, 1, 5), (2, 6, 3, 7)
    a, b = mixed(rows[0], rows[1], low), mixed(rows[2], rows[3], low)
    c, d = mixed(rows[0], rows[1], high), mixed(rows[2], rows[3], high)
    left, right = (0, 1, 4, 5), (2, 3, 6, 7)
    return [mixed(a, b, left), mixed(a, b, right), mixed(c, d, left), mixed(c, d, right)]


def _shuffle(body: Body, dtype: DType, n: int, one: str, other: str, order: list[int]) -> str:
    t, places = llvm_type(dtype, n), ", ".join(f"{llvm_type(i32)} {k}" for k in order)
    return body.w.op("turned", f"shufflevector {t} {one}, {t} {other}, <{n} x i32> <{places}>")
