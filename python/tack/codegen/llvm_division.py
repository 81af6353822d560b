"""Prints integer division by lanes. Processors have no vector instruction for it, and taken lane by lane it is the dearest operation.

Numbers of up to 32 bits go through floats, which hold enough digits for the truncated quotient to be exact: with x < 2^m the quotient is at
least 2^-m, relatively, away from the next integer above it. 64-bit ones do too where all lanes are small enough. Where the dividend steps
evenly from lane to lane and the divisor is one for all, one scalar division and a comparison are enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.nodes import Instr
from ..types import DType, f32, f64
from .affine import constant
from .llvm_text import llvm_type, suffix

if TYPE_CHECKING:
    from .llvm_body import Body

__all__ = ["Division", "divide", "is_stepped", "lane_function", "wrap", "wraps"]

Division = tuple[str, DType, int]  # "quot" or "rem", the type, lanes

_SMALL = 51  # bits of a 64-bit integer whose quotient through f64 is exact
_WIDEST_STEP = 1 << 14  # from lane to lane: 2 * 64 of them are exact in f32


def divide(body: Body, node: Instr, hint: str) -> str:
    """``quot`` or ``rem`` of values that differ between lanes. The divisor is neither 0 nor, with the least dividend, -1."""
    x, y = node.args
    t = node.type
    assert t is not None
    if is_stepped(body.flow.form(x), body.flow.uniform(y), t):
        return _stepped(body, node, x, y, t, hint)
    if constant(y) is not None and (t.bits <= 32 or not body.arithmetic.wide_conversions):  # LLVM multiplies instead
        return body.arithmetic.emit(node, body.lanes, [body.values.vector(x), body.values.vector(y)], hint)
    if t.bits <= 32:
        return _through_floats(body, node.op, t, f64 if t.bits == 32 else f32, body.values.vector(x), body.values.vector(y), hint)
    return _wide(body, node, x, y, t, hint)


def is_stepped(step: int | None, uniform: bool, t: DType) -> bool:
    """Whether one scalar division does: of a dividend of this form by a divisor that is uniform."""
    return step is not None and uniform and t.bits >= 32 and 0 < step <= _WIDEST_STEP


def wraps(node: Instr) -> bool:
    """Whether it is the remainder of an index and something by a number of the launch: mostly the index itself lies in front of that."""
    if node.op != "rem" or node.type is None or not node.type.is_signed or constant(node.args[1]) is not None:
        return False
    x = node.args[0]
    return x.op in ("add", "sub") and any(a.op == "index" for a in x.args)


def wrap(body: Body, node: Instr, hint: str) -> str:
    """The remainder of scalars, divided only where it is not the dividend."""
    w, (x, y) = body.w, map(body.values.scalar, node.args)
    t = llvm_type(node.type) if node.type is not None else ""
    out = w.once(f"{hint}.rest", f"alloca {t}, align 8")
    far, end = w.label("divide"), w.label("divided")
    w.do(f"store {t} {x}, ptr {out}")
    positive, below = w.op("positive", f"icmp sgt {t} {y}, 0"), w.op("below", f"icmp ult {t} {x}, {y}")
    w.cbr(w.op("near", f"select i1 {positive}, i1 {below}, i1 false"), end, far)
    w.start(far)
    w.do(f"store {t} {w.op(hint, f'srem {t} {x}, {y}')}, ptr {out}")
    w.start(end)
    return w.op(hint, f"load {t}, ptr {out}")


def _through_floats(body: Body, op: str, t: DType, of: DType, x: str, y: str, hint: str) -> str:
    w, n = body.w, body.lanes
    vt, ft = llvm_type(t, n), llvm_type(of, n)
    to, back = ("sitofp", "fptosi") if t.is_signed else ("uitofp", "fptoui")
    a, b = (w.op(f"{hint}.float", f"{to} {vt} {v} to {ft}") for v in (x, y))
    q = w.op(hint, f"{back} {ft} {w.op(f'{hint}.ratio', f'fdiv {ft} {a}, {b}')} to {vt}")
    return q if op == "quot" else w.op(hint, f"sub {vt} {x}, {w.op(f'{hint}.whole', f'mul {vt} {q}, {y}')}")


def _stepped(body: Body, node: Instr, x: Instr, y: Instr, t: DType, hint: str) -> str:
    w, n, values = body.w, body.lanes, body.values
    step = body.flow.form(x)
    assert step is not None
    s, vt, cond = llvm_type(t), llvm_type(t, n), f"<{n} x i1>"
    span = step * (n - 1)
    first, by, k = values.scalar(x), values.scalar(y), constant(y)
    out = w.once(f"{hint}.lanes", f"alloca {vt}, align 64")
    fast, slow, near, far, end = (w.label(f"divide.{name}") for name in ("even", "lanes", "near", "far", "end"))
    ok = w.op("room", f"icmp ule {s} {first}, {t.max - span}")  # not negative, and no lane wraps
    if k is None and t.is_signed:
        positive = w.op("positive", f"icmp sgt {s} {by}, 0")
        ok = w.op("even", f"select i1 {ok}, i1 {positive}, i1 false")
    w.cbr("false" if k is not None and k < 0 else ok, fast, slow)
    w.start(fast)
    whole = w.op("whole", f"udiv {s} {first}, {by}")
    rest = w.op("rest", f"sub {s} {first}, {w.op('product', f'mul {s} {whole}, {by}')}")
    ahead = w.op("ahead", f"add {vt} {values.splat(s, rest, 'rest')}, {values.steps(t, step)}")
    wholes, bys = values.splat(s, whole, "whole"), values.splat(s, by, "by")
    w.cbr(w.op("once", f"icmp ugt {s} {by}, {span}"), near, far)
    w.start(near)  # at most one more
    over = w.op("over", f"icmp uge {vt} {ahead}, {bys}")
    if node.op == "quot":
        result = w.op(hint, f"add {vt} {wholes}, {w.op('more', f'zext {cond} {over} to {vt}')}")
    else:
        result = w.op(hint, f"select {cond} {over}, {vt} {w.op('less', f'sub {vt} {ahead}, {bys}')}, {vt} {ahead}")
    w.do(f"store {vt} {result}, ptr {out}, align 64")
    w.br(end)
    w.start(far)  # numbers below 2 * span; the half keeps the quotient away from integers
    ft = llvm_type(f32, n)
    half = w.op("half", f"fadd {ft} {w.op('ahead', f'uitofp {vt} {ahead} to {ft}')}, splat (float 0.5)")
    ratio = w.op("ratio", f"fdiv {ft} {half}, {w.op('by', f'uitofp {vt} {bys} to {ft}')}")
    more = w.op("more", f"fptoui {ft} {ratio} to {vt}")
    if node.op == "quot":
        result = w.op(hint, f"add {vt} {wholes}, {more}")
    else:
        result = w.op(hint, f"sub {vt} {ahead}, {w.op('product', f'mul {vt} {more}, {bys}')}")
    w.do(f"store {vt} {result}, ptr {out}, align 64")
    w.br(end)
    w.start(slow)
    w.do(f"store {vt} {_by_lanes(body, node.op, t, values.vector(x), _in_all_lanes(body, y))}, ptr {out}, align 64")
    w.start(end)
    return w.op(hint, f"load {vt}, ptr {out}, align 64")


def _in_all_lanes(body: Body, y: Instr) -> str:
    """A uniform divisor in all lanes."""
    if y.op == "const":
        return body.values.vector(y)
    assert y.type is not None
    return body.values.splat(llvm_type(y.type), body.values.scalar(y), "by")


def _wide(body: Body, node: Instr, x: Instr, y: Instr, t: DType, hint: str) -> str:
    w, n = body.w, body.lanes
    a, b = body.values.vector(x), body.values.vector(y)
    if not body.arithmetic.wide_conversions:
        return _by_lanes(body, node.op, t, a, b)
    vt = llvm_type(t, n)
    a, b = (w.op(f"{hint}.any", f"freeze {vt} {v}") for v in (a, b))  # a lane that is off decides the way, not the answer
    sizes = []
    for v in (a, b):
        if t.is_signed:
            v = w.op("size", f"xor {vt} {v}, {w.op('sign', f'ashr {vt} {v}, splat (i64 63)')}")
        sizes.append(v)
    both = w.op("sizes", f"or {vt} {sizes[0]}, {sizes[1]}")
    large = w.op("large", f"icmp uge {vt} {both}, splat (i64 {1 << _SMALL})")
    out = w.once(f"{hint}.lanes", f"alloca {vt}, align 64")
    fast, slow, end = (w.label(f"divide.{name}") for name in ("floats", "lanes", "end"))
    w.cbr(body.values.any(large), slow, fast)
    w.start(fast)
    w.do(f"store {vt} {_through_floats(body, node.op, t, f64, a, b, hint)}, ptr {out}, align 64")
    w.br(end)
    w.start(slow)
    w.do(f"store {vt} {_by_lanes(body, node.op, t, a, b)}, ptr {out}, align 64")
    w.start(end)
    return w.op(hint, f"load {vt}, ptr {out}, align 64")


def _by_lanes(body: Body, op: str, t: DType, x: str, y: str) -> str:
    """A call of the function that takes lanes one by one."""
    vt = llvm_type(t, body.lanes)
    body.divisions[op, t, body.lanes] = None
    return body.w.op("quotients", f"call fastcc {vt} {_name(op, t, body.lanes)}({vt} {x}, {vt} {y})")


def _name(op: str, t: DType, lanes: int) -> str:
    return f"@tack_{op}_{t.name}_{suffix(t, lanes)}"


def lane_function(op: str, t: DType, lanes: int) -> str:
    """The function, which is not inlined: it is called where nothing quicker is right."""
    vt, s = llvm_type(t, lanes), llvm_type(t)
    name = {("quot", True): "sdiv", ("rem", True): "srem", ("quot", False): "udiv", ("rem", False): "urem"}[op, t.is_signed]
    return f"""define internal fastcc {vt} {_name(op, t, lanes)}({vt} %x, {vt} %y) noinline #0 {{
entry:
  %xs = alloca {vt}, align 64
  %ys = alloca {vt}, align 64
  %y.any = freeze {vt} %y
  store {vt} %x, ptr %xs, align 64
  store {vt} %y.any, ptr %ys, align 64
  br label %lane
lane:
  %k = phi i64 [ 0, %entry ], [ %k.up, %lane ]
  %x.at = getelementptr {s}, ptr %xs, i64 %k
  %y.at = getelementptr {s}, ptr %ys, i64 %k
  %a = load {s}, ptr %x.at
  %b = load {s}, ptr %y.at
  %q = {name} {s} %a, %b
  store {s} %q, ptr %x.at
  %k.up = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %k.up, {lanes}
  br i1 %more, label %lane, label %done
done:
  %all = load {vt}, ptr %xs, align 64
  ret {vt} %all
}}
"""
