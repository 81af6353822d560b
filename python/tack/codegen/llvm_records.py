"""Prints checks and records as LLVM IR: a test that is never true, and a call that writes the record of the first lane that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.nodes import Instr
from ..types import BOOL, i64
from .llvm_text import llvm_type

if TYPE_CHECKING:
    from .llvm_body import Body

__all__ = ["check", "functions", "record"]

_PRINTED, _FITTING, _HEADER = 8, 9, 16  # words of the record buffer, see kernel.hpp; the first one says whether an iteration has failed

_WRITE = """\
  store i64 %site, ptr %at, align 8
  br label %next
next:
  %k = phi i64 [ 0, %write ], [ %up, %copy ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %copy, label %done
copy:
  %from = getelementptr i64, ptr %values, i64 %k
  %value = load volatile i64, ptr %from, align 8
  %up = add i64 %k, 1
  %to = getelementptr i64, ptr %at, i64 %up
  store i64 %value, ptr %to, align 8
  br label %next
done:
  ret void
}
"""


def functions(used: set[str], words: int) -> list[str]:
    """The functions that write records of so many words, of "tack_fail" and "tack_print" those that are called."""
    fail = f"""\
define internal void @tack_fail(ptr %records, i64 %site, ptr %values, i64 %count) #1 {{
entry:
  %claimed = cmpxchg ptr %records, i64 0, i64 1 monotonic monotonic, align 8
  %first = extractvalue {{ i64, i1 }} %claimed, 1
  br i1 %first, label %write, label %done
write:
  %at = getelementptr i64, ptr %records, i64 {_HEADER}
{_WRITE}"""
    print_ = f"""\
define internal void @tack_print(ptr %records, i64 %site, ptr %values, i64 %count) #1 {{
entry:
  %printed = getelementptr i64, ptr %records, i64 {_PRINTED}
  %number = atomicrmw add ptr %printed, i64 1 monotonic, align 8
  %fitting.at = getelementptr i64, ptr %records, i64 {_FITTING}
  %fitting = load i64, ptr %fitting.at, align 8
  %fits = icmp ult i64 %number, %fitting
  br i1 %fits, label %write, label %done
