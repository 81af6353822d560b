"""Tests which version of a body a launch runs: the one in 32 bits if its numbers allow that; and one iteration at a time, instead of lanes
that go along rows, where rows are short or few, or where what is stored and what is loaded may be the same memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..ir.nodes import ArrayParam, For, Instr, ScalarParam
from .interior import Interior, Linear
from .lane_loops import ArrayPair, bounds_of
from .llvm_body import WORDS, Body
from .llvm_lane_loops import all_apart
from .llvm_memory import Words
from .llvm_text import Writer
from .ranges import MOST, Assumption

__all__ = ["all_fit", "has_interior", "prefers_plain"]

_MANY = 1 << 40  # beyond which numbers of a launch are not added up
_EDGES = 4  # iterations outside of the interior, and as many more as 1/16 of a row has

_EVALUATED = frozenset({*WORDS, "const", "add", "sub", "mul", "neg", "min", "max", "cast", "select", "lt", "le", "gt", "ge", "eq", "ne"})


def prefers_plain(body: Body, loops: Iterable[For], pairs: list[ArrayPair], rounds: int, iterations: str, enough: int) -> str:
    """i1, or nothing where lanes always do. ``body`` prints one iteration. So many ``rounds`` of the loops and ``enough`` iterations are
    enough for lanes; a loop whose bounds are not known in front counts as long.
    """
    w = body.w
    short = ""
    for loop in loops:
        start, stop = bounds_of(loop)
        needed = _in_order((start, stop))
        if needed is None:
            short = ""
            break
        for instr in needed:
            body.instr(instr, None)
        length = w.op("length", f"sub i64 {body.values.scalar(stop)}, {body.values.scalar(start)}")
        few = w.op("short", f"icmp slt i64 {length}, {rounds}")
        short = w.op("short", f"and i1 {short}, {few}") if short else few
    tests = [short] if short else []
    if enough > 1:
        tests.append(w.op("few", f"icmp slt i64 {iterations}, {enough}"))
    good = all_apart(w, body.words, pairs)
    if good:
        tests.append(w.op("overlap", f"xor i1 {good}, true"))
    result = ""
    for test in tests:
        result = w.op("plain", f"or i1 {result}, {test}") if result else test
    return result


def _in_order(values: Iterable[Instr]) -> list[Instr] | None:
    """What the values are computed of, each after its arguments; None where that is not numbers of the launch alone."""
    out: dict[Instr, None] = {}
    stack = [(v, False) for v in values]
    while stack:
        value, ready = stack.pop()
        if value in out:
            continue
        if value.op not in _EVALUATED:
            return None
        if ready:
            out[value] = None
        else:
            stack.append((value, True))
            stack += [(a, False) for a in value.args]
    return list(out)


def all_fit(w: Writer, words: Words, assumptions: Iterable[Assumption], ends: Callable[[int], list[str]]) -> str:
    """i1: whether the launch's numbers are what the narrow body takes them for. ``ends``: the first and last index along a dimension."""
    result = ""
    for kind, *what in assumptions:
        most = MOST
        if kind == "arg":
            param, lowest, highest = what
            assert isinstance(param, ScalarParam)
            assert isinstance(lowest, int)
            assert isinstance(highest, int)
            most = highest
            tests = [(words.scalar(param), lowest)]
        elif kind == "shape":
            array, dim = what
            assert isinstance(array, ArrayParam)
            assert isinstance(dim, int)
            tests = [(words.shape(array, dim), 0)]
        else:
            (dim,) = what
            assert isinstance(dim, int)
            tests = [(v, -MOST) for v in ends(dim)]
        for value, lowest in tests:
            from_low = value if lowest == 0 else w.op("from", f"sub i64 {value}, {lowest}")
            ok = w.op("fits", f"icmp ule i64 {from_low}, {most - lowest}")
            result = w.op("fit", f"and i1 {result}, {ok}") if result else ok
    return result


def has_interior(w: Writer, words: Words, interior: Interior, begin: str, end: str) -> tuple[str, str, str]:
    """Where the interior of rows [begin, end) begins and ends, and i1: whether most of their iterations are there."""
    good = ""

    def also(condition: str) -> None:
        nonlocal good
        good = w.op("good", f"and i1 {good}, {condition}") if good else condition

    def few(value: str) -> None:
        also(w.op("few", f"icmp ult i64 {w.op('shifted', f'add i64 {value}, {_MANY}')}, {2 * _MANY}"))

    def total(border: Linear, constant: int) -> str:
        text = str(constant)
        for (kind, what), k in border.terms.items():
            if kind == "arg":
                assert isinstance(what, ScalarParam)
                value = words.scalar(what)
            else:
                assert isinstance(what, tuple)
                value = words.shape(*what)
            few(value)
            text = w.op("border", f"add i64 {text}, {w.op('term', f'mul i64 {value}, {k}')}")
        return text

    def outmost(values: list[str], than: str) -> str:
        out = values[0]
        for value in values[1:]:
            out = w.op("border", f"select i1 {w.op('further', f'icmp {than} i64 {value}, {out}')}, i64 {value}, i64 {out}")
        return out

    few(begin)
    few(end)
    low = outmost([begin, *dict.fromkeys(total(b, b.high) for b in interior.lows)], "sgt")
    high = outmost([end, *dict.fromkeys(total(b, b.low) for b in interior.highs)], "slt")
    inside = w.op("inside", f"sub i64 {high}, {low}")
    length = w.op("length", f"sub i64 {end}, {begin}")
    edges = w.op("edges", f"add i64 {w.op('part', f'lshr i64 {length}, 4')}, {_EDGES}")
    enough = w.op("enough", f"sub i64 {length}, {edges}")
    also(w.op("long", f"icmp sge i64 {inside}, {enough}"))
    also(w.op("some", f"icmp sgt i64 {inside}, 0"))
    return low, high, good
