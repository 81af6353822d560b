"""How the interpreter runs groups: all threads of one go from collective to collective together.

It is strict where a device would be silent: a collective that not all threads reach, a race on shared memory between two barriers,
and a read of shared memory that nobody has written are errors.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Final

from ..types import DType
from . import arith
from .arith import Number
from .interpret import EndIteration, InterpreterError, Machine, updated
from .nodes import Array, Block, Instr, Loc, Parallel, SharedArray, Var

__all__ = ["reduce", "run_alone", "run_loop"]

_MANY: Final = -1  # instead of a thread's number: several


def reduce(op: str, values: Sequence[Number], dtype: DType, block: int) -> Number:
    """What a block reduction of a group's present threads gives. A fixed order: with p the least power of two that is not below
    ``block``, thread t takes in the value of thread t + p/2, then of t + p/4, ..., t + 1, where t is below that distance. Threads that
    are absent, or beyond the block, hold the identity.
    """
    width = 1 << (block - 1).bit_length()
    held = [*values, *[arith.identity(op, dtype)] * (width - len(values))]
    while width > 1:
        width //= 2
        held = [arith.BINARY[op](held[t], held[t + width], dtype) for t in range(width)]
    return held[0]


def run_loop(machine: Machine, loop: Parallel, iterations: list[tuple[int, ...]], block: int, shuffle: random.Random | None) -> None:
    """Runs a parallel loop's iterations in groups of ``block``. ``shuffle``: groups, and the threads between collectives, in any order."""
    starts = list(range(0, len(iterations), block))
    if shuffle is not None:
        shuffle.shuffle(starts)
    for start in starts:
        memory = _Memory(machine.name)
        threads = []
        for number, indices in enumerate(iterations[start : start + block]):
            variables = {**machine.vars, **dict(zip(loop.indices, indices, strict=True))}
            threads.append(_Thread(machine, memory, variables, number, start // block))
        _run(threads, loop.body, block, shuffle)


def run_alone(machine: Machine, body: Block, block: int) -> None:
    """Runs a kernel without a loop: one iteration, whose group has no other thread that is present."""
    _run([_Thread(machine, _Memory(machine.name), machine.vars, 0, 0)], body, block, None)


def _run(threads: list[_Thread], body: Block, block: int, shuffle: random.Random | None) -> None:
    runs = [(thread, thread.steps(body)) for thread in threads]
    while True:
        met: dict[int, Instr | None] = {}
        for thread, steps in shuffle.sample(runs, len(runs)) if shuffle else runs:
            met[thread.number] = _next(steps)
        at = met[threads[0].number]
        for thread in threads:
            other = met[thread.number]
            if other is not at:
                where = " and ".join(f"thread {n} {_reached(i)}" for n, i in ((threads[0].number, at), (thread.number, other)))
                raise InterpreterError(f"kernel {thread.name!r}: not all threads of group {thread.group_id} meet: {where}")
        if at is None:
            return
        if at.op == "block_reduce":
            assert at.type is not None
            result = reduce(str(at.attr), [t.values[at.args[0]] for t in threads], at.type, block)
            for thread in threads:
                thread.values[at] = result
        threads[0].shared.barrier()


def _next(steps: Iterator[Instr]) -> Instr | None:
    try:
        return next(steps, None)
    except EndIteration:
        return None


def _reached(collective: Instr | None) -> str:
    return "has ended" if collective is None else f"is at {collective.op}{_at(collective.loc)}"


def _at(loc: Loc | None) -> str:
    return f" (line {loc.line})" if loc else ""


class _Cell:
    """An element of a shared array. ``writer``, ``reader``, ``updater``: who did since the last barrier, plainly or atomically."""

    __slots__ = ("reader", "updater", "value", "writer")

    def __init__(self) -> None:
        self.value: Number | None = None
        self.forget()

    def forget(self) -> None:
        self.writer: int | None = None
        self.reader: int | None = None
        self.updater: int | None = None


class _Memory:
    """The shared arrays of one group."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.arrays: dict[SharedArray, list[_Cell]] = {}
        self.touched: dict[_Cell, None] = {}

    def barrier(self) -> None:
        for cell in self.touched:
            cell.forget()
        self.touched.clear()

    def cell(self, array: SharedArray, place: tuple[int, ...]) -> _Cell:
        cells = self.arrays.get(array)
        if cells is None:
            cells = self.arrays[array] = [_Cell() for _ in range(math.prod(array.shape))]
        position = 0
        for i, n in zip(place, array.shape, strict=True):
            position = position * n + i
        cell = cells[position]
        self.touched[cell] = None
        return cell

    def load(self, array: SharedArray, place: tuple[int, ...], thread: int) -> Number:
        cell = self.cell(array, place)
        self.others(array, place, thread, "reads", (cell.writer, cell.updater))
        cell.reader = _joined(cell.reader, thread)
        return self.known(cell, array, place, thread)

    def store(self, array: SharedArray, place: tuple[int, ...], thread: int, value: Number) -> None:
        cell = self.cell(array, place)
        self.others(array, place, thread, "writes", (cell.writer, cell.reader, cell.updater))
        cell.writer = _joined(cell.writer, thread)
        cell.value = value

    def update(self, kind: str, array: SharedArray, place: tuple[int, ...], thread: int, args: list[Number]) -> Number:
        cell = self.cell(array, place)
        self.others(array, place, thread, "updates", (cell.writer, cell.reader))
        cell.updater = _joined(cell.updater, thread)
        old = self.known(cell, array, place, thread)
        cell.value = updated(kind, old, args, array.dtype)
        return old

    def known(self, cell: _Cell, array: SharedArray, place: tuple[int, ...], thread: int) -> Number:
        if cell.value is None:
            raise InterpreterError(f"kernel {self.kernel!r}: thread {thread} reads {_name(array, place)}, which nobody has written")
        return cell.value

    def others(self, array: SharedArray, place: tuple[int, ...], thread: int, does: str, users: tuple[int | None, ...]) -> None:
        for other in users:
            if other is not None and other != thread:
                who = "several others" if other == _MANY else f"thread {other}"
                raise InterpreterError(
                    f"kernel {self.kernel!r}: a race: thread {thread} {does} {_name(array, place)}, which {who} used since the last barrier"
                )


def _joined(known: int | None, thread: int) -> int:
    return thread if known in (None, thread) else _MANY


def _name(array: SharedArray, place: tuple[int, ...]) -> str:
    return f"{array.name}[{', '.join(map(str, place))}]"


class _Thread(Machine):
    """One present thread: a machine with variables of its own, that shares its group's memory."""

    def __init__(self, machine: Machine, memory: _Memory, variables: dict[Var, Number], number: int, group_id: int) -> None:
        super().__init__(machine.name, machine.math_library, machine.output)
        self.arrays, self.scalars, self.vars = machine.arrays, machine.scalars, variables
        self.shared = memory
        self.number = number
        self.group_id = group_id

    def value(self, node: Instr, args: list[Number]) -> Number | None:
        if node.op == "thread_id":
            return self.number
        return self.group_id if node.op == "block_id" else super().value(node, args)

    def load(self, array: Array, place: tuple[int, ...]) -> Number:
        return self.shared.load(array, place, self.number) if isinstance(array, SharedArray) else super().load(array, place)

    def store(self, array: Array, place: tuple[int, ...], value: Number) -> None:
        if isinstance(array, SharedArray):
            self.shared.store(array, place, self.number, value)
        else:
            super().store(array, place, value)

    def update(self, kind: str, array: Array, place: tuple[int, ...], args: list[Number]) -> Number:
        if isinstance(array, SharedArray):
            return self.shared.update(kind, array, place, self.number, args)
        return super().update(kind, array, place, args)