write:
  %before = mul i64 %number, {words}
  %offset = add i64 %before, {_HEADER + words}
  %at = getelementptr i64, ptr %records, i64 %offset
{_WRITE}"""
    return [text for name, text in (("tack_fail", fail), ("tack_print", print_)) if name in used]


def record(body: Body, node: Instr) -> None:
    """A print. Its code runs one iteration at a time, so that the prints of an iteration follow each other."""
    assert body.lanes == 1
    assert isinstance(node.attr, int)
    _call(body, "tack_print", node.attr, [_word(body, v, body.values.scalar(v)) for v in node.args])


def check(body: Body, node: Instr, mask: str | None) -> None:
    """Goes on where all lanes pass. Else the first one that does not is reported, and the function ends."""
    w = body.w
    if not w.open:
        return
    passes = _passes(body, node, mask)
    go_on, failed = w.label("passed"), w.label("failed")
    w.cbr(passes, go_on, failed)
    w.start(failed)
    lane = _first_lane(body, node, mask) if body.lanes > 1 else ""
    if node.op == "check":
        site, values = node.attr, node.args[1:]
    else:
        assert isinstance(node.attr, tuple)
        site, values = node.attr[0], node.args
    assert isinstance(site, int)
    _call(body, "tack_fail", site, [_word(body, v, _of_lane(body, v, lane)) for v in values])
    w.br(body.labels["exit", None])
    w.start(go_on)


def _pairs(node: Instr) -> list[tuple[Instr, Instr]]:
    """The indices of a check_index with their lengths."""
    assert isinstance(node.attr, tuple)
    rank = node.attr[1]
    assert isinstance(rank, int)
    return list(zip(node.args[:rank], node.args[rank : 2 * rank], strict=True))


def _passes(body: Body, node: Instr, mask: str | None) -> str:
    """i1: whether all lanes pass. What is the same in all of them is compared once; a row of indices by its two ends."""
    w, values, flow = body.w, body.values, body.flow
    scalars: list[str] = []
    vectors: list[str] = []
    if node.op == "check":
        cond = node.args[0]
        if flow.uniform(cond):
            scalars.append(values.scalar(cond))
        else:
            vectors.append(values.vector(cond))
    else:
        for index, length in _pairs(node):
            step = flow.form(index)
            if body.lanes == 1 or step == 0:
                scalars.append(_inside(body, "i64", values.scalar(index), values.scalar(length)))
            elif step is not None and mask is None and abs(step) < 1 << 50:
                first, limit = values.scalar(index), values.scalar(length)
                last = w.op("last", f"add i64 {first}, {step * (body.lanes - 1)}")
                scalars += (_inside(body, "i64", first, limit), _inside(body, "i64", last, limit))
            else:
                vectors.append(_inside_lanes(body, index, length))
    ok = scalars[0] if scalars else "true"
    for other in scalars[1:]:
        ok = w.op("ok", f"and i1 {ok}, {other}")
    if vectors:
        bad = values.any(_failing(body, vectors, mask))
        ok = w.op("ok", f"select i1 {bad}, i1 false, i1 {ok}")
    return ok


def _inside(body: Body, t: str, index: str, length: str) -> str:
    """0 <= index < length; a length is never negative."""
    return body.w.op("inside", f"icmp ult {t} {index}, {length}")


def _inside_lanes(body: Body, index: Instr, length: Instr) -> str:
    t = llvm_type(i64, body.lanes)
    return _inside(body, t, _lanes(body, index), body.values.splat("i64", body.values.scalar(length), "length"))


def _lanes(body: Body, value: Instr) -> str:
    """An integer lane by lane, whatever its form."""
    step = body.flow.form(value)
    if step is None:
        return body.values.vector(value)
    assert value.type is not None
    vector = body.values.splat(llvm_type(value.type), body.values.scalar(value), "index")
    if not step:
        return vector
    return body.w.op("index.lanes", f"add {llvm_type(value.type, body.lanes)} {vector}, {body.values.steps(value.type, step)}")


def _failing(body: Body, vectors: list[str], mask: str | None) -> str:
    """The lanes of the mask in which one of the conditions is false."""
    w, t = body.w, body.mask_type
    ok = vectors[0]
    for other in vectors[1:]:
        ok = w.op("ok", f"and {t} {ok}, {other}")
    return w.op("failing", f"select {t} {ok}, {t} zeroinitializer, {t} {mask or body.values.all_on}")


def _first_lane(body: Body, node: Instr, mask: str | None) -> str:
    """i64: the first lane that does not pass."""
    values, n = body.values, body.lanes
    if node.op == "check":
        cond = node.args[0]
        vectors = [values.splat("i1", values.scalar(cond), "ok") if body.flow.uniform(cond) else values.vector(cond)]
    else:
        vectors = [_inside_lanes(body, index, length) for index, length in _pairs(node)]
    bits = values.mask_bits(_failing(body, vectors, mask))
    lane = body.arithmetic.call("lane", f"llvm.cttz.i{n}", f"i{n}", [(f"i{n}", bits), ("i1", "true")])
    return lane if n == 64 else body.w.op("lane", f"zext i{n} {lane} to i64")


def _of_lane(body: Body, value: Instr, lane: str) -> str:
    step = body.flow.form(value)
    if not lane or step == 0:
        return body.values.scalar(value)
    assert value.type is not None
    t = llvm_type(value.type)
    if step is None:
        return body.w.op("mine", f"extractelement {llvm_type(value.type, body.lanes)} {body.values.vector(value)}, i64 {lane}")
    number = lane if value.type.bits == 64 else body.w.op("lane", f"trunc i64 {lane} to {t}")
    far = body.w.op("far", f"mul {t} {number}, {step}")
    return body.w.op("mine", f"add {t} {body.values.scalar(value)}, {far}")


def _word(body: Body, value: Instr, text: str) -> str:
    """A scalar as a word of a record."""
    w, t = body.w, value.type
    assert t is not None
    if t.is_float:
        text = w.op("bits", f"bitcast {llvm_type(t)} {text} to i{t.bits}")
    if t.bits == 64:
        return text
    return w.op("word", f"{'sext' if t.is_signed and t != BOOL else 'zext'} i{t.bits} {text} to i64")


def _call(body: Body, function: str, site: int, words: list[str]) -> None:
    w = body.w
    body.calls.add(function)
    at = body.said()
    for k, word in enumerate(words):
        place = at if k == 0 else w.op("said.at", f"getelementptr i64, ptr {at}, i64 {k}")
        w.do(f"store i64 {word}, ptr {place}, align 8")
    w.do(f"call void @{function}(ptr {body.words.records()}, i64 {site}, ptr {at}, i64 {len(words)}) #2")
