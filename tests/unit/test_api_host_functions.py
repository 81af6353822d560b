"""tack's functions and casts as ordinary Python sees them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tack
from tack.intrinsics import ATOMICS, INTRINSICS, MATH, WORKGROUP


def test_the_compiler_knows_every_function_and_no_other() -> None:
    from tack.frontend.names import FUNCTIONS

    assert set(INTRINSICS) == set(FUNCTIONS) - {str(t)[5:] for t in tack.types.ARRAY_DTYPES}
    for name, function in INTRINSICS.items():
        assert getattr(tack, name) is function and function.__name__ == name and function.__doc__.startswith(name)


def test_star_import_hides_no_builtin() -> None:
    import builtins

    assert not set(tack.__all__) & set(dir(builtins))
    assert set(tack.__all__) <= set(dir(tack)) and len(tack.__all__) == len(set(tack.__all__))


ONE_ARGUMENT = {
    "sqrt": np.sqrt, "cbrt": np.cbrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "round": np.rint, "fabs": np.fabs, "abs": np.abs, "erf": math.erf, "erfc": math.erfc,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_ARGUMENT)
@pytest.mark.parametrize("x", [0.0, -0.0, 0.5, -0.5, 2.5, 3.5, -7.25, 1e300, math.inf, -math.inf, math.nan])
def test_floats(name: str, x: float) -> None:
    with np.errstate(all="ignore"):
        want = float(ONE_ARGUMENT[name](np.float64(x)))
    got = getattr(tack, name)(x)
    assert type(got) is float
    assert got == want or (math.isnan(got) and math.isnan(want))
    with np.errstate(all="ignore"):
        narrow = np.float32(x)
        rounded = np.float32(ONE_ARGUMENT[name](np.float64(narrow)))
    single = getattr(tack, name)(narrow)
    assert type(single) is np.float32
    np.testing.assert_array_equal(single, rounded)


def test_types_of_results() -> None:
    assert type(tack.sqrt(4)) is float
    assert type(tack.sqrt(np.int32(4))) is float
    assert type(tack.atan2(np.float32(1), 2)) is np.float32
    assert type(tack.atan2(np.float32(1), np.float64(2))) is np.float64
    assert tack.hypot(3, 4) == 5.0 and tack.copysign(2.0, -0.0) == -2.0 and tack.fmod(-7.0, 3.0) == -1.0


def test_predicates() -> None:
    assert tack.isnan(math.nan) is True and tack.isnan(np.float32(1)) is False
    assert tack.isinf(-math.inf) and not tack.isinf(0.0) and tack.isfinite(1) and not tack.isfinite(math.nan)


def test_min_and_max_prefer_numbers_and_the_first_of_equals() -> None:
    assert tack.min(math.nan, 2.0) == 2.0 and tack.max(2.0, math.nan) == 2.0 and tack.min(3, 1, 2) == 1
    assert math.isnan(tack.min(math.nan, math.nan))
    assert math.copysign(1, tack.min(0.0, -0.0)) == 1 and math.copysign(1, tack.max(-0.0, 0.0)) == -1
    assert type(tack.max(np.int8(3), 2)) is np.int8 and type(tack.max(1, 2.5)) is float


def test_integers() -> None:
    assert tack.pow(np.int32(3), 40) == np.int32((3**40 + 2**31) % 2**32 - 2**31)
    assert tack.pow(2, -1) == 0 and tack.pow(2, 10) == 1024 and tack.pow(2.0, -1) == 0.5
    assert tack.divmod(-7, 2) == (-4, 1) and tack.divmod(7, 0) == (0, 0)
    assert tack.divmod(np.int8(-128), np.int8(-1)) == (-128, 0)
    assert tack.divmod(7.5, -2.0) == (-4.0, -0.5)
    assert tack.abs(np.int8(-128)) == -128 and tack.abs(-3) == 3 and type(tack.abs(np.int8(-3))) is np.int8


def test_bits() -> None:
    assert tack.popcount(np.uint8(255)) == 8 and tack.popcount(-1) == 64
    assert tack.clz(np.int16(1)) == 15 and tack.clz(np.uint32(0)) == 32 and tack.ctz(np.uint8(8)) == 3 and tack.ctz(np.int8(0)) == 8
    assert tack.rotl(np.uint8(0x81), 1) == 3 and tack.rotr(np.uint8(3), 9) == 0x81 and tack.rotl(np.int8(-127), 1) == 3
    assert tack.mulhi(np.uint32(2**31), np.uint32(6)) == 3 and tack.mulhi(np.int64(-1), np.int64(1)) == -1
    assert tack.add_sat(np.int8(100), np.int8(100)) == 127 and tack.sub_sat(np.uint8(3), np.uint8(5)) == 0
    assert tack.bitcast(np.float32(1), tack.u32) == 0x3F800000 and type(tack.bitcast(np.uint64(0), np.float64)) is np.float64
    with pytest.raises(TypeError, match="one size"):
        tack.bitcast(np.float32(1), tack.u64)
    with pytest.raises(TypeError, match="NumPy scalar"):
        tack.bitcast(1.0, tack.u64)
    with pytest.raises(TypeError, match="integers"):
        tack.popcount(1.0)


FINITE = st.floats(allow_nan=False, allow_infinity=False)


def exactly_rounded(exact: Fraction, kind: Any) -> float:
    """The nearest number of the type by trying the neighbours; ties go to the even one."""
    try:
        start = kind(exact.numerator / exact.denominator)
    except OverflowError:
        start = kind(math.inf if exact > 0 else -math.inf)
    if not np.isfinite(start):
        return float(start)
    candidates = [start, np.nextafter(start, kind(-math.inf)), np.nextafter(start, kind(math.inf))]
    finite = [c for c in candidates if np.isfinite(c)]
    best = min(abs(Fraction(float(c)) - exact) for c in finite)
    nearest = [c for c in finite if abs(Fraction(float(c)) - exact) == best]
    even = [c for c in nearest if int(c.view({4: np.uint32, 8: np.uint64}[c.itemsize])) % 2 == 0]
    return float((even or nearest)[0])


@given(FINITE, FINITE, FINITE)
def test_fma_rounds_once(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact and abs(exact) < Fraction(2) ** 1023:
        assert tack.fma(a, b, c) == exactly_rounded(exact, np.float64)


@given(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
)
def test_fma_of_f32_rounds_once(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact and abs(exact) < Fraction(2) ** 127:
        assert float(tack.fma(np.float32(a), np.float32(b), np.float32(c))) == exactly_rounded(exact, np.float32)


def test_fma_of_specials() -> None:
    assert tack.fma(math.inf, 1.0, 2.0) == math.inf and math.isnan(tack.fma(math.inf, 0.0, 1.0))
    assert math.copysign(1, tack.fma(-0.0, 1.0, -0.0)) == -1 and math.copysign(1, tack.fma(1.0, 1.0, -1.0)) == 1
    assert tack.fma(np.float32(1 + 2**-12), np.float32(1 + 2**-12), np.float32(-1 - 2**-11)) == np.float32(2**-24)


def test_loops() -> None:
    assert list(tack.ndrange(2, (1, 3))) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert list(tack.ndrange(3)) == [0, 1, 2] and list(tack.ndrange(2, -1)) == []
    assert list(tack.sequential(1, 7, 3)) == [1, 4] and list(tack.sequential(0, 3, 0)) == []
    with pytest.raises(ValueError, match="2\\^63"):
        tack.ndrange(2**32, 2**31)
    with pytest.raises(TypeError, match="1 to 4"):
        tack.ndrange(1, 1, 1, 1, 1)


@pytest.mark.parametrize("name", sorted(ATOMICS | WORKGROUP | {"local_array", "local_array_like"}))
def test_kernel_only_functions_say_so(name: str) -> None:
    with pytest.raises(RuntimeError, match=rf"tack\.{name}\(\) can only be called in a kernel"):
        getattr(tack, name)(tack.zeros(1), 0, 1)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match=r"tack\.sqrt\(x\) takes 1 argument, got 2"):
        tack.sqrt(1, 2)
    with pytest.raises(TypeError, match="at least 2 arguments, got 1"):
        tack.min(1)
    with pytest.raises(TypeError, match="keyword"):
        tack.sqrt(x=1)
    with pytest.raises(TypeError, match="call it in a kernel"):
        tack.exp(tack.zeros(3))
    with pytest.raises(TypeError, match="numbers"):
        tack.exp("1")


def test_every_math_function_answers_numbers() -> None:
    for name in MATH - {"bitcast"}:
        count = INTRINSICS[name].signature.replace(", ...", "").count(",") + 1
        result = getattr(tack, name)(
            *[np.int32(1) if name in ("rotl", "rotr", "popcount", "clz", "ctz", "mulhi", "add_sat", "sub_sat") else 0.5] * count
        )
        assert isinstance(result, (float, bool, tuple, np.integer))


def test_constant_makes_a_strong_number() -> None:
    assert type(tack.constant(3, tack.u8)) is np.uint8 and tack.constant(0.1, tack.f32) == np.float32(0.1)
    with pytest.raises(OverflowError, match=r"256.*tack\.u8"):
        tack.constant(256, tack.u8)
    with pytest.raises(TypeError, match="float"):
        tack.constant(1.5, tack.i32)


def test_casts_on_the_host() -> None:
    assert type(tack.i8(300)) is np.int8 and tack.i8(300) == 44 and tack.u8(-1) == 255
    assert tack.i32(3e9) == 2**31 - 1 and tack.u16(-5.7) == 0 and tack.i64(math.nan) == 0 and tack.i16(-2.9) == -2
    assert type(tack.f32(0.1)) is np.float32 and tack.f64(np.float32(0.1)) == float(np.float32(0.1))
    assert tack.f32(2**63 + 2**39 + 1) == np.float32(2.0**63 + 2.0**40)
    with pytest.raises(TypeError):
        tack.f32(tack.zeros(2))


def test_funcs_run_as_python() -> None:
    @tack.func
    def length(x, y=2.0):
        """Of a vector."""
        return tack.sqrt(x * x + y * y)

    assert length(np.float32(3), y=np.float32(4)) == np.float32(5) and type(length(np.float32(1))) is np.float32
    assert (
        length.__name__ == "length" and length.__doc__ == "Of a vector." and length.__module__ == __name__ and length.__wrapped__(3, 4) == 5
    )
    assert "length" in repr(length)
    twice = tack.func(lambda x: 2 * x)
    assert twice(4) == 8


def test_decorators_refuse_what_is_no_plain_function() -> None:
    import functools

    def plain(x):
        x[0] = 1

    @functools.wraps(plain)
    def wrapper(x):
        return plain(x)

    for decorator, name in ((tack.kernel, "@tack.kernel"), (tack.func, "@tack.func")):
        for odd in (functools.partial(plain), staticmethod(plain), wrapper, tack.func(plain), tack.kernel(plain), len, Fraction, 3):
            with pytest.raises(tack.CompileError, match="innermost decorator") as info:
                decorator(odd)
            assert name in str(info.value) and isinstance(info.value, TypeError)
    with pytest.raises(tack.CompileError, match="lambda"):
        tack.kernel(lambda x: x)
