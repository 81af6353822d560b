"""Which integers step evenly from lane to lane, and how an access to an array splits into a scalar and a per-lane part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..ir.nodes import Array, ArrayParam, Instr, ScratchArray
from ..types import Layout

__all__ = ["Access", "Form", "access", "indices_of", "offset", "stride_of"]

# A form is None for a value of each lane's own, else the step from lane to lane modulo 2^N: 0 is one value for all (uniform).
Form = int | None


def constant(value: Instr) -> int | None:
    return value.attr if value.op == "const" and isinstance(value.attr, int) and not isinstance(value.attr, bool) else None


def stride_of(instr: Instr, form: Callable[[Instr], Form]) -> Form:
    """The form of an arithmetic instruction whose arguments are not all uniform."""
    t = instr.type
    if t is None or not t.is_int:
        return None
    op, args = instr.op, instr.args
    if op in ("add", "sub"):
        a, b = form(args[0]), form(args[1])
        if a is None or b is None:
            return None
        return a + b if op == "add" else a - b
    if op == "neg":
        a = form(args[0])
        return None if a is None else -a
    if op == "mul":
        for x, y in ((args[0], args[1]), (args[1], args[0])):
            k, a = constant(y), form(x)
            if k is not None and a is not None:
                return a * k
        return None
    if op == "lshift":
        k, a = constant(args[1]), form(args[0])
        return a << k if k is not None and a is not None else None
    if op in ("cast", "bitcast"):
        source = args[0].type
        if source is None or not source.is_int or source.bits < t.bits:
            return None  # a narrower value may wrap between the lanes
        return form(args[0])
    return None


@dataclass(slots=True)
class Access:
    """An address as base + sum of index * scale. ``uniform``: (dim, index) the same in all lanes; ``even``: (dim, index, step) affine ones,
    of which the scalar part is lane 0's; ``lanes``: (dim, index) each lane's own.

    ``step``: the elements from lane to lane if that is all there is to it (1: contiguous), else None.
    ``flat``: the last two indices are the launch's last two plus these constants, and lanes run over both as one.
    """

    uniform: list[tuple[int, Instr]] = field(default_factory=list)
    even: list[tuple[int, Instr, int]] = field(default_factory=list)
    lanes: list[tuple[int, Instr]] = field(default_factory=list)
    step: int | None = None
    flat: tuple[int, int] | None = None


def indices_of(instr: Instr) -> tuple[Array, tuple[Instr, ...]]:
    """The array and the indices of a memory instruction."""
    array: object = instr.attr
    skip = 0
    if instr.op == "atomic":
        assert isinstance(array, tuple)
        kind, array = array
        skip = 2 if kind == "cas" else 1
    elif instr.op in ("store", "store_flat"):
        skip = 1
    assert isinstance(array, ArrayParam | ScratchArray)
    return array, instr.args[skip:]


def offset(index: Instr) -> tuple[Instr, int]:
    """``index`` as something and a constant."""
    total = 0
    while index.op in ("add", "sub"):
        left, right = index.args
        k = constant(right)
        if k is not None:
            total += k if index.op == "add" else -k
            index = left
            continue
        k = constant(left)
        if k is None or index.op == "sub":
            break
        total += k
        index = right
    return index, total


def flat_pair(instr: Instr, inner: int) -> tuple[int, int] | None:
    """The constants by which an access to a contiguous array differs from the launch's indices ``inner - 1`` and ``inner``, if its last
    two indices are these."""
    array, indices = indices_of(instr)
    if not isinstance(array, ArrayParam) or array.layout != Layout.CONTIGUOUS or len(indices) < 2:
        return None
    (row, up), (column, right) = offset(indices[-2]), offset(indices[-1])
    if row.op != "index" or column.op != "index" or (row.attr, column.attr) != (inner - 1, inner):
        return None
    return up, right


def access(instr: Instr, form: Callable[[Instr], Form], pair: int | None = None) -> Access:
    """Splits a memory instruction's address. ``pair``: lanes run over the launch's dimensions ``pair - 1`` and ``pair`` as one."""
    array, indices = indices_of(instr)
    out = Access()
    if pair is not None and instr.op in ("load", "store", "atomic") and all(form(i) == 0 for i in indices[:-2]):
        out.flat = flat_pair(instr, pair)
        if out.flat is not None:
            out.uniform = list(enumerate(indices[:-2]))
            out.step = 1
            return out
    for d, index in enumerate(indices):
        f = form(index)
        if f is None:
            out.lanes.append((d, index))
        elif f == 0:
            out.uniform.append((d, index))
        else:
            out.even.append((d, index, f))
    if out.lanes:
        return out
    if not out.even:
        out.step = 0
    elif len(out.even) == 1:
        d, _, step = out.even[0]
        flat = instr.op in ("load_flat", "store_flat")
        inner = isinstance(array, ScratchArray) or flat or (d == array.rank - 1 and array.layout != Layout.GENERAL)
        if inner and d == len(indices) - 1:
            out.step = step
    return out
