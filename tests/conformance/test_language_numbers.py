"""The kernel language: integers, promotion, weak numbers, the ranges of arguments, comparisons, bools, stores."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from language import DTYPES, INTEGERS, here, kernel, refused, same, values

import tack
from tack.runtime.dispatch import get_backend
from tack.types import DType

NUMPY = {
    t: np.dtype(n).type for t, n in zip(DTYPES, "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split(), strict=True)
}


def wrap(value: int, t: DType) -> int:
    value &= (1 << t.bits) - 1
    return value - (1 << t.bits) if t.is_signed and value > t.max else value


def promoted(a: DType, b: DType) -> DType | None:
    """The narrowest type that holds both; signed with u64 is refused; an integer with a float gives the float's."""
    if a.is_float or b.is_float:
        floats = [t for t in (a, b) if t.is_float]
        return max(floats, key=lambda t: t.bits)
    fits = [t for t in INTEGERS if t.min <= min(a.min, b.min) and t.max >= max(a.max, b.max)]
    return min(fits, key=lambda t: t.bits) if fits else None


def interesting(t: DType) -> list[int]:
    found = {0, 1, 2, 3, 5, 7, t.max, t.max - 1, t.max // 2, t.max // 3, 1 << (t.bits // 2)}
    if t.is_signed:
        found |= {-1, -2, -3, -7, t.min, t.min + 1, t.min // 2}
    return sorted(v for v in found if t.min <= v <= t.max)


PAIRS = list(itertools.product(DTYPES, DTYPES))


def test_the_type_of_every_pair(device: tack.Device) -> None:
    names = {t: f"a_{t.name}" for t in DTYPES}
    joined = [(a, b, t) for a, b in PAIRS if (t := promoted(a, b)) is not None]
    for op in ("+", "*", "//"):
        expressions = [f"({names[a]}[0] {op} {names[b]}[0]).dtype == {t}" for a, b, t in joined]
        arrays = [tack.ones(1, t) for t in DTYPES]
        assert values(expressions, tack.u8, *arrays, params=", ".join(names.values())).tolist() == [1] * len(joined)


@pytest.mark.parametrize("signed", ["i8", "i16", "i32", "i64"])
def test_signed_with_u64_is_refused_with_the_cast(device: tack.Device, signed: str) -> None:
    arrays = tack.ones(2, getattr(tack, signed)), tack.ones(2, tack.u64)
    for expression in ("a[i] + b[i]", "b[i] * a[i]", "a[i] & b[i]", "max(a[i], b[i])"):
        text = f"@tack.kernel\ndef k(a, b):\n    for i in range(2):\n        b[i] = {expression}\n"
        message = refused(text, TypeError, *arrays)
        assert "tack.u64(...)" in message and "tack.i64(...)" in message


def test_indices_shapes_and_lengths_become_u64_where_they_meet_it(device: tack.Device) -> None:
    text = """
    @tack.kernel
    def k(x):
        for i in range(len(x)):
            x[i] = x[i] + i + i + len(x) + x.shape[0] + x.size
            for j in range(3):
                x[i] += j
    """
    x = np.array([0, 2**64 - 10, 2**63], np.uint64)
    expected = [(int(v) + i * 2 + 9 + 3) % 2**64 for i, v in enumerate(x)]
    kernel(text)(x)
    assert x.tolist() == expected


INTEGER_OPERATIONS = ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"]


def integer(op: str, a: int, b: int, t: DType) -> int:
    if op in ("//", "%"):
        return 0 if b == 0 else wrap(a // b if op == "//" else a % b, t)
    if op in ("<<", ">>") and not 0 <= b < t.bits:
        return -1 if op == ">>" and a < 0 else 0
    return wrap(eval(f"a {op} b"), t)


@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_integers_wrap_and_divide_as_pythons(device: tack.Device, t: DType) -> None:
    unary = ["-a[i]", "~a[i]", "abs(a[i])", "+a[i]"]
    expressions = [*(f"a[i] {op} b[i]" for op in INTEGER_OPERATIONS), *unary]
    lines = "\n".join(f"        out[i, {n}] = {e}" for n, e in enumerate(expressions))
    k = kernel(f"@tack.kernel\ndef k(out, a, b):\n    for i in range(len(a)):\n{lines}\n")
    pairs = list(itertools.product(interesting(t), interesting(t)))
    a, b = (np.array(column, NUMPY[t]) for column in zip(*pairs, strict=True))
    out = tack.zeros((len(pairs), 14), t)
    k(out, here(a), here(b))
    expected = [[*(integer(op, x, y, t) for op in INTEGER_OPERATIONS), wrap(-x, t), wrap(~x, t), wrap(abs(x), t), x] for x, y in pairs]
    same(out.numpy(), np.array(expected, NUMPY[t]))


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "&", "|", "^"])
def test_mixed_integers_compute_in_their_common_type(device: tack.Device, op: str) -> None:
    pairs = [(a, b, t) for a, b in itertools.product(INTEGERS, INTEGERS) if (t := promoted(a, b)) is not None and a != b]
    params = ", ".join(f"a_{t.name}" for t in INTEGERS)
    expressions = [f"a_{a.name}[{n % 2}] {op} a_{b.name}[{n % 3}]" for n, (a, b, t) in enumerate(pairs)]
    data = {t: [t.max, t.min, t.max // 3] for t in INTEGERS}
    got = values(expressions, tack.i64, *(np.array(data[t], NUMPY[t]) for t in INTEGERS), params=params)
    assert got.tolist() == [wrap(integer(op, data[a][n % 2], data[b][n % 3], t), tack.i64) for n, (a, b, t) in enumerate(pairs)]


@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_integer_powers_are_exact_modulo_the_type(device: tack.Device, t: DType) -> None:
    k = kernel("""
    @tack.kernel
    def k(out, a, e, n):
        for i in range(len(a)):
            out[i, 0] = a[i] ** e[i]
            out[i, 1] = a[i] ** 7
            out[i, 2] = a[i] ** n
            out[i, 3] = 3 ** e[i]
            out[i, 4] = pow(a[i], 2)
    """)
    pairs = list(itertools.product(interesting(t), (-3, -1, 0, 1, 2, 5, 63, 100)))
    a, e = np.array([p[0] for p in pairs], NUMPY[t]), np.array([p[1] for p in pairs], np.int8)

    def power(x: int, y: int, t: DType) -> int:
        return 0 if y < 0 else wrap(pow(x, y, 1 << t.bits), t)

    out = tack.zeros((len(pairs), 5), t)
    k(out, here(a), here(e), 6)
    expected = [[power(x, y, t), power(x, 7, t), power(x, 6, t), wrap(power(3, y, tack.i8), t), power(x, 2, t)] for x, y in pairs]
    same(out.numpy(), np.array(expected, NUMPY[t]))


def test_a_literal_negative_exponent_of_an_integer_is_refused(device: tack.Device) -> None:
    text = "@tack.kernel\ndef k(x):\n    for i in range(len(x)):\n        x[i] = x[i] ** -1\n"
    assert "float" in refused(text, tack.CompileError, tack.ones(3, tack.i32))


def test_zero_is_shifted_any_distance(device: tack.Device) -> None:
    # A random kernel (seed 3002946): C has undefined behaviour where an int is shifted as far as an i64.
    found = values(["(a % tack.i64(1)) << b", "(tack.u64(a) & 0) << tack.u64(b)", "tack.i64(0) >> b"], tack.i64, 5, 40, params="a, b")
    assert [int(v) for v in found] == [0, 0, 0]


def test_a_guarded_or_masked_off_lane_never_traps(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(out, a, b):
        for i in range(len(out)):
            if b[i] != 0:
                out[i] = a[i] // b[i] + a[i] % b[i]
            else:
                out[i] = -1 if b[i] == 0 or a[i] // b[i] > 3 else 5
            out[i] += a[i] // b[i]
    """)
    rng = np.random.default_rng(0)
    for t in (np.int8, np.int32, np.int64, np.uint64):
        a, b = rng.integers(0, 100, 333).astype(t), rng.integers(0, 3, 333).astype(t)
        low = np.iinfo(t).min
        a[5], b[5] = low, t(-1) if low else 0
        out = tack.zeros(333, t)
        k(out, here(a), here(b))
        wide = DTYPES[[NUMPY[d] for d in DTYPES].index(t)]
        for x, y, got in zip(a.tolist(), b.tolist(), out.tolist(), strict=True):
            d = integer("//", x, y, wide)
            assert got == wrap((d + integer("%", x, y, wide) if y else -1) + d, wide)


# -- comparisons


def test_comparisons_of_integers_are_exact_between_all_types(device: tack.Device) -> None:
    params = ", ".join(f"a_{t.name}" for t in INTEGERS)
    data = {t: interesting(t)[:2] + interesting(t)[-2:] for t in INTEGERS}
    for op in ("<", "<=", "==", "!=", ">", ">="):
        pairs = list(itertools.product(INTEGERS, INTEGERS))
        expressions = [f"a_{a.name}[{x}] {op} a_{b.name}[{y}]" for a, b in pairs for x, y in ((0, 3), (3, 0), (1, 2), (3, 3))]
        got = values(expressions, tack.u8, *(np.array(data[t], NUMPY[t]) for t in INTEGERS), params=params)
        expected = [eval(f"{data[a][x]} {op} {data[b][y]}") for a, b in pairs for x, y in ((0, 3), (3, 0), (1, 2), (3, 3))]
        assert got.astype(bool).tolist() == expected


def test_comparisons_with_numbers_that_do_not_fit_are_exact_too(device: tack.Device) -> None:
    expressions = [
        "a[0] < 300",
        "a[0] > -1",
        "a[0] == 511",
        "b[0] < 2 ** 63",
        "b[0] >= -129",
        "300 > a[0] > -1",
        "c[0] > -1",
        "c[0] == -1",
        "a[0] < n",
        "n == b[0]",
        "c[0] > m",
    ]
    got = values(
        expressions,
        tack.u8,
        np.array([255], np.uint8),
        np.array([-128], np.int8),
        np.array([2**64 - 1], np.uint64),
        1000,
        -5,
        params="a, b, c, n, m",
    )
    assert got.tolist() == [1, 1, 0, 1, 1, 1, 1, 0, 1, 0, 1]


# -- weak numbers


def test_python_numbers_take_the_dtype_they_meet(device: tack.Device) -> None:
    for t in DTYPES:
        expressions = [
            f"({e}).dtype == {t}"
            for e in ("x[0] + 1", "n * x[0]", "x[0] - (n + 2 * 3)", "min(x[0], 7)", "x[0] if n > 2 else 5", "True + x[0]")
        ]
        if t.is_float:
            expressions += [
                f"({e}).dtype == {t}" for e in ("x[0] * 0.5", "g + x[0]", "x[0] ** g", "n * g * x[0]", "tack.sqrt(x[0])", "x[0] // g")
            ]
        assert values(expressions, tack.u8, tack.ones(1, t), 3, 0.25, params="x, n, g").tolist() == [1] * len(expressions)


def test_alone_they_are_i64_and_the_kernels_float(device: tack.Device) -> None:
    expressions = [
        "n.dtype == tack.i64",
        "(n * 2).dtype == tack.i64",
        "(n / 2).dtype == F",
        "g.dtype == F",
        "(x[0] / x[0]).dtype == F",
        "(x[0] * 0.5).dtype == F",
        "tack.sqrt(n).dtype == F",
        "float(n).dtype == F",
    ]
    x = tack.ones(1, tack.i32)
    for extra, setup, t in (
        (x, "", "tack.f32"),
        (tack.ones(1), "", "tack.f32"),
        (tack.ones(1, tack.f64), "", "tack.f64"),
        (np.float64(1), "", "tack.f64"),
        (np.float32(1), "", "tack.f32"),
        (1, "z = tack.f64(1)", "tack.f64"),
        (1, "z = helper(1)", "tack.f64"),
        (1, "z = np.float64(1)", "tack.f64"),
        (1, "if False:\n    z = tack.f64(1)", "tack.f64"),
        (1.0, "", "tack.f32"),
    ):
        helper = tack.func(lambda v: tack.f64(v))
        got = values(
            [e.replace("F", t) for e in expressions], tack.u8, x, 3, 0.25, extra, params="x, n, g, extra", setup=setup, helper=helper
        )
        assert got.tolist() == [1] * len(expressions), (extra, setup)


@pytest.mark.needs("f64")
def test_numpy_scalars_and_casts_are_strong(device: tack.Device) -> None:
    expressions = [
        "(x[0] + s).dtype == tack.f64",
        "(x[0] * tack.f64(1)).dtype == tack.f64",
        "(tack.i8(1) + tack.u8(1)).dtype == tack.i16",
        "(h + tack.i8(1)).dtype == tack.i16",
        "(h + 100000).dtype == tack.i16",
    ]
    with pytest.raises(tack.CompileError, match="100000 does not fit"):
        values(expressions, tack.u8, tack.ones(1), np.float64(2), np.int16(3), params="x, s, h")
    assert values(expressions[:-1], tack.u8, tack.ones(1), np.float64(2), np.int16(3), params="x, s, h").tolist() == [1] * 4


def test_expressions_of_constants_fold_as_python_does(device: tack.Device) -> None:
    expressions = [
        "2 ** 100 // 3 ** 50",
        "7 // -2",
        "-7 % 3",
        "1 / 3",
        "0.1 + 0.2",
        "2 ** -1",
        "~5 & 0xFF",
        "1 << 40 >> 38",
        "3 > 2 > 1",
        "not 0",
        "min(3, 2.5)",
        "round(2.5)",
        "abs(-3)",
        "N ** 2 / 7",
        "7.5 // 2",
        "-7.5 % 2",
        "True + True",
        "int(2.75)",
        "divmod(-7, 2)[0]",
    ]
    got = values(expressions, tack.f64, N=11)
    same(got, np.array([float(eval(e, {"N": 11})) for e in expressions]))


@pytest.mark.parametrize("expression", ["1 // 0", "5 % 0", "1 / 0", "2 ** 100000", "1 << -1"])
def test_a_constant_expression_that_python_refuses_is_refused(device: tack.Device, expression: str) -> None:
    assert "constant expression" in refused(
        f"@tack.kernel\ndef k(x):\n    x[0] = {expression}\n", tack.CompileError, tack.zeros(1, tack.i64)
    )


# -- arguments


def test_an_int_argument_travels_as_64_bits(device: tack.Device) -> None:
    k = kernel("@tack.kernel\ndef k(out, n):\n    out[0] = n\n")
    for value in (0, -(2**63), 2**63 - 1):
        out = tack.zeros(1, tack.i64)
        k(out, value)
        assert out[0] == value
    for value in (2**63, 2**64 - 1):
        out = tack.zeros(1, tack.u64)
        k(out, value)
        assert out[0] == value
    for value in (2**64, -(2**63) - 1, 10**30):
        with pytest.raises(OverflowError, match=r"Kernel 'k'.*'n'.*64 bits"):
            k(tack.zeros(1, tack.i64), value)


@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_a_parameter_that_meets_a_type_without_it_is_checked_at_the_call(device: tack.Device, t: DType) -> None:
    for use in (
        "x[i] = n",
        "x[i] = x[i] + n",
        "x[i] = n * x[i]",
        "x[i] = max(x[i], n)",
        "x[i] = x[i] if i > 5 else n",
        "tack.atomic_add(x, i, n)",
    ):
        if "atomic" in use and t not in get_backend().supported_atomic_dtypes:
            continue
        k = kernel(f"@tack.kernel\ndef k(x, n):\n    for i in range(len(x)):\n        {use}\n")
        x = tack.ones(2, t)
        k(x, min(t.max, 2**63 - 1))
        for value in (t.max + 1, t.min - 1):
            before = x.tolist()
            with pytest.raises(OverflowError, match=rf"Kernel 'k'.*'n'.*{value}"):
                k(x, value)
            assert x.tolist() == before


@pytest.mark.parametrize(
    "use",
    [
        "x[i] = n + 1",
        "x[i] = x[i] + n * 2",
        "x[i] = -n",
        "m = n + 0\n        x[i] = m",
        "x[i] = tack.i8(n)",
        "x[i] = x[i] if n > 1000 else 1",
    ],
)
def test_values_computed_of_parameters_wrap(device: tack.Device, use: str) -> None:
    k = kernel(f"@tack.kernel\ndef k(x, n):\n    for i in range(len(x)):\n        {use}\n")
    x = tack.ones(1, tack.i8)
    k(x, 1000)
    env: dict[str, Any] = {"x": [1], "i": 0, "n": 1000, "tack": tack}
    exec(use.replace("\n        ", "\n").replace("tack.i8(n)", "n"), env)
    assert x[0] == wrap(env["x"][0], tack.i8)


@pytest.mark.parametrize(
    ("t", "literal"),
    [("i8", "128"), ("i8", "-129"), ("u8", "256"), ("u8", "-1"), ("i32", "2 ** 31"), ("u64", "2 ** 64"), ("i64", "2 ** 63")],
)
def test_literals_that_do_not_fit_are_compile_errors(device: tack.Device, t: str, literal: str) -> None:
    for use in ("x[i] = x[i] + {}", "x[i] = {}"):
        text = f"@tack.kernel\ndef k(x):\n    for i in range(len(x)):\n        {use.format(literal)}\n"
        assert "does not fit" in refused(text, tack.CompileError, tack.ones(2, getattr(tack, t)))


@pytest.mark.parametrize(
    "value", [2.5, True, np.float32(0.1), np.float64(0.1), np.int8(-3), np.uint64(2**64 - 1), np.bool_(True), -0.0, float("nan"), 2**63]
)
def test_every_kind_of_scalar_argument(device: tack.Device, value: Any) -> None:
    out = tack.zeros(1, tack.f64)
    kernel("@tack.kernel\ndef k(out, v):\n    out[0] = v\n")(out, value)
    same(out.numpy(), np.array([float(value)]))


# -- bools and stores


def test_bools_are_weak_ints_in_arithmetic_and_bools_in_logic(device: tack.Device) -> None:
    t = {"a": True, "b": False}
    expressions = [
        "a + a",
        "a - 5",
        "a * 0.5",
        "-a",
        "a + x[0]",
        "a & b",
        "a | b",
        "a ^ a",
        "(a & b) + 1",
        "a > b",
        "a == 1",
        "a << 3",
        "max(a, b)",
        "abs(a)",
        "a & 3",
        "5 // (a + a)",
        "a / 2",
        "~(a + 0)",
        "a and 7",
    ]
    got = values(expressions, tack.f64, True, False, np.array([41], np.int8), params="a, b, x")
    assert got.tolist() == [float(eval(e, {**t, "x": [41]})) for e in expressions]
    assert values(
        ["(a + a).dtype == tack.i64", "(a + x[0]).dtype == tack.i8"], tack.u8, True, np.array([1], np.int8), params="a, x"
    ).tolist() == [1, 1]
    assert "not x" in refused("@tack.kernel\ndef k(x, a):\n    x[0] = ~a\n", tack.CompileError, tack.zeros(1), True)


@pytest.mark.parametrize("t", DTYPES, ids=str)
def test_stores_convert_to_the_elements_type(device: tack.Device, t: DType) -> None:
    got = values(
        ["a[0]", "b[0]", "a[0] > 5", "True", "c[0]"],
        t,
        np.array([-1], np.int64),
        np.array([2**63 + 3], np.uint64),
        np.array([77], np.int8),
        params="a, b, c",
    )
    if t.is_float:
        same(got, np.array([-1, 2**63 + 3, 0, 1, 77], NUMPY[t]))
    else:
        assert got.tolist() == [wrap(-1, t), wrap(2**63 + 3, t), 0, 1, 77]


@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_a_float_is_not_stored_into_integers(device: tack.Device, t: DType) -> None:
    for expression in ("0.5", "f[i]", "x[i] / 2", "tack.sqrt(x[i])", "x[i] * 1.0"):
        text = f"@tack.kernel\ndef k(x, f):\n    for i in range(len(x)):\n        x[i] = {expression}\n"
        message = refused(text, TypeError, tack.ones(2, t), tack.ones(2))
        assert "int(...)" in message and str(t) in message
    if t in get_backend().supported_atomic_dtypes:
        assert "int(...)" in refused("@tack.kernel\ndef k(x):\n    tack.atomic_add(x, 0, 0.5)\n", TypeError, tack.ones(2, t))


def test_bool_arrays_of_numpy_are_u8(device: tack.Device) -> None:
    k = kernel(
        "@tack.kernel\ndef k(out, m):\n    for i in range(len(m)):\n        out[i] = m[i] + (m.dtype == tack.u8)\n        m[i] = not m[i]\n"
    )
    m = here(np.array([True, False, True]))
    out = tack.zeros(3, tack.i32)
    k(out, m)
    assert out.tolist() == [2, 1, 2] and m.tolist() == [False, True, False]


# -- bit functions


@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_bit_functions(device: tack.Device, t: DType) -> None:
    k = kernel("""
    @tack.kernel
    def k(out, a, b):
        for i in range(len(a)):
            out[i, 0] = tack.popcount(a[i])
            out[i, 1] = tack.clz(a[i])
            out[i, 2] = tack.ctz(a[i])
            out[i, 3] = tack.rotl(a[i], b[i])
            out[i, 4] = tack.rotr(a[i], b[i])
            out[i, 5] = tack.mulhi(a[i], b[i])
            out[i, 6] = tack.add_sat(a[i], b[i])
            out[i, 7] = tack.sub_sat(a[i], b[i])
    """)
    pairs = list(itertools.product(interesting(t), interesting(t)))
    a, b = (np.array(column, NUMPY[t]) for column in zip(*pairs, strict=True))
    out = tack.zeros((len(pairs), 8), t)
    k(out, here(a), here(b))
    n, full = t.bits, (1 << t.bits) - 1

    def expected(x: int, y: int) -> list[int]:
        u = x & full
        s = y % n
        rotated = ((u << s) | (u >> (n - s))) & full
        back = ((u >> s) | (u << (n - s))) & full
        clamp = [min(max(v, t.min), t.max) for v in (x + y, x - y)]
        leading = n - u.bit_length()
        trailing = n if u == 0 else (u & -u).bit_length() - 1
        return [u.bit_count(), leading, trailing, wrap(rotated, t), wrap(back, t), wrap((x * y) >> n, t), *clamp]

    same(out.numpy(), np.array([expected(x, y) for x, y in pairs], NUMPY[t]))
