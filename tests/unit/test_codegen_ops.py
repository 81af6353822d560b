"""Every operation over edge values against NumPy and exact Python integers, with one lane and with many."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from codegen_harness import NUMPY, Build, Program, no_math, target

import tack
from tack import types as T
from tack.codegen import build_source
from tack.ir import arith
from tack.runtime.llvm_compiler import compile_ir
from tack.types import DType

INTS = [t for t in T.ARRAY_DTYPES if t.is_int]
FLOATS = [T.f32, T.f64]


def edges(t: DType) -> Any:
    if t.is_int:
        values = {t.min, t.min + 1, t.max, t.max - 1, 0, 1, 2, 3, 7, 10, t.bits, t.bits - 1, t.bits + 1}
        values |= {-v for v in (1, 2, 3, 7, 10)} if t.is_signed else {t.max // 2, t.max // 2 + 1}
        return np.array(sorted(v for v in values if t.min <= v <= t.max), NUMPY[t.name])
    info = np.finfo(NUMPY[t.name])
    plain = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 7.25, 1e10, 123456.7, info.max, info.tiny, info.smallest_subnormal, np.inf]
    return np.array([*plain, *(-v for v in plain), np.nan], NUMPY[t.name])


def pairs(t: DType) -> tuple[Any, Any]:
    v = edges(t)
    a, b = np.meshgrid(v, v)
    return a.ravel().copy(), b.ravel().copy()


def wrap(value: int, t: DType) -> int:
    value &= (1 << t.bits) - 1
    return value - (1 << t.bits) if t.is_signed and value >> (t.bits - 1) else value


def shifted(a: int, n: int, t: DType, left: bool) -> int:
    if not 0 <= n < t.bits:
        return -1 if not left and a < 0 else 0
    return wrap(a << n, t) if left else a >> n


INT_BINARY: dict[str, Callable[[int, int, DType], int]] = {
    "add": lambda a, b, t: wrap(a + b, t),
    "sub": lambda a, b, t: wrap(a - b, t),
    "mul": lambda a, b, t: wrap(a * b, t),
    "floordiv": lambda a, b, t: 0 if b == 0 else wrap(a // b, t),
    "mod": lambda a, b, t: 0 if b == 0 else a % b,
    "pow": lambda a, b, t: 0 if b < 0 else wrap(pow(a, b, 1 << t.bits), t),
    "shl": lambda a, b, t: shifted(a, b, t, True),
    "shr": lambda a, b, t: shifted(a, b, t, False),
    "and": lambda a, b, t: a & b,
    "or": lambda a, b, t: a | b,
    "xor": lambda a, b, t: a ^ b,
    "min": lambda a, b, t: min(a, b),
    "max": lambda a, b, t: max(a, b),
}
INT_UNARY: dict[str, Callable[[int, DType], int]] = {
    "neg": lambda a, t: wrap(-a, t),
    "abs": lambda a, t: wrap(abs(a), t),
    "not": lambda a, t: wrap(~a, t),
}
BITS: dict[str, Callable[[int, int, DType], int]] = {
    "popcount": lambda a, b, t: bin(a & ((1 << t.bits) - 1)).count("1"),
    "clz": lambda a, b, t: t.bits - (a & ((1 << t.bits) - 1)).bit_length(),
    "ctz": lambda a, b, t: next((k for k in range(t.bits) if a >> k & 1), t.bits),
    "rotl": lambda a, b, t: rotated(a, b % t.bits, t),
    "rotr": lambda a, b, t: rotated(a, -b % t.bits, t),
    "mulhi": lambda a, b, t: wrap((a * b) >> t.bits, t),
    "add_sat": lambda a, b, t: max(t.min, min(t.max, a + b)),
    "sub_sat": lambda a, b, t: max(t.min, min(t.max, a - b)),
}
COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


def rotated(a: int, n: int, t: DType) -> int:
    a &= (1 << t.bits) - 1
    return wrap(a << n | a >> (t.bits - n), t)


def both(kernel: Any, args: list[Any], outs: int, **options: Any) -> list[list[Any]]:
    """Runs with one lane and with many; the first ``outs`` arguments are outputs."""
    results = []
    for simd in (1, 16):
        fresh = [np.zeros_like(a) for a in args[:outs]] + args[outs:]
        Program(kernel, simd, **options)(*fresh)
        results.append(fresh[:outs])
    return results


def test_ints() -> None:
    for t in INTS:
        build = Build()
        names = [*INT_BINARY, *INT_UNARY, *BITS]
        outs = [build.array(f"o_{n}", t) for n in names]
        flags = [build.array(f"c_{n}", T.u8) for n in COMPARE]
        x, y = build.array("x", t), build.array("y", t)
        with build.parallel((x, 0)) as (i,):
            a, b = build.load(x, i), build.load(y, i)
            for name, out in zip(names, outs, strict=True):
                two = name in INT_BINARY or name in ("rotl", "rotr", "mulhi", "add_sat", "sub_sat")
                args = (a, b) if two else (a,)
                value = build.op("bits", t, *args, attr=name) if name in BITS else build.op(name, t, *args)
                build.store(out, value, i)
            for name, flag in zip(COMPARE, flags, strict=True):
                build.store(flag, build.cast(build.compare(name, a, b), T.u8), i)
        va, vb = pairs(t)
        args = [np.zeros(len(va), va.dtype) for _ in outs] + [np.zeros(len(va), np.uint8) for _ in flags] + [va, vb]
        for lanes, got in zip((1, 16), both(build.kernel, args, len(outs) + len(flags)), strict=True):
            for k, name in enumerate(names):
                table: Any = INT_BINARY.get(name) or BITS.get(name)
                rows = zip(va.tolist(), vb.tolist(), strict=True)
                expected = [table(a, b, t) for a, b in rows] if table else [INT_UNARY[name](a, t) for a, _ in rows]
                assert got[k].tolist() == expected, (t, name, lanes)
            for k, name in enumerate(COMPARE):
                assert np.array_equal(got[len(outs) + k].astype(bool), COMPARE[name](va, vb)), (t, name, lanes)


@pytest.mark.parametrize("t", [T.i8, T.i32, T.u32, T.i64])
def test_constant_divisors_shifts_and_powers(t: DType) -> None:
    build = Build()
    constants = [k for k in (0, 1, 2, 3, 8, 10, -1, -2, -7, t.bits, t.bits - 1, 64) if t.min <= k <= t.max]
    cases = [(n, k) for n in ("floordiv", "mod", "shl", "shr", "pow") for k in constants if not (n == "pow" and k < 0)]
    outs = [build.array(f"o{j}", t) for j in range(len(cases))]
    x = build.array("x", t)
    with build.parallel((x, 0)) as (i,):
        a = build.load(x, i)
        for (name, k), out in zip(cases, outs, strict=True):
            build.store(out, build.op(name, t, a, build.const(t, k)), i)
    values = np.concatenate([edges(t), np.arange(20).astype(NUMPY[t.name])])
    for got in both(build.kernel, [np.zeros_like(values) for _ in outs] + [values], len(outs)):
        for (name, k), result in zip(cases, got, strict=True):
            assert result.tolist() == [INT_BINARY[name](a, k, t) for a in values.tolist()], (name, k)


def same(a: Any, b: Any) -> bool:
    """Equal bits, but for the payload of NaNs."""
    bits = {4: np.int32, 8: np.int64}[a.dtype.itemsize]
    return bool(np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(a.view(bits)[~np.isnan(a)], b.view(bits)[~np.isnan(b)]))


@pytest.mark.parametrize("t", FLOATS)
@pytest.mark.parametrize("own_fmod", [False, True])
def test_floats(t: DType, own_fmod: bool) -> None:
    build = Build(exact=True)
    binary: dict[str, Any] = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "floordiv": np.floor_divide, "mod": np.remainder,
        "copysign": np.copysign,
    }  # fmt: skip
    unary: dict[str, Any] = {
        "neg": np.negative, "abs": np.abs, "fabs": np.abs, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
        "round": np.rint,
    }  # fmt: skip
    tests: dict[str, Any] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
    math_ops = {"copysign", "sqrt", "floor", "ceil", "trunc", "round", "fabs"}
    names = [*binary, *unary]
    outs = [build.array(f"o_{n}", t) for n in names]
    low, high = build.array("low", t), build.array("high", t)
    flags = [build.array(f"c_{n}", T.u8) for n in (*COMPARE, *tests)]
    x, y = build.array("x", t), build.array("y", t)
    with build.parallel((x, 0)) as (i,):
        a, b = build.load(x, i), build.load(y, i)
        for name, out in zip(names, outs, strict=True):
            args = (a, b) if name in binary else (a,)
            build.store(out, build.op("math", t, *args, attr=name) if name in math_ops else build.op(name, t, *args), i)
        build.store(low, build.op("min", t, a, b), i)
        build.store(high, build.op("max", t, a, b), i)
        for name, flag in zip((*COMPARE, *tests), flags, strict=True):
            value = build.compare(name, a, b) if name in COMPARE else build.op("math", T.BOOL, a, attr=name)
            build.store(flag, build.cast(value, T.u8), i)
    va, vb = pairs(t)
    count = len(outs) + 2 + len(flags)
    args = [np.zeros(len(va), va.dtype) for _ in range(len(outs) + 2)] + [np.zeros(len(va), np.uint8) for _ in flags] + [va, vb]
    options = {"math": exact_fmod} if own_fmod else {}
    with np.errstate(all="ignore"):
        for lanes, got in zip((1, 16), both(build.kernel, args, count, **options), strict=True):
            for k, name in enumerate(names):
                expected = binary[name](va, vb) if name in binary else unary[name](va)
                assert same(got[k], expected), (
                    name,
                    lanes,
                    [r for r in zip(va, vb, got[k], expected, strict=True) if not same(r[2], r[3])][:4],
                )
            for k, op in ((len(outs), "min"), (len(outs) + 1, "max")):
                expected = np.array([preferred(op, p, q) for p, q in zip(va, vb, strict=True)], va.dtype)
                assert same(got[k], expected), (op, lanes)
            for k, name in enumerate((*COMPARE, *tests)):
                expected = COMPARE[name](va, vb) if name in COMPARE else tests[name](va)
                assert np.array_equal(got[len(outs) + 2 + k].astype(bool), expected), (name, lanes)


def exact_fmod(name: str, dtype: DType) -> Any:
    """A typed fmod with loops, for tests of inlining: |a| minus |b| times powers of two, largest first."""
    from tack.ir import nodes as ir

    if name != "fmod":
        raise KeyError(name)
    build = Build()
    a, b, result = ir.Var("a", dtype), ir.Var("b", dtype), ir.Var("result", dtype)
    body = ir.Block()
    zero, inf = 0.0, math.inf
    with build.into(body), build.scope() as scope:
        pa, pb = (build.op("math", dtype, build.get(v), attr="fabs") for v in (a, b))
        bad = build.op(
            "or",
            T.BOOL,
            build.compare("eq", pb, build.const(dtype, zero)),
            build.op("lnot", T.BOOL, build.compare("lt", pa, build.const(dtype, inf))),
        )
        bad = build.op("or", T.BOOL, bad, build.op("math", T.BOOL, pb, attr="isnan"))
        with build.when(bad):
            build.set(result, build.const(dtype, math.nan))
            build.leave(scope)
        with build.when(build.compare("lt", pa, pb)):
            build.set(result, build.get(a))
            build.leave(scope)
        rest, part = build.var("rest", pa), build.var("part", pb)
        half = build.same("mul", pa, build.const(dtype, 0.5))
        grow = build.while_()
        with build.into(grow.test):
            grow.cond = build.compare("le", build.get(part), half)
        with build.into(grow.body):
            build.set(part, build.same("add", build.get(part), build.get(part)))
        shrink = build.while_()
        with build.into(shrink.test):
            shrink.cond = build.compare("ge", build.get(part), pb)
        with build.into(shrink.body):
            with build.when(build.compare("ge", build.get(rest), build.get(part))):
                build.set(rest, build.same("sub", build.get(rest), build.get(part)))
            build.set(part, build.same("mul", build.get(part), build.const(dtype, 0.5)))
            with build.when(build.compare("eq", build.get(part), build.const(dtype, zero))):
                build.break_()
        build.set(result, build.op("math", dtype, build.get(rest), build.get(a), attr="copysign"))
    return ir.Function("fmod", [a, b], body, [result])


def preferred(op: str, a: Any, b: Any) -> Any:
    if np.isnan(a):
        return b
    return b if (b < a if op == "min" else b > a) else a


@tack.kernel(simd=1)
def along(o, a):  # type: ignore[no-untyped-def]
    for i in range(o.shape[0]):
        best = a[i, 0]
        for k in range(1, 9):
            best = min(a[i, k], best + a[i, 0])
        o[i] = best


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_lesser_of_two_numbers_takes_an_instruction_and_no_jump(dtype: str) -> None:
    """x86 has one that knows NaN; LLVM's jump instead is foretold wrongly every other time."""
    if not tack.device("cpu").arch.startswith("x86-64"):
        pytest.skip("of x86")
    code = tack.inspect(along, np.zeros(5, dtype), np.zeros((5, 9), dtype), mode="asm")
    assert f"mins{'s' if dtype == 'f4' else 'd'}" in code


