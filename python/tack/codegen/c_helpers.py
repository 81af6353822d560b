"""Small functions and tables that printed code uses: each is defined once, before the entries, when something asks for it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..types import BOOL, DType, by_name, i32, i64, u32, u64
from .c_text import float_literal
from .dialects import Dialect

__all__ = ["Helpers", "unsigned"]


def unsigned(dtype: DType) -> DType:
    """The unsigned integer of a type's size."""
    return by_name(f"u{dtype.bits}")


class Helpers:
    """Definitions of one text, in the order in which they are asked for, those that they need themselves before them."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.types: set[str] = set()
        self.functions: dict[str, str] = {}
        self.tables: dict[str, str] = {}

    # ---- words

    def type(self, dtype: DType) -> str:
        """The name of a type; it is then declared."""
        if dtype.bits == 1:
            return "bool"
        self.types.add(dtype.name)
        return dtype.name

    def integer(self, dtype: DType, value: int) -> str:
        """An integer constant whose C type computes as the type does."""
        if dtype.bits == 1:
            return "true" if value else "false"
        if dtype.name == "u32":
            return f"{value}u"
        if dtype.name == "u64":
            return f"{value}u{self.dialect.wide}"
        if -(1 << 31) < value < 1 << 31:
            return str(value)
        if value == -(1 << 31) and dtype.bits == 32:
            return "(-2147483647 - 1)"
        if value == -(1 << 63):
            return f"(-9223372036854775807{self.dialect.wide} - 1)"
        return f"{value}{self.dialect.wide}"

    def number(self, dtype: DType, value: float) -> str:
        """A float constant to the bit; all NaNs are one."""
        if math.isfinite(value):
            return float_literal(dtype, value)
        if dtype.bits == 32:
            bits = 0x7FC00000 if math.isnan(value) else 0x7F800000 if value > 0 else 0xFF800000
            return self.reinterpret(u32, dtype, f"0x{bits:08x}u")
        bits = 0x7FF8 if math.isnan(value) else 0x7FF0 if value > 0 else 0xFFF0
        return self.reinterpret(u64, dtype, f"0x{bits << 48:016x}u{self.dialect.wide}")

    def constant(self, dtype: DType, value: object) -> str:
        assert isinstance(value, int | float)
        return self.number(dtype, float(value)) if dtype.is_float else self.integer(dtype, int(value))

    def reinterpret(self, source: DType, to: DType, text: str) -> str:
        """The bits of a value as another type of its size; one of the two is a float."""
        return self.dialect.bits[source.name, to.name].format(text)

    def pointer(self, dtype: DType, space: str = "global", *, read_only: bool = False) -> str:
        """The type of a pointer to elements of a type, in global or in shared memory."""
        return f"{self.dialect.spaces[space]}{'const ' if read_only else ''}{self.type(dtype)}*"

    def volatile(self, dtype: DType, address: str, space: str = "global") -> str:
        """A read that is done each time."""
        return f"*(volatile {self.pointer(dtype, space)}){address}"

    def atomic(self, kind: str, dtype: DType, space: str, address: str, *operands: str) -> str:
        """A call of an atomic that the dialect has."""
        return self.dialect.atomics[kind, dtype.name].format(address, *operands, space=self.dialect.spaces[space])

    # ---- definitions

    def function(self, name: str, result: DType, params: str, *body: str) -> str:
        """Defines a function unless it is there. ``params``: "f32 a, f32 b"."""
        for word in params.replace("*", " ").split():
            if word in self.dialect.types:
                self.types.add(word)
        head = f"{self.dialect.function} {self.type(result)} {name}({params}) {{"
        self.functions.setdefault(name, "\n".join([head, *(f"  {line}" for line in body), "}"]))
        return name

    def pointer_function(self, name: str, result: str, params: str, *body: str) -> str:
        """The same for one that answers a pointer, whose type is given as text."""
        head = f"{self.dialect.function} {result} {name}({params}) {{"
        self.functions.setdefault(name, "\n".join([head, *(f"  {line}" for line in body), "}"]))
        return name

    def outlined(self, name: str, result: DType, params: list[tuple[DType, str]], lines: list[str]) -> None:
        """A function with a body of its own, which is called."""
        listed = ", ".join(f"{self.type(t)} {p}" for t, p in params)
        head = f"{self.dialect.outlined} {self.type(result)} {name}({listed}) {{"
        self.functions[name] = "\n".join([head, *lines, "}"])

    def table(self, dtype: DType, values: Sequence[int | float]) -> str:
        """The name of a constant array with these numbers, which are finite."""
        items = ", ".join(self.constant(dtype, v) for v in values)
        key = f"{self.type(dtype)} {items}"
        if key not in self.tables:
            self.tables[key] = f"tack_table_{len(self.tables)}"
        return self.tables[key]

    def text(self) -> tuple[list[str], list[str]]:
        """What must stand before the entries: the types; tables and functions."""
        d = self.dialect
        types = [f"typedef {d.types[name]} {name};" for name in d.types if name in self.types]
        lines = []
        if self.tables:
            lines.append("")
        for key, name in self.tables.items():
            dtype, _, items = key.partition(" ")
            lines.append(f"{d.table} {dtype} {name}[] = {{{items}}};")
        for function in self.functions.values():
            lines += ["", function]
        return types, lines

    def own(self, text: str) -> list[str]:
        """The dialect's own functions that a text calls."""
        return [line for name, function in self.dialect.functions.items() if f"{name}(" in text for line in ("", function)]

    # ---- arithmetic

    def minmax(self, op: str, t: DType) -> str:
        """The number rather than a NaN; of equals the first."""
        sign = "<" if op == "min" else ">"
        nan = "a != a || " if t.is_float else ""
        n = self.type(t)
        return self.function(f"tack_{op}_{n}", t, f"{n} a, {n} b", f"return {nan}b {sign} a ? b : a;")

    def is_nan(self, t: DType) -> str:
        n = self.type(t)
        return self.function(f"tack_isnan_{n}", BOOL, f"{n} a", "return a != a;")

    def absolute(self, t: DType) -> str:
        n, u = self.type(t), self.type(unsigned(t))
        return self.function(f"tack_abs_{n}", t, f"{n} a", f"return a < 0 ? ({n})(0 - ({u})a) : a;")

    def to_integer(self, source: DType, to: DType) -> str:
        """Truncates, saturates; NaN gives 0."""
        s, n = self.type(source), self.type(to)
        top = float_literal(source, float(to.max + 1))
        body = f"x >= {top} ? {self.integer(to, to.max)} : "
        if to.is_signed:
            body += f"x > {float_literal(source, float(to.min))} ? ({n})x : x == x ? {self.integer(to, to.min)} : 0"
        else:
            body += f"x > {float_literal(source, 0.0)} ? ({n})x : 0"
        return self.function(f"tack_{n}_of_{s}", to, f"{s} x", f"return {body};")

    def rotate(self, name: str, t: DType) -> str:
        n, u, w, mask = self.type(t), self.type(unsigned(t)), self.type(u64 if t.bits == 64 else u32), t.bits - 1
        left, right = ("<<", ">>") if name == "rotl" else (">>", "<<")
        return self.function(
            f"tack_{name}_{n}",
            t,
            f"{n} a, {n} b",
            f"const {w} x = ({u})a;",
            f"const {self.type(u32)} k = ({self.type(u32)})b & {mask}u;",
            f"return ({n})({u})(x {left} k | x {right} ({t.bits}u - k & {mask}u));",
        )

    def saturating(self, name: str, t: DType) -> str:
        """add_sat and sub_sat."""
        n, sign = self.type(t), "+" if name == "add_sat" else "-"
        low, high = self.integer(t, t.min), self.integer(t, t.max)
        if not t.is_signed:
            if name == "sub_sat":
                body = [f"return a > b ? ({n})(a - b) : {low};"]
            else:
                body = [f"return b > ({n})({high} - a) ? {high} : ({n})(a + b);"]
        elif t.bits < 64:
            wide = self.type(i64 if t.bits == 32 else i32)
            body = [f"const {wide} s = ({wide})a {sign} b;", f"return s < {low} ? {low} : s > {high} ? {high} : ({n})s;"]
        else:
            u = self.type(u64)
            crossed = "(a ^ s) & (b ^ s)" if name == "add_sat" else "(a ^ b) & (a ^ s)"
            body = [f"const {n} s = ({n})(({u})a {sign} ({u})b);", f"return ({crossed}) < 0 ? (a < 0 ? {low} : {high}) : s;"]
        return self.function(f"tack_{name}_{n}", t, f"{n} a, {n} b", *body)

    def mulhi(self, t: DType) -> str:
        n = self.type(t)
        if t.bits == 64 and t.name not in self.dialect.mulhi:
            return self._mulhi_of_halves(t)
        if t.bits == 64:
            body = self.dialect.mulhi[t.name].format("a", "b")
        else:
            wide = self.type((i64 if t.is_signed else u64) if t.bits == 32 else (i32 if t.is_signed else u32))
            body = f"({n})(({wide})a * ({wide})b >> {t.bits})"
        return self.function(f"tack_mulhi_{n}", t, f"{n} a, {n} b", f"return {body};")

    def _mulhi_of_halves(self, t: DType) -> str:
        n = self.type(t)
        if t.is_signed:  # the unsigned product, less what the signs have put on top of it
            high = self._mulhi_of_halves(u64)
            body = f"return ({n})({high}((u64)a, (u64)b) - (a < 0 ? (u64)b : 0) - (b < 0 ? (u64)a : 0));"
            return self.function(f"tack_mulhi_{n}", t, f"{n} a, {n} b", body)
        return self.function(
            f"tack_mulhi_{n}",
            t,
            f"{n} a, {n} b",
            f"const {n} a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;",
            f"const {n} low = a1 * b0 + (a0 * b0 >> 32), high = a0 * b1 + (low & 0xffffffffu);",
            "return a1 * b1 + (low >> 32) + (high >> 32);",
        )

    def bits(self, name: str, t: DType) -> str:
        """popcount, clz, ctz; answers i32."""
        n, u = self.type(t), self.type(unsigned(t))
        w = u64 if t.bits == 64 else u32
        word = self.type(w)
        pattern = f"({word})({u})a"
        if name == "popcount":
            body = f"return (i32){self.dialect.popcount[word].format(pattern)};"
        elif name == "clz":
            spare = w.bits - t.bits
            body = f"return (i32){self.dialect.clz[word].format(pattern)}{f' - {spare}' if spare else ''};"
        else:  # the bits below the lowest one that is set
            body = f"return (i32){self.dialect.popcount[word].format(f'({word})({u})(~a & a - 1)')};"
            if t.is_signed:
                body = f"const {u} x = ({u})a; " + body.replace("~a & a - 1", "~x & x - 1")
        return self.function(f"tack_{name}_{n}", i32, f"{n} a", body)

    def trips(self, t: DType) -> str:
        """How often a loop with these bounds runs; 0 for a step of 0."""
        n = self.type(t)
        w = self.type(u64 if t.bits == 64 else u32)
        lines = ["if (step == 0 || (step > 0 ? start >= stop : start <= stop)) return 0;"]
        if t.is_signed:
            lines += [
                f"const {w} span = step > 0 ? ({w})stop - ({w})start : ({w})start - ({w})stop;",
                f"return (span - 1) / (step > 0 ? ({w})step : 0 - ({w})step) + 1;",
            ]
        else:
            lines = ["if (step == 0 || start >= stop) return 0;", f"return (({w})stop - ({w})start - 1) / step + 1;"]
        return self.function(f"tack_trips_{n}", by_name(w), f"{n} start, {n} stop, {n} step", *lines)
