"""Prints checks and prints as C: a test, and where it fails (or always) a record in the buffer that kernel.hpp describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.nodes import Instr, Loc
from ..types import DType, u32, u64
from .c_expr import EQUAL, UNARY, Expr
from .c_helpers import Helpers

if TYPE_CHECKING:
    from .c_body import Body

__all__ = ["check", "record", "report", "stopped"]

_PRINTED, _FITTING, _HEADER = 8, 9, 16  # words of the record buffer; the first one says whether an iteration has failed


def _fail(h: Helpers) -> str:
    """Claims the one record of a failure; answers where its values go, or null where another iteration has failed before."""
    w, pointer = h.type(u64), h.pointer(u64)
    word, first = _word(h, "cas", "records")
    claimed = h.atomic("cas", word, "global", first, f"({h.type(word)})0", f"({h.type(word)})1")
    return h.pointer_function(
        "tack_fail",
        pointer,
        f"{pointer} records, {w} site",
        f"if ({claimed} != 0) return 0;",
        f"records[{_HEADER}] = site;",
        f"return records + {_HEADER + 1};",
    )


def _print(h: Helpers) -> str:
    """Takes the next record of a print; answers where its values go, or null where no more fit."""
    w, pointer = h.type(u64), h.pointer(u64)
    word, place = _word(h, "add", f"records + {_PRINTED}")
    number = h.atomic("add", word, "global", place, f"({h.type(word)})1")
    return h.pointer_function(
        "tack_print",
        pointer,
        f"{pointer} records, {w} site, {w} words",
        f"const {w} number = {number};",
        f"if (number >= records[{_FITTING}]) return 0;",
        f"{pointer} at = records + {_HEADER} + (number + 1) * words;",
        "at[0] = site;",
        "return at + 1;",
    )


def _word(h: Helpers, kind: str, place: str) -> tuple[DType, str]:
    """What an atomic on a word of the buffer works on (the low half where the language has none that is as wide), and where that is."""
    if (kind, "u64") in h.dialect.atomics:
        return u64, place
    return u32, f"({h.pointer(u32)}){place if place.isidentifier() else f'({place})'}"


def stopped(body: Body) -> str:
    """Whether an iteration has failed, in this launch or an earlier one of the call."""
    return f"{body.h.volatile(u64, body.p.records())} != 0"


def _say(body: Body, call: str, values: list[tuple[Instr, Expr]], loc: Loc | None) -> None:
    w = body.w
    if not values:
        w.do(f"{call};", loc)
        return
    said = body.names.new("said")
    w.do(f"{body.h.pointer(u64)} {said} = {call};", loc)
    w.open(f"if ({said} != 0) {{", loc)
    for k, (instr, expr) in enumerate(values):
        assert instr.type is not None
        w.do(f"{said}[{k}] = {body.memory.as_word(instr.type, expr)};", loc)
    w.close()


def _failure(body: Body, site: object) -> str:
    assert isinstance(site, int)
    return f"{_fail(body.h)}({body.p.records()}, {body.h.integer(u64, site)})"


def record(body: Body, node: Instr) -> None:
    """A print."""
    values = [(v, body.value(v)) for v in node.args]
    site = body.h.integer(u64, int(node.attr))  # type: ignore[arg-type]
    words = body.h.integer(u64, body.records)
    body.w.open("{", node.loc)
    _say(body, f"{_print(body.h)}({body.p.records()}, {site}, {words})", values, node.loc)
    body.w.close()


def report(body: Body, node: Instr) -> None:
    """A failed check that ends nothing."""
    values = [(v, body.value(v)) for v in node.args]
    _say(body, _failure(body, node.attr), values, node.loc)


def check(body: Body, node: Instr) -> None:
    """Goes on if the condition holds, or the indices are inside. Else the iteration reports and ends."""
    loc = node.loc
    if node.op == "check":
        cond, *rest = node.args
        test = f"!{body.value(cond).at(UNARY)}"
        site, values = node.attr, [(v, body.value(v)) for v in rest]
    else:
        assert isinstance(node.attr, tuple)
        site, rank = node.attr
        assert isinstance(rank, int)
        exprs = [body.held(v, body.value(v), "index", loc) if k < rank else body.value(v) for k, v in enumerate(node.args)]
        outside = [_outside(i, n) for i, n in zip(exprs[:rank], exprs[rank : 2 * rank], strict=True)]
        test = " || ".join(t for t in outside if t) or "false"
        values = list(zip(node.args, exprs, strict=True))
    body.w.open(f"if ({test}) {{", loc)
    _say(body, _failure(body, site), values, loc)
    body.control.end_iteration(loc)
    body.w.close()


def _outside(index: Expr, length: Expr) -> str:
    over = f"{index.at(EQUAL)} >= {length.at(EQUAL)}"
    return over if index.low >= 0 else f"{index.at(EQUAL)} < 0 || {over}"