def test_casts() -> None:
    for source in T.ARRAY_DTYPES:
        build = Build()
        outs = [build.array(f"o_{t.name}", t) for t in T.ARRAY_DTYPES]
        truth = build.array("truth", T.u8)
        x = build.array("x", source)
        with build.parallel((x, 0)) as (i,):
            a = build.load(x, i)
            for t, out in zip(T.ARRAY_DTYPES, outs, strict=True):
                build.store(out, build.cast(a, t), i)
            build.store(truth, build.cast(build.cast(a, T.BOOL), T.u8), i)
        values = edges(source)
        if source.is_float:
            powers = [v for n in (7, 8, 15, 16, 31, 32, 63, 64) for v in (2.0**n, -(2.0**n), 2.0**n - 1, 2.0**n + 0.5, 254.9)]
            values = np.concatenate([values, np.array(powers, values.dtype)])
        args = [np.zeros(len(values), NUMPY[t.name]) for t in T.ARRAY_DTYPES] + [np.zeros(len(values), np.uint8), values]
        for got in both(build.kernel, args, len(outs) + 1):
            for t, result in zip(T.ARRAY_DTYPES, got, strict=False):
                with np.errstate(all="ignore"):
                    expected = [converted(v, source, t) for v in values] if t.is_int else values.astype(NUMPY[t.name]).tolist()
                assert np.array_equal(result, np.array(expected, result.dtype), equal_nan=t.is_float), (source, t)
            assert np.array_equal(got[-1], (values != 0).astype(np.uint8))


