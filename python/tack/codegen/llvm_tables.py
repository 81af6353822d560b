"""Private tables: iterations that only count into a small array count into memory of their own first, and add that to the array once.

A locked instruction for each element is what a histogram costs otherwise. An entry whose only accesses to an array are atomics of one
kind with unused results gets a second copy of its loop, in which these are plain operations on a table on the stack. The table is indexed
by the elements' flat positions; what differs from the operation's neutral element is merged by one atomic per element at the end.

Nobody can tell, by the language's rules: relaxed atomics promise nothing about when others see them, each one is merged exactly once, and
the operations commute and associate. (Sums of floats do not: they have tables in fast math alone.) What an iteration itself reads would
tell, since a load sees what the same iteration did before. So an entry that names the array in any other access has no such copy, and
whether another array overlaps it is tested when the launch starts. Iterations that report what they do (debug mode, prints) are left as
written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir.nodes import ArrayParam, Block, For, If, Instr, While
from ..types import DType
from .affine import indices_of, offset
from .llvm_atomics import KINDS, neutral
from .llvm_memory import Memory, Words
from .llvm_ops import Arithmetic
from .llvm_text import Writer, literal, llvm_type
from .params import EntryPlan
from .uniform import Flow
from .walk import instructions, nodes

__all__ = ["Tables", "private_arrays", "used_values"]

_BYTES = 32 << 10  # of all tables of an entry, on the stack of any thread
_COPIES = 4  # of a table, which lanes use in turn: an element that comes again would wait for the last one's store
_SIZE = 600  # instructions of a body that is worth another copy
_PRINTED = 256  # updates that all lanes together may be printed as
_WORTH = 4  # iterations per element from which on a table pays; one where an iteration loops
_JUNK = 64  # bytes behind a table's elements, for lanes that are off


@dataclass(frozen=True, slots=True)
class PrivateArray:
    """``kind`` combines two partial results; ``looped``: an iteration may update many elements."""

    array: ArrayParam
    kind: str
    looped: bool


def used_values(*blocks: Block) -> set[Instr]:
    """The instructions whose values something reads."""
    used = {a for i in instructions(*blocks) for a in i.args}
    for node in nodes(*blocks):
        if isinstance(node, For):
            used |= {node.start, node.stop, node.step}
        elif isinstance(node, If | While):
            used.add(node.cond)
    return used


def private_arrays(entry: EntryPlan, flow: Flow, used: set[Instr]) -> list[PrivateArray]:
    """The arrays that may get a table, in order of appearance."""
    if entry.single or entry.reductions:
        return []
    kinds: dict[ArrayParam, str] = {}
    refused: set[ArrayParam] = {a for i in instructions(entry.prologue) if (a := _array(i)) is not None}
    printed = 0
    for size, node in enumerate(nodes(entry.body)):
        if size >= _SIZE or (isinstance(node, Instr) and node.op in ("check", "check_index", "record")):
            return []
        array = _array(node) if isinstance(node, Instr) else None
        if not isinstance(node, Instr) or array is None:
            continue
        kind = KINDS.get(str(node.attr[0])) if node.op == "atomic" and isinstance(node.attr, tuple) else None
        # Indexed by all of the launch's indices there are as many elements as iterations.
        bare = [offset(i)[0] for i in indices_of(node)[1]]
        own = {i.attr for i in bare if i.op == "index"} == set(range(entry.rank))
        loose = array.dtype.is_int or kind != "add" or entry.fast
        if kind is None or node in used or own or not array.rank or not loose or kinds.setdefault(array, kind) != kind:
            refused.add(array)
        else:
            printed += flow.lanes
    if printed > _PRINTED:
        return []
    looped = {_array(i) for n in nodes(entry.body) if isinstance(n, For | While) for i in instructions(n.body)}
    return [PrivateArray(a, kind, a in looped) for a, kind in kinds.items() if a not in refused]


def _array(instr: Instr) -> ArrayParam | None:
    if instr.op not in ("load", "load_flat", "store", "store_flat", "atomic"):
        return None
    array, _ = indices_of(instr)
    return array if isinstance(array, ArrayParam) else None


@dataclass(slots=True)
class _Table:
    """Names of values. ``stride``: bytes from copy to copy, 0 where there is one; ``bases``: the copies' addresses."""

    private: PrivateArray
    memory: str
    limit: int  # bytes
    count: str = ""
    copies: str = ""
    stride: str = ""
    bases: tuple[str, ...] = ()


