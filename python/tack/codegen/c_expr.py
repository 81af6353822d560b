"""Expressions of printed C: text with its precedence, what it reads, and what is known of an integer's value."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir.nodes import LocalArray, Var
from ..types import DType

__all__ = ["ADD", "ATOM", "BAND", "BOR", "BXOR", "COND", "EQUAL", "INT", "LAND", "LOR", "MUL", "REL", "SHIFT", "UNARY", "Cell", "Expr"]

# Precedence levels; an operand of a lower one than its place asks for gets parentheses.
ATOM, UNARY, MUL, ADD, SHIFT, REL, EQUAL, BAND, BXOR, BOR, LAND, LOR, COND = range(13, 0, -1)
INT = (-(1 << 31), (1 << 31) - 1)

Cell = Var | LocalArray | str
"""What an expression may read and a statement change: a variable, a local array, or "memory", "shared", "scratch"."""

_NOTHING: frozenset[Cell] = frozenset()


@dataclass(frozen=True, slots=True)
class Expr:
    """A value as C text.

    ``level``: its precedence. ``reads``: what must not change between here and the place where the text is put. ``size``: how many
    operations are nested in it. ``low``/``high``: bounds of an integer's value, of which C must know for itself only that ``small``
    expressions have the type int (or one that becomes int in arithmetic), even where the value's own type is i64. ``wrapped``: of a
    signed integer computed in unsigned arithmetic, that arithmetic's text and level, without the cast back.
    """

    text: str
    level: int = ATOM
    reads: frozenset[Cell] = _NOTHING
    size: int = 0
    low: int = 0
    high: int = 0
    small: bool = False
    wrapped: tuple[str, int] | None = None

    def at(self, level: int) -> str:
        """The text as an operand in a place of this precedence."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def range(self) -> tuple[int, int]:
        return self.low, self.high

    def named(self, name: str) -> Expr:
        """The same value, held by a constant of that name."""
        return replace(self, text=name, level=ATOM, reads=_NOTHING, size=0, wrapped=None)


def bounds(dtype: DType) -> tuple[int, int]:
    """What an integer type holds; (0, 1) of bools, (0, 0) of floats."""
    if dtype.is_int:
        return dtype.min, dtype.max
    return (0, 0) if dtype.is_float else (0, 1)


def is_small(dtype: DType) -> bool:
    """Whether C computes with the type in ``int``."""
    return not dtype.is_float and dtype.bits <= 32 and dtype.name != "u32"
