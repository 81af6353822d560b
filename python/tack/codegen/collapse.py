"""Loops whose innermost dimension is short: lanes then run over the two innermost dimensions as one.

Which of a launch's loops is run is decided when it starts. Indices of the two dimensions are vectors, moved on by additions; accesses that
take them as they are, plus constants, are still contiguous, since the loop is run only where the arrays' rows are as long as its own.
"""

from __future__ import annotations

from ..ir.nodes import ArrayParam, Instr
from .affine import flat_pair, indices_of
from .llvm_body import Body
from .params import EntryPlan
from .walk import instructions, nodes

__all__ = ["SHORT", "Pair", "collapsible", "flat_arrays"]

_SIZE = 600  # instructions of a body that is worth another copy
SHORT = 4  # vectors in a row, from which on rows are taken one by one


def flat_arrays(entry: EntryPlan) -> list[ArrayParam]:
    """The arrays that the body accesses contiguously over both dimensions, in order of appearance."""
    found: dict[ArrayParam, None] = {}
    for instr in instructions(entry.body):
        if instr.op in ("load", "store", "atomic") and flat_pair(instr, entry.rank - 1) is not None:
            array, _ = indices_of(instr)
            assert isinstance(array, ArrayParam)
            found[array] = None
    return list(found)


def collapsible(entry: EntryPlan, most_lanes: int) -> bool:
    """Whether the entry gets such a loop. Not where rows are known to be long, nor where iterations report what they do."""
    if entry.rank < 2 or entry.single or entry.reductions or entry.step[-1] != 1 or entry.step[-2] != 1:
        return False
    if entry.columns is not None and entry.columns >= SHORT * most_lanes:
        return False
    for size, node in enumerate(nodes(entry.body)):
        if size >= _SIZE or (isinstance(node, Instr) and node.op in ("check", "check_index", "record")):
            return False
    return bool(flat_arrays(entry))


class Pair:
    """The counters of the two dimensions, lane by lane and (lane 0's) as scalars."""

    def __init__(self, body: Body, columns: str) -> None:
        """``columns``: iterations of the innermost dimension, few."""
        w, n = body.w, body.lanes
        self.body, self.w, self.columns = body, w, columns
        self.t = f"<{n} x i64>"
        self.all_columns = body.values.splat("i64", columns, "columns")
        # lane / columns in floats: exact, both are small, and the half keeps the quotient away from integers
        f = f"<{n} x float>"
        halves = "<" + ", ".join(f"float {k}.5" for k in range(n)) + ">"
        width = w.op("width", f"uitofp i64 {columns} to float")
        quotient = w.op("quotient", f"fdiv {f} {halves}, {body.values.splat('float', width, 'width')}")
        self.far_rows = w.op("far.rows", f"fptoui {f} {quotient} to {self.t}")
        whole = w.op("whole", f"mul {self.t} {self.far_rows}, {self.all_columns}")
        lanes = "<" + ", ".join(f"i64 {k}" for k in range(n)) + ">"
        self.far = w.op("far", f"sub {self.t} {lanes}, {whole}")
        self.step_rows = w.op("step.rows", f"udiv i64 {n}, {columns}")
        self.step = w.op("step", f"urem i64 {n}, {columns}")
        self.at = [w.once("pair", "alloca i64, align 8") for _ in range(2)]
        self.lanes_at = [w.once("pair.lanes", f"alloca {self.t}, align 64") for _ in range(2)]

    def _put(self, values: tuple[str, str], lanes: tuple[str, str]) -> None:
        for place, value in zip(self.at, values, strict=True):
            self.w.do(f"store i64 {value}, ptr {place}")
        for place, value in zip(self.lanes_at, lanes, strict=True):
            self.w.do(f"store {self.t} {value}, ptr {place}")

    def _wrapped(self, t: str, row: str, column: str, columns: str) -> tuple[str, str]:
        """With a column of less than twice the columns."""
        w, cond = self.w, "i1" if t == "i64" else f"<{self.body.lanes} x i1>"
        over = w.op("over", f"icmp uge {t} {column}, {columns}")
        less = w.op("less", f"sub {t} {column}, {columns}")
        up = w.op("up", f"zext {cond} {over} to {t}")
        return w.op("row", f"add {t} {row}, {up}"), w.op("column", f"select {cond} {over}, {t} {less}, {t} {column}")

    def begin(self, first: str) -> None:
        """Lane 0 begins at the iteration ``first`` of the two dimensions."""
        w, values = self.w, self.body.values
        row, column = w.op("row", f"udiv i64 {first}, {self.columns}"), w.op("column", f"urem i64 {first}, {self.columns}")
        rows = w.op("rows", f"add {self.t} {self.far_rows}, {values.splat('i64', row, 'row')}")
        columns = w.op("columns", f"add {self.t} {self.far}, {values.splat('i64', column, 'column')}")
        self._put((row, column), self._wrapped(self.t, rows, columns, self.all_columns))

    def now(self) -> tuple[list[str], list[str]]:
        """The counters: lane 0's, and all lanes'."""
        w = self.w
        return (
            [w.op("pair", f"load i64, ptr {place}") for place in self.at],
            [w.op("pair.lanes", f"load {self.t}, ptr {place}") for place in self.lanes_at],
        )

    def advance(self, now: tuple[list[str], list[str]]) -> None:
        """To the next group of lanes."""
        w, values = self.w, self.body.values
        (row, column), (rows, columns) = now
        moved = w.op("row", f"add i64 {row}, {self.step_rows}"), w.op("column", f"add i64 {column}, {self.step}")
        rows = w.op("rows", f"add {self.t} {rows}, {values.splat('i64', self.step_rows, 'step.rows')}")
        columns = w.op("columns", f"add {self.t} {columns}, {values.splat('i64', self.step, 'step')}")
        self._put(self._wrapped("i64", *moved, self.columns), self._wrapped(self.t, rows, columns, self.all_columns))
