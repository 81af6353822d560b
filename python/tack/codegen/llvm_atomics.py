"""Prints atomics: one by one, lane by lane, or one for all lanes; and what the kinds of them have in common.

A launch that no other one updates memory beside does without locked instructions. An entry with atomics is told by ``ALONE``, which
is the same for all of a piece: a branch that is always predicted costs next to nothing, and the code is there once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..ir.nodes import ArrayParam, Instr, ScratchArray
from ..types import DType
from .affine import Access, access, indices_of
from .llvm_text import identifier, literal, llvm_type, suffix
from .params import EntryPlan
from .uniform import Flow
from .walk import instructions

if TYPE_CHECKING:
    from .llvm_memory import Memory
    from .llvm_tables import Tables

__all__ = ["ALONE", "KINDS", "Atomics", "alone_symbol", "neutral", "one_element", "signatures"]

ALONE = "%alone"  # i1, a parameter of all functions that atomics are printed into
# What combines two operands of one kind.
KINDS = {"add": "add", "sub": "add", "and": "and", "or": "or", "xor": "xor", "min": "min", "max": "max"}
_ATOMIC_INT = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "exchange": "xchg"}


def alone_symbol(entry: EntryPlan) -> str:
    """Of an entry's code for launches that are alone; empty where it has no atomics."""
    return f"{entry.symbol}.alone" if any(i.op == "atomic" for i in instructions(entry.body)) else ""


def signatures(symbol: str, alone: str, inner: bool) -> tuple[str, list[str]]:
    """The first line of an entry's function, and what follows the function: with ``alone``, the two that call it. ``inner``: the entry's
    function calls it."""
    parameters = "ptr noalias readonly %words, i64 %begin, i64 %end"
    if not alone:
        return f"define {'internal ' if inner else ''}void @{symbol}({parameters}) #0 {{", []
    if inner:
        return f"define internal void @{symbol}({parameters}, i1 {ALONE}) #0 {{", []
    both = [
        f"define void @{name}({parameters}) #0 {{\n  call fastcc void @{symbol}.run({parameters}, i1 {value})\n  ret void\n}}\n"
        for name, value in ((symbol, "false"), (alone, "true"))
    ]
    return f"define internal fastcc void @{symbol}.run({parameters}, i1 {ALONE}) #4 {{", both


def one_element(instr: Instr, flow: Flow, used: set[Instr]) -> bool:
    """Whether all lanes of an atomic update one element, and nothing reads what it was: one atomic is enough for them."""
    assert isinstance(instr.attr, tuple)
    return instr.attr[0] in KINDS and instr not in used and access(instr, flow.form, flow.pair).step == 0


def neutral(kind: str, dtype: DType) -> float:
    """What changes nothing: an atomic of this kind with it leaves an element as it is, -0.0 and NaN included."""
    if kind in ("min", "max"):
        bound = math.nan if dtype.is_float else dtype.max if kind == "min" else dtype.min
        assert bound is not None
        return bound
    return -1 if kind == "and" else -0.0 if dtype.is_float else 0


