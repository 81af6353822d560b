"""Prints loops whose rounds lanes share, and what joins the lanes of their results: ``chain`` and ``fold``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.nodes import ArrayParam, Instr
from ..types import Layout
from .lane_loops import ArrayPair, LaneLoop, neutral_operands
from .llvm_reduce import fold_two
from .llvm_text import Writer, identifier, llvm_type
from .walk import Walk

if TYPE_CHECKING:
    from .llvm_body import Body
    from .llvm_memory import Words

__all__ = ["all_apart", "chain", "fold", "print_rounds"]

_SHORT, _SEVERAL = 16, 2  # statements of a loop that is printed several times, and how often
_CHAINED = {"add": "fadd", "sub": "fsub", "mul": "fmul"}


def print_rounds(body: Body, node: LaneLoop) -> Walk[None]:
    """W rounds at a time, what is left of them under a mask."""
    w, n, name = body.w, body.lanes, identifier(node.var.name)
    counter = w.once(f"{name}.next", "alloca i64, align 8")
    start, stop = body.values.scalar(node.start), body.values.scalar(node.stop)
    check, group, rest, part, end = (w.label(f"rounds.{x}") for x in ("check", "group", "rest", "part", "end"))
    w.do(f"store i64 {start}, ptr {counter}")
    w.cbr(w.op("some", f"icmp slt i64 {start}, {stop}"), check, end)
    w.start(check)
    if not body.compact:
        if _only_adds_up(node):
            yield _several(body, node, counter, stop)
        now = w.op(name, f"load i64, ptr {counter}")
        enough = w.op("enough", f"icmp uge i64 {w.op('left', f'sub i64 {stop}, {now}')}, {n}")
        w.cbr(enough, group, rest)
        w.start(group)
        now = w.op(name, f"load i64, ptr {counter}")
        yield body.rounds(node, now, None)
        after = w.op(f"{name}.up", f"add nsw i64 {now}, {n}")
        w.do(f"store i64 {after}, ptr {counter}")
        w.cbr(w.op("more", f"icmp uge i64 {w.op('left', f'sub i64 {stop}, {after}')}, {n}"), group, rest)
        w.start(rest)
        now = w.op(name, f"load i64, ptr {counter}")
        w.cbr(w.op("some", f"icmp slt i64 {now}, {stop}"), part, end)
    w.start(part)
    now = w.op(name, f"load i64, ptr {counter}")
    left = w.op("left", f"sub i64 {stop}, {now}")
    on = w.op("on", f"select i1 {w.op('few', f'icmp ult i64 {left}, {n}')}, i64 {left}, i64 {n}")
    yield body.rounds(node, now, body.values.first_lanes(on))
    after = w.op(f"{name}.up", f"add nsw i64 {now}, {on}")
    w.do(f"store i64 {after}, ptr {counter}")
    w.cbr(w.op("more", f"icmp slt i64 {after}, {stop}"), part, end)
    w.start(end)


def _only_adds_up(node: LaneLoop) -> bool:
    """Whether rounds are so short that it matters how many there are to a branch."""
    nodes = node.body.body
    return len(nodes) <= _SHORT and all(isinstance(i, Instr) and i.op not in ("chain", "call", "store", "store_flat") for i in nodes)


def _several(body: Body, node: LaneLoop, counter: str, stop: str) -> Walk[None]:
    """Several groups of lanes to a branch, as long as there are so many."""
    w, n, name = body.w, body.lanes, identifier(node.var.name)
    check, several, after = (w.label(f"rounds.{x}") for x in ("check", "several", "few"))
    w.start(check)
    now = w.op(name, f"load i64, ptr {counter}")
    left = w.op("left", f"sub i64 {stop}, {now}")
    w.cbr(w.op("many", f"icmp uge i64 {left}, {_SEVERAL * n}"), several, after)
    w.start(several)
    for _ in range(_SEVERAL):
        now = w.op(name, f"load i64, ptr {counter}")
        yield body.rounds(node, now, None)
        w.do(f"store i64 {w.op(f'{name}.up', f'add nsw i64 {now}, {n}')}, ptr {counter}")
    w.br(check)
    w.start(after)


def chain(body: Body, node: Instr, mask: str | None, hint: str) -> str:
    """Each lane's operands added to the scalar, lane after lane; lanes that are off change nothing."""
    w, n, dtype = body.w, body.lanes, node.type
    assert dtype is not None
    assert isinstance(node.attr, str)
    t, vt = llvm_type(dtype), llvm_type(dtype, n)
    total = body.values.scalar(node.args[0])
    vectors = [body.values.vector(a) for a in node.args[1:]]
    if mask is not None:
        idle = (body.arithmetic.splat(dtype, n, k) for k in neutral_operands(node.attr))
        vectors = [w.op("on", f"select <{n} x i1> {mask}, {vt} {v}, {vt} {k}") for v, k in zip(vectors, idle, strict=True)]
    for lane in range(n):
        items = [v if n == 1 else w.op("item", f"extractelement {vt} {v}, i64 {lane}") for v in vectors]
        if node.attr == "fma":
            total = body.arithmetic.fma(dtype, 1, [items[0], items[1], total], hint)
        else:
            total = w.op(hint, f"{_CHAINED[node.attr]} {t} {total}, {items[0]}")
    return total


