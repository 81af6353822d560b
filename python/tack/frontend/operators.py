"""Inference of operators: arithmetic, bits, comparisons, and the folding of constants."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, NoReturn

from ..errors import CompileError, CompileNotImplementedError, CompileTypeError
from ..ir.nodes import Instr, Loc
from ..ir.symbols import INFIX
from ..types import BOOL, DType, by_name, i64, u8, u64
from .builder import Builder, weak_constant, wrap
from .meaning import DTypeMeaning, Opaque
from .promote import holds, join_all, join_nums
from .values import NONE, W_FLOAT, W_INT, NoneValue, Num, Thing, Type, Weak, describe, type_text

__all__ = ["Operators"]

_PYTHON: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
SYMBOL: Final = {
    **INFIX,
    "matmul": "@",
    "in": "in",
    "notin": "not in",
    "is": "is",
    "isnot": "is not",
    "neg": "-",
    "pos": "+",
    "invert": "~",
}
_MAX_BITS: Final = 4096  # of a folded integer


def is_weak(type: Type) -> bool:
    """Whether it yields to what it meets; a bool acts as a weak int."""
    return type.__class__ is Weak or type is BOOL


class Operators(Builder):
    # -- binary

    def binary(self, op: str, a: Thing, b: Thing, loc: Loc) -> Num:
        if not (isinstance(a, Num) and isinstance(b, Num)):
            self.no_operator(op, a, b, loc)
        ta, tb = a.type, b.type
        if a.const is not None and b.const is not None and is_weak(ta) and is_weak(tb):
            return self.fold(op, a.const, b.const, loc)
        if op == "add" or op == "sub" or op == "mul" or op == "floordiv" or op == "mod":
            if ta is tb and a.instr is not None and b.instr is not None and ta is not BOOL:
                return self.value(op, ta, (a.instr, b.instr), loc)
            return self.arithmetic(op, a, b, loc)
        if op == "div":
            t = self.common(op, a, b, loc)
            if not t.is_float:
                t = W_FLOAT if is_weak(ta) and is_weak(tb) else self.weak_float
            dtype = self.dtype_of(t)
            return self.value("div", t, (self.coerce(a, dtype, loc), self.coerce(b, dtype, loc)), loc)
        if op == "pow":
            return self.power(a, b, loc)
        if op == "matmul":
            self.no_operator(op, a, b, loc)
        if ta.is_float or tb.is_float:
            self.fail(
                f"{SYMBOL[op]} works on integers, not on {describe(a if ta.is_float else b)}.",
                loc,
                "Convert with int(...) or tack.i32(...) first.",
            )
        if op == "shl" or op == "shr":
            return self.shift(op, a, b, loc)
        return self.arithmetic(op, a, b, loc, BOOL if ta is BOOL and tb is BOOL else None)

    def arithmetic(self, op: str, a: Num, b: Num, loc: Loc, t: Type | None = None) -> Num:
        if t is None:
            t = self.common(op, a, b, loc)
            if t is BOOL:
                t = W_INT
        dtype = self.dtype_of(t)
        return self.value(op, t, (self.coerce(a, dtype, loc), self.coerce(b, dtype, loc)), loc)

    def common(self, op: str, a: Num, b: Num, loc: Loc) -> Type:
        t = join_nums(a, b, self.weak_float)
        if t is None:
            self.no_common_type(f"{SYMBOL[op]} of {a.type} and {b.type}", a.type, b.type, loc)
        return t

    def common_of(self, name: str, numbers: list[Num], loc: Loc) -> Type:
        """The common type of any number of numbers, in whatever order they stand."""
        joined = join_all(numbers, self.weak_float)
        if joined is None:
            pair = [n.type for n in numbers if isinstance(n.type, DType) and (n.type is u64 or (n.type.is_signed and not n.index))]
            first, second = pair[0], next(t for t in pair if (t is u64) != (pair[0] is u64))
            self.no_common_type(f"{name} of {type_text(first)} and {type_text(second)}", first, second, loc)
        return joined[0]

    def no_common_type(self, what: str, a: Type, b: Type, loc: Loc) -> NoReturn:
        signed = a if isinstance(a, DType) and a.is_signed else b
        self.fail(
            f"{what} is refused: no integer type holds the values of both.",
            loc,
            f"Write tack.u64(...) around the {signed} value, or tack.i64(...) around the tack.u64 value.",
        )

    def no_operator(self, op: str, a: Thing, b: Thing, loc: Loc) -> NoReturn:
        for thing in (a, b):
            if isinstance(thing, Opaque):
                self.unusable_capture(thing, loc)
        if op == "matmul":
            self.fail("@ is not part of the kernel language.", loc, "Write the loops over rows and columns.", CompileNotImplementedError)
        self.fail(
            f"{SYMBOL[op]} does not work on {describe(a)} and {describe(b)}.",
            loc,
            "Operators work on numbers: index arrays and tuples first, e.g. a[i]."
            if not isinstance(a, NoneValue) and not isinstance(b, NoneValue)
            else "",
        )

    def unusable_capture(self, thing: Opaque, loc: Loc) -> NoReturn:
        self.fail(
            f"{thing.description} has no meaning in a kernel.",
            loc,
            "Kernels can capture numbers, bools, tuples of numbers, dtypes, @tack.func functions and modules.",
        )

    # -- constants

    def fold(self, op: str, a: Any, b: Any, loc: Loc) -> Num:
        """An expression of Python numbers alone: what Python computes."""
        try:
            if op == "pow" and isinstance(a, int) and isinstance(b, int) and abs(a).bit_length() * max(b, 0) > _MAX_BITS:
                raise OverflowError("the result is too large")
            if op == "shl" and b > _MAX_BITS:
                raise OverflowError("the result is too large")
            value = _PYTHON[op](a, b)
        except (ArithmeticError, ValueError, TypeError, KeyError) as failure:
            self.fail(f"the constant expression {_written(a)} {SYMBOL[op]} {_written(b)} fails: {failure}.", loc, kind=CompileError)
        if isinstance(value, complex):
            self.fail(f"the constant expression {_written(a)} {SYMBOL[op]} {_written(b)} is a complex number.", loc, kind=CompileError)
        return weak_constant(value)

    # -- shifts and powers keep the left type

    def left_type(self, a: Num, b: Num) -> Type:
        t = a.type
        if t is BOOL:
            t = W_INT
        if isinstance(t, Weak) and not is_weak(b.type) and not b.type.is_float:
            t = b.type
        return t

    def shift(self, op: str, a: Num, b: Num, loc: Loc) -> Num:
        t = self.left_type(a, b)
        dtype = self.dtype_of(t)
        left = self.coerce(a, dtype, loc)
        if b.const is not None:
            count = int(b.const)
            if not 0 <= count < dtype.bits:
                count = dtype.bits
            right = self.emit("const", dtype, (), count, loc)
        else:
            right = self.count(b, dtype, loc)
        return self.value(op, t, (left, right), loc)

    def count(self, b: Num, dtype: DType, loc: Loc) -> Any:
        """A run-time shift count in the left type; one outside [0, N) stays outside."""
        own = self.dtype_of(b.type)
        if own is BOOL or own.bits <= dtype.bits or b.param >= 0:
            return self.coerce(b, dtype, loc)
        wide = self.own(b, loc)
        unsigned = self.emit("cast", u64, (wide,), None, loc) if own is not u64 else wide
        inside = self.emit("lt", BOOL, (unsigned, self.emit("const", u64, (), dtype.bits, loc)), None, loc)
        bounded = self.emit("select", own, (inside, wide, self.emit("const", own, (), dtype.bits, loc)), None, loc)
        return self.emit("cast", dtype, (bounded,), None, loc)

    def power(self, a: Num, b: Num, loc: Loc) -> Num:
        if a.type.is_float or b.type.is_float:
            t = self.common("pow", a, b, loc)
            dtype = self.dtype_of(t)
            if b.const in (2, 3, 4) and a.type.is_float:  # exact squares; x ** 3 and x ** 4 are two roundings
                x = self.coerce(a, dtype, loc)
                return self.small_power(t, x, int(b.const), loc)
            return self.value("math", t, (self.coerce(a, dtype, loc), self.coerce(b, dtype, loc)), loc, "pow")
        if b.const is not None and b.const < 0:
            self.fail(f"an integer to the power {b.const!r} is no integer.", loc, "Write float(x) ** e, or 1 / x ** e.")
        t = self.left_type(a, b)
        dtype = self.dtype_of(t)
        if a.const is not None and b.const is not None:
            return Num(t, const=wrap(pow(int(self.number_in(a, dtype, loc)), int(b.const), 1 << dtype.bits), dtype))
        if b.const is not None:
            if b.const in (2, 3, 4):
                x = self.coerce(a, dtype, loc)
                return self.small_power(t, x, int(b.const), loc)
            exponent = int(b.const)
            wide = dtype if holds(dtype, exponent) else u64
        else:
            own = self.dtype_of(W_INT if b.type is BOOL else b.type)
            # A type of the exponent's sign that holds both: the power modulo 2^N is the same in any type at least as wide.
            wide = dtype if own is dtype else by_name(f"{own.code}{max(own.bits, dtype.bits)}")
        base = self.coerce(a, dtype, loc)
        if wide is not dtype:
            base = self.emit("cast", wide, (base,), None, loc)
        result = self.emit("pow", wide, (base, self.coerce(Num(b.type, b.instr, b.const), wide, loc)), None, loc)
        if wide is not dtype:
            result = self.emit("cast", dtype, (result,), None, loc)
        return Num(t, result)

    def small_power(self, t: Type, x: Instr, exponent: int, loc: Loc) -> Num:
        square = self.value("mul", t, (x, x), loc)
        if exponent == 2:
            return square
        twice = self.own(square, loc)
        return self.value("mul", t, (twice, x if exponent == 3 else twice), loc)

    # -- unary

    def unary(self, op: str, x: Thing, loc: Loc) -> Num:
        if op == "not":
            truth = self.truth(x, loc)
            if truth.const is not None:
                return Num(BOOL, const=not truth.const)
            assert truth.instr is not None
            return self.value("lnot", BOOL, (truth.instr,), loc)
        if not isinstance(x, Num):
            if isinstance(x, Opaque):
                self.unusable_capture(x, loc)
            self.fail(f"{SYMBOL[op]} does not work on {describe(x)}.", loc)
        t: Type = x.type
        if op == "invert":
            if t is BOOL:
                self.fail("~ of a bool is refused.", loc, "Write not x.")
            if t.is_float:
                self.fail(f"~ works on integers, not on {describe(x)}.", loc)
            if x.const is not None:
                return Num(t, const=~int(x.const) if isinstance(t, Weak) else wrap(~int(x.const), t))
            return self.value("not", t, (self.own(x, loc),), loc)
        if t is BOOL:
            x = weak_constant(int(x.const)) if x.const is not None else Num(W_INT, self.coerce(x, i64, loc))
            t = W_INT
        if op == "pos":
            return Num(t, x.instr, x.const)
        if x.const is not None:
            value = -x.const
            return Num(t, const=value if isinstance(t, Weak) or t.is_float else wrap(int(value), t))
        return self.value("neg", t, (self.own(x, loc),), loc)

    # -- comparisons

    def compare(self, op: str, a: Thing, b: Thing, loc: Loc) -> Num:
        if op in ("is", "isnot") or isinstance(a, NoneValue) or isinstance(b, NoneValue):
            return self.identity(op, a, b, loc)
        if isinstance(a, DTypeMeaning) and isinstance(b, DTypeMeaning) and op in ("eq", "ne"):
            return Num(BOOL, const=(a.dtype == b.dtype) == (op == "eq"))
        if op in ("in", "notin"):
            self.fail(
                "'in' is not part of the kernel language.", loc, "Write the comparisons: x == a or x == b.", CompileNotImplementedError
            )
        if not (isinstance(a, Num) and isinstance(b, Num)):
            self.no_operator(op, a, b, loc)
        if a.const is not None and b.const is not None and is_weak(a.type) and is_weak(b.type):
            return Num(BOOL, const=bool(_PYTHON[op](a.const, b.const)))
        ta, tb = a.type, b.type
        if ta is tb and a.instr is not None and b.instr is not None and ta is not BOOL:
            return self.value(op, BOOL, (a.instr, b.instr), loc)
        if ta.is_float or tb.is_float:
            dtype = self.dtype_of(self.common(op, a, b, loc))
        elif ta is BOOL and tb is BOOL:
            if op in ("eq", "ne"):
                different = self.value("xor", BOOL, (self.own(a, loc), self.own(b, loc)), loc)
                return different if op == "ne" else self.unary("not", different, loc)
            dtype = u8
        else:
            return self.compare_integers(op, a, b, loc)
        return self.value(op, BOOL, (self.coerce(a, dtype, loc), self.coerce(b, dtype, loc)), loc)

    def compare_integers(self, op: str, a: Num, b: Num, loc: Loc) -> Num:
        """Exact between any integer types: no conversion may change a value, and no parameter's range is narrowed."""
        if a.const is not None and b.const is not None:
            return Num(BOOL, const=bool(_PYTHON[op](int(a.const), int(b.const))))
        ta, tb = self.compared(a, b), self.compared(b, a)
        if a.const is not None and not holds(tb, int(a.const)) and tb is self.dtype_of(b.type):
            return self.decided(_PYTHON[op](int(a.const), tb.min if a.const < tb.min else tb.max), b, loc)
        if b.const is not None and not holds(ta, int(b.const)) and ta is self.dtype_of(a.type):
            return self.decided(_PYTHON[op](ta.min if b.const < ta.min else ta.max, int(b.const)), a, loc)
        t = join_nums(Num(ta), Num(tb), self.weak_float)
        left, right = Num(a.type, a.instr, a.const), Num(b.type, b.instr, b.const)  # without the parameter
        if isinstance(t, DType):
            return self.value(op, BOOL, (self.coerce(left, t, loc), self.coerce(right, t, loc)), loc)
        # Signed with u64. A negative number is less than all of them; the others compare as u64.
        signed, swapped = (left, False) if ta.is_signed else (right, True)
        wide = self.coerce(signed, i64, loc)
        negative = self.emit("lt", BOOL, (wide, self.emit("const", i64, (), 0, loc)), None, loc)
        other = self.coerce(right if not swapped else left, u64, loc)
        as_u64 = self.emit("cast", u64, (wide,), None, loc)
        plain = self.emit(op, BOOL, (other, as_u64) if swapped else (as_u64, other), None, loc)
        answer = bool(_PYTHON[op](0, -1) if swapped else _PYTHON[op](-1, 0))  # where the signed one is negative
        if answer:
            return self.value("or", BOOL, (negative, plain), loc)
        return self.value("and", BOOL, (self.emit("lnot", BOOL, (negative,), None, loc), plain), loc)

    def decided(self, answer: bool, number: Num, loc: Loc) -> Num:
        """A comparison that the range of a run-time number decides. It is no constant all the same: only what is made of constants is."""
        instr = self.own(Num(number.type, number.instr), loc)
        return self.value("eq" if answer else "ne", BOOL, (instr, instr), loc)

    def compared(self, num: Num, other: Num) -> DType:
        """The dtype that an integer is compared in: a constant that fits takes the other's."""
        own = self.dtype_of(W_INT if num.type is BOOL else num.type)
        if num.const is None or not is_weak(num.type):
            return own
        theirs = self.dtype_of(W_INT if other.type is BOOL else other.type)
        return theirs if holds(theirs, int(num.const)) else own if holds(own, int(num.const)) else u64

    def identity(self, op: str, a: Thing, b: Thing, loc: Loc) -> Num:
        if op not in ("is", "isnot", "eq", "ne"):
            self.no_operator(op, a, b, loc)
        if not (isinstance(a, NoneValue) or isinstance(b, NoneValue)):
            self.fail("'is' compares with None only.", loc, "Write == for numbers.", CompileNotImplementedError)
        return Num(BOOL, const=(a is NONE and b is NONE) == (op in ("is", "eq")))

    def no_truth(self, thing: Thing, loc: Loc) -> NoReturn:
        if isinstance(thing, Opaque):
            self.unusable_capture(thing, loc)
        hint = "Write x is None or x is not None." if isinstance(thing, NoneValue) else "Write a condition on a number, e.g. len(a) > 0."
        self.fail(f"{describe(thing)} has no truth value in a kernel.", loc, hint, CompileTypeError)


def _written(number: int | float | bool) -> str:
    """A number as an operand: (-8) ** 0.5 is not -8 ** 0.5."""
    return f"({number!r})" if number < 0 else repr(number)
