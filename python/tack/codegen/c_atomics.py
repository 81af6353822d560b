"""Atomics of printed C: the dialect's own where it has them, else made of operations that keep every bit."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import DType
from .c_helpers import Helpers, unsigned

__all__ = ["atomic"]

_SAME_BITS = ("add", "sub", "and", "or", "xor", "exchange", "cas")  # of integers, whatever their sign


def atomic(h: Helpers, kind: str, t: DType, address: str, operands: Sequence[str]) -> str:
    """An expression that updates the element at ``address`` and has its old value. ``cas`` takes (compare, value)."""
    native = h.dialect.atomics.get((kind, t.name))
    if native is not None:
        return native.format(address, *operands)
    name = f"tack_atomic_{kind}_{h.type(t)}"
    if name not in h.functions:
        _define(h, name, kind, t)
    return f"{name}({address}, {', '.join(operands)})"


def _define(h: Helpers, name: str, kind: str, t: DType) -> None:
    n, u = h.type(t), unsigned(t)
    params = f"{h.dialect.pointer(n, False)} at, {n} a" + (f", {n} b" if kind == "cas" else "")
    native = h.dialect.atomics
    if kind == "sub" and ("add", n) in native:
        negative = "-a" if t.is_float else f"({n})(0 - ({h.type(u)})a)"  # x - a is x + -a, for floats too
        h.function(name, t, params, f"return {native['add', n].format('at', negative)};")
    elif kind == "sub" and not t.is_float and ("add", u.name) in native:
        w = h.type(u)
        h.function(name, t, params, f"return ({n}){native['add', w].format(_place(h, u), f'0 - ({w})a')};")
    elif kind in _SAME_BITS and (kind, u.name) in native and (t.is_int or kind in ("exchange", "cas")):
        operands = [_bits(h, t, p) for p in ("a", "b")[: 2 if kind == "cas" else 1]]
        h.function(name, t, params, f"return {_value(h, t, native[kind, u.name].format(_place(h, u), *operands))};")
    else:
        _exchange_loop(h, name, kind, t, params)


def _place(h: Helpers, u: DType) -> str:
    return f"({h.dialect.pointer(h.type(u), False)})at"


def _bits(h: Helpers, t: DType, text: str) -> str:
    u = unsigned(t)
    return h.reinterpret(t, u, text) if t.is_float else f"({h.type(u)}){text}"


def _value(h: Helpers, t: DType, text: str) -> str:
    return h.reinterpret(unsigned(t), t, text) if t.is_float else f"({h.type(t)}){text}"


def _exchange_loop(h: Helpers, name: str, kind: str, t: DType, params: str) -> None:
    """Reads, computes, and exchanges if nobody else has in between. Of min and max, the number rather than a NaN."""
    u = unsigned(t)
    n, w = h.type(t), h.type(u)
    if kind in ("min", "max"):
        new = f"{h.minmax(kind, t)}(old, a)"
    else:
        sign = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}[kind]
        new = f"old {sign} a" if t.is_float else f"({n})(({w})old {sign} ({w})a)"
    h.function(
        name,
        t,
        params,
        f"{h.dialect.pointer(w, False)} word = {_place(h, u)};",
        f"{w} seen = {h.dialect.volatile.format(w, 'word')};",
        "while (true) {",
        f"  const {n} old = {_value(h, t, 'seen')};",
        f"  const {w} now = {h.dialect.atomics['cas', w].format('word', 'seen', _bits(h, t, f'({new})'))};",
        "  if (now == seen) return old;",
        "  seen = now;",
        "}",
    )