def fold(body: Body, node: Instr) -> str:
    """The lanes combined, by halves."""
    w, dtype = body.w, node.type
    assert dtype is not None
    assert isinstance(node.attr, str)
    value, size = body.values.vector(node.args[0]), body.lanes
    while size > 1:
        t, half = llvm_type(dtype, size), size // 2
        parts = []
        for first in (0, half):
            if half == 1:
                parts.append(w.op("half", f"extractelement {t} {value}, i64 {first}"))
            else:
                order = ", ".join(f"i32 {first + k}" for k in range(half))
                parts.append(w.op("half", f"shufflevector {t} {value}, {t} poison, <{half} x i32> <{order}>"))
        value, size = fold_two(body, node.attr, dtype, half, *parts), half
    return value


def all_apart(w: Writer, words: Words, pairs: list[ArrayPair]) -> str:
    """i1 of the entry block: whether the arrays of each pair lie apart, or are the same where that will do. Empty for no pairs."""
    result = ""
    for one, other, same in pairs:
        if one is other:
            good = _has_room(w, words, one)
        else:
            (low, high), (other_low, other_high) = words.span(one), words.span(other)
            before = w.once("before", f"icmp ule i64 {high}, {other_low}")
            after = w.once("after", f"icmp ule i64 {other_high}, {low}")
            good = w.once("apart", f"or i1 {before}, {after}")
            if same:
                good = w.once("apart", f"or i1 {good}, {_same(w, words, one, other)}")
        result = w.once("apart", f"and i1 {result}, {good}") if result else good
    return result


def _has_room(w: Writer, words: Words, array: ArrayParam) -> str:
    """Whether no two elements of a view overlap, as those of one that is repeated or of windows that slide over each other do: of two
    dimensions, a step along one passes over all of the other."""
    size = array.dtype.itemsize
    steps: list[str] = []
    results: list[str] = []
    for d in range(array.rank):
        stride = str(size) if array.layout == Layout.INNER and d == array.rank - 1 else words.stride(array, d)
        down = w.once("down", f"icmp slt i64 {stride}, 0")
        steps.append(w.once("step", f"select i1 {down}, i64 {w.once('back', f'sub i64 0, {stride}')}, i64 {stride}"))
        one = w.once("single", f"icmp sle i64 {words.shape(array, d)}, 1")
        results.append(w.once("room", f"or i1 {one}, {w.once('wide', f'icmp uge i64 {steps[d]}, {size}')}"))
        for e in range(d):
            either = w.once("room", f"or i1 {one}, {w.once('single', f'icmp sle i64 {words.shape(array, e)}, 1')}")
            for x, y in ((d, e), (e, d)):
                whole = w.once("whole", f"mul i64 {steps[y]}, {words.shape(array, y)}")
                either = w.once("room", f"or i1 {either}, {w.once('over', f'icmp uge i64 {steps[x]}, {whole}')}")
            results.append(either)
    good = results[0]
    for result in results[1:]:
        good = w.once("room", f"and i1 {good}, {result}")
    return good


def _same(w: Writer, words: Words, one: ArrayParam, other: ArrayParam) -> str:
    """Whether equal indices mean equal addresses. Both have one dtype, rank and layout."""
    result = w.once("same", f"icmp eq ptr {words.pointer(one)}, {words.pointer(other)}")
    whole = one.layout == Layout.CONTIGUOUS
    for d in range(1 if whole else 0, one.rank - (one.layout == Layout.INNER)):
        step = words.shape if whole else words.stride
        equal = w.once("equal", f"icmp eq i64 {step(one, d)}, {step(other, d)}")
        result = w.once("same", f"and i1 {result}, {equal}")
    return result
