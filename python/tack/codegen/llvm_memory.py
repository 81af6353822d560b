"""Prints accesses to memory: the parameter block's words, loads and stores of arrays by lanes, local arrays, scratch cells."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from math import prod

from ..ir.nodes import ArrayParam, Instr, ScalarParam, ScratchArray, Table
from ..types import BOOL, DType, Layout, i64
from .affine import Access, access, constant, indices_of
from .lane_loops import SharedLocal
from .llvm_atomics import Atomics
from .llvm_ops import Arithmetic
from .llvm_rows import WholeRows, load_column, store_column
from .llvm_strides import is_short_step, load_strided, picks_elements, store_strided
from .llvm_text import Writer, identifier, literal, llvm_type, suffix
from .machine import masks_neighbours
from .params import Slots
from .streams import AHEAD_BYTES
from .uniform import Flow

__all__ = ["Memory", "Values", "Words"]

_SMALL_LOCAL = 32  # elements of a local array that are zeroed one by one, so that registers can hold them
_PAGE_BYTES = 4096  # the smallest page of any machine that Tack prints for


class Words:
    """The words of the parameter block, each loaded once in the entry block when it is first asked for."""

    def __init__(self, writer: Writer, slots: Slots) -> None:
        self.w = writer
        self.slots = slots
        self._names: dict[tuple[object, ...], str] = {}
        self.about: dict[int, str] = {}  # word -> what it holds, for the header

    def _word(self, key: tuple[str, int, int], dtype: DType | None, hint: str, about: str, name: str = "i64") -> str:
        if key in self._names:
            return self._names[key]
        k = self.slots.word(*key, name)
        self.about[k] = about
        at = self.w.once(f"{hint}.word", f"getelementptr inbounds i64, ptr %words, i64 {k}")
        kind = "ptr" if dtype is None else "i8" if dtype == BOOL else llvm_type(dtype)
        value = self.w.once(hint, f"load {kind}, ptr {at}, align 8")
        if dtype == BOOL:
            value = self.w.once(f"{hint}.bool", f"icmp ne i8 {value}, 0")
        self._names[key] = value
        return value

    def local(self, array: SharedLocal, name: str) -> None:
        """Notes the memory of a local array that is accessed as others are."""
        self._names["pointer", array.index, 0] = name
        self._names |= {("shape", array.index, d): str(n) for d, n in enumerate(array.shape)}

    def pointer(self, array: ArrayParam) -> str:
        return self._word(("pointer", array.index, 0), None, identifier(array.name), f"address of {array.name}")

    def shape(self, array: ArrayParam, dim: int) -> str:
        return self._word(("shape", array.index, dim), i64, f"{identifier(array.name)}.shape{dim}", f"{array.name}.shape[{dim}]")

    def stride(self, array: ArrayParam, dim: int) -> str:
        return self._word(("stride", array.index, dim), i64, f"{identifier(array.name)}.stride{dim}", f"{array.name}.strides[{dim}]")

    def scalar(self, param: ScalarParam) -> str:
        return self._word(
            ("scalar", param.index, 0), param.dtype, identifier(param.name), f"{param.name} ({param.dtype.name})", param.dtype.name
        )

    def launch(self, kind: str, dim: int) -> str:
        return self._word((kind, 0, dim), i64, f"{kind}{dim}", f"{kind} of dimension {dim}")

    def sequence(self, depth: int) -> str:
        return self._word(("sequence", depth, 0), i64, f"sequence{depth}", f"variable of the enclosing tack.sequential {depth}")

    def scratch(self) -> str:
        return self._word(("scratch", 0, 0), None, "scratch", "scratch cells")

    def records(self) -> str:
        return self._word(("records", 0, 0), None, "records", "record buffer")

    def scale(self, array: ArrayParam, dim: int) -> str | None:
        """Elements from one index along ``dim`` of a contiguous array to the next; None for 1."""
        if dim == array.rank - 1:
            return None
        key = ("scale", array.index, dim)
        if key not in self._names:
            inner = self.scale(array, dim + 1)
            length = self.shape(array, dim + 1)
            self._names[key] = (
                length if inner is None else self.w.once(f"{identifier(array.name)}.scale{dim}", f"mul nuw nsw i64 {length}, {inner}")
            )
        return self._names[key]

    def span(self, array: ArrayParam) -> tuple[str, str]:
        """The first address of an array that is not empty, and the first one behind it."""
        name, key = identifier(array.name), ("span", array.index, 0)
        if (*key, "low") in self._names:
            return self._names[*key, "low"], self._names[*key, "high"]
        once = self.w.once
        low = once(f"{name}.low", f"ptrtoint ptr {self.pointer(array)} to i64")
        high = once(f"{name}.high", f"add i64 {low}, {array.dtype.itemsize}")
        for d in range(array.rank):
            last = once("last", f"sub i64 {self.shape(array, d)}, 1")
            if array.layout == Layout.CONTIGUOUS or (array.layout == Layout.INNER and d == array.rank - 1):
                scale = self.scale(array, d) if array.layout == Layout.CONTIGUOUS else None
                elements = last if scale is None else once("elements", f"mul i64 {last}, {scale}")
                far = once("far", f"mul i64 {elements}, {array.dtype.itemsize}")
            else:
                far = once("far", f"mul i64 {last}, {self.stride(array, d)}")
            down = once("down", f"icmp slt i64 {far}, 0")
            low = once(f"{name}.low", f"add i64 {low}, {once('below', f'select i1 {down}, i64 {far}, i64 0')}")
            high = once(f"{name}.high", f"add i64 {high}, {once('above', f'select i1 {down}, i64 0, i64 {far}')}")
        self._names[*key, "low"], self._names[*key, "high"] = low, high
        return low, high


class Values:
    """The names of what has been printed. A varying value has a vector name; an affine one lane 0's scalar and perhaps a vector."""

    def __init__(self, writer: Writer, arithmetic: Arithmetic, flow: Flow) -> None:
        self.w, self.arithmetic, self.flow = writer, arithmetic, flow
        self.lanes = flow.lanes
        self.names: dict[Instr, str] = {}
        self.vectors: dict[Instr, str] = {}
        self.bring: Callable[[Instr], None]  # names a value that another function computed

    def scalar(self, value: Instr) -> str:
        """A uniform value, or lane 0's of an affine one."""
        if value.op == "const":
            assert value.type is not None
            return self.arithmetic.splat(value.type, 1, value.attr)
        if value not in self.names:
            self.bring(value)
        return self.names[value]

    def vector(self, value: Instr) -> str:
        """The value lane by lane (the scalar where there is one lane)."""
        if value.op == "const":
            assert value.type is not None
            return self.arithmetic.splat(value.type, self.lanes, value.attr)
        if value not in self.names:
            self.bring(value)
        if self.lanes == 1 or self.flow.form(value) is None:
            return self.names[value]
        return self.vectors[value]

    def splat(self, dtype: str, value: str, hint: str, once: bool = False) -> str:
        """A scalar in all lanes."""
        emit = self.w.once if once else self.w.op
        n = self.lanes
        one = emit(f"{hint}.one", f"insertelement <{n} x {dtype}> poison, {dtype} {value}, i64 0")
        return emit(f"{hint}.all", f"shufflevector <{n} x {dtype}> {one}, <{n} x {dtype}> poison, <{n} x i32> zeroinitializer")

    def steps(self, dtype: DType, step: int) -> str:
        """The constant <0, step, 2 step, ...>."""
        t = llvm_type(dtype)
        half = 1 << (dtype.bits - 1)
        items = (((k * step + half) % (2 * half)) - half for k in range(self.lanes))
        return "<" + ", ".join(f"{t} {v}" for v in items) + ">"

    def mask_bits(self, mask: str) -> str:
        return self.w.op("lanes", f"bitcast <{self.lanes} x i1> {mask} to i{self.lanes}")

    def any(self, mask: str) -> str:
        """Whether a lane is on."""
        return self.w.op("any", f"icmp ne i{self.lanes} {self.mask_bits(mask)}, 0")

    def first_lanes(self, on: str) -> str:
        """The mask of the first ``on`` lanes."""
        if (
            self.lanes == 2
        ):  # always one lane. LLVM 22 must not see that: it stores i64 whole where a constant mask lets one truncated lane through
            hidden = self.w.once("lanes.hidden", "alloca i64, align 8")
            self.w.do(f"store volatile i64 {on}, ptr {hidden}")
            on = self.w.op("on", f"load volatile i64, ptr {hidden}")
        return self.first_of(self.lanes, on)

    def first_of(self, n: int, on: str) -> str:
        """A mask of ``n`` places, of which the first ``on`` hold."""
        w = self.w
        narrow = w.op("on", f"trunc i64 {on} to i32")
        one = w.op("on.one", f"insertelement <{n} x i32> poison, i32 {narrow}, i64 0")
        all_ = w.op("on.all", f"shufflevector <{n} x i32> {one}, <{n} x i32> poison, <{n} x i32> zeroinitializer")
        places = "<" + ", ".join(f"i32 {k}" for k in range(n)) + ">"
        return w.op("mask", f"icmp ult <{n} x i32> {places}, {all_}")

    @property
    def all_on(self) -> str:
        return "splat (i1 true)"


