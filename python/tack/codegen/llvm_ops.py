"""Prints arithmetic: one primitive operation on scalars or on vectors of lanes."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.nodes import Instr
from ..ir.target import Target
from ..types import DType, f32, f64, i64
from .llvm_text import Writer, literal, llvm_type, suffix
from .machine import NO_FMA

__all__ = ["INSIDE", "Arithmetic"]

INSIDE = "inside"  # the attribute of a float's cast to an integer type that holds it

_INT = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "lshift": "shl"}
_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "frem": "frem"}
_SIGNED = {"quot": "sdiv", "rem": "srem", "rshift": "ashr"}
_UNSIGNED = {"quot": "udiv", "rem": "urem", "rshift": "lshr"}
_COMPARE = {"eq": ("oeq", "eq"), "ne": ("une", "ne"), "lt": ("olt", "lt"), "le": ("ole", "le"), "gt": ("ogt", "gt"), "ge": ("oge", "ge")}
_MATH = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "roundeven",
    "round": "roundeven",
    "fabs": "fabs",
    "copysign": "copysign",
}


class Arithmetic:
    """``declare`` notes an intrinsic's declaration; ``fast`` puts LLVM's fast flag on float operations. ``wide_conversions``: the machine
    converts between vectors of 64-bit integers and floats. ``x86_bits``: of its registers, 0 on other machines. ``fused``: it has a
    multiply-add."""

    def __init__(self, writer: Writer, declare: Callable[[str, str], None], fast: bool, target: Target) -> None:
        self.numbers: set[Instr] = set()  # that are never NaN
        self.x86_bits = target.vector_bits if target.arch.startswith("x86-64") else 0
        self.target = target
        self.fused = target.arch not in NO_FMA
        self.wide_conversions = self.x86_bits == 512
        self.w = writer
        self.declare = declare
        self.fast = "fast " if fast else ""

    def call(self, hint: str, name: str, result: str, args: list[tuple[str, str]], flags: str = "") -> str:
        """A call of an intrinsic; ``args`` are (type, value)."""
        self.declare(name, f"declare {result} @{name}({', '.join(t for t, _ in args)})")
        return self.w.op(hint, f"call {flags}{result} @{name}({', '.join(f'{t} {v}' for t, v in args)})")

    def splat(self, dtype: DType, lanes: int, value: object) -> str:
        """A constant in all lanes."""
        text = literal(dtype, value)
        return text if lanes == 1 else f"splat ({llvm_type(dtype)} {text})"

    def emit(self, instr: Instr, lanes: int, args: list[str], hint: str) -> str:
        """Prints ``instr`` over ``lanes`` lanes; ``args`` have that many lanes each. Answers the result's name."""
        op, w = instr.op, self.w
        of = instr.args[0].type if instr.args else instr.type
        assert of is not None
        t = llvm_type(of, lanes)
        if op in _COMPARE:
            ordered, plain = _COMPARE[op]
            if of.is_float:
                return w.op(hint, f"fcmp {self.fast}{ordered} {t} {args[0]}, {args[1]}")
            sign = "" if op in ("eq", "ne") else "s" if of.is_signed else "u"
            return w.op(hint, f"icmp {sign}{plain} {t} {args[0]}, {args[1]}")
        if op == "select":
            value = llvm_type(_type(instr), lanes)
            return w.op(hint, f"select {t} {args[0]}, {value} {args[1]}, {value} {args[2]}")
        if op == "cast":
            value = self._hidden(of, lanes, args[0], hint) if lanes > 1 and _is_short(_type(instr)) and _is_high(instr) else args[0]
            if instr.attr == INSIDE:
                return w.op(hint, f"fpto{'s' if _type(instr).is_signed else 'u'}i {t} {value} to {llvm_type(_type(instr), lanes)}")
            return self._cast(of, _type(instr), lanes, value, hint)
        if op == "freeze":
            return w.op(hint, f"freeze {t} {args[0]}")
        if op == "bitcast":
            return w.op(hint, f"bitcast {t} {args[0]} to {llvm_type(_type(instr), lanes)}")
        if op == "math":
            return self._math(instr, of, t, lanes, args, hint)
        if op == "bits":
            return self._bits(instr, of, t, lanes, args, hint)
        if op in ("min", "max"):
            return self.minmax(op, of, lanes, args[0], args[1], hint, instr.args[0] in self.numbers)
        if of.is_float:
            if op == "neg":
                return w.op(hint, f"fneg {self.fast}{t} {args[0]}")
            if op == "abs":
                return self.call(hint, f"llvm.fabs.{suffix(of, lanes)}", t, [(t, args[0])], self.fast)
            if op == "fma":
                return self.fma(of, lanes, args, hint)
            return w.op(hint, f"{_FLOAT[op]} {self.fast}{t} {args[0]}, {args[1]}")
        if op == "neg":
            return w.op(hint, f"sub {t} {self.splat(of, lanes, 0)}, {args[0]}")
        if op == "abs":
            if not of.is_signed:
                return args[0]
            return self.call(hint, f"llvm.abs.{suffix(of, lanes)}", t, [(t, args[0]), ("i1", "false")])
        if op in ("not", "lnot"):
            return w.op(hint, f"xor {t} {args[0]}, {self.splat(of, lanes, -1 if of.is_int else True)}")
        name = _INT.get(op) or (_SIGNED if of.is_signed else _UNSIGNED)[op]
        return w.op(hint, f"{name} {t} {args[0]}, {args[1]}")

    def fma(self, of: DType, lanes: int, args: list[str], hint: str) -> str:
        """a * b + c, rounded once."""
        t = llvm_type(of, lanes)
        if of.bits == 32 and not self.fused:
            return self._fma_through_f64(lanes, args, hint)
        return self.call(hint, f"llvm.fma.{suffix(of, lanes)}", t, [(t, a) for a in args], self.fast)

    def _fma_through_f64(self, lanes: int, args: list[str], hint: str) -> str:
        """Where no instruction does it, and LLVM calls a function for each lane. The product is exact in f64. Of the sum the error is
        found; where there is one, the sum is cut short and made odd, so that rounding it again is the same as rounding once."""
        w, t, wide = self.w, llvm_type(f32, lanes), llvm_type(f64, lanes)
        bits = llvm_type(i64, lanes)
        a, b, c = (w.op(f"{hint}.wide", f"fpext {t} {v} to {wide}") for v in args)
        product = w.op(f"{hint}.product", f"fmul {wide} {a}, {b}")
        total = w.op(f"{hint}.total", f"fadd {wide} {product}, {c}")
        part = w.op(f"{hint}.part", f"fsub {wide} {total}, {product}")
        rest = w.op(f"{hint}.rest", f"fsub {wide} {total}, {part}")
        errors = [w.op(f"{hint}.error", f"fsub {wide} {x}, {y}") for x, y in ((product, rest), (c, part))]
        error = w.op(f"{hint}.error", f"fadd {wide} {errors[0]}, {errors[1]}")
        as_bits, side = (w.op(f"{hint}.bits", f"bitcast {wide} {v} to {bits}") for v in (total, error))
        apart = w.op(f"{hint}.apart", f"xor {bits} {as_bits}, {side}")
        beyond = w.op(f"{hint}.beyond", f"lshr {bits} {apart}, {self.splat(i64, lanes, 63)}")  # whether the sum was rounded away from zero
        cut = w.op(f"{hint}.cut", f"sub {bits} {as_bits}, {beyond}")
        odd = w.op(f"{hint}.odd", f"or {bits} {cut}, {self.splat(i64, lanes, 1)}")
        size = self.call(f"{hint}.size", f"llvm.fabs.{suffix(f64, lanes)}", wide, [(wide, error)])
        inexact = w.op(f"{hint}.inexact", f"fcmp ogt {wide} {size}, {self.splat(f64, lanes, 0.0)}")  # nor infinite or NaN
        cond = "i1" if lanes == 1 else f"<{lanes} x i1>"
        result = w.op(f"{hint}.bits", f"select {cond} {inexact}, {bits} {odd}, {bits} {as_bits}")
        return w.op(hint, f"fptrunc {wide} {w.op(f'{hint}.once', f'bitcast {bits} {result} to {wide}')} to {t}")

    def minmax(self, op: str, dtype: DType, lanes: int, a: str, b: str, hint: str, number: bool = False) -> str:
        """The number rather than a NaN; of equals the first. ``number``: the first is known to be one."""
        t = llvm_type(dtype, lanes)
        if not dtype.is_float:
            name = f"llvm.{'s' if dtype.is_signed else 'u'}{op}.{suffix(dtype, lanes)}"
            return self.call(hint, name, t, [(t, a), (t, b)])
        cond = "i1" if lanes == 1 else f"<{lanes} x i1>"
        if number:
            closer = self.w.op(f"{hint}.b", f"fcmp {'olt' if op == 'min' else 'ogt'} {t} {b}, {a}")
            return self.w.op(hint, f"select {cond} {closer}, {t} {b}, {t} {a}")
        if self.x86_bits and _maybe_nan(a) and (lanes == 1 or lanes * dtype.bits >= 128):
            picked = self._x86_minmax(op, dtype, lanes, b, a, hint)
            nan = self.w.op(f"{hint}.nan", f"fcmp uno {t} {a}, {a}")
            return self.w.op(hint, f"select {cond} {nan}, {t} {b}, {t} {picked}")
        closer = self.w.op(f"{hint}.b", f"fcmp {'olt' if op == 'min' else 'ogt'} {t} {b}, {a}")
        picked = self.w.op(f"{hint}.ab", f"select {cond} {closer}, {t} {b}, {t} {a}")
        nan = self.w.op(f"{hint}.nan", f"fcmp uno {t} {a}, {a}")
        return self.w.op(hint, f"select {cond} {nan}, {t} {b}, {t} {picked}")

    def _x86_minmax(self, op: str, dtype: DType, lanes: int, a: str, b: str, hint: str) -> str:
        """The instruction, which is ``a`` < ``b`` ? ``a`` : ``b``. Where a select follows, LLVM makes a comparison of it, and of a single
        number's a jump that is often foretold wrongly; here none does."""
        letter, sse = {32: "s", 64: "d"}[dtype.bits], {32: "sse", 64: "sse2"}[dtype.bits]
        if lanes == 1:
            t = llvm_type(dtype, 128 // dtype.bits)
            pair = [(t, self.w.op("low", f"insertelement {t} poison, {llvm_type(dtype)} {v}, i64 0")) for v in (a, b)]
            return self.w.op(hint, f"extractelement {t} {self.call(hint, f'llvm.x86.{sse}.{op}.s{letter}', t, pair)}, i64 0")
        bits = min(self.x86_bits, lanes * dtype.bits)
        n = bits // dtype.bits
        name = {128: f"llvm.x86.{sse}.{op}.p{letter}", 256: f"llvm.x86.avx.{op}.p{letter}.256"}.get(
            bits, f"llvm.x86.avx512.{op}.p{letter}.512"
        )
        part, whole = llvm_type(dtype, n), llvm_type(dtype, lanes)
        parts: list[str] = []
        for k in range(0, lanes, n):
            pieces = [a, b]
            if n < lanes:
                order = ", ".join(f"i32 {k + j}" for j in range(n))
                pieces = [self.w.op("part", f"shufflevector {whole} {v}, {whole} poison, <{n} x i32> <{order}>") for v in pieces]
            arguments = [(part, v) for v in pieces] + ([("i32", "4")] if bits == 512 else [])  # 4: rounds as the machine is set
            parts.append(self.call(hint, name, part, arguments))
        while len(parts) > 1:
            size = lanes // len(parts)
            order = ", ".join(f"i32 {j}" for j in range(2 * size))
            t = llvm_type(dtype, size)
            parts = [
                self.w.op("parts", f"shufflevector {t} {x}, {t} {y}, <{2 * size} x i32> <{order}>")
                for x, y in zip(parts[::2], parts[1::2], strict=True)
            ]
        return parts[0]

    def _cast(self, source: DType, to: DType, lanes: int, value: str, hint: str) -> str:
        a, b = llvm_type(source, lanes), llvm_type(to, lanes)
        if source.is_float and to.is_float:
            return (
                value
                if source.bits == to.bits
                else self.w.op(hint, f"{'fpext' if to.bits > source.bits else 'fptrunc'} {a} {value} to {b}")
            )
        if source.is_float:
            return self._float_to_int(source, to, lanes, value, hint)
        if to.is_float:
            return self.w.op(hint, f"{'sitofp' if source.is_signed else 'uitofp'} {a} {value} to {b}")
        if source.bits == to.bits:
            return value
        name = "trunc" if to.bits < source.bits else "sext" if source.is_signed else "zext"
        return self.w.op(hint, f"{name} {a} {value} to {b}")

    def _hidden(self, of: DType, lanes: int, value: str, hint: str) -> str:
        """The value by another way. LLVM 22 makes one instruction for x86 of a shifted product that is cut to 16 bits, and loses all of it
        where the shift is by 32 or more; it must not see that the one follows the other."""
        w, t = self.w, llvm_type(of, lanes)
        zero = w.once("zero", f'call {llvm_type(of)} asm "", "=r,0"({llvm_type(of)} 0)')
        one = w.once("zero.one", f"insertelement {t} poison, {llvm_type(of)} {zero}, i64 0")
        zeros = w.once("zeros", f"shufflevector {t} {one}, {t} poison, <{lanes} x i32> zeroinitializer")
        return w.op(hint, f"or {t} {value}, {zeros}")

    def _float_to_int(self, source: DType, to: DType, lanes: int, value: str, hint: str) -> str:
        """Truncated and saturated, NaN gives 0. LLVM's saturating intrinsic takes vectors apart; here the value is brought into range
        first. A comparison with NaN is false, so that it comes out as the least number."""
        w, a, b = self.w, llvm_type(source, lanes), llvm_type(to, lanes)
        cond = "i1" if lanes == 1 else f"<{lanes} x i1>"
        top = _last_float(source, to.max)
        low, high = self.splat(source, lanes, to.min), self.splat(source, lanes, top)
        inside = w.op(f"{hint}.in", f"select {cond} {w.op(f'{hint}.over', f'fcmp ogt {a} {value}, {low}')}, {a} {value}, {a} {low}")
        inside = w.op(f"{hint}.in", f"select {cond} {w.op(f'{hint}.under', f'fcmp olt {a} {inside}, {high}')}, {a} {inside}, {a} {high}")
        result = w.op(hint, f"fpto{'s' if to.is_signed else 'u'}i {a} {inside} to {b}")
        if top < to.max:
            above = w.op(f"{hint}.above", f"fcmp ogt {a} {value}, {high}")
            result = w.op(hint, f"select {cond} {above}, {b} {self.splat(to, lanes, to.max)}, {b} {result}")
        if to.is_signed:
            number = w.op(f"{hint}.number", f"fcmp ord {a} {value}, {value}")
            return w.op(hint, f"select {cond} {number}, {b} {result}, {b} {self.splat(to, lanes, 0)}")
        return w.op(hint, f"freeze {b} {result}")  # LLVM 22 must not see that it is a conversion: it aborts on its minimum with 0

    def _math(self, instr: Instr, of: DType, t: str, lanes: int, args: list[str], hint: str) -> str:
        name = instr.attr
        assert isinstance(name, str)
        if name == "isnan":
            return self.w.op(hint, f"fcmp uno {t} {args[0]}, {args[0]}")
        if name in ("isinf", "isfinite"):
            size = self.call(f"{hint}.abs", f"llvm.fabs.{suffix(of, lanes)}", t, [(t, args[0])])
            return self.w.op(hint, f"fcmp {'oeq' if name == 'isinf' else 'olt'} {t} {size}, {self.splat(of, lanes, float('inf'))}")
        return self.call(hint, f"llvm.{_MATH[name]}.{suffix(of, lanes)}", t, [(t, a) for a in args], self.fast)

    def _bits(self, instr: Instr, of: DType, t: str, lanes: int, args: list[str], hint: str) -> str:
        name, s = instr.attr, suffix(of, lanes)
        if name == "popcount":
            result = self.call(hint, f"llvm.ctpop.{s}", t, [(t, args[0])])
        elif name in ("clz", "ctz"):
            result = self.call(hint, f"llvm.{'ctlz' if name == 'clz' else 'cttz'}.{s}", t, [(t, args[0]), ("i1", "false")])
        elif name in ("rotl", "rotr"):
            result = self.call(hint, f"llvm.fsh{name[3]}.{s}", t, [(t, args[0]), (t, args[0]), (t, args[1])])
        elif name in ("add_sat", "sub_sat"):
            result = self.call(hint, f"llvm.{'s' if of.is_signed else 'u'}{name[:3]}.sat.{s}", t, [(t, args[0]), (t, args[1])])
        else:
            assert name == "mulhi", name
            result = self._mulhi(of, lanes, args, hint)
        return self._cast(of, _type(instr), lanes, result, hint)

    def _mulhi(self, of: DType, lanes: int, args: list[str], hint: str) -> str:
        w, n = self.w, of.bits
        t = llvm_type(of, lanes)
        wide = f"i{2 * n}" if lanes == 1 else f"<{lanes} x i{2 * n}>"
        ext, shr = ("sext", "ashr") if of.is_signed else ("zext", "lshr")
        a, b = (w.op(f"{hint}.wide", f"{ext} {t} {v} to {wide}") for v in args)
        product = w.op(f"{hint}.product", f"mul {wide} {a}, {b}")
        count = str(n) if lanes == 1 else f"splat (i{2 * n} {n})"
        high = w.op(f"{hint}.high", f"{shr} {wide} {product}, {count}")
        return w.op(hint, f"trunc {wide} {high} to {t}")


def _is_short(dtype: DType) -> bool:
    return dtype.is_int and dtype.bits == 16


def _is_high(cast: Instr) -> bool:
    """Whether a value of 32 or 64 bits that is cast may be the high part of a product, as far as LLVM can tell."""
    work = [cast.args[0]]
    while work:
        value = work.pop()
        if value.op in ("rshift", "quot") or (value.op == "bits" and value.attr == "mulhi"):
            return True
        if value.type is not None and value.type.is_int and value.type.bits > 16:
            work += value.args[1:] if value.op == "select" else value.args if value.op in ("cast", "bitcast") else ()
    return False


def _last_float(dtype: DType, limit: int) -> float:
    """The largest value of the float type that is not above the integer 2^n - 1."""
    digits = 24 if dtype.bits == 32 else 53
    over = max(0, limit.bit_length() - digits)
    return float(limit >> over << over)


def _type(instr: Instr) -> DType:
    assert instr.type is not None
    return instr.type


def _maybe_nan(text: str) -> bool:
    """Whether a value's text is no constant."""
    return text.startswith("%")
