"""Inference of what kernels say: the arguments of print, f-strings, and the messages of asserts."""

from __future__ import annotations

from typing import Final, NoReturn

from ..errors import CompileNotImplementedError
from ..ir.nodes import Instr, Loc
from ..ir.records import MAX_VALUES, escaped, filled, spec_fits
from .expressions import Expressions
from .hir import Op
from .meaning import DTypeMeaning, Opaque
from .operators import is_weak
from .values import NONE, ArrayRef, NoneValue, Num, Piece, Text, Thing, describe

__all__ = ["Messages"]

_MAX_SAID: Final = MAX_VALUES - 8  # values of one print or assert: a record also says which iteration it is of
_SPECS: Final = "Numbers take [+][0][width][.precision][type] with a type of d x o b (integers) or e f g: f'{x:8.3f}'."


class Messages(Expressions):
    def op_text(self, op: Op) -> None:
        """An f-string."""
        registers = iter(op.args)
        pieces: list[Piece] = []
        for text, spec in op.attr:
            if spec is None:
                pieces.append(text)
            else:
                pieces += self.pieces(self.thing(next(registers)), spec, op.loc)
        self.frame.regs[op.dst] = Text(tuple(pieces))

    def pieces(self, thing: Thing, spec: str, loc: Loc, quoted: bool = False) -> list[Piece]:
        """What ``str(thing)`` is made of; ``quoted``: ``repr(thing)``, which differs for strings alone."""
        if isinstance(thing, Num):
            return [self.number_piece(thing, spec, loc)]
        if spec:
            self.fail(f"{describe(thing)} has no format specification '{spec}' in a kernel.", loc, _SPECS, CompileNotImplementedError)
        if isinstance(thing, Text):
            return [repr(self.literal(thing, loc))] if quoted else list(thing.pieces)
        if isinstance(thing, NoneValue):
            return ["None"]
        if isinstance(thing, DTypeMeaning):
            return [str(thing.dtype)]
        items = self.items_of(thing)
        if items is None:
            self.not_printable(thing, loc)
        out: list[Piece] = ["("]
        for position, item in enumerate(items):
            if position:
                out.append(", ")
            out += self.pieces(item, "", loc, quoted=True)
        out.append(",)" if len(items) == 1 else ")")
        return out

    def number_piece(self, number: Num, spec: str, loc: Loc) -> Piece:
        dtype = self.dtype_of(number.type)
        if not spec_fits(spec, dtype):
            self.fail(f"{describe(number)} cannot be written as '{spec}' in a kernel.", loc, _SPECS, CompileNotImplementedError)
        if number.const is None:
            return (number, spec)
        if not spec and is_weak(number.type):
            return str(number.const)
        return filled(f"{{:{spec}}}", [number.const], [dtype])

    def literal(self, text: Text, loc: Loc) -> str:
        if not all(isinstance(p, str) for p in text.pieces):
            self.fail(
                "an f-string inside a tuple is not part of the kernel language.", loc, "Print it by itself.", CompileNotImplementedError
            )
        return "".join(p for p in text.pieces if isinstance(p, str))

    def not_printable(self, thing: Thing, loc: Loc) -> NoReturn:
        if isinstance(thing, Opaque):
            self.unusable_capture(thing, loc)
        hint = f"Print its elements, or {thing.name} outside of the kernel." if isinstance(thing, ArrayRef) else ""
        self.fail(f"{describe(thing)} cannot be printed in a kernel.", loc, hint)

    def say(self, pieces: list[Piece], loc: Loc) -> tuple[str, tuple[Instr, ...]]:
        """A record's text, and its values."""
        text = ""
        values: list[Instr] = []
        for piece in pieces:
            if isinstance(piece, str):
                text += escaped(piece)
            else:
                number, spec = piece
                text += f"{{:{spec}}}" if spec else "{}"
                values.append(self.own(number, loc))
        if len(values) > _MAX_SAID:
            self.fail(f"one message has {len(values)} values; the limit is {_MAX_SAID}.", loc, "Write several prints.")
        return text, tuple(values)

    # -- print and assert

    def call_print(self, args: list[Thing], names: tuple[str, ...], loc: Loc) -> Thing:
        count = len(args) - len(names)
        separator, end = " ", "\n"
        for name, thing in zip(names, args[count:], strict=True):
            if name not in ("sep", "end"):
                self.fail(f"print takes no '{name}' in a kernel.", loc, "It has sep= and end=.", CompileNotImplementedError)
            if not isinstance(thing, (Text, NoneValue)):
                self.fail(f"{name}= of print must be a string literal, not {describe(thing)}.", loc)
            if isinstance(thing, Text):
                text = self.literal(thing, loc)
                separator, end = (text, end) if name == "sep" else (separator, text)
        pieces: list[Piece] = []
        for position, thing in enumerate(args[:count]):
            if position:
                pieces.append(separator)
            pieces += self.pieces(thing, "", loc)
        text, values = self.say([*pieces, end], loc)
        self.emit("print", None, values, text, loc)
        return NONE

    def op_assert(self, op: Op) -> None:
        """Checked in debug mode; elsewhere the code generator drops it, and all that is computed for it alone."""
        cond = self.truth(self.thing(op.args[0]), op.loc)
        if cond.const is True:
            return
        pieces: list[Piece] = [str(op.attr)] if len(op.args) == 1 else self.pieces(self.thing(op.args[1]), "", op.loc)
        text, values = self.say(pieces, op.loc)
        self.emit("assert_", None, (self.own(cond, op.loc), *values), text, op.loc)
