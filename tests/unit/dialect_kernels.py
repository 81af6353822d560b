"""Kernels that show what the dialects of printed C spell differently, and the devices that the tests print them for."""

from __future__ import annotations

import dataclasses
from typing import Any

from codegen_harness import ALL, Build, no_math
from group_programs import GPU, grouped, loop

from tack import types as T
from tack.codegen import build_source
from tack.frontend.meaning import ArrayArg
from tack.ir import nodes as ir
from tack.ir.source import KernelSource
from tack.ir.target import Target

ATOMICS = frozenset({T.i32, T.u32, T.f32})
LEVEL_ZERO = dataclasses.replace(GPU, backend="level_zero", title="Level Zero", arch="skl", atomic_dtypes=ATOMICS)
METAL = dataclasses.replace(LEVEL_ZERO, backend="metal", title="Metal", arch="apple7", supports_f64=False, array_dtypes=ALL - {T.f64})


def printed(kernel: ir.Kernel | Build, target: Target, **changes: Any) -> KernelSource:
    made = kernel.kernel if isinstance(kernel, Build) else kernel
    return build_source(made, dataclasses.replace(target, **changes), no_math)


def peaks(target: Target) -> ir.Kernel:
    """Atomics on a group's memory and on arrays, native ones and made ones; a barrier; a block reduction; a captured table."""
    text = loop(
        """
        highest = tack.shared(tack.f32, 4)
        counts = tack.shared(tack.i32, 4)
        t = tack.thread_id()
        if t < 4:
            highest[t] = -1.0
            counts[t] = 0
        tack.barrier()
        bin = int(x[i]) & 3
        tack.atomic_max(highest, bin, x[i] * weights[int(x[i]) % 100])
        tack.atomic_sub(counts, bin, -1)
        tack.barrier()
        total = tack.block_sum(x[i])
        if t < 4:
            tack.atomic_max(peaks, t, highest[t] + total)
            tack.atomic_add(hits, t, counts[t])
        """,
        "peaks, hits, x",
    )
    return grouped(
        text, ArrayArg(T.f32, 1), ArrayArg(T.i32, 1), ArrayArg(T.f32, 1), target=target, weights=tuple(k * 0.25 for k in range(100))
    )


def mean() -> Build:
    """A reduction of f32, and what comes behind it."""
    build = Build("mean")
    x, out = build.array("x", T.f32), build.array("out", T.f32)
    sum_ = ir.Var("total", T.f32)
    with build.segment():
        build.set(sum_, build.const(T.f32, 0.0))
    with build.parallel((x, 0)) as (i,):
        build.set(sum_, build.same("add", build.get(sum_), build.load(x, i)))
    build.last.reductions = [ir.Reduction(sum_, "add")]
    with build.segment():
        build.store(out, build.same("div", build.get(sum_), build.cast(build.shape(x), T.f32)), build.i(0))
    return build


def everything(t: T.DType) -> Build:
    """Bit functions, shifts, reinterpretations and math of a type, where languages have names of their own for them."""
    build = Build("everything")
    a, out, local = build.array("a", t), build.array("out", t, 2), ir.LocalArray("scratch", t, (3,))
    with build.parallel((a, 0)) as (i,):
        value = build.load(a, i)
        build.store(local, value, build.i(1))
        results = [build.load(local, build.i(1))]
        if t.is_float:
            results += [build.op("math", t, value, attr=f) for f in ("sqrt", "floor", "ceil", "trunc", "round", "fabs")]
            results += [build.op("math", t, value, value, attr="copysign"), build.op("fma", t, value, value, value)]
            bits = T.by_name(f"u{t.bits}")
            results += [build.op("bitcast", t, build.same("xor", build.op("bitcast", bits, value), build.const(bits, 1)))]
        else:
            results += [build.op("bits", t, value, attr=f) for f in ("popcount", "clz", "ctz")]
            results += [build.op("bits", t, value, value, attr=f) for f in ("rotl", "mulhi", "add_sat", "sub_sat")]
            results += [build.same("shl", value, value), build.same("floordiv", value, value)]
        for k, result in enumerate(results):
            build.store(out, result, build.i(k), i)
    return build


def sampling() -> Build:
    """A texture read in each of the three ways."""
    build = Build("sampling")
    texels, out = build.array("texels", T.f32, 3), build.array("out", T.f32)
    with build.parallel((out, 0)) as (i,):
        at = build.cast(i, T.f32)
        values = [build.op("sample", T.f32, at, at, at, attr=(way, texels)) for way in ("nearest", "linear", "repeat")]
        build.store(out, build.same("add", build.same("add", values[0], values[1]), values[2]), i)
    return build
