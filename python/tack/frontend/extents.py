"""Loop bounds as extents: programs over scalar arguments, shapes and constants that the runtime evaluates before a launch."""

from __future__ import annotations

from typing import Final

from ..ir.nodes import ArrayParam, Extent, Instr, ScalarParam, Var
from ..types import BOOL, DType, i64, u64

__all__ = ["NotAnExtent", "extent_of"]

Term = tuple[str, int, int, int]

_SAME: Final = "add sub mul floordiv mod min max lt le eq ne neg select shl shr and or xor pow"
_DIRECT: Final = {name: name for name in _SAME.split()}
_DIRECT.update({"gt": "lt", "ge": "le"})  # with the operands swapped
_LOGIC: Final = {"and": "mul", "or": "max", "xor": "ne"}  # of bools
_MAX_TERMS: Final = 4096


class NotAnExtent(Exception):  # noqa: N818 - it names the state
    """The instruction at ``args[0]`` cannot be part of an extent."""


def extent_of(instr: Instr, sequences: list[Var]) -> Extent:
    """The extent of an integer value. Raises NotAnExtent with the instruction that only the device can compute."""
    terms: list[Term] = []
    work: list[Instr | tuple[Term, ...]] = [instr]
    while work:
        item = work.pop()
        if isinstance(item, tuple):
            terms.extend(item)
        else:
            _expand(item, work, sequences)
        if len(terms) + len(work) > _MAX_TERMS:
            raise NotAnExtent(instr)
    return Extent(tuple(terms))


def _expand(instr: Instr, work: list[Instr | tuple[Term, ...]], sequences: list[Var]) -> None:
    """Puts the terms of an instruction on the work list, the last one first."""
    op, attr = instr.op, instr.attr
    if instr.type is None or instr.type.is_float:
        raise NotAnExtent(instr)
    if op == "const" and isinstance(attr, int):
        work.append(_term("constant", value=_signed(int(attr))))
    elif op == "arg" and isinstance(attr, ScalarParam):
        work.append(_term("scalar", attr.index))
    elif op == "shape" and isinstance(attr, tuple) and isinstance(attr[0], ArrayParam) and isinstance(attr[1], int):
        work.append(_term("shape", attr[0].index, attr[1]))
    elif op == "get" and isinstance(attr, Var) and attr in sequences:
        work.append(_term("sequence", sequences.index(attr)))
    elif op == "cast":
        source = instr.args[0].type
        if source is None or source.is_float:
            raise NotAnExtent(instr.args[0])
        if instr.type is BOOL:
            work.append((("constant", 0, 0, 0), ("ne", 0, 0, 0)))
        elif _narrower(instr.type, source):
            work.append(_wrapped(instr.type))
        work.append(instr.args[0])
    elif op == "lnot":
        work.append((("constant", 0, 0, 0), ("eq", 0, 0, 0)))
        work.append(instr.args[0])
    elif op == "abs":
        work.append((("constant", 0, 0, -1), ("mul", 0, 0, 0), ("max", 0, 0, 0)))
        work += (instr.args[0], instr.args[0])
    elif instr.type is BOOL and op in _LOGIC:
        work.append(_term(_LOGIC[op]))
        work.extend(reversed(instr.args))
    elif op == "not":
        work.append(_wrapped(instr.type))
        work.append((("constant", 0, 0, -1), ("xor", 0, 0, 0)))
        work.append(instr.args[0])
    elif op == "bits" and isinstance(attr, str) and attr in ("popcount", "clz"):
        if attr == "clz":
            work.append((("constant", 0, 0, 64 - instr.type.bits), ("sub", 0, 0, 0)))
        work.append(_term(attr))
        if instr.type.bits < 64:  # the bits that the type has
            work.append((("constant", 0, 0, (1 << instr.type.bits) - 1), ("and", 0, 0, 0)))
        work.append(instr.args[0])
    elif op in _DIRECT and not (op == "shr" and instr.type is u64):
        if op in ("add", "sub", "mul", "neg", "floordiv", "shl", "pow") and instr.type is not i64 and instr.type is not BOOL:
            work.append(_wrapped(instr.type))
        work.append(_term(_DIRECT[op]))
        work.extend(instr.args if op in ("gt", "ge") else reversed(instr.args))
    else:
        raise NotAnExtent(instr)


def _term(op: str, arg: int = 0, dim: int = 0, value: int = 0) -> tuple[Term, ...]:
    return ((op, arg, dim, value),)


def _narrower(to: DType, source: DType) -> bool:
    """Whether a value of ``source`` may change in ``to``, as far as 64-bit integers can tell."""
    if to.bits == 64 or source is BOOL:
        return False
    return not (to.min <= source.min and source.max <= to.max)


def _wrapped(dtype: DType) -> tuple[Term, ...]:
    """Terms that wrap the value before them into a narrower type."""
    if dtype.bits == 64:
        return ()
    low = -dtype.min
    size = 1 << dtype.bits
    return (
        ("constant", 0, 0, low),
        ("add", 0, 0, 0),
        ("constant", 0, 0, size),
        ("mod", 0, 0, 0),
        ("constant", 0, 0, low),
        ("sub", 0, 0, 0),
    )


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
