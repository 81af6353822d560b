"""The arithmetic of kernels against NumPy bit for bit, and against exact rational arithmetic where NumPy has no answer."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tack.ir import arith
from tack.runtime.host_scalar import cast as host_cast
from tack.runtime.host_scalar import numpy_type
from tack.types import ARRAY_DTYPES, BOOL, DType, f32, f64, i8, i32, i64, u8, u64

INTS = [t for t in ARRAY_DTYPES if t.is_int]
FLOATS = (f32, f64)
FLOAT_UFUNCS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
}


def bits_of(x: float) -> bytes:
    return b"nan" if math.isnan(x) else struct.pack("<d", x)


def floats(t: DType) -> st.SearchStrategy[float]:
    return st.floats(width=t.bits) | st.sampled_from([0.0, -0.0, 1.0, -1.0, 3.0, math.inf, -math.inf, math.nan])  # type: ignore[arg-type]


def ints(t: DType) -> st.SearchStrategy[int]:
    return st.integers(t.min, t.max) | st.sampled_from([t.min, t.max, 0, 1, t.min + 1])


@pytest.mark.parametrize("t", FLOATS, ids=str)
@pytest.mark.parametrize("op", FLOAT_UFUNCS)
@given(data=st.data())
def test_float_operations_are_numpys(t: DType, op: str, data: Any) -> None:
    function = FLOAT_UFUNCS[op]
    a, b = data.draw(floats(t)), data.draw(floats(t))
    with np.errstate(all="ignore"):
        expected = float(function(numpy_type(t)(a), numpy_type(t)(b)))  # type: ignore[call-arg]
    assert bits_of(arith.BINARY[op](a, b, t)) == bits_of(expected)


@pytest.mark.parametrize("t", INTS, ids=str)
@given(data=st.data())
def test_integers_wrap_and_never_trap(t: DType, data: Any) -> None:
    a, b = data.draw(ints(t)), data.draw(ints(t))
    make: Any = numpy_type(t)
    with np.errstate(all="ignore"):
        for op, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
            assert arith.BINARY[op](a, b, t) == int(function(make(a), make(b)))
        assert arith.UNARY["neg"](a, t) == int(np.negative(make(a)))
        assert arith.UNARY["not"](a, t) == int(np.invert(make(a)))
    if b == 0:
        assert arith.BINARY["floordiv"](a, b, t) == arith.BINARY["mod"](a, b, t) == 0
    else:
        assert arith.BINARY["floordiv"](a, b, t) == arith.wrap(a // b, t)
        assert arith.BINARY["mod"](a, b, t) == a % b


def test_integer_corners() -> None:
    assert arith.BINARY["floordiv"](i32.min, -1, i32) == i32.min
    assert arith.BINARY["mod"](i32.min, -1, i32) == 0
    assert arith.BINARY["pow"](3, 41, i32) == arith.wrap(3**41, i32)
    assert arith.BINARY["pow"](0, 0, i8) == 1
    assert arith.BINARY["pow"](1, -1, i8) == arith.BINARY["pow"](2, -5, i64) == 0
    assert [arith.BINARY["shl"](1, n, i8) for n in (0, 6, 7, 8, -1)] == [1, 64, -128, 0, 0]
    assert [arith.BINARY["shr"](-128, n, i8) for n in (0, 1, 7, 8, -1)] == [-128, -64, -1, -1, -1]
    assert [arith.BINARY["shr"](255, n, u8) for n in (1, 7, 8)] == [127, 1, 0]
    assert arith.UNARY["abs"](-128, i8) == -128


def test_minimum_and_maximum_prefer_numbers_and_the_first() -> None:
    least, most = arith.BINARY["min"], arith.BINARY["max"]
    assert least(math.nan, 1.0, f32) == least(1.0, math.nan, f32) == most(math.nan, 1.0, f32) == 1.0
    assert math.isnan(least(math.nan, math.nan, f32))
    for f in (least, most):
        assert bits_of(f(0.0, -0.0, f64)) == bits_of(0.0)
        assert bits_of(f(-0.0, 0.0, f64)) == bits_of(-0.0)


@pytest.mark.parametrize("t", FLOATS, ids=str)
@given(data=st.data())
def test_fma_rounds_the_exact_value_once(t: DType, data: Any) -> None:
    a, b, c = (data.draw(floats(t)) for _ in range(3))
    result = arith.fma(a, b, c, t)
    if not all(map(math.isfinite, (a, b, c))):
        exact: float = c if math.isinf(c) and math.isfinite(a) and math.isfinite(b) else a * b + c
        assert bits_of(result) == bits_of(exact)
        return
    value = Fraction(a) * Fraction(b) + Fraction(c)
    if math.isinf(result):  # half a unit beyond the largest finite value
        unit = Fraction(2) ** (104 if t == f32 else 971)
        assert abs(value) >= Fraction(float(np.finfo(numpy_type(t)).max)) + unit / 2
        return
    error = abs(Fraction(result) - value)
    for direction in (math.inf, -math.inf):  # no neighbour is closer
        with np.errstate(over="ignore"):
            other = float(np.nextafter(numpy_type(t)(result), numpy_type(t)(direction)))  # type: ignore[call-arg, call-overload]
        if math.isfinite(other):
            assert error <= abs(Fraction(other) - value)


def test_fma_corners() -> None:
    tiny = math.ldexp(1.0, -149)
    assert arith.fma(tiny, 0.5, 0.0, f32) == 0.0  # a tie goes to even
    assert arith.fma(tiny, 0.75, 0.0, f32) == tiny
    assert arith.fma(math.ldexp(1.0, 127), 2.0, -math.ldexp(1.0, 127), f32) == math.ldexp(1.0, 127)
    assert arith.fma(math.ldexp(1.0, 127), 2.0, 0.0, f32) == math.inf
    assert bits_of(arith.fma(-1.0, 0.0, -0.0, f64)) == bits_of(-0.0)
    assert bits_of(arith.fma(2.0, 3.0, -6.0, f64)) == bits_of(0.0)
    assert bits_of(arith.fma(-5e-324, 5e-324, 0.0, f64)) == bits_of(-0.0)
    assert math.isnan(arith.fma(math.inf, 0.0, 1.0, f64))


@pytest.mark.parametrize("t", INTS, ids=str)
@given(value=st.floats() | st.floats(-300, 300))
def test_float_to_integer_truncates_and_saturates(t: DType, value: float) -> None:
    result = arith.cast(value, t)
    if math.isnan(value):
        assert result == 0
    elif value <= t.min or value >= t.max:
        assert result == (t.min if value < 0 else t.max) or t.min <= value <= t.max
    else:
        assert result == int(value)


@given(value=st.integers(-(1 << 63), (1 << 64) - 1))
def test_integer_to_float_rounds_once(value: int) -> None:
    assert arith.cast(value, f64) == float(value)
    exact: Any = np.uint64 if value > i64.max else np.int64
    assert arith.cast(value, f32) == float(np.float32(exact(value)))


def test_integer_to_f32_is_not_rounded_twice() -> None:
    value = (1 << 60) + (1 << 36) + 1  # through f64 the last 1 is lost, and the tie goes down
    assert arith.cast(value, f32) == float((1 << 60) + (1 << 37))


@pytest.mark.parametrize("t", INTS, ids=str)
@given(data=st.data())
def test_bit_functions(t: DType, data: Any) -> None:
    a, b = data.draw(ints(t)), data.draw(ints(t))
    digits = f"{a & ((1 << t.bits) - 1):0{t.bits}b}"
    turn = b % t.bits
    assert arith.BITS["popcount"](a, t) == digits.count("1")
    assert arith.BITS["clz"](a, t) == len(digits) - len(digits.lstrip("0"))
    assert arith.BITS["ctz"](a, t) == len(digits) - len(digits.rstrip("0"))
    assert arith.BITS["rotl"](a, b, t) == arith.wrap(int(digits[turn:] + digits[:turn], 2), t)
    assert arith.BITS["rotr"](a, b, t) == arith.wrap(int(digits[len(digits) - turn :] + digits[: len(digits) - turn], 2), t)
    assert arith.BITS["mulhi"](a, b, t) == (a * b) >> t.bits
    assert arith.BITS["add_sat"](a, b, t) == min(max(a + b, t.min), t.max)
    assert arith.BITS["sub_sat"](a, b, t) == min(max(a - b, t.min), t.max)


def test_bitcast() -> None:
    assert arith.bitcast(1.0, f32, i32) == 0x3F800000
    assert arith.bitcast(-1, i64, u64) == u64.max
    assert bits_of(arith.bitcast(i64.min, i64, f64)) == bits_of(-0.0)


@pytest.mark.parametrize("t", ARRAY_DTYPES, ids=str)
@pytest.mark.parametrize("op", ["add", "mul", "min", "max", "and", "or", "xor"])
def test_identities_change_nothing(t: DType, op: str) -> None:
    if t.is_float and op in ("and", "or", "xor"):
        return
    for value in (-0.0, 0.0, 1.5, math.inf, math.nan) if t.is_float else (t.min, t.max, 0, 1):
        assert bits_of(arith.BINARY[op](value, arith.identity(op, t), t)) == bits_of(value)
        assert bits_of(arith.BINARY[op](arith.identity(op, t), value, t)) == bits_of(value)


def test_host_cast_makes_numpy_scalars() -> None:
    assert host_cast(300, u8) == np.uint8(44)
    assert type(host_cast(np.float32(2.75), i32)) is np.int32
    assert host_cast(-2.75, i32) == -2
    assert host_cast(1e30, i32) == i32.max
    assert host_cast(math.nan, i64) == 0
    assert host_cast(1 << 70, u64) == 0
    assert host_cast(np.int64(-1), u64) == u64.max
    assert host_cast(True, f32) == np.float32(1.0)
    assert type(host_cast(0.5, BOOL)) is np.bool_
    assert host_cast(0.5, BOOL)
    assert f32(1 / 3) == np.float32(1 / 3)
    with pytest.raises(TypeError, match=r"tack\.f32\(\) takes a number, got str"):
        host_cast("1", f32)
    with pytest.raises(TypeError, match=r"use \.astype\(tack\.i8\) for arrays"):
        host_cast(np.zeros(3), i8)