class Memory:
    """Accesses of one function."""

    def __init__(self, values: Values, words: Words, locals_: list[ScratchArray | SharedLocal]) -> None:
        self.v, self.w, self.words = values, values.w, words
        self.arithmetic = values.arithmetic
        self.lanes = values.lanes
        self.atomics = Atomics(self)
        self.locals: dict[ScratchArray | SharedLocal, str] = {}
        self.used: set[Instr] = set()  # instructions whose value something reads
        self.nontemporal: Instr | None = None  # a store whose address is aligned to the vector
        self.pair: tuple[str, str] = ("", "")  # lane 0's last two indices, where lanes run over both as one
        self.rows: dict[ArrayParam, int] = {}  # arrays of short rows, and how long these are taken to be
        self.whole: dict[Instr, WholeRows] = {}  # stores to these that belong to whole rows
        self.tiles: dict[Instr, tuple[str, str]] = {}  # accesses that tiles stand for now: where these lie, and the round
        self._bins: str | None = None
        self.leading: set[Instr] = set()  # accesses that come to a place in memory before others do
        for array in locals_:
            size = prod(array.shape) * self._copies(array)
            self.locals[array] = self.w.once(identifier(array.name), f"alloca [{size} x {llvm_type(array.dtype)}], align 64")
            if isinstance(array, SharedLocal):
                words.local(array, self.locals[array])

    def _copies(self, array: ScratchArray | SharedLocal) -> int:
        """How many lanes have a copy of their own of each element."""
        return 1 if isinstance(array, SharedLocal) else self.lanes

    def zero_locals(self) -> None:
        """At the start of an iteration."""
        for array, name in self.locals.items():
            size = prod(array.shape)
            if size <= _SMALL_LOCAL:
                t = llvm_type(array.dtype, self._copies(array))
                for k in range(size):
                    at = self.w.op(f"{name[1:]}.at", f"getelementptr {t}, ptr {name}, i64 {k}")
                    self.w.do(f"store {t} zeroinitializer, ptr {at}, align {array.dtype.itemsize}")
            else:
                total = size * self._copies(array) * array.dtype.itemsize
                self.arithmetic.declare("llvm.memset.p0.i64", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
                self.w.do(f"call void @llvm.memset.p0.i64(ptr align 64 {name}, i8 0, i64 {total}, i1 false)")

    # ---- addresses

    def _gep(self, array: ArrayParam, base: str, dim: int, index: str, flat: bool, flag: str) -> str:
        name = identifier(array.name)
        if array.layout == Layout.CONTIGUOUS or flat or (array.layout == Layout.INNER and dim == array.rank - 1):
            scale = None if flat or array.layout != Layout.CONTIGUOUS else self.words.scale(array, dim)
            offset = index if scale is None else self.w.op(f"{name}.row", f"mul {flag}i64 {index}, {scale}")
            return self.w.op(f"{name}.at", f"getelementptr {llvm_type(array.dtype)}, ptr {base}, i64 {offset}")
        offset = self.w.op(f"{name}.row", f"mul {flag}i64 {index}, {self.words.stride(array, dim)}")
        return self.w.op(f"{name}.at", f"getelementptr i8, ptr {base}, i64 {offset}")

    def moved(self, array: ArrayParam, at: str, dim: int, index: str) -> str:
        """The address ``index`` elements along ``dim`` behind ``at``."""
        return self._gep(array, at, dim, index, False, "")

    def base(self, array: ArrayParam, split: Access, flat: bool) -> str:
        """The address of the uniform part and lane 0's affine part; of what is uniform first, so that it leaves inner loops."""
        base = self.words.pointer(array)
        for d, index in split.uniform:
            if constant(index) != 0:
                base = self._gep(array, base, d, self.v.scalar(index), flat, "nsw ")
        for d, index, _ in split.even:
            base = self._gep(array, base, d, self.v.scalar(index), flat, "")
        if split.flat is not None:
            for d, first, more in zip((array.rank - 2, array.rank - 1), self.pair, split.flat, strict=True):
                place = first if more == 0 else self.w.op("index", f"add nsw i64 {first}, {more}")
                base = self._gep(array, base, d, place, flat, "nsw ")
        return base

    def offsets(self, array: ArrayParam, split: Access, flat: bool) -> tuple[str, str]:
        """The lanes' distances from the base, and the type that they count."""
        n, name = self.lanes, identifier(array.name)
        whole = flat or array.layout == Layout.CONTIGUOUS  # in elements, else in bytes
        t = f"<{n} x i64>"
        total: str | None = None
        parts: list[tuple[int, str]] = [(d, self.v.steps(i64, step)) for d, _, step in split.even]
        parts += [(d, self.v.vector(index)) for d, index in split.lanes]
        for d, index in parts:
            scale: str | None
            if whole:
                scale = None if flat else self.words.scale(array, d)
                factor = None if scale is None else self.v.splat("i64", scale, f"{name}.scale", once=True)
            elif array.layout == Layout.INNER and d == array.rank - 1:
                factor = f"splat (i64 {array.dtype.itemsize})"
            else:
                factor = self.v.splat("i64", self.words.stride(array, d), f"{name}.stride", once=True)
            if factor is not None:
                index = self.w.op(f"{name}.part", f"mul {t} {index}, {factor}")
            total = index if total is None else self.w.op(f"{name}.offset", f"add {t} {total}, {index}")
        assert total is not None
        return total, llvm_type(array.dtype) if whole else "i8"

    def pointers(self, array: ArrayParam, split: Access, flat: bool) -> str:
        offsets, unit = self.offsets(array, split, flat)
        return self.w.op(
            f"{identifier(array.name)}.at", f"getelementptr {unit}, ptr {self.base(array, split, flat)}, <{self.lanes} x i64> {offsets}"
        )

    # ---- loads and stores

    def load(self, instr: Instr, mask: str | None, hint: str) -> str:
        array, indices = indices_of(instr)
        if isinstance(array, ScratchArray):
            return self._load_local(array, indices, mask, hint)
        split = access(instr, self.v.flow.form, self.v.flow.pair)
        flat = instr.op == "load_flat"
        size = array.dtype.itemsize
        t, vt = llvm_type(array.dtype), llvm_type(array.dtype, self.lanes)
        if instr in self.tiles:
            return self.w.op(hint, f"load {vt}, ptr {self._in_tile(instr, vt)}, align {size}")
        if self.lanes == 1 or split.step == 0:
            return self.w.op(hint, f"load {t}, ptr {self.base(array, split, flat)}, align {size}")
        if split.step in (1, -1):
            at = self.base(array, split, flat)
            if split.step == -1:
                at = self.w.op(f"{identifier(array.name)}.at", f"getelementptr {t}, ptr {at}, i64 {1 - self.lanes}")
                mask = mask and self.reverse("i1", mask)
            elif instr in self.leading and mask is None:
                self.prefetch(self.w.op("ahead", f"getelementptr i8, ptr {at}, i64 {AHEAD_BYTES}"), 0)
            if mask is not None and self._one_by_one(array.dtype):
                value = self._load_around(array, at, mask, hint)
            else:
                value = self.load_vector(array.dtype, at, mask, hint)
            return value if split.step == 1 else self.reverse(t, value)
        if is_short_step(split.step) and (mask is None or picks_elements(self.arithmetic.x86_bits)):
            return load_strided(self, array, split, flat, mask, hint)
        column = load_column(self, instr, split, mask, hint) if self.rows else None
        if column is not None:
            return column
        return self.gather(array.dtype, self.pointers(array, split, flat), mask, hint, vt)

    def _in_tile(self, instr: Instr, vt: str) -> str:
        tile, round_ = self.tiles[instr]
        return self.w.op("tile.at", f"getelementptr {vt}, ptr {tile}, i64 {round_}")

    def prefetch(self, at: str, write: int) -> None:
        """Asks for the line at an address, which need not be one of anything."""
        self.arithmetic.declare("llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.w.do(f"call void @llvm.prefetch.p0(ptr {at}, i32 {write}, i32 3, i32 1)")

    def readable(self, array: ArrayParam, at: str, size: int) -> str:
        """i1: whether so many bytes behind an address lie between the array's first and last element, and on one page. If some lane reads
        of them, others may (a mapping may have holes where a program takes care not to look)."""
        w = self.w
        low, high = self.words.span(array)
        place = w.op("place", f"ptrtoint ptr {at} to i64")
        room = w.op("room", f"icmp sge i64 {w.op('room', f'sub i64 {high}, {place}')}, {size}")
        inside = w.op("inside", f"and i1 {room}, {w.op('behind', f'icmp uge i64 {place}, {low}')}")
        on_page = w.op("on.page", f"and i64 {place}, {_PAGE_BYTES - 1}")
        return w.op("inside", f"and i1 {inside}, {w.op('one.page', f'icmp ule i64 {on_page}, {_PAGE_BYTES - size}')}")

    def _load_around(self, array: ArrayParam, at: str, mask: str, hint: str) -> str:
        """All lanes' elements where these lie between the array's first and last one, as they mostly do: nobody looks at those of lanes
        that are off."""
        w, vt = self.w, llvm_type(array.dtype, self.lanes)
        ok = self.readable(array, at, self.lanes * array.dtype.itemsize)
        out = w.once(f"{hint}.lanes", f"alloca {vt}, align 64")
        whole, part, end = w.label("load.all"), w.label("load.some"), w.label("loaded")
        w.cbr(ok, whole, part)
        w.start(whole)
        w.do(f"store {vt} {self.load_vector(array.dtype, at, None, hint)}, ptr {out}, align 64")
        w.br(end)
        w.start(part)
        some = w.op(hint, f"call fastcc {vt} {self._load_some(array.dtype)}(ptr {at}, <{self.lanes} x i1> {mask})")
        w.do(f"store {vt} {some}, ptr {out}, align 64")
        w.start(end)
        return w.op(hint, f"load {vt}, ptr {out}, align 64")

    def _load_some(self, dtype: DType) -> str:
        """The function that takes lanes one by one. It is not inlined: few of its calls happen."""
        n, vt, size = self.lanes, llvm_type(dtype, self.lanes), dtype.itemsize
        kind = suffix(dtype, n)
        self.arithmetic.declare(f"llvm.masked.load.{kind}.p0", f"declare {vt} @llvm.masked.load.{kind}.p0(ptr, <{n} x i1>, {vt})")
        name = f"@tack_load_{kind}"
        self.arithmetic.declare(
            name,
            f"define internal fastcc {vt} {name}(ptr %at, <{n} x i1> %mask) noinline #0 {{\n"
            f"  %some = call {vt} @llvm.masked.load.{kind}.p0(ptr align {size} %at, <{n} x i1> %mask, {vt} zeroinitializer)\n"
            f"  ret {vt} %some\n}}",
        )
        return name

    def load_vector(self, dtype: DType, at: str, mask: str | None, hint: str) -> str:
        vt = llvm_type(dtype, self.lanes)
        if mask is None:
            return self.w.op(hint, f"load {vt}, ptr {at}, align {dtype.itemsize}")
        name = f"llvm.masked.load.{suffix(dtype, self.lanes)}.p0"
        self.arithmetic.declare(name, f"declare {vt} @{name}(ptr, <{self.lanes} x i1>, {vt})")
        return self.w.op(hint, f"call {vt} @{name}(ptr align {dtype.itemsize} {at}, <{self.lanes} x i1> {mask}, {vt} zeroinitializer)")

    def store_vector(self, dtype: DType, value: str, at: str, mask: str | None) -> None:
        vt = llvm_type(dtype, self.lanes)
        if mask is None:
            self.w.do(f"store {vt} {value}, ptr {at}, align {dtype.itemsize}")
            return
        if self._one_by_one(dtype):
            self.scatter(dtype, value, self._each(dtype, at), mask)
            return
        name = f"llvm.masked.store.{suffix(dtype, self.lanes)}.p0"
        self.arithmetic.declare(name, f"declare void @{name}({vt}, ptr, <{self.lanes} x i1>)")
        self.w.do(f"call void @{name}({vt} {value}, ptr align {dtype.itemsize} {at}, <{self.lanes} x i1> {mask})")

    def reverse(self, t: str, value: str) -> str:
        n = self.lanes
        order = ", ".join(f"i32 {n - 1 - k}" for k in range(n))
        return self.w.op("reversed", f"shufflevector <{n} x {t}> {value}, <{n} x {t}> poison, <{n} x i32> <{order}>")

    # Elements that the machine has no instruction for are moved one by one, where a branch for each lane would cost more than the element:
    # lanes that are off move one of no meaning instead (f32 where half of the lanes are on: 7 times as fast, bytes 4 to 9 times).

    def _one_by_one(self, dtype: DType) -> bool:
        """Whether the machine lacks masked loads and stores of neighbouring elements."""
        return not masks_neighbours(self.arithmetic.x86_bits, dtype.bits)

    def _each(self, dtype: DType, at: str) -> str:
        """The addresses of neighbouring elements."""
        return self.w.op("each", f"getelementptr {llvm_type(dtype)}, ptr {at}, <{self.lanes} x i64> {self.v.steps(i64, 1)}")

    def _all_somewhere(self, dtype: DType, pointers: str, mask: str | None, aside: Callable[[], str]) -> tuple[str, str]:
        """Addresses, and the mask that is to be used with them. ``aside``: where lanes that are off go."""
        n = self.lanes
        if mask is None or (self.arithmetic.x86_bits >= 512 and dtype.bits >= 32 and n > 2):
            return pointers, mask or self.v.all_on
        return self.w.op("somewhere", f"select <{n} x i1> {mask}, <{n} x ptr> {pointers}, <{n} x ptr> {aside()}"), self.v.all_on

    def _nothing(self) -> str:
        """Where lanes that are off load from."""
        self.arithmetic.declare("@nothing", "@nothing = private unnamed_addr constant i64 0, align 8")
        return "splat (ptr @nothing)"

    def _bin(self) -> str:
        """Where lanes that are off store to."""
        if self._bins is None:
            self._bins = self.v.splat("ptr", self.w.once("bin", "alloca i64, align 8"), "bin", once=True)
        return self._bins

    def gather(self, dtype: DType, pointers: str, mask: str | None, hint: str, vt: str) -> str:
        n = self.lanes
        name = f"llvm.masked.gather.{suffix(dtype, n)}.v{n}p0"
        self.arithmetic.declare(name, f"declare {vt} @{name}(<{n} x ptr>, <{n} x i1>, {vt})")
        at, on = self._all_somewhere(dtype, pointers, mask, self._nothing)
        return self.w.op(hint, f"call {vt} @{name}(<{n} x ptr> align {dtype.itemsize} {at}, <{n} x i1> {on}, {vt} zeroinitializer)")

    def scatter(self, dtype: DType, value: str, pointers: str, mask: str | None) -> None:
        n, vt = self.lanes, llvm_type(dtype, self.lanes)
        name = f"llvm.masked.scatter.{suffix(dtype, n)}.v{n}p0"
        self.arithmetic.declare(name, f"declare void @{name}({vt}, <{n} x ptr>, <{n} x i1>)")
        at, on = self._all_somewhere(dtype, pointers, mask, self._bin)
        self.w.do(f"call void @{name}({vt} {value}, <{n} x ptr> align {dtype.itemsize} {at}, <{n} x i1> {on})")

    def store(self, instr: Instr, mask: str | None) -> None:
        array, indices = indices_of(instr)
        value = instr.args[0]
        if isinstance(array, ScratchArray):
            self._store_local(array, value, indices, mask)
            return
        split = access(instr, self.v.flow.form, self.v.flow.pair)
        flat = instr.op == "store_flat"
        size, t = array.dtype.itemsize, llvm_type(array.dtype)
        if instr in self.tiles:
            vt = llvm_type(array.dtype, self.lanes)
            self.w.do(f"store {vt} {self.v.vector(value)}, ptr {self._in_tile(instr, vt)}, align {size}")
            return
        if self.lanes == 1 or split.step == 0:
            scalar = self.v.scalar(value) if self.v.flow.uniform(value) else self._last_lane(value, mask)
            self.w.do(f"store {t} {scalar}, ptr {self.base(array, split, flat)}, align {size}")
        elif split.step in (1, -1):
            at, text = self.base(array, split, flat), self.v.vector(value)
            if split.step == -1:
                at = self.w.op(f"{identifier(array.name)}.at", f"getelementptr {t}, ptr {at}, i64 {1 - self.lanes}")
                mask, text = mask and self.reverse("i1", mask), self.reverse(t, text)
            if instr is self.nontemporal and mask is None:
                self.w.do(f"store {llvm_type(array.dtype, self.lanes)} {text}, ptr {at}, align {size * self.lanes}, !nontemporal !0")
            else:
                self.store_vector(array.dtype, text, at, mask)
        elif is_short_step(split.step) and picks_elements(self.arithmetic.x86_bits):
            store_strided(self, array, split, flat, self.v.vector(value), mask)
        elif not self.rows or not store_column(self, instr, split, mask):
            self.scatter(array.dtype, self.v.vector(value), self.pointers(array, split, flat), mask)

    def _last_lane(self, value: Instr, mask: str | None) -> str:
        """Of lanes that store to one element, the last one's value stays."""
        assert value.type is not None
        n, vt = self.lanes, llvm_type(value.type, self.lanes)
        if mask is None:
            return self.w.op("last", f"extractelement {vt} {self.v.vector(value)}, i64 {n - 1}")
        bits = self.v.mask_bits(mask)
        zeros = self.arithmetic.call("zeros", f"llvm.ctlz.i{n}", f"i{n}", [(f"i{n}", bits), ("i1", "true")])
        lane = self.w.op("lane", f"sub i{n} {n - 1}, {zeros}")
        return self.w.op("last", f"extractelement {vt} {self.v.vector(value)}, i{n} {lane}")

    def table(self, instr: Instr, mask: str | None, hint: str) -> str:
        """A number of a constant table."""
        table, dtype, (index,) = instr.attr, instr.type, instr.args
        assert isinstance(table, Table)
        assert dtype is not None
        t = llvm_type(dtype)
        items = ", ".join(f"{t} {literal(dtype, v)}" for v in table.values)
        contents = f"[{len(table.values)} x {t}] [{items}]"
        name = f"@table.{blake2b(contents.encode(), digest_size=16).hexdigest()}"  # equal tables are one
        self.arithmetic.declare(name, f"{name} = private unnamed_addr constant {contents}, align {dtype.itemsize}")
        if self.lanes > 1 and self.v.flow.form(instr) is None:
            n = self.lanes
            at = self.w.op("table.at", f"getelementptr {t}, ptr {name}, <{n} x i64> {self.v.vector(index)}")
            return self.gather(dtype, at, mask, hint, llvm_type(dtype, n))
        at = self.w.op("table.at", f"getelementptr {t}, ptr {name}, i64 {self.v.scalar(index)}")
        return self.w.op(hint, f"load {t}, ptr {at}, align {dtype.itemsize}")

    # ---- local arrays: element k of all lanes lies together

    def _local_index(self, array: ScratchArray, indices: tuple[Instr, ...], vector: bool) -> str:
        t = f"<{self.lanes} x i64>" if vector else "i64"
        get = self.v.vector if vector else self.v.scalar
        total = get(indices[0])
        for d in range(1, len(indices)):
            factor = f"splat (i64 {array.shape[d]})" if vector else str(array.shape[d])
            row = self.w.op("row", f"mul {t} {total}, {factor}")
            total = self.w.op("element", f"add {t} {row}, {get(indices[d])}")
        return total

    def _local_at(self, array: ScratchArray, indices: tuple[Instr, ...]) -> tuple[str, bool]:
        """The address of an element's lanes, or the lanes' addresses (True)."""
        name, t = self.locals[array], llvm_type(array.dtype)
        if all(self.v.flow.uniform(i) for i in indices):
            index = self._local_index(array, indices, False)
            return self.w.op(f"{name[1:]}.at", f"getelementptr {llvm_type(array.dtype, self.lanes)}, ptr {name}, i64 {index}"), False
        n = self.lanes
        index = self._local_index(array, indices, True)
        first = self.w.op("element", f"mul <{n} x i64> {index}, splat (i64 {n})")
        mine = self.w.op("element", f"add <{n} x i64> {first}, {self.v.steps(i64, 1)}")
        return self.w.op(f"{name[1:]}.at", f"getelementptr {t}, ptr {name}, <{n} x i64> {mine}"), True

    def _load_local(self, array: ScratchArray, indices: tuple[Instr, ...], mask: str | None, hint: str) -> str:
        at, scattered = self._local_at(array, indices)
        vt = llvm_type(array.dtype, self.lanes)
        if scattered:
            return self.gather(array.dtype, at, mask, hint, vt)
        return self.w.op(hint, f"load {vt}, ptr {at}, align {array.dtype.itemsize}")

    def _store_local(self, array: ScratchArray, value: Instr, indices: tuple[Instr, ...], mask: str | None) -> None:
        at, scattered = self._local_at(array, indices)
        text, vt, size = self.v.vector(value), llvm_type(array.dtype, self.lanes), array.dtype.itemsize
        if scattered:
            self.scatter(array.dtype, text, at, mask)
            return
        if mask is not None:  # the memory is ours: reading and writing it back is cheaper than a masked store, and registers can hold it
            old = self.w.op("old", f"load {vt}, ptr {at}, align {size}")
            text = self.w.op("new", f"select <{self.lanes} x i1> {mask}, {vt} {text}, {vt} {old}")
        self.w.do(f"store {vt} {text}, ptr {at}, align {size}")

    # ---- scratch cells

    def cell_at(self, offset: int) -> str:
        return self.w.op("cell.at", f"getelementptr i8, ptr {self.words.scratch()}, i64 {offset}")

    def cell(self, dtype: DType, offset: int, hint: str) -> str:
        at = self.cell_at(offset)
        if dtype == BOOL:
            return self.w.op(hint, f"icmp ne i8 {self.w.op('cell', f'load i8, ptr {at}, align 8')}, 0")
        return self.w.op(hint, f"load {llvm_type(dtype)}, ptr {at}, align 8")

    def set_cell(self, dtype: DType, offset: int, value: str) -> None:
        at = self.cell_at(offset)
        if dtype == BOOL:
            value = self.w.op("byte", f"zext i1 {value} to i8")
        self.w.do(f"store {'i8' if dtype == BOOL else llvm_type(dtype)} {value}, ptr {at}, align 8")
