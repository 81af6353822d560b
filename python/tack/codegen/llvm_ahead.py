"""Prints requests for what later iterations touch at places that other arrays tell: gathers from, and scatters to, memory out of caches.

Plain code alone: a processor that waits for one such access looks only so far ahead for the next ones.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.nodes import ArrayParam, Instr
from .affine import access, indices_of
from .llvm_body import Body

__all__ = ["Ahead"]

_ITERATIONS = 128  # how far ahead
_BYTES = 32 << 20  # of an array from which on the caches would not hold it


class Ahead:
    """``accesses``: those asked for, each with what computes its indices."""

    def __init__(self, body: Body, accesses: list[tuple[Instr, list[Instr]]]) -> None:
        self.body, self.accesses = body, accesses
        self.wanted: list[tuple[Instr, list[Instr]]] = []  # of these, the ones to arrays without a private table
        self.large = ""  # i1: whether this launch asks

    def decide(self) -> None:
        """One of the arrays must be large."""
        w, words, tables = self.body.w, self.body.memory.words, self.body.memory.atomics.tables
        private = {} if tables is None else tables.tables
        self.wanted = [a for a in self.accesses if indices_of(a[0])[0] not in private]
        self.large = "false"
        for array in dict.fromkeys(indices_of(instr)[0] for instr, _ in self.wanted):
            assert isinstance(array, ArrayParam)
            total = str(array.dtype.itemsize)
            for d in range(array.rank):
                total = w.op("bytes", f"mul i64 {total}, {words.shape(array, d)}")
            far = w.op("large", f"icmp uge i64 {total}, {_BYTES}")
            self.large = far if self.large == "false" else w.op("large", f"or i1 {self.large}, {far}")

    def several(self, count: int, at: str, last: str, rest: str, index: Callable[[str], str], run: Callable[[str], None]) -> None:
        """A loop of ``count`` iterations each round, from the one stored in ``at``; goes on at ``rest`` with the last ones, or with all.
        ``index``: the innermost index of an iteration."""
        w, body = self.body.w, self.body
        if not self.wanted:
            return
        loop, some = w.label("asking"), w.label("asking.next")
        w.cbr(self.large, some, rest)
        w.start(some)
        now = w.op("i", f"load i64, ptr {at}")
        left = w.op("left", f"sub nsw i64 {last}, {now}")
        w.cbr(w.op("enough", f"icmp sge i64 {left}, {_ITERATIONS + count}"), loop, rest)
        w.start(loop)
        for k in range(count):
            body.index[-1] = index(w.op("ahead", f"add nuw nsw i64 {now}, {k + _ITERATIONS}"))
            self._ask()
            run(now if k == 0 else w.op("i", f"add nuw nsw i64 {now}, {k}"))
        w.do(f"store i64 {w.op('i.up', f'add nuw nsw i64 {now}, {count}')}, ptr {at}")
        w.br(some)

    def _ask(self) -> None:
        """For the iteration whose indices the body has."""
        body, memory = self.body, self.body.memory
        for instr, needed in self.wanted:
            for value in needed:
                body.instr(value, None)
            array, _ = indices_of(instr)
            assert isinstance(array, ArrayParam)
            at = memory.base(array, access(instr, body.flow.form), instr.op in ("load_flat", "store_flat"))
            memory.prefetch(at, 0 if instr.op in ("load", "load_flat") else 1)