class Tables:
    """Prints the tables of one entry, whose copies of the body share them."""

    def __init__(self, writer: Writer, words: Words, arithmetic: Arithmetic, entry: EntryPlan, arrays: list[PrivateArray]) -> None:
        self.w, self.words, self.arithmetic, self.entry = writer, words, arithmetic, entry
        limit = _BYTES // len(arrays) // 64 * 64
        self.tables = {p.array: _Table(p, writer.once("table", f"alloca [{limit} x i8], align 64"), limit) for p in arrays}
        self.turn = ""  # where there is one lane: which of the copies this iteration uses

    # ---- whether

    def pays(self) -> str:
        """i1: whether this launch's piece uses tables. Few elements, many iterations, and no other array in the same memory."""
        w = self.w
        length = w.op("iterations", "sub i64 %end, %begin")
        good = "true"
        for array, table in self.tables.items():
            table.count = self.words.shape(array, 0)
            for d in range(1, array.rank):
                table.count = w.op("elements", f"mul i64 {table.count}, {self.words.shape(array, d)}")
            size = array.dtype.itemsize
            fits = w.op("fits", f"icmp ule i64 {table.count}, {(table.limit - _JUNK) // size}")
            worth = 1 if table.private.looped else _WORTH
            needed = w.op("needed", f"mul i64 {table.count}, {worth}")
            long = w.op("long", f"icmp sge i64 {length}, {needed}")
            good = self._and(self._and(good, fits), long)
        touched = dict.fromkeys(a for i in instructions(self.entry.prologue, self.entry.body) if (a := _array(i)) is not None)
        spans = {a: self.words.span(a) for a in touched} if len(touched) > 1 else {}
        for array in self.tables:
            for other in touched:
                if other is not array:
                    before = w.op("before", f"icmp ule i64 {spans[array][1]}, {spans[other][0]}")
                    after = w.op("after", f"icmp ule i64 {spans[other][1]}, {spans[array][0]}")
                    good = self._and(good, w.op("apart", f"or i1 {before}, {after}"))
        return good

    def _and(self, a: str, b: str) -> str:
        return b if a == "true" else self.w.op("good", f"and i1 {a}, {b}")

    # ---- begin and end

    def begin(self) -> None:
        """Makes the tables neutral."""
        w = self.w
        for array, table in self.tables.items():
            t, size = llvm_type(array.dtype), array.dtype.itemsize
            bytes_ = w.op("bytes", f"mul i64 {table.count}, {size}")
            stride = w.op("stride", f"and i64 {w.op('stride', f'add i64 {bytes_}, {63 + _JUNK}')}, -64")
            several = w.op("several", f"icmp ule i64 {stride}, {table.limit // _COPIES}")
            table.copies = w.op("copies", f"select i1 {several}, i64 {_COPIES}, i64 1")
            table.stride = w.op("stride", f"select i1 {several}, i64 {stride}, i64 0")
            offsets = [w.op("copy", f"mul i64 {table.stride}, {k}") for k in range(_COPIES)]
            table.bases = tuple(w.op("copy", f"getelementptr i8, ptr {table.memory}, i64 {o}") for o in offsets)
            # All copies but the last one whole, so that one loop does.
            whole = w.op("whole", f"udiv i64 {offsets[-1]}, {size}")
            total = w.op("total", f"add i64 {whole}, {table.count}")
            nothing = literal(array.dtype, neutral(table.private.kind, array.dtype))

            def fill(k: str, t: str = t, nothing: str = nothing, table: _Table = table) -> None:
                w.do(f"store {t} {nothing}, ptr {w.op('cell', f'getelementptr {t}, ptr {table.memory}, i64 {k}')}")

            self._each(total, "table.fill", fill)

    def _each(self, count: str, label: str, run: Callable[[str], None]) -> None:
        """A loop over [0, count)."""
        w = self.w
        at = w.once("cell.next", "alloca i64, align 8")
        loop, body, done = w.label(label), w.label(f"{label}.one"), w.label(f"{label}.done")
        w.do(f"store i64 0, ptr {at}")
        w.start(loop)
        k = w.op("k", f"load i64, ptr {at}")
        w.cbr(w.op("more", f"icmp slt i64 {k}, {count}"), body, done)
        w.start(body)
        run(k)
        w.do(f"store i64 {w.op('k.up', f'add nuw nsw i64 {k}, 1')}, ptr {at}")
        w.br(loop)
        w.start(done)

    def end(self, memory: Memory) -> None:
        """Merges the tables into their arrays."""
        w = self.w
        for array, table in self.tables.items():
            t, kind = llvm_type(array.dtype), table.private.kind

            several = w.op("several", f"icmp ne i64 {table.stride}, 0")

            def element(
                k: str, array: ArrayParam = array, table: _Table = table, t: str = t, kind: str = kind, several: str = several
            ) -> None:
                total = w.op("cell", f"load {t}, ptr {w.op('cell.at', f'getelementptr {t}, ptr {table.bases[0]}, i64 {k}')}")
                for base in table.bases[1:]:
                    more = w.op("cell", f"load {t}, ptr {w.op('cell.at', f'getelementptr {t}, ptr {base}, i64 {k}')}")
                    if kind in ("add", "xor"):  # not idempotent: one copy counts once
                        more = w.op("cell", f"select i1 {several}, {t} {more}, {t} {literal(array.dtype, neutral(kind, array.dtype))}")
                    total = self._combined(kind, array.dtype, total, more)
                some, none = w.label("merge"), w.label("merged")
                w.cbr(self._changed(kind, array.dtype, total), some, none)
                w.start(some)
                memory.atomics.one(kind, array.dtype, self._place(memory, array, k), [total], "merged")
                w.start(none)

            self._each(table.count, "table.merge", element)

    def _place(self, memory: Memory, array: ArrayParam, k: str) -> str:
        """The address of the element at flat position ``k``."""
        w, at, rest = self.w, self.words.pointer(array), k
        for d in range(array.rank - 1, -1, -1):
            index = rest
            if d:
                length = self.words.shape(array, d)
                index = w.op("index", f"urem i64 {rest}, {length}")
                rest = w.op("rest", f"udiv i64 {rest}, {length}")
            at = memory.moved(array, at, d, index)
        return at

    def _changed(self, kind: str, dtype: DType, value: str) -> str:
        """i1: whether a cell is another than the neutral one."""
        w, t = self.w, llvm_type(dtype)
        if dtype.is_int:
            return w.op("some", f"icmp ne {t} {value}, {neutral(kind, dtype)}")
        if kind != "add":
            return w.op("some", f"fcmp ord {t} {value}, {value}")
        bits = f"i{dtype.bits}"  # 0.0 is no -0.0
        return w.op("some", f"icmp ne {bits} {w.op('bits', f'bitcast {t} {value} to {bits}')}, {-(1 << (dtype.bits - 1))}")

    def _combined(self, kind: str, dtype: DType, a: str, b: str) -> str:
        t = llvm_type(dtype)
        if kind in ("min", "max"):
            return self.arithmetic.minmax(kind, dtype, 1, a, b, kind)
        return self.w.op(kind, f"{'f' if dtype.is_float else ''}{kind} {t} {a}, {b}")

    # ---- updates

    def begin_iteration(self, at: str) -> None:
        """Where there is one lane: the iteration's number."""
        self.turn = self.w.op("turn", f"and i64 {at}, {_COPIES - 1}")

    def update(self, memory: Memory, instr: Instr, mask: str | None) -> None:
        """The atomic as plain operations, lane by lane. Lanes that are off, and indices out of range, go to the memory behind the table."""
        w, v = self.w, memory.v
        assert isinstance(instr.attr, tuple)
        kind = str(instr.attr[0])
        array, indices = indices_of(instr)
        assert isinstance(array, ArrayParam)
        table, n, (value,) = self.tables[array], memory.lanes, instr.args[:1]
        if n == 1 or all(v.flow.form(i) == 0 for i in indices):
            flat = self._within(self._flat(array, [v.scalar(i) for i in indices], 1), table.count, "i64", "i64")
            text = v.scalar(value) if n == 1 else memory.atomics.fold(kind, array.dtype, v.vector(value), mask)
            base = table.bases[0]
            if n == 1:
                base = w.op("copy", f"getelementptr i8, ptr {base}, i64 {w.op('copy', f'mul i64 {self.turn}, {table.stride}')}")
            self._one(table, kind, base, flat, text)
            return
        vectors = [v.vector(i) for i in indices]
        # Positions are small: 32 bits hold them, in half the registers.
        flat = w.op("flat", f"trunc <{n} x i64> {self._flat(array, vectors, n)} to <{n} x i32>")
        count = w.op("behind", f"trunc i64 {table.count} to i32")
        behind = v.splat("i32", count, "behind")
        flat = self._within(flat, behind, f"v{n}i32", f"<{n} x i32>")
        if mask is not None:
            junk = ", ".join(f"i32 {k // _COPIES % 8}" for k in range(n))
            off = w.op("behind", f"add <{n} x i32> {behind}, <{junk}>")
            flat = w.op("flat", f"select <{n} x i1> {mask}, <{n} x i32> {flat}, <{n} x i32> {off}")
        vt = llvm_type(array.dtype, n)
        same = v.scalar(value) if v.flow.uniform(value) else None
        for k in range(n):
            at = w.op("flat.one", f"zext i32 {w.op('flat.one', f'extractelement <{n} x i32> {flat}, i64 {k}')} to i64")
            mine = same or w.op("mine", f"extractelement {vt} {v.vector(value)}, i64 {k}")
            self._one(table, kind, table.bases[k % _COPIES], at, mine)

    def _flat(self, array: ArrayParam, indices: list[str], n: int) -> str:
        """The elements' flat positions, of ``n`` lanes."""
        w, total, t = self.w, indices[0], "i64" if n == 1 else f"<{n} x i64>"
        for d in range(1, array.rank):
            length = self.words.shape(array, d)
            if n > 1:
                one = w.op("length.one", f"insertelement {t} poison, i64 {length}, i64 0")
                length = w.op("length.all", f"shufflevector {t} {one}, {t} poison, <{n} x i32> zeroinitializer")
            total = w.op("flat", f"add {t} {w.op('row', f'mul {t} {total}, {length}')}, {indices[d]}")
        return total

    def _within(self, flat: str, count: str, name: str, t: str) -> str:
        """Such positions, those out of range being the first one behind the table: nothing else on the stack is overwritten."""
        return self.arithmetic.call("flat", f"llvm.umin.{name}", t, [(t, flat), (t, count)])

    def _one(self, table: _Table, kind: str, base: str, index: str, value: str) -> None:
        w, dtype = self.w, table.private.array.dtype
        t = llvm_type(dtype)
        at = w.op("cell.at", f"getelementptr {t}, ptr {base}, i64 {index}")
        old = w.op("cell", f"load {t}, ptr {at}, align {dtype.itemsize}")
        new = self._combined(kind, dtype, old, value)
        w.do(f"store {t} {new}, ptr {at}, align {dtype.itemsize}")
