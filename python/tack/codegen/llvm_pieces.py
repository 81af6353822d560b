"""Prints the pieces of a divided body: functions that get the values they use, and pointers to the variables and masks they share.

A piece works on copies of shared variables, which LLVM keeps in registers, and writes them back when it returns. It returns where all
lanes jumped to: 0 for its end, else the number of a label of the function around it.
"""

from __future__ import annotations

from ..ir.nodes import Block, Instr, Node, ScratchArray, Var
from ..types import BOOL, i64
from .lane_loops import SharedLocal
from .llvm_atomics import ALONE
from .llvm_body import WORDS, Body
from .llvm_memory import Words
from .llvm_ops import Arithmetic
from .llvm_text import Writer, llvm_type
from .pieces import Division, Piece
from .uniform import Target
from .walk import run

__all__ = ["Pieces"]


class Pieces:
    """Those of one entry. ``functions``: their text, in order of their ends."""

    def __init__(self, symbol: str, division: Division, told: bool) -> None:
        """``told``: the functions are told whether the launch is alone, as atomics want to know."""
        self.symbol, self.division, self.told = symbol, division, told
        self.groups: dict[Block, list[Node | Piece]] = division.groups
        self.functions: list[str] = []

    def own(self, var: Var) -> bool:
        """Whether a piece has all accesses to the variable."""
        return self.division.variables.get(var) is not None

    def call(self, body: Body, piece: Piece, mask: str | None) -> None:
        """Prints the piece as a function, and its call in ``body``."""
        if not body.w.open:
            return
        inner = _PieceBody(self, body, piece)
        text, result = inner.function(mask)
        name = f"@{self.symbol}.piece{len(self.functions)}"
        self.functions.append(f"define internal fastcc {result} {name}({', '.join(inner.parameters)}) #0 {{\n{text}}}\n")
        w = body.w
        arguments = ", ".join(inner.arguments)
        if not inner.ways:
            w.do(f"call fastcc void {name}({arguments})")
        else:
            way = w.op("way", f"call fastcc i32 {name}({arguments})")
            after = w.label("after")
            w.switch(way, after, [(k, body.labels[target]) for k, target in enumerate(inner.ways, 1)])
            w.start(after)
        inner.take_over()


class _Labels(dict[Target, str]):
    """Labels of one function; asked for another's, it makes one from where the function returns."""

    def __init__(self, w: Writer) -> None:
        super().__init__()
        self.w = w
        self.ways: dict[Target, str] = {}

    def __missing__(self, target: Target) -> str:
        if target not in self.ways:
            self.ways[target] = self.w.label("leave")
        return self.ways[target]


class _Locals(dict[ScratchArray | SharedLocal, str]):
    """Local arrays: the pointers of the function around."""

    def __init__(self, body: _PieceBody) -> None:
        super().__init__()
        self.body = body

    def __missing__(self, array: ScratchArray | SharedLocal) -> str:
        self[array] = self.body.argument("ptr noalias", self.body.outer.memory.locals[array])
        return self[array]


