"""How single operations are spelled in primitive ones: Python's division, shifts by any count, integer powers."""

from __future__ import annotations

from ..ir.nodes import Block, Instr, Loc, Node, Var, While
from ..types import BOOL, DType, u8, u16, u32, u64

__all__ = ["Builder", "floor_divide", "int_pow", "modulo", "shift"]

_UNSIGNED = {8: u8, 16: u16, 32: u32, 64: u64}
_UNROLLED_POWER = 64  # constant exponents up to here become a chain of products


class Builder:
    """Appends instructions to a list."""

    def __init__(self, out: list[Node] | None = None, loc: Loc | None = None) -> None:
        self.out: list[Node] = [] if out is None else out
        self.loc = loc

    def emit(self, op: str, dtype: DType | None, args: tuple[Instr, ...] = (), attr: object = None) -> Instr:
        instr = Instr(op, dtype, args, attr, self.loc)  # type: ignore[arg-type]
        self.out.append(instr)
        return instr

    def const(self, dtype: DType, value: int | float | bool) -> Instr:
        return self.emit("const", dtype, (), value)

    def like(self, other: Instr, value: int | float) -> Instr:
        """A constant of the other's type."""
        return self.const(_type(other), float(value) if _type(other).is_float else value)

    def _same(self, op: str, a: Instr, b: Instr) -> Instr:
        return self.emit(op, a.type, (a, b))

    def add(self, a: Instr, b: Instr) -> Instr:
        return self._same("add", a, b)

    def sub(self, a: Instr, b: Instr) -> Instr:
        return self._same("sub", a, b)

    def mul(self, a: Instr, b: Instr) -> Instr:
        return self._same("mul", a, b)

    def compare(self, op: str, a: Instr, b: Instr) -> Instr:
        return self.emit(op, BOOL, (a, b))

    def select(self, cond: Instr, a: Instr, b: Instr) -> Instr:
        return self.emit("select", a.type, (cond, a, b))

    def cast(self, a: Instr, dtype: DType) -> Instr:
        return a if a.type == dtype else self.emit("cast", dtype, (a,))

    def freeze(self, a: Instr) -> Instr:
        """``a``, or any value where it is poison, as in a lane that is off: to divide by poison may trap, whatever is tested before."""
        return self.emit("freeze", a.type, (a,))

    def both(self, a: Instr, b: Instr) -> Instr:
        return self.emit("and", BOOL, (a, b))

    def either(self, a: Instr, b: Instr) -> Instr:
        return self.emit("or", BOOL, (a, b))


def _type(value: Instr) -> DType:
    assert value.type is not None
    return value.type


def _constant(value: Instr) -> int | None:
    return int(value.attr) if value.op == "const" and isinstance(value.attr, int) else None


def floor_divide(b: Builder, x: Instr, y: Instr, rest: Instr | None = None) -> Instr:
    """x // y. Of floats: numpy.floor_divide, ``rest`` being fmod(x, y). Of ints: x // 0 is 0, MIN // -1 wraps."""
    t = _type(x)
    if t.is_float:
        assert rest is not None
        return _float_floor_divide(b, x, y, rest)
    zero, one = b.const(t, 0), b.const(t, 1)
    k = _constant(y)
    if k == 0:
        return zero
    if k is not None and k > 0 and k & (k - 1) == 0:
        return x if k == 1 else b.emit("rshift", t, (x, b.const(t, k.bit_length() - 1)))
    if not t.is_signed:
        if k is not None:
            return b.emit("quot", t, (x, y))
        y = b.freeze(y)
        none = b.compare("eq", y, zero)
        return b.select(none, zero, b.emit("quot", t, (x, b.select(none, one, y))))
    if k == -1:
        return b.emit("neg", t, (x,))
    if k is not None:
        q = b.emit("quot", t, (x, y))
        r = b.sub(x, b.mul(q, y))
        away = b.compare("lt" if k > 0 else "gt", r, zero)
        return b.sub(q, b.cast(away, t))
    y = b.freeze(y)
    none, minus = b.compare("eq", y, zero), b.compare("eq", y, b.const(t, -1))
    safe = b.select(b.either(none, minus), one, y)
    q = b.emit("quot", t, (x, safe))
    q = b.sub(q, b.cast(_other_side(b, b.sub(x, b.mul(q, safe)), safe), t))
    return b.select(none, zero, b.select(minus, b.emit("neg", t, (x,)), q))


