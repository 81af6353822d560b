"""Kernels of typed IR, built by hand: what a device computes is what the interpreter computes, bit for bit."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tack
from tack import types as T
from tack.codegen import build_source
from tack.compiler import target_of
from tack.ir import interpret
from tack.ir import nodes as ir
from tack.ir.verify import verify
from tack.mathlink import math
from tack.types import DType

sys.path.append(str(Path(__file__).resolve().parents[1] / "unit"))
from codegen_harness import NUMPY, Build  # noqa: E402

INTS = T.ARRAY_DTYPES[:8]
FLOATS = T.ARRAY_DTYPES[8:]


def same(got: Any, expected: Any, what: str = "") -> None:
    """Equal bits; NaNs are one."""
    bits = got.dtype if got.dtype.kind != "f" else np.dtype(f"u{got.itemsize}")
    nan = np.isnan(got) & np.isnan(expected) if got.dtype.kind == "f" else np.zeros(got.shape, bool)
    differ = (got.view(bits) != expected.view(bits)) & ~nan
    assert not differ.any(), f"{what} at {np.argwhere(differ)[:5].tolist()}: {got[differ][:5]} is not {expected[differ][:5]}"


def run(device: tack.Device, build: Build, *args: Any, names: Sequence[str] = ()) -> Any:
    """Runs a kernel on the device and in the interpreter; all arrays, and the result, must agree."""
    kernel = build.kernel
    kernel.written = frozenset(p.index for p in kernel.params if isinstance(p, ir.ArrayParam))
    verify(kernel)
    expected = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with np.errstate(all="ignore"):
        wanted = interpret.run(kernel, expected, math_library=math)
    built = device.build(build_source(kernel, target_of(device), math), b"")
    given = [tack.array(a, device=device) if isinstance(a, np.ndarray) else a for a in args]
    result = built.launch(given)
    for param, got, right in zip(kernel.params, given, expected, strict=True):
        if isinstance(right, np.ndarray):
            value = got.numpy()
            if names and param.name == "out":
                for k, name in enumerate(names):
                    same(value[k], right[k], name)
            same(value, right, param.name)
    assert result == wanted or (result != result and wanted != wanted)
    return wanted


def edges(t: DType, count: int = 12) -> Any:
    """Numbers of a type where something may go wrong, and some others."""
    rng = np.random.default_rng(t.bits)
    if t.is_float:
        top = np.finfo(NUMPY[t.name])
        values = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            1.5,
            -2.5,
            np.inf,
            -np.inf,
            np.nan,
            float(top.max),
            float(top.tiny),
            float(top.smallest_subnormal),
        ]
        values += [127.5, -128.9, 255.9, 65536.0, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e9, 3.7, -0.3]
        return np.array([*values, *rng.normal(0, 50, count)], NUMPY[t.name])
    special = {t.min, t.min + 1, t.max, t.max - 1, 0, 1, 2, 3, 7, t.max // 2}
    special |= {v for v in (-1, -2, -7) if t.is_signed}
    return np.array([*sorted(special), *rng.integers(t.min, t.max, count, NUMPY[t.name], True)], NUMPY[t.name])


def pairs(t: DType) -> tuple[Any, Any]:
    both = np.array(list(itertools.product(edges(t), edges(t))), NUMPY[t.name])
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


@pytest.mark.parametrize("t", T.ARRAY_DTYPES, ids=str)
def test_operations(device: tack.Device, t: DType) -> None:
    if t == T.f64 and not device.supports_f64:
        pytest.skip("the device has no f64")
    x, y = pairs(t)
    build = Build("operations", exact=True)
    a, b, out, truth = build.array("a", t), build.array("b", t), build.array("out", t, 2), build.array("truth", T.u8, 2)
    both = ["add", "sub", "mul", "floordiv", "mod", "min", "max"]
    both += ["div"] if t.is_float else ["and", "or", "xor", "shl", "shr", "pow"]
    one = [("neg", None), ("abs", None)] + (
        [("not", None)] if t.is_int else [("math", f) for f in ("sqrt", "floor", "ceil", "trunc", "round", "fabs")]
    )
    bits = [("popcount", 1), ("clz", 1), ("ctz", 1), *((f, 2) for f in ("rotl", "rotr", "mulhi", "add_sat", "sub_sat"))] if t.is_int else []
    comparisons = ["eq", "ne", "lt", "le", "gt", "ge"]
    names: list[str] = []
    with build.parallel((a, 0)) as (i,):
        p, q = build.load(a, i), build.load(b, i)
        values = [build.same(op, p, q) for op in both]
        values += [build.same(op, p, attr=attr) for op, attr in one]
        values += [build.op("bits", t, *(p, q)[:n], attr=f) for f, n in bits]
        names += [*both, *(f"{op} {attr}" for op, attr in one), *(f for f, _ in bits)]
        if t.is_float:
            values += [build.op("math", t, p, q, attr="copysign"), build.op("fma", t, p, q, p), build.op("math", t, p, q, attr="fmod")]
            names += ["copysign", "fma", "fmod"]
        tests = [build.compare(op, p, q) for op in comparisons]
        if t.is_float:
            tests += [build.op("math", T.BOOL, p, attr=f) for f in ("isnan", "isinf", "isfinite")]
        tests += [
            build.op("and", T.BOOL, tests[0], tests[2]),
            build.op("or", T.BOOL, tests[1], tests[2]),
            build.op("xor", T.BOOL, tests[1], tests[2]),
        ]
        tests.append(build.op("lnot", T.BOOL, tests[2]))
        values.append(build.op("select", t, tests[2], p, q))
        names.append("select")
        for k, value in enumerate(values):
            build.store(out, value, build.i(k), i)
        for k, value in enumerate(tests):
            build.store(truth, build.cast(value, T.u8), build.i(k), i)
    run(device, build, x, y, np.zeros((len(values), len(x)), x.dtype), np.zeros((len(tests), len(x)), np.uint8), names=names)


@pytest.mark.parametrize("t", T.ARRAY_DTYPES, ids=str)
def test_casts(device: tack.Device, t: DType) -> None:
    dtypes = [d for d in T.ARRAY_DTYPES if device.supports_f64 or d != T.f64]
    if t not in dtypes:
        pytest.skip("the device has no f64")
    x = edges(t, 40)
    build = Build("casts")
    a = build.array("a", t)
    outs = [build.array(f"to_{d.name}", d) for d in dtypes]
    same_size = [d for d in dtypes if d.bits == t.bits]
    bits = [build.array(f"as_{d.name}", d) for d in same_size]
    with build.parallel((a, 0)) as (i,):
        value = build.load(a, i)
        for out in outs:
            build.store(out, build.cast(value, out.dtype) if out.dtype != t else value, i)
        for out in bits:
            build.store(out, build.op("bitcast", out.dtype, value), i)
    run(device, build, x, *(np.zeros(len(x), NUMPY[d.name]) for d in (*dtypes, *same_size)))


@pytest.mark.parametrize("t", INTS, ids=str)
def test_constants_of_divisions_shifts_and_powers(device: tack.Device, t: DType) -> None:
    x = edges(t, 30)
    build = Build("constants")
    a, out = build.array("a", t), build.array("out", t, 2)
    wanted = [1, 2, 3, 7, 8, 10, t.max] + ([-1, -2, -7, t.min] if t.is_signed else [])
    with build.parallel((a, 0)) as (i,):
        value = build.load(a, i)
        results = [build.same(op, value, build.const(t, k)) for op in ("floordiv", "mod", "mul", "sub", "and") for k in wanted]
        results += [build.same(op, value, build.const(t, k)) for op in ("shl", "shr") for k in (0, 1, t.bits - 1, t.bits, t.max)]
        results += [build.same("pow", value, build.const(t, k)) for k in (0, 1, 2, 5)]
        for k, result in enumerate(results):
            build.store(out, result, build.i(k), i)
    run(device, build, x, np.zeros((len(results), len(x)), x.dtype))


KINDS = ("add", "sub", "min", "max", "and", "or", "xor", "exchange", "cas")


@pytest.mark.parametrize("t", T.ARRAY_DTYPES, ids=str)
def test_atomics(device: tack.Device, t: DType) -> None:
    """One iteration after another on one element each: the old values and what is left."""
    if t.name not in device.atomic_dtypes:
        pytest.skip(f"the device has no atomics of {t.name}")
    x = edges(t)
    build = Build("atomics")
    a, b, cells, olds = build.array("a", t), build.array("b", t), build.array("cells", t, 2), build.array("olds", t, 2)
    kinds = [k for k in KINDS if t.is_int or k not in ("and", "or", "xor")]
    with build.parallel((a, 0)) as (i,):
        for k, kind in enumerate(kinds):
            values = [build.load(a, i), build.load(b, i)] if kind == "cas" else [build.load(b, i)]
            old = build.op("atomic", t, *values, build.i(k), i, attr=(kind, cells))
            build.store(olds, old, build.i(k), i)
            build.op("atomic", t, *reversed(values), build.i(k), i, attr=(kind, cells))  # its old value is not used
    start = np.stack([np.roll(x, 1) if kind != "cas" else x for kind in kinds])
    run(device, build, x, np.roll(x, 5), start, np.zeros_like(start))


@pytest.mark.parametrize("t", INTS, ids=str)
def test_loops_of_every_type(device: tack.Device, t: DType) -> None:
    """Bounds and steps at the ends of the type; counts and last values."""
    near = [t.min, t.min + 1, t.max - 1, t.max, 0, 3, *((-2,) if t.is_signed else ())]
    steps = [1, 2, t.max, t.max // 2 + 1, 0, *((-1, -3, t.min) if t.is_signed else ())]
    cases = list(itertools.product(near, near, steps))
    first, stop, step = (np.array(column, NUMPY[t.name]) for column in zip(*cases, strict=True))
    build = Build("loops")
    arrays = [build.array(name, t) for name in ("first", "stop", "step")]
    counts, last = build.array("counts", T.i64, 2), build.array("last", t, 2)
    with build.parallel((counts, 1)) as (i,):
        start, end, by = (build.load(a, i) for a in arrays)
        for k, stride in enumerate((by, build.const(t, 1), build.const(t, 3), build.const(t, -1 if t.is_signed else 2))):
            count, seen = build.var("count", build.i(0)), build.var("seen", build.const(t, 0))
            node = ir.For(ir.Var("k", t), start, end, stride, ir.Block(), ir.Block())
            build.stack[-1].body.append(node)
            with build.into(node.body):
                build.set(count, build.same("add", build.get(count), build.i(1)))
                build.set(seen, build.get(node.var))
                with build.when(build.compare("ge", build.get(count), build.i(70))):
                    build.break_()
            build.store(counts, build.get(count), build.i(k), i)
            build.store(last, build.get(seen), build.i(k), i)
    run(device, build, first, stop, step, np.zeros((4, len(cases)), np.int64), np.zeros((4, len(cases)), first.dtype))


OPERATORS = {
    "add": T.ARRAY_DTYPES,
    "mul": T.ARRAY_DTYPES,
    "min": T.ARRAY_DTYPES,
    "max": T.ARRAY_DTYPES,
    "and": INTS,
    "or": INTS,
    "xor": INTS,
}
SHAPES = ((1,), (63,), (1500,), (5000,), (3, 700), (900, 3), (7, 5, 90), (2, 3, 4, 110), (0,), (5, 0))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions(device: tack.Device, shape: tuple[int, ...]) -> None:
    """Several reductions of one loop, in the order that the language fixes; iterations that end early contribute nothing."""
    rng = np.random.default_rng(len(shape) * 1000 + shape[-1])
    chosen = [
        (op, t) for k, (op, ts) in enumerate(OPERATORS.items()) for t in (ts[(k + sum(shape)) % len(ts)], T.f32 if T.f32 in ts else T.i64)
    ]
    chosen = [(op, t) for op, t in dict.fromkeys(chosen) if t != T.f64 or device.supports_f64]
    build = Build("reductions", exact=True)
    x, out = build.array("x", T.f32, len(shape)), build.array("out", T.f32)
    variables = [ir.Var(f"r{k}", t) for k, (_, t) in enumerate(chosen)]
    flags = ir.Var("all_", T.BOOL), ir.Var("any_", T.BOOL)
    with build.segment():
        for var in variables:
            build.set(var, build.const(var.type, 3.0 if var.type.is_float else 3))
        for flag in flags:
            build.set(flag, build.const(T.BOOL, flag is flags[0]))
    with build.parallel(*((x, d) for d in range(len(shape))), start=[0] * len(shape)) as index:
        value = build.load(x, *index)
        with build.when(build.compare("gt", value, build.const(T.f32, 40.0))):
            build.continue_()
        for (op, t), var in zip(chosen, variables, strict=True):
            build.set(var, build.same(op, build.get(var), build.cast(value, t) if t != T.f32 else value))
        small = build.compare("lt", value, build.const(T.f32, 39.0))
        for op, flag in zip(("and", "or"), flags, strict=True):
            build.set(flag, build.op(op, T.BOOL, build.get(flag), small))
    build.last.reductions = [ir.Reduction(var, op) for (op, _), var in zip(chosen, variables, strict=True)]
    build.last.reductions += [ir.Reduction(flags[0], "and"), ir.Reduction(flags[1], "or")]
    with build.segment():
        for k, var in enumerate((*variables, *flags)):
            build.store(out, build.cast(build.get(var), T.f32) if var.type != T.f32 else build.get(var), build.i(k))
        result = build.var("result", build.get(variables[0]))
    build.kernel.result = result
    run(device, build, rng.normal(0, 20, shape).astype(np.float32), np.zeros(len(chosen) + 2, np.float32))


def test_tables_hold_every_float(device: tack.Device) -> None:
    values = (0.0, -0.0, 1.5, float("inf"), -float("inf"), float("nan"), 1e-45, 0.1)
    build = Build("tables")
    at, out, ints = build.array("at", T.i64), build.array("out", T.f32), build.array("ints", T.u64)
    with build.parallel((at, 0)) as (i,):
        index = build.load(at, i)
        build.store(out, build.op("table", T.f32, index, attr=ir.Table(tuple(float(np.float32(v)) for v in values))), i)
        build.store(ints, build.op("table", T.u64, index, attr=ir.Table((0, 1, 2**63, 2**64 - 1, 5, 6, 7, 8))), i)
    run(device, build, np.arange(8), np.zeros(8, np.float32), np.zeros(8, np.uint64))


@pytest.mark.parametrize("seed", range(24))
def test_random_kernels(device: tack.Device, seed: int) -> None:
    from test_codegen_random import Generator, inputs

    if not device.supports_f64:
        pytest.skip("the device has no f64")
    rank = 1 + seed % 3
    build = Generator(seed, rank).b
    run(device, build, *inputs(seed, {1: (37,), 2: (3, 21), 3: (2, 3, 7)}[rank]))