class Atomics:
    """Of one body, whose other accesses ``memory`` prints."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.w, self.lanes, self.arithmetic = memory, memory.w, memory.lanes, memory.arithmetic
        self.tables: Tables | None = None  # of arrays that are updated privately

    def atomic(self, instr: Instr, mask: str | None, hint: str) -> str:
        """The old value, lane by lane. Lanes take turns, but for what all lanes fold into one element."""
        assert isinstance(instr.attr, tuple)
        kind = instr.attr[0]
        assert isinstance(kind, str)
        array, _ = indices_of(instr)
        if isinstance(array, ScratchArray):
            raise AssertionError("atomics work on array arguments")
        if self.tables is not None and array in self.tables.tables:
            self.tables.update(self.memory, instr, mask)
            return "poison"
        split = access(instr, self.memory.v.flow.form, self.memory.v.flow.pair)
        dtype = array.dtype
        operands = instr.args[: 2 if kind == "cas" else 1]
        if self.lanes == 1:
            return self.one(kind, dtype, self.memory.base(array, split, False), [self.memory.v.scalar(a) for a in operands], hint)
        if one_element(instr, self.memory.v.flow, self.memory.used):
            at, value = self.memory.base(array, split, False), self.memory.v.vector(operands[0])
            if dtype.is_float and kind in ("add", "sub") and not self.arithmetic.fast:
                self._in_turn(kind, dtype, at, value, mask, hint)
            else:
                self.one(kind, dtype, at, [self.fold(kind, dtype, value, mask)], hint)
            return "poison"
        return self._turns(instr, kind, array, split, operands, mask, hint)

    def _counted(self, kind: str, dtype: DType, value: str, mask: str | None) -> str:
        """A value whose lanes that are off change nothing."""
        if mask is None:
            return value
        n, vt = self.lanes, llvm_type(dtype, self.lanes)
        nothing = self.arithmetic.splat(dtype, n, neutral(kind, dtype))
        return self.w.op("counted", f"select <{n} x i1> {mask}, {vt} {value}, {vt} {nothing}")

    def fold(self, kind: str, dtype: DType, value: str, mask: str | None) -> str:
        """All lanes' values combined, in any order."""
        n, t, vt = self.lanes, llvm_type(dtype), llvm_type(dtype, self.lanes)
        value = self._counted(kind, dtype, value, mask)
        name = {"sub": "add"}.get(kind, kind)
        if dtype.is_float and name == "add":
            start = (t, literal(dtype, -0.0))
            return self.arithmetic.call(
                "folded", f"llvm.vector.reduce.fadd.{suffix(dtype, n)}", t, [start, (vt, value)], self.arithmetic.fast
            )
        if dtype.is_float:
            return self._fold_halves(name, dtype, value)
        if name in ("min", "max"):
            name = ("s" if dtype.is_signed else "u") + name
        return self.arithmetic.call("folded", f"llvm.vector.reduce.{name}.{suffix(dtype, n)}", t, [(vt, value)])

    def _fold_halves(self, kind: str, dtype: DType, value: str) -> str:
        """Floats, of which the number rather than a NaN."""
        n = self.lanes
        while n > 1:
            vt, half = llvm_type(dtype, n), n // 2
            low, high = (
                self.w.op("half", f"shufflevector {vt} {value}, {vt} poison, <{half} x i32> <{order}>")
                if half > 1
                else self.w.op("half", f"extractelement {vt} {value}, i64 {first}")
                for first in (0, half)
                for order in (", ".join(f"i32 {first + k}" for k in range(half)),)
            )
            value, n = self.arithmetic.minmax(kind, dtype, half, low, high, "folded"), half
        return value

    def _in_turn(self, kind: str, dtype: DType, at: str, value: str, mask: str | None, hint: str) -> None:
        """Adds the lanes' floats to one element, one after the other: what as many atomics in a row would have done."""
        n, t, vt = self.lanes, llvm_type(dtype), llvm_type(dtype, self.lanes)
        if kind == "sub":
            value = self.w.op("minus", f"fneg {vt} {value}")
        value = self._counted("add", dtype, value, mask)
        name = f"llvm.vector.reduce.fadd.{suffix(dtype, n)}"
        change = lambda old: self.arithmetic.call("new", name, t, [(t, old), (vt, value)])  # noqa: E731
        self._either(dtype, at, change, lambda: self._exchange_loop(dtype, at, change, hint), hint)

    def _turns(
        self, instr: Instr, kind: str, array: ArrayParam, split: Access, operands: tuple[Instr, ...], mask: str | None, hint: str
    ) -> str:
        w, n, dtype = self.w, self.lanes, array.dtype
        t, vt, name = llvm_type(dtype), llvm_type(dtype, n), identifier(array.name)
        base = self.memory.base(array, split, False)
        offsets, unit = (None, t) if split.step in (0, 1) else self.memory.offsets(array, split, False)
        # What a turn needs is picked from memory: extracting at a run-time lane would go there too, every time.
        shelves: list[str] = []
        for value in operands:
            shelf = w.once("shelf", f"alloca {vt}, align 64")
            w.do(f"store {vt} {self.memory.v.vector(value)}, ptr {shelf}, align 64")
            shelves.append(shelf)
        where = ""
        if offsets is not None:
            where = w.once("shelf", f"alloca <{n} x i64>, align 64")
            w.do(f"store <{n} x i64> {offsets}, ptr {where}, align 64")
        olds = w.once("olds", f"alloca {vt}, align 64") if instr in self.memory.used else ""
        if olds:
            w.do(f"store {vt} zeroinitializer, ptr {olds}, align 64")
        left = w.once("left", f"alloca i{n}, align 8")
        w.do(f"store i{n} {-1 if mask is None else self.memory.v.mask_bits(mask)}, ptr {left}, align 8")
        turn, done = w.label("atomic.turn"), w.label("atomic.done")
        w.start(turn)
        bits = w.op("bits", f"load i{n}, ptr {left}, align 8")
        lane_n = self.arithmetic.call("lane", f"llvm.cttz.i{n}", f"i{n}", [(f"i{n}", bits), ("i1", "true")])
        lane = lane_n if n == 64 else w.op("lane", f"{'zext' if n < 64 else 'trunc'} i{n} {lane_n} to i64")
        mine = [
            w.op("mine", f"load {t}, ptr {w.op('mine.at', f'getelementptr {t}, ptr {s}, i64 {lane}')}, align {dtype.itemsize}")
            for s in shelves
        ]
        at = base
        if split.step == 1:
            at = w.op(f"{name}.at", f"getelementptr {t}, ptr {base}, i64 {lane}")
        elif offsets is not None:
            offset_at = w.op("offset.at", f"getelementptr i64, ptr {where}, i64 {lane}")
            offset = w.op("offset", f"load i64, ptr {offset_at}, align 8")
            at = w.op(f"{name}.at", f"getelementptr {unit}, ptr {base}, i64 {offset}")
        old = self.one(kind, dtype, at, mine, hint)
        if olds:
            old_at = w.op("old.at", f"getelementptr {t}, ptr {olds}, i64 {lane}")
            w.do(f"store {t} {old}, ptr {old_at}, align {dtype.itemsize}")
        less = w.op("less", f"add i{n} {bits}, -1")
        rest = w.op("rest", f"and i{n} {bits}, {less}")
        w.do(f"store i{n} {rest}, ptr {left}, align 8")
        w.cbr(w.op("more", f"icmp ne i{n} {rest}, 0"), turn, done)
        w.start(done)
        return w.op(hint, f"load {vt}, ptr {olds}, align 64") if olds else "poison"

    def one(self, kind: str, dtype: DType, at: str, operands: list[str], hint: str) -> str:
        """One scalar atomic, relaxed; answers the old value."""
        return self._either(
            dtype, at, lambda old: self._changed(kind, dtype, old, operands), lambda: self._locked(kind, dtype, at, operands, hint), hint
        )

    def _either(self, dtype: DType, at: str, change: Callable[[str], str], locked: Callable[[], str], hint: str) -> str:
        """Changes an element, alone or among others; answers the old value. ``change``: the new value; ``locked``: does it by an atomic."""
        w, t = self.w, llvm_type(dtype)
        before = w.once("before", f"alloca {t}, align 8")
        alone, others, done = w.label("alone"), w.label("others"), w.label("updated")
        w.cbr(ALONE, alone, others)
        w.start(alone)
        old = w.op(hint, f"load {t}, ptr {at}, align {dtype.itemsize}")
        w.do(f"store {t} {change(old)}, ptr {at}, align {dtype.itemsize}")
        w.do(f"store {t} {old}, ptr {before}, align 8")
        w.br(done)
        w.start(others)
        w.do(f"store {t} {locked()}, ptr {before}, align 8")
        w.br(done)
        w.start(done)
        return w.op(hint, f"load {t}, ptr {before}, align 8")

    def _changed(self, kind: str, dtype: DType, old: str, operands: list[str]) -> str:
        """What an atomic makes of an old value."""
        w, t, value = self.w, llvm_type(dtype), operands[0]
        if kind == "exchange":
            return value
        if kind == "cas":
            bits = f"i{dtype.bits}"
            pair = [w.op("bits", f"bitcast {t} {v} to {bits}") for v in (old, value)] if dtype.is_float else [old, value]
            return w.op("new", f"select i1 {w.op('same', f'icmp eq {bits} {pair[0]}, {pair[1]}')}, {t} {operands[1]}, {t} {old}")
        if kind in ("min", "max"):
            return self.arithmetic.minmax(kind, dtype, 1, old, value, "new")
        return w.op("new", f"{'f' if dtype.is_float else ''}{kind} {t} {old}, {value}")

    def _locked(self, kind: str, dtype: DType, at: str, operands: list[str], hint: str) -> str:
        w, t, bits = self.w, llvm_type(dtype), f"i{dtype.bits}"
        align = f"align {dtype.itemsize}"
        if kind == "cas":
            pair = [w.op("bits", f"bitcast {t} {v} to {bits}") for v in operands] if dtype.is_float else operands
            both = w.op("swapped", f"cmpxchg ptr {at}, {bits} {pair[0]}, {bits} {pair[1]} monotonic monotonic, {align}")
            old = w.op(hint, f"extractvalue {{ {bits}, i1 }} {both}, 0")
            return w.op(hint, f"bitcast {bits} {old} to {t}") if dtype.is_float else old
        if dtype.is_float and kind in ("min", "max"):
            return self._exchange_loop(dtype, at, lambda old: self.arithmetic.minmax(kind, dtype, 1, old, operands[0], "new"), hint)
        if kind in ("min", "max"):
            name = ("" if dtype.is_signed else "u") + kind
        else:
            name = ("f" if dtype.is_float and kind != "exchange" else "") + _ATOMIC_INT[kind]
        return w.op(hint, f"atomicrmw {name} ptr {at}, {t} {operands[0]} monotonic, {align}")

    def _exchange_loop(self, dtype: DType, at: str, change: Callable[[str], str], hint: str) -> str:
        w, t, bits = self.w, llvm_type(dtype), f"i{dtype.bits}"
        seen = w.once("seen", f"alloca {bits}, align 8")
        first = w.op("first", f"load atomic {bits}, ptr {at} monotonic, align {dtype.itemsize}")
        w.do(f"store {bits} {first}, ptr {seen}, align 8")
        again, done = w.label("exchange"), w.label("exchange.done")
        w.start(again)
        now = w.op("now", f"load {bits}, ptr {seen}, align 8")
        old = w.op(hint, f"bitcast {bits} {now} to {t}")
        new = w.op("new", f"bitcast {t} {change(old)} to {bits}")
        both = w.op("swapped", f"cmpxchg weak ptr {at}, {bits} {now}, {bits} {new} monotonic monotonic, align {dtype.itemsize}")
        was = w.op("was", f"extractvalue {{ {bits}, i1 }} {both}, 0")
        w.do(f"store {bits} {was}, ptr {seen}, align 8")
        w.cbr(w.op("same", f"extractvalue {{ {bits}, i1 }} {both}, 1"), done, again)
        w.start(done)
        return old