def modulo(b: Builder, x: Instr, y: Instr, rest: Instr | None = None) -> Instr:
    """x % y, with the divisor's sign. Of floats: numpy.remainder, ``rest`` being fmod(x, y). Of ints: x % 0 is 0."""
    t = _type(x)
    if t.is_float:
        assert rest is not None
        nonzero = b.compare("ne", rest, b.like(rest, 0))
        flip = b.both(nonzero, _signs_differ(b, y, rest))
        signed = b.select(nonzero, b.select(flip, b.add(rest, y), rest), b.emit("math", t, (b.like(x, 0), y), "copysign"))
        return b.select(b.compare("eq", y, b.like(y, 0)), rest, signed)
    zero = b.const(t, 0)
    k = _constant(y)
    if k in (0, 1, -1):
        return zero
    if k is not None and k > 0 and k & (k - 1) == 0:
        return b.emit("and", t, (x, b.const(t, k - 1)))
    if k is None:
        y = b.freeze(y)
    if not t.is_signed:
        return b.emit("rem", t, (x, y if k is not None else b.select(b.compare("eq", y, zero), b.const(t, 1), y)))
    if k is not None:
        r = b.emit("rem", t, (x, y))
        return b.select(b.compare("lt" if k > 0 else "gt", r, zero), b.add(r, y), r)
    unsafe = b.either(b.compare("eq", y, zero), b.compare("eq", y, b.const(t, -1)))
    safe = b.select(unsafe, b.const(t, 1), y)
    r = b.emit("rem", t, (x, safe))
    return b.select(_other_side(b, r, safe), b.add(r, safe), r)


def _other_side(b: Builder, rest: Instr, divisor: Instr) -> Instr:
    """Whether a remainder is on the other side of zero than the divisor: the truncated quotient is one too many then."""
    zero = b.const(_type(rest), 0)
    return b.both(b.compare("ne", rest, zero), b.compare("lt", b.emit("xor", rest.type, (rest, divisor)), zero))


def _signs_differ(b: Builder, x: Instr, y: Instr) -> Instr:
    return b.emit("xor", BOOL, (b.compare("lt", x, b.like(x, 0)), b.compare("lt", y, b.like(y, 0))))


def _float_floor_divide(b: Builder, x: Instr, y: Instr, rest: Instr) -> Instr:
    t = _type(x)
    ratio = b.emit("div", t, (x, y))
    whole = b.emit("div", t, (b.sub(x, rest), y))  # very nearly an integer
    flip = b.both(b.compare("ne", rest, b.like(rest, 0)), _signs_differ(b, y, rest))
    whole = b.select(flip, b.sub(whole, b.like(x, 1)), whole)
    floor = b.emit("math", t, (whole,), "floor")
    floor = b.select(b.compare("gt", b.sub(whole, floor), b.like(x, 0.5)), b.add(floor, b.like(x, 1)), floor)
    signed = b.select(b.compare("ne", whole, b.like(x, 0)), floor, b.emit("math", t, (b.like(x, 0), ratio), "copysign"))
    return b.select(b.compare("eq", y, b.like(y, 0)), ratio, signed)


def shift(b: Builder, op: str, x: Instr, count: Instr) -> Instr:
    """Shifts where counts outside [0, N) give 0, or the sign in a signed right shift."""
    t = _type(x)
    left = op == "shl"
    primitive = "lshift" if left else "rshift"
    k = _constant(count)
    if k is not None:
        if 0 <= k < t.bits:
            return b.emit(primitive, t, (x, count))
        return b.emit("rshift", t, (x, b.const(t, t.bits - 1))) if t.is_signed and not left else b.const(t, 0)
    unsigned = _UNSIGNED[t.bits]
    fits = b.compare("lt", b.cast(count, unsigned), b.const(unsigned, t.bits))
    if t.is_signed and not left:
        return b.emit(primitive, t, (x, b.select(fits, count, b.const(t, t.bits - 1))))
    return b.select(fits, b.emit(primitive, t, (x, b.select(fits, count, b.const(t, 0)))), b.const(t, 0))


def int_pow(b: Builder, x: Instr, y: Instr) -> Instr:
    """x ** y modulo 2^N by squaring; a negative exponent gives 0."""
    t = _type(x)
    k = _constant(y)
    if k is not None and k <= _UNROLLED_POWER:
        if k < 0:
            return b.const(t, 0)
        result: Instr | None = None
        while k:
            if k & 1:
                result = x if result is None else b.mul(result, x)
            k >>= 1
            if k:
                x = b.mul(x, x)
        return result or b.const(t, 1)
    power, base, left = Var("power", t), Var("base", t), Var("exponent", t)
    b.emit("set", None, (b.const(t, 1),), power)
    b.emit("set", None, (x,), base)
    b.emit("set", None, (y,), left)
    test, body = Builder(loc=b.loc), Builder(loc=b.loc)
    more = test.compare("gt", test.emit("get", t, (), left), test.const(t, 0))
    now, square, rest = body.emit("get", t, (), power), body.emit("get", t, (), base), body.emit("get", t, (), left)
    odd = body.compare("ne", body.emit("and", t, (rest, body.const(t, 1))), body.const(t, 0))
    body.emit("set", None, (body.select(odd, body.mul(now, square), now),), power)
    body.emit("set", None, (body.mul(square, square),), base)
    body.emit("set", None, (body.emit("rshift", t, (rest, body.const(t, 1))),), left)
    b.out.append(While(Block(test.out), more, Block(body.out), Block(), b.loc))
    result = b.emit("get", t, (), power)
    return b.select(b.compare("lt", y, b.const(t, 0)), b.const(t, 0), result) if t.is_signed else result
