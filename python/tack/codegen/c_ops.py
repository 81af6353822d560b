"""Prints arithmetic as C expressions: integers wrap without signed overflow, floats in the order in which they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.nodes import Instr
from ..types import BOOL, DType, i32, i64, u32
from .c_expr import ADD, ATOM, BAND, BOR, BXOR, COND, EQUAL, INT, LAND, LOR, MUL, REL, SHIFT, UNARY, Cell, Expr, bounds, is_small
from .c_helpers import Helpers, unsigned

__all__ = ["Ops"]

_BINARY = {
    "add": ("+", ADD),
    "sub": ("-", ADD),
    "mul": ("*", MUL),
    "div": ("/", MUL),
    "quot": ("/", MUL),
    "rem": ("%", MUL),
    "lshift": ("<<", SHIFT),
    "rshift": (">>", SHIFT),
    "and": ("&", BAND),
    "xor": ("^", BXOR),
    "or": ("|", BOR),
}
_COMPARE = {"eq": ("==", EQUAL), "ne": ("!=", EQUAL), "lt": ("<", REL), "le": ("<=", REL), "gt": (">", REL), "ge": (">=", REL)}
_MATH = {"round": "rint"}


class Ops:
    """Makes an instruction's expression of those of its operands; what needs more than an operator becomes a call of a helper."""

    def __init__(self, helpers: Helpers) -> None:
        self.h = helpers

    def constant(self, dtype: DType, value: object) -> Expr:
        if dtype.is_float:
            assert isinstance(value, int | float)
            text = self.h.number(dtype, float(value))
            return Expr(text, UNARY if text[0] == "-" else ATOM)
        assert isinstance(value, int)
        number = int(value)
        text = self.h.integer(dtype, number)
        small = is_small(dtype) or (dtype == i64 and INT[0] < number <= INT[1])
        return Expr(text, UNARY if text[0] == "-" else ATOM, low=number, high=number, small=small)

    def value(self, dtype: DType, text: str, reads: frozenset[Cell] = frozenset(), size: int = 0) -> Expr:
        """A name, a call or an element of an array: anything of the type."""
        low, high = bounds(dtype)
        return Expr(text, ATOM, reads, size, low, high, is_small(dtype))

    def emit(self, instr: Instr, args: Sequence[Expr]) -> Expr:
        """The expression of a primitive operation."""
        op, t = instr.op, instr.type
        of = instr.args[0].type
        assert t is not None
        assert of is not None
        if op in _COMPARE:
            sign, level = _COMPARE[op]
            return self._joined(BOOL, f"{args[0].at(level + 1)} {sign} {args[1].at(level + 1)}", level, args)
        if op == "select":
            return self._select(t, args)
        if op == "cast":
            return self.cast(args[0], of, t)
        if op == "bitcast":
            if of.is_float != t.is_float:
                return self._joined(t, self.h.reinterpret(of, t, args[0].text), UNARY, args)
            return args[0] if of == t else self._cast_text(t, args[0])
        if op == "freeze":
            return args[0]
        if op == "math":
            return self._math(str(instr.attr), of, args)
        if op == "bits":
            return self._bits(str(instr.attr), of, t, args)
        if op in ("min", "max"):
            return self.minmax(op, t, args)
        if t.is_float:
            return self._float(op, t, args)
        if t == BOOL:
            return self._bool(op, args)
        return self._integer(op, t, args)

    # ---- parts

    @staticmethod
    def _joined(dtype: DType, text: str, level: int, args: Sequence[Expr], interval: tuple[int, int] | None = None) -> Expr:
        """An expression of operands, anything of the type unless bounds are given."""
        low, high = interval or bounds(dtype)
        reads: frozenset[Cell] = frozenset().union(*(a.reads for a in args))
        return Expr(text, level, reads, 1 + sum(a.size for a in args), low, high, is_small(dtype))

    def call(self, function: str, dtype: DType, args: Sequence[Expr]) -> Expr:
        """A call of a function without effects, by its name or a template of its operands."""
        texts = [a.text for a in args]
        return self._joined(dtype, function.format(*texts) if "{" in function else f"{function}({', '.join(texts)})", ATOM, args)

    def _cast_text(self, to: DType, a: Expr, interval: tuple[int, int] | None = None) -> Expr:
        return self._joined(to, f"({self.h.type(to)}){a.at(UNARY)}", UNARY, [a], interval)

    @staticmethod
    def _infix(op: str, a: Expr, b: Expr) -> tuple[str, int]:
        sign, level = _BINARY[op]
        return f"{a.at(level)} {sign} {b.at(level + 1)}", level

    @staticmethod
    def _prefix(sign: str, a: Expr) -> str:
        text = a.at(UNARY)
        return f"{sign}({text})" if text[0] == sign else f"{sign}{text}"

    def minmax(self, op: str, t: DType, args: Sequence[Expr]) -> Expr:
        if t.is_float:
            return self.call(self.h.minmax(op, t), t, args)
        pick = min if op == "min" else max
        interval = pick(args[0].low, args[1].low), pick(args[0].high, args[1].high)
        narrow = t == i64 and args[0].small and args[1].small
        function = self.h.minmax(op, i32 if narrow else t)
        out = self.call(function, t, args)
        return Expr(out.text, ATOM, out.reads, out.size, *interval, small=narrow or out.small)

    def _select(self, t: DType, args: Sequence[Expr]) -> Expr:
        cond, a, b = args
        interval = min(a.low, b.low), max(a.high, b.high)
        out = self._joined(t, f"{cond.at(LOR)} ? {a.at(LOR)} : {b.at(COND)}", COND, args, interval)
        if t == i64 and a.small and b.small:
            return Expr(out.text, COND, out.reads, out.size, *interval, small=True)
        return out

    # ---- by type

    def _float(self, op: str, t: DType, args: Sequence[Expr]) -> Expr:
        if op == "neg":
            return self._joined(t, self._prefix("-", args[0]), UNARY, args)
        if op in ("abs", "fma", "frem"):
            return self.native("fabs" if op == "abs" else op, t, args)
        text, level = self._infix(op, *args)
        return self._joined(t, text, level, args)

    def _bool(self, op: str, args: Sequence[Expr]) -> Expr:
        if op == "lnot":
            return self._joined(BOOL, self._prefix("!", args[0]), UNARY, args)
        sign, level = {"and": ("&&", LAND), "or": ("||", LOR), "xor": ("!=", EQUAL)}[op]
        return self._joined(BOOL, f"{args[0].at(level)} {sign} {args[1].at(level + 1)}", level, args)

    def native(self, name: str, t: DType, args: Sequence[Expr]) -> Expr:
        """A function that every dialect has."""
        return self.call(self.h.dialect.math[name, t.name], t, args)

    def _math(self, name: str, of: DType, args: Sequence[Expr]) -> Expr:
        if name == "isnan":
            return self.call(self.h.is_nan(of), BOOL, args)
        if name not in ("isinf", "isfinite"):
            return self.native(_MATH.get(name, name), of, args)
        size = self.native("fabs", of, args)
        infinity = self.h.number(of, float("inf"))
        sign, level = ("==", EQUAL) if name == "isinf" else ("<", REL)
        return self._joined(BOOL, f"{size.text} {sign} {infinity}", level, args)

    def _bits(self, name: str, of: DType, t: DType, args: Sequence[Expr]) -> Expr:
        if name in ("popcount", "clz", "ctz"):
            out = self.call(self.h.bits(name, of), i32, args)
            counted = Expr(out.text, ATOM, out.reads, out.size, 0, of.bits, small=True)
            return self.cast(counted, i32, t)
        if name == "mulhi":
            function = self.h.mulhi(of)
        elif name in ("rotl", "rotr"):
            function = self.h.rotate(name, of)
        else:
            function = self.h.saturating(name, of)
        return self.cast(self.call(function, of, args), of, t)

    def _integer(self, op: str, t: DType, args: Sequence[Expr]) -> Expr:
        if op == "neg":
            return self._wrapped(t, "sub", [self.constant(t, 0), args[0]])
        if op == "abs":
            return args[0] if not t.is_signed else self.call(self.h.absolute(t), t, args)
        if op == "not":
            a = args[0]
            text = self._prefix("~", a)
            if t.is_signed:
                return self._result(t, text, UNARY, args, (~a.high, ~a.low), a.small)
            return self._joined(t, text, UNARY, args) if t.bits >= 32 else self._cast_text(t, self._joined(i32, text, UNARY, args))
        if op in ("add", "sub", "mul"):
            return self._wrapped(t, op, args)
        if op in ("and", "or", "xor"):
            text, level = self._infix(op, *args)
            interval = _bitwise(op, args[0], args[1], t)
            return self._result(t, text, level, args, interval, args[0].small and args[1].small)
        if op == "lshift":
            return self._left(t, args)
        if op == "rshift":
            return self._right(t, args)
        assert op in ("quot", "rem"), op
        return self._division(op, t, args)

    def _result(self, t: DType, text: str, level: int, args: Sequence[Expr], interval: tuple[int, int], small: bool) -> Expr:
        """Of an i64 whose operands C computes with in int, or of any other type as it is."""
        out = self._joined(t, text, level, args, interval)
        return Expr(out.text, level, out.reads, out.size, out.low, out.high, small if t == i64 else out.small)

    def _wrapped(self, t: DType, op: str, args: Sequence[Expr]) -> Expr:
        """add, sub, mul modulo 2^N: plainly where the result is known to fit, else in unsigned arithmetic."""
        a, b = args
        interval = _arithmetic(op, a, b)
        fits = bounds(t)[0] <= interval[0] and interval[1] <= bounds(t)[1]
        if t.is_float or (not t.is_signed and t.bits >= 32):
            text, level = self._infix(op, a, b)
            return self._joined(t, text, level, args, interval if fits else None)
        if not fits:
            if t.bits < 32 and op != "mul":  # int holds it
                text, level = self._infix(op, a, b)
                return self._joined(t, f"({self.h.type(t)})({text})", UNARY, args)
            return self._unsigned(t, op, args)
        small = a.small and b.small
        if op == "sub" and a.text == "0" and interval[0] >= -INT[1]:
            return self._result(t, self._prefix("-", b), UNARY, args, interval, b.small)
        if t == i64 and small and not (INT[0] <= interval[0] and interval[1] <= INT[1]):
            a, small = self._cast_text(i64, a, a.range), False
        text, level = self._infix(op, a, b)
        return self._result(t, text, level, args, interval, small)

    def _left(self, t: DType, args: Sequence[Expr]) -> Expr:
        a, n = args
        if a.low == a.high == 0 and a.small:  # an int, which C must not shift as far as an i64
            return a
        if not t.is_signed and t.bits >= 32:
            text, level = self._infix("lshift", a, n)
            return self._joined(t, text, level, args)
        return self._unsigned(t, "lshift", args)

    def _unsigned(self, t: DType, op: str, args: Sequence[Expr]) -> Expr:
        """An operation in unsigned arithmetic, which wraps. C takes the right operand along; what is unsigned already stays so."""
        a, b = args
        u = unsigned(t) if t.bits >= 32 else u32
        sign, level = _BINARY[op]
        if a.text == "0":
            return self._joined(t, f"({self.h.type(t)})(0 {sign} ({self.h.type(u)}){b.at(UNARY)})", UNARY, args)
        if a.wrapped:
            left = a.wrapped[0] if a.wrapped[1] >= level else f"({a.wrapped[0]})"
        else:
            left = f"({self.h.type(u)}){a.at(UNARY)}"
        right = b.at(level + 1)
        if b.wrapped and op != "lshift":
            right = b.wrapped[0] if b.wrapped[1] > level else f"({b.wrapped[0]})"
        text = f"{left} {sign} {right}"
        out = self._joined(t, f"({self.h.type(t)})({text})", UNARY, args)
        return replace(out, wrapped=(text, level)) if t.bits >= 32 else out

    def _right(self, t: DType, args: Sequence[Expr]) -> Expr:
        a, n = args
        small = a.small
        if t == i64 and small and n.high > 31:
            a, small = self._cast_text(i64, a, a.range), False
        text, level = self._infix("rshift", a, n)
        if 0 <= n.low == n.high:
            interval = a.low >> n.low, a.high >> n.low
        else:
            interval = min(a.low, 0), max(a.high, 0)
        return self._result(t, text, level, args, interval, small)

    def _division(self, op: str, t: DType, args: Sequence[Expr]) -> Expr:
        a, b = args
        small = a.small and b.small
        if t == i64 and small and a.low == INT[0] and b.low <= -1 <= b.high:  # fits i64 alone
            a, small = self._cast_text(i64, a, a.range), False
        text, level = self._infix(op, a, b)
        if op == "quot":
            interval = _quotient(a, b)
        else:
            most = max(abs(b.low), abs(b.high)) - 1
            interval = (max(-most, a.low) if a.low < 0 else 0), min(most, a.high) if a.high > 0 else 0
        low, high = bounds(t)
        return self._result(t, text, level, args, (max(interval[0], low), min(interval[1], high)), small)

    # ---- casts

    def cast(self, a: Expr, source: DType, to: DType) -> Expr:
        """A kernel's cast. To bool it has been lowered to a comparison."""
        if source == to:
            return a
        if source.is_float:
            if to.is_float:
                return self._cast_text(to, a)
            return self.call(self.h.to_integer(source, to), to, [a])
        if to.is_float:
            return self._cast_text(to, a)
        low, high = bounds(to)
        if not (low <= a.low and a.high <= high):
            if a.wrapped is not None and to.bits < source.bits:  # the low bits, whatever the sign
                return self._joined(to, f"({self.h.type(to)})({a.wrapped[0]})", UNARY, [a])
            return self._cast_text(to, a)
        if a.small and (is_small(to) or to == i64):  # int holds it, and is what C computes with: nothing to write
            return Expr(a.text, a.level, a.reads, a.size, a.low, a.high, small=True)
        return self._cast_text(to, a, a.range)


def _arithmetic(op: str, a: Expr, b: Expr) -> tuple[int, int]:
    if op == "add":
        return a.low + b.low, a.high + b.high
    if op == "sub":
        return a.low - b.high, a.high - b.low
    products = (a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high)
    return min(products), max(products)


def _bitwise(op: str, a: Expr, b: Expr, t: DType) -> tuple[int, int]:
    if op == "and":
        if a.low >= 0 and b.low >= 0:
            return 0, min(a.high, b.high)
        if a.low >= 0 or b.low >= 0:
            return 0, a.high if a.low >= 0 else b.high
    bits = max(x.bit_length() for x in (a.low, a.high, b.low, b.high))
    low = 0 if a.low >= 0 and b.low >= 0 else -(1 << bits)
    return max(low, bounds(t)[0]), min((1 << bits) - 1, bounds(t)[1])


def _quotient(a: Expr, b: Expr) -> tuple[int, int]:
    if b.low > 0:
        ends = [abs(x) // y * (1 if x >= 0 else -1) for x in a.range for y in b.range]
        return min(*ends, 0 if a.low <= 0 <= a.high else ends[0]), max(*ends, 0 if a.low <= 0 <= a.high else ends[0])
    most = max(abs(a.low), abs(a.high))
    return -most, most
