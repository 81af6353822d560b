"""Prints accesses to memory: an entry's parameters, elements of arrays, scratch cells, tables, atomics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, prod

from ..ir.arith import bitcast
from ..ir.nodes import ArrayParam, Instr, ScalarParam, ScratchArray, SharedArray, Table
from ..ir.source import ParamSlot
from ..types import BOOL, DType, Layout, i64, u8, u64
from .affine import indices_of
from .c_atomics import atomic
from .c_expr import ADD, EQUAL, MUL, UNARY, Cell, Expr
from .c_facts import memory_of
from .c_helpers import Helpers, unsigned
from .c_names import Names
from .c_ops import Ops
from .dialects import Parameter

__all__ = ["Memory", "Parameters"]

_OF_ARGUMENTS = ("pointer", "texture", "shape", "stride", "scalar")
_OF_LAUNCHES = ("sequence", "extent", "start", "step", "scratch", "records")
_LARGEST = (1 << 63) - 1


class Parameters:
    """The parameters of an entry: one for each word of its block, named when it is first asked for."""

    def __init__(self, helpers: Helpers, names: Names, written: frozenset[int]) -> None:
        self.h, self.names, self.written = helpers, names, written
        self._declared: dict[ParamSlot, Parameter] = {}
        self.head: list[str] = []  # constants that are made of them, at the top of the function
        self._named: dict[tuple[str, int, int], str] = {}
        self._steps: dict[tuple[int, int], str] = {}

    def _word(self, kind: str, arg: int, dim: int, hint: str, dtype: DType = i64, pointer: str = "", word: str = "i64") -> str:
        key = kind, arg, dim
        name = self._named.get(key)
        if name is None:
            name = self._named[key] = self.names.new(hint)
            slot = ParamSlot(kind, arg, dim, word)
            self._declared[slot] = Parameter(pointer or self.h.type(dtype), name, None if pointer else dtype)
        return name

    def declarations(self) -> dict[ParamSlot, Parameter]:
        """The words with their declarations: arguments as the user has them, then what the launch brings."""
        return dict(sorted(self._declared.items(), key=lambda item: _order(item[0])))

    def pointer(self, array: ArrayParam) -> str:
        kind = self.h.pointer(array.dtype, read_only=array.index not in self.written)
        return self._word("pointer", array.index, 0, array.name, pointer=kind)

    def texture(self, array: ArrayParam) -> str:
        return self._word("texture", array.index, 0, array.name, pointer=self.h.dialect.texture)

    def shape(self, array: ArrayParam, dim: int) -> str:
        return self._word("shape", array.index, dim, f"{array.name}_shape{dim}")

    def element_stride(self, array: ArrayParam, dim: int) -> str:
        """Elements from one index along ``dim`` to the next: the stride in bytes, of which it is a multiple, shifted."""
        key = array.index, dim
        if key not in self._steps:
            stride = self._word("stride", array.index, dim, f"{array.name}_stride{dim}")
            size = array.dtype.itemsize
            if size > 1:
                name = self.names.new(f"{array.name}_step{dim}")
                self.head.append(f"const {self.h.type(i64)} {name} = {stride} >> {size.bit_length() - 1};")
                stride = name
            self._steps[key] = stride
        return self._steps[key]

    def scalar(self, param: ScalarParam) -> str:
        """A bool comes as a byte: not every language takes bools there."""
        held = u8 if param.dtype == BOOL else param.dtype
        return self._word("scalar", param.index, 0, param.name, held, word=param.dtype.name)

    def launch(self, kind: str, dim: int) -> str:
        """extent, start or step of the launch."""
        return self._word(kind, 0, dim, f"{kind}{dim}")

    def sequence(self, depth: int) -> str:
        return self._word("sequence", depth, 0, f"sequence{depth}")

    def scratch(self) -> str:
        return self._word("scratch", 0, 0, "scratch", pointer=self.h.pointer(u64))

    def records(self) -> str:
        return self._word("records", 0, 0, "records", pointer=self.h.pointer(u64))


def _order(slot: ParamSlot) -> tuple[int, int, int, int]:
    if slot.kind in _OF_ARGUMENTS:
        return 0, slot.arg, slot.dim, _OF_ARGUMENTS.index(slot.kind)
    return 1 + _OF_LAUNCHES.index(slot.kind), slot.arg, slot.dim, 0


class Memory:
    """Accesses of one function."""

    def __init__(self, ops: Ops, parameters: Parameters, names: Names) -> None:
        self.ops, self.h, self.p, self.names = ops, ops.h, parameters, names
        self.arrays: dict[ScratchArray, str] = {}  # local and shared

    # ---- words

    def word(self, instr: Instr) -> Expr:
        """arg, shape, sequence."""
        if instr.op == "arg":
            assert isinstance(instr.attr, ScalarParam)
            name = self.p.scalar(instr.attr)
            if instr.attr.dtype == BOOL:
                return Expr(f"{name} != 0", EQUAL, high=1, small=True)
            return self.ops.value(instr.attr.dtype, name)
        if instr.op == "shape":
            assert isinstance(instr.attr, tuple)
            array, dim = instr.attr
            assert isinstance(array, ArrayParam)
            assert isinstance(dim, int)
            return Expr(self.p.shape(array, dim), low=0, high=_LARGEST)
        assert isinstance(instr.attr, int)
        return self.ops.value(i64, self.p.sequence(instr.attr))

    def sample(self, instr: Instr, at: Sequence[Expr]) -> Expr:
        """What the texture units give at a point."""
        assert isinstance(instr.attr, tuple)
        mode, texels = instr.attr
        assert isinstance(texels, ArrayParam)
        assert instr.type is not None
        return self.ops.call(self.h.dialect.sample[str(mode)], instr.type, [Expr(self.p.texture(texels)), *at])

    # ---- elements

    def element(self, instr: Instr, indices: Sequence[Expr]) -> Expr:
        """The element that a memory instruction accesses, as a value or the left side of an assignment."""
        array, _ = indices_of(instr)
        if isinstance(array, ScratchArray):
            place = self._row_major(indices, [str(n) for n in array.shape])
            name = self.arrays[array]
        else:
            name = self.p.pointer(array)
            if instr.op in ("load_flat", "store_flat"):
                place = indices[0]
            elif array.layout == Layout.CONTIGUOUS:
                place = self._row_major(indices, [self.p.shape(array, d) if d else "" for d in range(array.rank)])
            else:
                place = self._strided(array, indices)
        return self.ops.value(array.dtype, f"{name}[{place.text}]", place.reads | {memory_of(array)}, place.size + 1)

    def _row_major(self, indices: Sequence[Expr], lengths: Sequence[str]) -> Expr:
        total = indices[0] if indices else Expr("0")
        for index, length in zip(indices[1:], lengths[1:], strict=True):
            row = "" if total.text == "0" else f"{total.at(MUL)} * {length}"
            total = _sum(row, total, index)
        return total

    def _strided(self, array: ArrayParam, indices: Sequence[Expr]) -> Expr:
        total = Expr("0")
        for d, index in enumerate(indices):
            if array.layout == Layout.INNER and d == array.rank - 1:
                total = _sum("" if total.text == "0" else total.at(ADD), total, index)
            elif index.text != "0":
                step = self.p.element_stride(array, d)
                part = Expr(f"{index.at(MUL)} * {step}", MUL, index.reads, index.size + 1)
                total = part if total.text == "0" else _sum(total.at(ADD), total, part)
        return total

    def declare(self, array: ScratchArray) -> str:
        """The statement that declares a local array, zeroed, or a shared one."""
        name = self.arrays[array] = self.names.new(array.name.lstrip("_") or "a")
        text = f"{self.h.type(array.dtype)} {name}[{max(prod(array.shape), 1)}]"
        return f"{self.h.dialect.shared} {text};" if isinstance(array, SharedArray) else f"{text} = {{0}};"

    def table(self, instr: Instr, index: Expr) -> Expr:
        assert isinstance(instr.attr, Table)
        assert instr.type is not None
        dtype, values = instr.type, instr.attr.values
        held = dtype
        if dtype.is_float and not all(map(isfinite, values)):  # by their bits: not every language has constants for these
            held, values = unsigned(dtype), tuple(int(bitcast(float(v), dtype, unsigned(dtype))) for v in values)
        text = f"{self.h.table(held, values)}[{index.text}]"
        if held != dtype:
            text = self.h.reinterpret(held, dtype, text)
        return self.ops.value(dtype, text, index.reads, index.size + 1)

    # ---- scratch: words of 64 bits, a scalar in the low ones

    def cell(self, dtype: DType, place: str) -> Expr:
        """A scalar's value; ``place`` counts words."""
        return self.of_word(dtype, f"{self.p.scratch()}[{place}]", frozenset({"scratch"}))

    def of_word(self, dtype: DType, word: str, reads: frozenset[Cell] = frozenset()) -> Expr:
        """The scalar in the low bits of a word."""
        if dtype == BOOL:
            return Expr(f"{word} != 0", EQUAL, reads, 1, 0, 1, small=True)
        if dtype.is_float:
            u = unsigned(dtype)
            text = self.h.reinterpret(u, dtype, word if u == u64 else f"({self.h.type(u)}){word}")
            return self.ops.value(dtype, text, reads, 2)
        if dtype == u64:
            return self.ops.value(u64, word, reads, 1)
        return replace(self.ops.value(dtype, f"({self.h.type(dtype)}){word}", reads, 1), level=UNARY)

    def set_cell(self, dtype: DType, place: str, value: Expr) -> str:
        return f"{self.p.scratch()}[{place}] = {self.as_word(dtype, value)};"

    def as_word(self, dtype: DType, value: Expr) -> str:
        """A scalar in the low bits of a word."""
        if dtype.is_float:
            u = unsigned(dtype)
            bits = self.h.reinterpret(dtype, u, value.text)
            return bits if u == u64 else f"({self.h.type(u64)}){bits}"
        if dtype == u64:
            return value.text
        return f"({self.h.type(u64)}){value.at(UNARY)}"

    # ---- atomics

    def atomic(self, instr: Instr, operands: Sequence[Expr], element: Expr) -> str:
        """The call, which answers the old value."""
        assert isinstance(instr.attr, tuple)
        kind = instr.attr[0]
        array, _ = indices_of(instr)
        assert isinstance(kind, str)
        space = "shared" if isinstance(array, SharedArray) else "global"
        return atomic(self.h, kind, array.dtype, space, f"&{element.text}", [o.text for o in operands])


def _sum(left: str, a: Expr, b: Expr) -> Expr:
    """``left`` + b, where ``left`` is made of a."""
    if not left:
        return b
    text = left if b.text == "0" else f"{left} - {b.text[1:]}" if b.text[0] == "-" and b.level == UNARY else f"{left} + {b.at(ADD)}"
    return Expr(text, ADD, a.reads | b.reads, a.size + b.size + 1)
