"""HIR: a function's text as an untyped, structured, three-address form. What parse makes once and inference walks for every specialization.

An ``Op`` computes register ``dst`` of its function from other registers, or does something and leaves ``dst`` at -1. Expressions are flat:
a chain of 5,000 terms is 5,000 ops in one list. What is evaluated lazily (``and``, ``or``, chained comparisons, ``a if c else b``) is
an ``IfNode`` that binds a name no user can write (``%0``), so that only statements nest. A tail ``return v`` binds ``RESULT``.

===========  =====================================================================================================
kind         args; attr
===========  =====================================================================================================
const        attr: a Python number, None, a str or Ellipsis
path         attr: ("x",) or ("math", "sqrt"): a name and attributes of it
augread      the same as path, where an update of that name reads it (``s += e``, ``s = min(s, e)``)
attribute    (base); attr: the attribute's name
binary       (left, right); attr: add sub mul div floordiv mod pow shl shr and or xor matmul
unary        (x); attr: neg pos invert not
truth        (x): its truth as a bool
compare      (left, right); attr: eq ne lt le gt ge is isnot in notin
call         (callee, arguments...); attr: the names of the last arguments, which are keywords
index        (base, indices...)
tuple        (items...)
unpack       (x); attr: n; its items are the registers dst, dst + 1, ...
bind         (x); attr: the name
augbind      (x); attr: (name, operation of an augmented assignment or path of the called function)
convert      (x); attr: the dotted name of an annotation
store        (base, value, indices...); attr: (place of the value, operation of an augmented assignment or "")
text         (values...); attr: the parts of an f-string: (text, None), or ("", format specification) for each value
assert       (condition[, message]); attr: what to say where there is no message
expression   (x): an expression statement
===========  =====================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..ir.nodes import Loc
from .meaning import FunctionSource

__all__ = [
    "RESULT",
    "BreakNode",
    "ContinueNode",
    "ForNode",
    "Function",
    "IfNode",
    "Item",
    "Op",
    "Parameter",
    "Path",
    "ReturnNode",
    "WhileNode",
]

RESULT = "<return>"

Path: TypeAlias = tuple[str, ...]
Attr: TypeAlias = Any  # by kind: see the table


class Op:
    """One operation; see the table above."""

    __slots__ = ("args", "attr", "dst", "kind", "loc")

    def __init__(self, kind: str, dst: int, args: tuple[int, ...], attr: Attr, loc: Loc) -> None:
        self.kind = kind
        self.dst = dst
        self.args = args
        self.attr = attr
        self.loc = loc


@dataclass(eq=False, slots=True)
class IfNode:
    """``kind``: "if", "ifexp", "and", "or" or "compare".

    Bit masks: ``bound``: names that an arm binds; ``live_out``: names that are read after it.
    """

    cond: int
    then: list[Item]
    orelse: list[Item]
    loc: Loc
    kind: str = "if"
    bound: int = 0
    live_out: int = 0
    returns: bool = False  # a tail return is in one of its arms


@dataclass(eq=False, slots=True)
class ForNode:
    """The body starts by binding the targets from register ``item``.

    Masks: ``bound`` by a round, ``live_head``: read after the start of a round, ``live_out``: read after the loop.
    """

    iterable: int
    item: int
    body: list[Item]
    orelse: list[Item]
    loc: Loc
    has_else: bool = False
    targets: tuple[str, ...] = ()
    bound: int = 0
    bound_else: int = 0
    live_head: int = 0
    live_out: int = 0


@dataclass(eq=False, slots=True)
class WhileNode:
    """``test`` is run before every round and computes register ``cond``."""

    test: list[Item]
    cond: int
    body: list[Item]
    orelse: list[Item]
    loc: Loc
    has_else: bool = False
    bound: int = 0
    bound_test: int = 0
    bound_else: int = 0
    live_head: int = 0
    live_out: int = 0


@dataclass(eq=False, slots=True)
class BreakNode:
    loc: Loc


@dataclass(eq=False, slots=True)
class ContinueNode:
    loc: Loc


@dataclass(eq=False, slots=True)
class ReturnNode:
    """A return that is not in tail position: statements could follow. ``value`` is a register or -1."""

    value: int
    loc: Loc


Item: TypeAlias = Op | IfNode | ForNode | WhileNode | BreakNode | ContinueNode | ReturnNode


@dataclass(eq=False, slots=True)
class Parameter:
    """``default``: ops that compute register ``default_value``, or None; ``keyword_only`` and ``positional_only`` as in the signature."""

    name: str
    loc: Loc
    annotation: Path | None = None
    default: list[Item] | None = None
    default_value: int = -1
    keyword_only: bool = False
    positional_only: bool = False


@dataclass(eq=False, slots=True)
class Function:
    """A parsed function.

    ``names``: its local names, the n-th having bit 1 << n of the masks; ``captured``: what its text takes from outside.
    """

    source: FunctionSource
    name: str
    loc: Loc
    params: list[Parameter]
    body: list[Item]
    registers: int
    names: tuple[str, ...]
    bits: dict[str, int] = field(default_factory=dict)
    captured: tuple[Path, ...] = ()
    used: frozenset[Path] = frozenset()  # the captured ones that are more than an operand of a comparison (x.dtype == tack.f64)
    early_returns: bool = False  # there are ReturnNodes: inlining needs a Scope
    returns_value: bool = False
