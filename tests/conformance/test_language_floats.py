"""The kernel language: floats, casts, rounding, min and max, fused multiply-adds and the options that change them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from language import DTYPES, INTEGERS, here, kernel, same, values

import tack
from tack.types import DType

NUMPY = {
    t: np.dtype(n).type for t, n in zip(DTYPES, "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split(), strict=True)
}
FLOATS = (tack.f32, tack.f64)
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.5,
    -2.5,
    3.5,
    1e-3,
    7.25,
    -7.25,
    3.0,
    1e30,
    -1e30,
    1e-40,
    -1e-40,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
    123456.78,
    2.0**31,
    2.0**63,
    -(2.0**63),
]


def column(t: DType, items: list[float]) -> Any:
    with np.errstate(all="ignore"):
        return np.array(items, np.float64).astype(NUMPY[t])


def pairs(t: DType) -> tuple[Any, Any]:
    both = list(itertools.product(SPECIAL, SPECIAL))
    return column(t, [a for a, _ in both]), column(t, [b for _, b in both])


@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_arithmetic_is_ieee(device: tack.Device, t: DType) -> None:
    a, b = pairs(t)
    rng = np.random.default_rng(0)
    a, b = np.concatenate([a, rng.standard_normal(2000).astype(a.dtype)]), np.concatenate([b, rng.standard_normal(2000).astype(a.dtype)])
    for op in ("+", "-", "*", "/"):
        out = tack.zeros(len(a), t)
        kernel(f"@tack.kernel\ndef k(out, a, b):\n    for i in range(len(a)):\n        out[i] = a[i] {op} b[i]\n")(out, here(a), here(b))
        with np.errstate(all="ignore"):
            same(out.numpy(), eval(f"a {op} b"))
    out = tack.zeros((len(a), 3), t)
    kernel(
        """
        @tack.kernel
        def k(out, a):
            for i in range(len(a)):
                out[i, 0] = tack.sqrt(a[i])
                out[i, 1] = -a[i]
                out[i, 2] = abs(a[i])
        """
    )(out, here(a))
    with np.errstate(all="ignore"):
        same(out.numpy(), np.stack([np.sqrt(a), -a, np.abs(a)], 1))


@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_floor_division_and_modulo_are_numpys(device: tack.Device, t: DType) -> None:
    a, b = pairs(t)
    out = tack.zeros((len(a), 4), t)
    kernel("""
    @tack.kernel
    def k(out, a, b):
        for i in range(len(a)):
            out[i, 0] = a[i] // b[i]
            out[i, 1] = a[i] % b[i]
            q, r = divmod(a[i], b[i])
            out[i, 2] = q
            out[i, 3] = r
    """)(out, here(a), here(b))
    with np.errstate(all="ignore"):
        q, r = np.floor_divide(a, b), np.remainder(a, b)
    same(out.numpy(), np.stack([q, r, q, r], 1))


@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_comparisons_and_classes(device: tack.Device, t: DType) -> None:
    a, b = pairs(t)
    expressions = [
        "a[i] < b[i]",
        "a[i] <= b[i]",
        "a[i] == b[i]",
        "a[i] != b[i]",
        "a[i] > b[i]",
        "a[i] >= b[i]",
        "tack.isnan(a[i])",
        "math.isinf(a[i])",
        "np.isfinite(a[i])",
        "not a[i]",
    ]
    lines = "".join(f"        out[i, {n}] = {e}\n" for n, e in enumerate(expressions))
    out = tack.zeros((len(a), len(expressions)), tack.u8)
    kernel(f"@tack.kernel\ndef k(out, a, b):\n    for i in range(len(a)):\n{lines}")(out, here(a), here(b))
    expected = [a < b, a <= b, a == b, a != b, a > b, a >= b, np.isnan(a), np.isinf(a), np.isfinite(a), a == 0]
    assert np.array_equal(out.numpy(), np.stack(expected, 1))


@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_min_and_max_prefer_numbers_and_of_equals_the_first(device: tack.Device, t: DType) -> None:
    a, b = pairs(t)
    out = tack.zeros((len(a), 5), t)
    kernel("""
    @tack.kernel
    def k(out, a, b):
        for i in range(len(a)):
            out[i, 0] = min(a[i], b[i])
            out[i, 1] = max(a[i], b[i])
            out[i, 2] = tack.min(a[i], b[i], 1.0)
            out[i, 3] = np.fmax(a[i], b[i])
            out[i, 4] = np.minimum(a[i], b[i])
    """)(out, here(a), here(b))

    def pick(x: float, y: float, better: Any) -> float:
        return y if math.isnan(x) or better(y, x) else x

    less, more = (lambda p, q: p < q), (lambda p, q: p > q)
    expected = [
        [
            pick(x, y, less),
            pick(x, y, more),
            pick(pick(x, y, less), 1.0, less),
            pick(x, y, more),
            math.nan if math.isnan(x) or math.isnan(y) else pick(x, y, less),
        ]
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    same(out.numpy(), np.array(expected, NUMPY[t]))


def test_nothing_is_reassociated(device: tack.Device) -> None:
    k = kernel(
        """
        @tack.kernel
        def k(out, x):
            for i in range(1):
                out[0] = (x[0] + x[1]) - x[0]
                out[1] = x[2] * x[3] / x[3]
                out[2] = x[0] + x[1] + x[1] + x[1]
        """
    )
    x = np.array([1e8, 1.0, 3.0, 1e-45], np.float32)
    out = tack.zeros(3)
    k(out, here(x))
    with np.errstate(all="ignore"):
        same(out.numpy(), np.array([(x[0] + x[1]) - x[0], x[2] * x[3] / x[3], x[0] + x[1] + x[1] + x[1]], np.float32))


def test_subnormals_are_kept(device: tack.Device) -> None:
    if device.type == "metal":
        pytest.skip("f32 subnormals may be flushed there")
    for t, tiny in ((tack.f32, 1e-44), (tack.f64, 5e-324)):
        x = column(t, [tiny, -tiny, tiny * 3])
        out = tack.zeros(3, t)
        kernel("@tack.kernel\ndef k(out, x):\n    for i in range(len(x)):\n        out[i] = x[i] * 1.0 + x[i]\n")(out, here(x))
        same(out.numpy(), x + x)


# -- fused multiply-adds


def fused(t: DType) -> tuple[Any, float, float]:
    """Values whose fused and plain a * b - 1 differ, and both results."""
    e = 2.0**-12 if t == tack.f32 else 2.0**-27
    x = column(t, [1 + e, 1.0])
    return x, 2 * e + e * e, float(x[0] * x[0] - x[1])


@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_a_product_and_a_sum_are_fused_by_rule(device: tack.Device, t: DType) -> None:
    x, once, twice = fused(t)
    assert once != twice
    arguments = "x[0]", "x[1]"
    expressions = ["{0} * {0} - {1}", "-{1} + {0} * {0}", "{0} * {0} + -{1}", "tack.fma({0}, {0}, -{1})"]
    got = values([e.format(*arguments) for e in expressions], t, x, params="x")
    same(got, np.array([once] * 4, NUMPY[t]))
    named = values(["p - x[1]", "p * 1.0"], t, x, params="x", setup="p = x[0] * x[0]")
    assert named[0] == twice, "a product with another use stays"


@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_exact_forms_none_but_the_one_that_is_written(device: tack.Device, t: DType) -> None:
    x, once, twice = fused(t)
    out = tack.zeros(2, t)
    kernel(
        """
        @tack.kernel(exact=True)
        def k(out, x):
            for i in range(1):
                out[0] = x[0] * x[0] - x[1]
                out[1] = tack.fma(x[0], x[0], -x[1])
        """
    )(out, here(x))
    same(out.numpy(), np.array([twice, once], NUMPY[t]))


@pytest.mark.parametrize("t", FLOATS, ids=str)
@pytest.mark.parametrize("options", ["", "exact=True"])
def test_results_have_the_same_bits_whatever_the_width(device: tack.Device, t: DType, options: str) -> None:
    x = np.random.default_rng(3).standard_normal(1003).astype(NUMPY[t])
    found = []
    for simd in (None, 1, 4, 16):
        both = ", ".join(o for o in (options, f"simd={simd}" if simd else "") if o)
        k = kernel(f"""
        @tack.kernel({both})
        def k(out, x):
            for i in range(len(x)):
                s = 0.0
                for j in range(5):
                    s = s * x[i] + tack.exp(x[i] * j) - x[i] * s
                out[i] = tack.sin(s) + s / (x[i] * x[i] + 1)
        """)
        out = tack.zeros(len(x), t)
        k(out, here(x))
        found.append(out.numpy())
    for other in found[1:]:
        same(other, found[0])


def test_fast_math_is_near(device: tack.Device) -> None:
    x = np.random.default_rng(4).random(1000).astype(np.float32)
    k = kernel(
        """
        @tack.kernel(fast_math=True)
        def k(out, x):
            for i in range(len(x)):
                out[i] = tack.sqrt(x[i]) / (x[i] + 1) + x[i] * x[i]
        """
    )
    out = tack.zeros(1000)
    k(out, here(x))
    np.testing.assert_allclose(out.numpy(), np.sqrt(x) / (x + 1) + x * x, rtol=1e-5)


# -- casts

CASTS = [
    0.0,
    -0.0,
    0.49,
    -0.99,
    1.5,
    -1.5,
    127.9,
    128.0,
    -128.9,
    -129.0,
    255.5,
    256.0,
    65535.9,
    2.0**31 - 1,
    2.0**31,
    -(2.0**31),
    2.0**32,
    2.0**63,
    -(2.0**63),
    2.0**64,
    1e30,
    -1e30,
    math.inf,
    -math.inf,
    math.nan,
    1e-40,
]


@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_floats_become_integers_by_truncation_and_saturation(device: tack.Device, source: DType) -> None:
    x = column(source, CASTS)
    for t in INTEGERS:
        out = tack.zeros((len(x), 2), t)
        kernel(
            f"""
            @tack.kernel
            def k(out, x):
                for i in range(len(x)):
                    out[i, 0] = {t}(x[i])
                    out[i, 1] = np.{NUMPY[t].__name__}(x[i])
            """
        )(out, here(x))
        one = [0 if math.isnan(v) else t.max if v > t.max else t.min if v < t.min else int(v) for v in x.tolist()]
        assert out.numpy().tolist() == [[v, v] for v in one], t
        assert [int(t(v)) for v in x] == one, "the same on the host"


@pytest.mark.needs("f64")
def test_int_float_and_bool(device: tack.Device) -> None:
    x = np.array([2.75, -2.75, 0.0, math.nan, 1e30], np.float32)
    for f64 in (False, True):
        got = kernel("""
        @tack.kernel
        def k(out, x, y):
            for i in range(len(x)):
                out[i, 0] = int(x[i])
                out[i, 1] = float(x[i]) * 2
                out[i, 2] = bool(x[i])
                out[i, 3] = int(x[i]).dtype == tack.i64
                out[i, 4] = float(1).dtype == y.dtype
        """)
        out = tack.zeros((5, 5), tack.f64 if f64 else tack.f32)
        got(out, here(x), tack.ones(1, out.dtype))
        ints = [0.0 if math.isnan(v) else float(min(max(int(v), -(2**63)), 2**63 - 1)) for v in x.tolist()]
        expected = [[n, v * 2, bool(v), 1, 1] for n, v in zip(ints, x.tolist(), strict=True)]
        same(out.numpy(), np.array(expected, out.numpy().dtype))


@pytest.mark.parametrize("target", DTYPES, ids=str)
def test_integers_are_cast_modulo_and_rounded_once(device: tack.Device, target: DType) -> None:
    for source in INTEGERS:
        items = sorted(
            {0, 1, source.max, source.min, source.max // 3, source.max - 1, min(source.max, 2**53 + 1), min(source.max, 2**24 + 1)}
        )
        x = np.array(items, NUMPY[source])
        out = tack.zeros(len(x), target)
        kernel(f"@tack.kernel\ndef k(out, x):\n    for i in range(len(x)):\n        out[i] = {target}(x[i])\n")(out, here(x))
        same(out.numpy(), x.astype(NUMPY[target]))


@pytest.mark.needs("f64")
def test_floats_are_rounded_once(device: tack.Device) -> None:
    x = np.array([0.1, 1e300, -1e300, 1e-46, math.nan, 16777217.0, 2.0**128 * (1 - 2.0**-25)], np.float64)
    out = tack.zeros(len(x))
    kernel("@tack.kernel\ndef k(out, x):\n    for i in range(len(x)):\n        out[i] = tack.f32(x[i])\n")(out, here(x))
    with np.errstate(all="ignore"):
        same(out.numpy(), x.astype(np.float32))


@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_rounding_functions(device: tack.Device, t: DType) -> None:
    x = column(t, [0.5, 1.5, 2.5, -0.5, -1.5, 0.0, -0.0, 2.4, -2.6, 1e10, 0.49999997, math.inf, math.nan, -math.inf, 1e30])
    out = tack.zeros((len(x), 12), tack.f64)
    kernel("""
    @tack.kernel
    def k(out, x):
        for i in range(len(x)):
            out[i, 0] = round(x[i])
            out[i, 1] = math.floor(x[i])
            out[i, 2] = math.ceil(x[i])
            out[i, 3] = math.trunc(x[i])
            out[i, 4] = tack.round(x[i])
            out[i, 5] = tack.floor(x[i])
            out[i, 6] = tack.ceil(x[i])
            out[i, 7] = tack.trunc(x[i])
            out[i, 8] = np.floor(x[i])
            out[i, 9] = round(x[i]).dtype == tack.i64
            out[i, 10] = math.floor(x[i]).dtype == tack.i64
            out[i, 11] = tack.floor(x[i]).dtype == x.dtype
    """)(out, here(x))
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        floats = [np.rint(wide), np.floor(wide), np.ceil(wide), np.trunc(wide)]

    def whole(v: float) -> float:
        return 0.0 if math.isnan(v) else float(min(max(v, -(2.0**63)), 2.0**63))

    ints = [np.array([whole(v) + 0.0 for v in f]) for f in floats]
    ones = np.ones(len(x))
    same(out.numpy(), np.stack([*ints, *floats, floats[1], ones, ones, ones], 1))


def test_bitcast_keeps_the_bits(device: tack.Device) -> None:
    x = np.array([1.5, -0.0, math.nan, 1e-45], np.float32)
    k = kernel(
        """
        @tack.kernel
        def k(out, back, x):
            for i in range(len(x)):
                out[i] = tack.bitcast(x[i], tack.u32)
                back[i] = tack.bitcast(out[i], tack.f32)
        """
    )
    out, back = tack.zeros(4, tack.u32), tack.zeros(4)
    k(out, back, here(x))
    assert out.tolist() == x.view(np.uint32).tolist() and np.array_equal(back.numpy().view(np.uint32), x.view(np.uint32))


def test_mixed_types_in_float_arithmetic(device: tack.Device) -> None:
    x, n = np.array([0.1], np.float32), np.array([2**31 - 1], np.int32)
    got = values(
        ["x[0] + n[0]", "x[0] * m[0]", "n[0] / 3", "n[0] / n[0]", "x[0] / 3"],
        tack.f32,
        x,
        n,
        np.array([2**63], np.uint64),
        params="x, n, m",
    )
    f = np.float32
    same(got, np.array([x[0] + f(n[0]), x[0] * f(2**63), f(n[0]) / f(3), 1.0, x[0] / f(3)], f))


@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_powers(device: tack.Device, t: DType) -> None:
    x = column(t, [2.0, -3.0, 0.5, 0.0, -0.0, math.inf, 1.0, math.nan])
    out = tack.zeros((len(x), 6), t)
    kernel("""
    @tack.kernel
    def k(out, x, n):
        for i in range(len(x)):
            out[i, 0] = x[i] ** 2
            out[i, 1] = x[i] ** 3
            out[i, 2] = x[i] ** -1
            out[i, 3] = x[i] ** n
            out[i, 4] = x[i] ** 0.5
            out[i, 5] = math.pow(x[i], 0)
    """)(out, here(x), 3)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(out.numpy(), np.stack([x**2, x**3, x**-1.0, x**3, x**0.5, x**0], 1), rtol=1e-6)


def test_domain_errors_give_nan_or_infinity(device: tack.Device) -> None:
    got = values(
        [
            "tack.sqrt(x[0])",
            "tack.log(x[0])",
            "tack.log(x[1])",
            "tack.asin(x[2])",
            "tack.acosh(x[1])",
            "x[0] ** 0.5",
            "tack.sqrt(-1.0)",
            "math.log(0.0)",
            "1.0 / x[1]",
        ],
        tack.f64,
        np.array([-1.0, 0.0, 2.0]),
        params="x",
    )
    same(got, np.array([math.nan, math.nan, -math.inf, math.nan, math.nan, math.nan, math.nan, -math.inf, math.inf]))
