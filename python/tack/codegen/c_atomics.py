"""Atomics of printed C: the dialect's own where it has them, else made of operations that keep every bit."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import DType
from .c_helpers import Helpers, unsigned

__all__ = ["atomic"]

_SAME_BITS = ("add", "sub", "and", "or", "xor", "exchange", "cas")  # of integers, whatever their sign


def atomic(h: Helpers, kind: str, t: DType, space: str, address: str, operands: Sequence[str]) -> str:
    """An expression that updates the element at ``address`` and has its old value. ``cas`` takes (compare, value). ``space``: where the
    element lies, as ``Dialect.spaces`` names it.
    """
    if (kind, t.name) in h.dialect.atomics:
        return h.atomic(kind, t, space, address, *operands)
    name = f"tack_atomic_{kind}_{h.type(t)}"
    if h.dialect.spaces[space] != h.dialect.spaces["global"]:
        name += f"_{space}"
    if name not in h.functions:
        _Made(h, t, space).define(name, kind)
    return f"{name}({address}, {', '.join(operands)})"


class _Made:
    """Functions for atomics of a type that the dialect has not."""

    def __init__(self, h: Helpers, t: DType, space: str) -> None:
        self.h, self.t, self.u, self.space = h, t, unsigned(t), space

    def define(self, name: str, kind: str) -> None:
        h, t, u = self.h, self.t, self.u
        n = h.type(t)
        params = f"{h.pointer(t, self.space)} at, {n} a" + (f", {n} b" if kind == "cas" else "")
        native = h.dialect.atomics
        if kind == "sub" and ("add", n) in native:
            negative = "-a" if t.is_float else f"({n})(0 - ({h.type(u)})a)"  # x - a is x + -a, for floats too
            h.function(name, t, params, f"return {h.atomic('add', t, self.space, 'at', negative)};")
        elif kind == "sub" and not t.is_float and ("add", u.name) in native:
            w = h.type(u)
            h.function(name, t, params, f"return ({n}){h.atomic('add', u, self.space, self._place(), f'0 - ({w})a')};")
        elif kind in _SAME_BITS and (kind, u.name) in native and (t.is_int or kind in ("exchange", "cas")):
            operands = [self._bits(p) for p in ("a", "b")[: 2 if kind == "cas" else 1]]
            h.function(name, t, params, f"return {self._value(h.atomic(kind, u, self.space, self._place(), *operands))};")
        else:
            self._exchange_loop(name, kind, params)

    def _place(self) -> str:
        return f"({self.h.pointer(self.u, self.space)})at"

    def _bits(self, text: str) -> str:
        return self.h.reinterpret(self.t, self.u, text) if self.t.is_float else f"({self.h.type(self.u)}){text}"

    def _value(self, text: str) -> str:
        return self.h.reinterpret(self.u, self.t, text) if self.t.is_float else f"({self.h.type(self.t)}){text}"

    def _exchange_loop(self, name: str, kind: str, params: str) -> None:
        """Reads, computes, and exchanges if nobody else has in between. Of min and max, the number rather than a NaN."""
        h, t, u = self.h, self.t, self.u
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
            f"{h.pointer(u, self.space)} word = {self._place()};",
            f"{w} seen = {h.volatile(u, 'word', self.space)};",
            "while (true) {",
            f"  const {n} old = {self._value('seen')};",
            f"  const {w} now = {h.atomic('cas', u, self.space, 'word', 'seen', self._bits(new))};",
            "  if (now == seen) return old;",
            "  seen = now;",
            "}",
        )