class _PieceBody(Body):
    def __init__(self, pieces: Pieces, outer: Body, piece: Piece) -> None:
        w = Writer()
        of = outer.arithmetic
        arithmetic = Arithmetic(w, of.declare, bool(of.fast), of.target)
        arithmetic.numbers = of.numbers
        words = Words(w, outer.words.slots)
        words.about = outer.words.about
        super().__init__(w, arithmetic, outer.flow, words, [], outer.hints, set())
        self.pieces, self.outer, self.piece = pieces, outer, piece
        self.divided = pieces
        self.memory.used = outer.memory.used
        self.memory.locals = _Locals(self)
        self.calls, self.math_calls, self.divisions = outer.calls, outer.math_calls, outer.divisions
        self.labels = self._labels = _Labels(w)
        self.loops = list(outer.loops)
        self.parameters = ["ptr noalias readonly %words"]
        self.arguments = ["ptr %words"]
        if pieces.told:
            self.parameters.append(f"i1 {ALONE}")
            self.arguments.append(f"i1 {ALONE}")
        self._given: dict[tuple[str, str], str] = {}
        self._copies: list[tuple[str, str, str]] = []  # (type, pointer, copy) of what is written back
        self._handed: list[tuple[Instr, str, str]] = []  # (value, type, place)

    @property
    def ways(self) -> list[Target]:
        """Where the function may jump to."""
        return list(self._labels.ways)

    def argument(self, t: str, outer: str) -> str:
        """The name of a value of the function around; ``t``: its type, attributes may follow."""
        if (t, outer) not in self._given:
            name = "%" + self.w.label("given")
            self.parameters.append(f"{t} {name}")
            self.arguments.append(f"{t.partition(' ')[0] if t.startswith('ptr') else t} {outer}")
            self._given[t, outer] = name
        return self._given[t, outer]

    def mask_argument(self, mask: str) -> str:
        """The same of a mask, which travels as an integer."""
        n = self.lanes
        key = (self.mask_type, mask)
        if key not in self._given:
            bits = self.argument(f"i{n}", self.outer.values.mask_bits(mask))
            self._given[key] = self.w.once("mask", f"bitcast i{n} {bits} to {self.mask_type}")
        return self._given[key]

    def function(self, mask: str | None) -> tuple[str, str]:
        """Prints the piece; answers the function's text, without its head, and the type of its result."""
        w = self.w
        run(self._statements(self.piece.nodes, mask and self.mask_argument(mask)))
        ways = self._labels.ways
        end = w.label("end")
        if ways:
            way = w.once("way", "alloca i32, align 4")
            w.prepare(f"store i32 0, ptr {way}")
            w.br(end)
            for k, label in enumerate(ways.values(), 1):
                w.start(label)
                w.do(f"store i32 {k}, ptr {way}")
                w.br(end)
        w.start(end)
        for t, pointer, copy in self._copies:
            value = w.op("shared", f"load {t}, ptr {copy}")
            w.do(f"store {t} {value}, ptr {pointer}")
        w.do(f"ret i32 {w.op('way', f'load i32, ptr {way}')}" if ways else "ret void")
        return "\n".join(["entry:", *w.entry, *w.lines, ""]), "i32" if ways else "void"

    def take_over(self) -> None:
        """In the function around: names the values that the piece has computed."""
        outer = self.outer
        for node, t, place in self._handed:
            hint = outer.hints.get(node, "t")
            name = outer.values.names[node] = outer.w.op(hint, f"load {t}, ptr {place}")
            if node in outer.flow.vectors:
                outer.spread(node, name, hint)
            outer.computed(node)

    # ---- what lies in the function around

    def slot(self, var: Var) -> str:
        if var not in self.slots and self.pieces.division.variables.get(var) is not self.piece:
            self.slots[var] = self._shared(llvm_type(var.type, self.lanes_of(var)), self.outer.slot(var), var in self.piece.changes)
        return super().slot(var)

    def gone_lanes(self, target: Target) -> str:
        if target not in self.gone:
            home = None if target[1] is None else self.pieces.division.targets[target[1]]
            if home is not self.piece:
                self.gone[target] = self._shared(self.mask_type, self.outer.gone_lanes(target), True)
        return super().gone_lanes(target)

    def _shared(self, t: str, outer: str, written: bool) -> str:
        """A copy of what the function around has in memory."""
        w = self.w
        pointer = self.argument("ptr noalias", outer)
        copy = w.once("shared", f"alloca {t}, align 64")
        w.prepare(f"store {t} {w.once('shared', f'load {t}, ptr {pointer}')}, ptr {copy}")
        if written:
            self._copies.append((t, pointer, copy))
        return copy

    def bring(self, value: Instr) -> None:
        values, flow = self.values, self.flow
        if value.op in WORDS:
            super().bring(value)
            return
        assert value.type is not None
        form = flow.form(value)
        if form is None:
            vector = self.outer.values.vector(value)
            t = llvm_type(value.type, self.lanes)
            values.names[value] = self.mask_argument(vector) if value.type == BOOL and self.lanes > 1 else self.argument(t, vector)
            return
        t = llvm_type(value.type)
        name = values.names[value] = self.argument(t, self.outer.values.scalar(value))
        if value in flow.vectors:
            vector = values.splat(t, name, "given", once=True)
            if form:
                vector = self.w.once("given.lanes", f"add {llvm_type(value.type, self.lanes)} {vector}, {values.steps(value.type, form)}")
            values.vectors[value] = vector

    def instr(self, node: Instr, mask: str | None) -> None:
        if node.op == "index":
            assert isinstance(node.attr, int)
            if self.lanes > 1 and self.flow.form(node) is None:
                self.index_vectors[node.attr] = self.argument(llvm_type(i64, self.lanes), self.outer.index_vectors[node.attr])
            else:
                self.index = [""] * (node.attr + 1)
                self.index[node.attr] = self.argument("i64", self.outer.index[node.attr])
        super().instr(node, mask)
        self.computed(node)

    def computed(self, node: Instr) -> None:
        """Hands a value that is used outside to the function around."""
        if node not in self.piece.handed or node.op == "const" or node.op in WORDS:
            return
        assert node.type is not None
        t = llvm_type(node.type, self.lanes if self.flow.form(node) is None else 1)
        place = self.outer.w.once("handed", f"alloca {t}, align 64")
        self.w.do(f"store {t} {self.values.names[node]}, ptr {self.argument('ptr noalias', place)}")
        self._handed.append((node, t, place))