@pytest.mark.parametrize(("source", "bits"), [(T.f32, 32), (T.f64, 64)], ids=["f32", "f64"])
def test_float_to_int_as_the_interpreter(source: DType, bits: int) -> None:
    """Bit patterns by stride, and the neighbours of every type's ends: vectors and scalars give what the interpreter gives."""
    unsigned = np.dtype(f"u{bits // 8}")
    values = (np.arange(60_000, dtype=unsigned) * unsigned.type((1 << bits) // 60_000 | 1)).view(NUMPY[source.name])
    ends = np.array([float(v) for t in INTS for v in (t.min, t.max, t.max + 1)], values.dtype)
    near = [np.nextafter(ends, values.dtype.type(way)) for way in (-np.inf, np.inf)]
    values = np.concatenate([values, ends, *near, ends + values.dtype.type(0.5), ends - values.dtype.type(0.5)])
    build = Build()
    outs = [build.array(f"o_{t.name}", t) for t in INTS]
    x = build.array("x", source)
    with build.parallel((x, 0)) as (i,):
        for t, out in zip(INTS, outs, strict=True):
            build.store(out, build.cast(build.load(x, i), t), i)
    args = [np.zeros(len(values), NUMPY[t.name]) for t in INTS] + [values]
    expected = [np.array([arith.cast(v, t) for v in values.tolist()], NUMPY[t.name]) for t in INTS]
    for got in both(build.kernel, args, len(outs)):
        for t, result, right in zip(INTS, got, expected, strict=True):
            assert np.array_equal(result, right), (t, values[result != right][:5])


@pytest.mark.parametrize("op", ["min", "max"])
def test_float_to_int_at_the_ends(op: str) -> None:
    """Minima and maxima of a conversion with constants, which LLVM takes for saturating conversions to other types."""
    for t in INTS:
        constants = {t.min, t.max, t.min + 1, t.max - 1, 0, 1, 127, 15}
        build = Build()
        outs = [build.array(f"o{k}", t) for k in range(len(constants))]
        x = build.array("x", T.f32)
        with build.parallel((x, 0)) as (i,):
            for c, out in zip(constants, outs, strict=True):
                build.store(out, build.same(op, build.cast(build.load(x, i), t), build.const(t, c)), i)
        values = edges(T.f32)
        args = [np.zeros(len(values), NUMPY[t.name]) for _ in constants] + [values]
        for level in (0, 2):
            for got in both(build.kernel, args, len(outs), optimize=level):
                for c, result in zip(constants, got, strict=True):
                    pick = min if op == "min" else max
                    assert result.tolist() == [pick(arith.cast(v, t), c) for v in values.tolist()], (t, c)


def test_float_to_int_stays_in_vectors() -> None:
    """No lane is taken out of its vector for a conversion that the processor has for vectors."""
    build = Build()
    out, x = build.array("out", T.i32), build.array("x", T.f32)
    with build.parallel((x, 0)) as (i,):
        build.store(out, build.cast(build.load(x, i), T.i32), i)
    source = build_source(build.kernel, target(8, arch="x86-64-v3", vector_bits=256), no_math)
    assembly = compile_ir(source.name, source.text, source.arch, 2, "assembly").decode()
    assert "vcvttps2dq" in assembly
    assert "cvttss2si" not in assembly


def converted(value: Any, source: DType, t: DType) -> int:
    if not source.is_float:
        return wrap(int(value), t)
    if math.isnan(value):
        return 0
    return max(t.min, min(t.max, math.trunc(float(value)))) if math.isfinite(value) else (t.max if value > 0 else t.min)


def test_bitcast_select_fma_and_bool() -> None:
    build = Build(exact=True)
    o, back, sel, fused, logic = (
        build.array("o", T.u32),
        build.array("back", T.f32),
        build.array("sel", T.f32),
        build.array("fused", T.f32),
        build.array("logic", T.u8),
    )
    x, y = build.array("x", T.f32), build.array("y", T.f32)
    with build.parallel((x, 0)) as (i,):
        a, b = build.load(x, i), build.load(y, i)
        bits = build.op("bitcast", T.u32, a)
        build.store(o, bits, i)
        build.store(back, build.op("bitcast", T.f32, bits), i)
        less = build.compare("lt", a, b)
        build.store(sel, build.op("select", T.f32, less, a, b), i)
        build.store(fused, build.op("fma", T.f32, a, b, a), i)
        some = build.op(
            "xor",
            T.BOOL,
            build.op("or", T.BOOL, less, build.op("lnot", T.BOOL, less)),
            build.op("and", T.BOOL, less, build.const(T.BOOL, True)),
        )
        build.store(logic, build.cast(some, T.u8), i)
    r = np.random.default_rng(1)
    va, vb = r.normal(size=50).astype("f"), r.normal(size=50).astype("f")
    args = [np.zeros(50, np.uint32), *(np.zeros(50, "f") for _ in range(3)), np.zeros(50, np.uint8), va, vb]
    for got in both(build.kernel, args, 5):
        assert np.array_equal(got[0], va.view(np.uint32))
        assert np.array_equal(got[1], va)
        assert np.array_equal(got[2], np.minimum(va, vb))
        exact = (va.astype("d") * vb.astype("d") + va.astype("d")).astype("f")  # exact in f64 but for the last rounding
        assert np.array_equal(got[3], exact)
        assert np.array_equal(got[4], (~(va < vb)).astype(np.uint8))


@pytest.mark.parametrize("exact", [False, True])
def test_contraction_rule(exact: bool) -> None:
    """A product with one use that is added becomes an fma; with exact=True none does."""
    build = Build(exact=exact)
    outs = [build.array(n, T.f32) for n in ("add", "left", "right", "shared")]
    x, y, z = (build.array(n, T.f32) for n in "xyz")
    with build.parallel((x, 0)) as (i,):
        a, b, c = (build.load(v, i) for v in (x, y, z))
        build.store(outs[0], build.same("add", build.same("mul", a, b), c), i)
        build.store(outs[1], build.same("sub", build.same("mul", a, b), c), i)
        build.store(outs[2], build.same("sub", c, build.same("mul", a, b)), i)
        twice = build.same("mul", a, b)
        build.store(outs[3], build.same("mul", build.same("add", twice, c), twice), i)
    r = np.random.default_rng(2)
    v = [r.normal(size=100).astype("f") for _ in range(3)]
    f32, f64 = (lambda q: np.asarray(q, np.float32)), [q.astype("d") for q in v]
    for got in both(build.kernel, [np.zeros(100, "f") for _ in outs] + v, 4):
        if exact:
            assert np.array_equal(got[0], v[0] * v[1] + v[2])
            assert np.array_equal(got[2], v[2] - v[0] * v[1])
        else:
            assert np.array_equal(got[0], f32(f64[0] * f64[1] + f64[2]))
            assert np.array_equal(got[1], f32(f64[0] * f64[1] - f64[2]))
            assert np.array_equal(got[2], f32(f64[2] - f64[0] * f64[1]))
        assert np.array_equal(got[3], (v[0] * v[1] + v[2]) * (v[0] * v[1]))


def test_fast_math_flags() -> None:
    build = Build(fast_math=True)
    o = build.array("o", T.f32)
    with build.parallel((o, 0)) as (i,):
        build.store(o, build.op("div", T.f32, build.load(o, i), build.const(T.f32, 3.0)), i)
    program = Program(build.kernel)
    assert "fdiv fast" in program.source.text
    values = np.arange(1, 40, dtype="f")
    got = values.copy()
    program(got)
    np.testing.assert_allclose(got, values / 3, rtol=1e-6)


def test_no_fma_where_the_machine_has_none() -> None:
    for arch, fused in (("x86-64", False), ("x86-64-v3", True)):
        build = Build()
        o = build.array("o", T.f32)
        with build.parallel((o, 0)) as (i,):
            a = build.load(o, i)
            build.store(o, build.same("add", build.same("mul", a, build.const(T.f32, 3.0)), a), i)
        assert ("llvm.fma" in Program(build.kernel, arch=arch, vector_bits=128).source.text) == fused


def test_edges_are_edges() -> None:
    """The tables above are only worth something if they hold the hard cases."""
    for t in INTS:
        a, b = pairs(t)
        assert (t.min, 0) in set(zip(a.tolist(), b.tolist(), strict=True))
        assert not t.is_signed or (t.min, -1) in set(itertools.product(a.tolist(), b.tolist()))
