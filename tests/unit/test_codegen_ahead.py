"""Gathers and scatters on arrays that caches don't hold: lines are asked for ahead, results and what is touched stay the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from codegen_harness import Build, Program, no_math, target

from tack import types as T
from tack.codegen import build_source, llvm_ahead
from tack.ir import nodes as ir

LARGE = llvm_ahead._BYTES
FAR = llvm_ahead._ITERATIONS
REQUEST = "call void @llvm.prefetch.p0("


def moved(kind: str, dtype: T.DType = T.u8, rank: int = 1) -> ir.Kernel:
    """``o[i] = x[at[i] * 3 + 1]`` or ``x[at[i] * 3 + 1] = o[i]``; with a rank of 2, ``at`` and ``o`` have rows."""
    build = Build(kind)
    o, x, at = build.array("o", dtype, rank), build.array("x", dtype), build.array("at", T.i32, rank)
    with build.parallel(*((o, d) for d in range(rank))) as index:
        place = build.cast(build.load(at, *index), T.i64)
        place = build.same("add", build.same("mul", place, build.i(3)), build.i(1))
        if kind == "gather":
            build.store(o, build.load(x, place), *index)
        elif kind == "scatter":
            build.store(x, build.load(o, *index), place)
        else:
            build.op("atomic", dtype, build.load(o, *index), place, attr=("add", x))
    return build.kernel


def text(kernel: ir.Kernel, **changes: Any) -> str:
    return build_source(kernel, target(**changes), no_math).text


@pytest.mark.parametrize("simd", [0, 1])
@pytest.mark.parametrize("kind", ["gather", "scatter", "atomic"])
def test_large_arrays_and_small_ones(kind: str, simd: int) -> None:
    """Around the size from which on lines are asked for, and pieces around the length from which on that happens."""
    program = Program(moved(kind), simd)
    random = np.random.default_rng(5)
    for size in (4000, LARGE - 1, LARGE, LARGE + 5):
        x = np.zeros(size, np.uint8)
        for n in (1, FAR + 3, FAR + 4, FAR + 5, 1203):
            at = (random.permutation(n) * ((size - 2) // 3 // max(n - 1, 1))).astype(np.int32)
            o = random.integers(1, 255, n).astype(np.uint8)
            x[at * 3 + 1] = before = o[::-1].copy()
            given = o.copy()
            program(o, x, at, cuts=(0.001, 0.4, 0.41))
            wanted = {"gather": before, "scatter": given, "atomic": before + given}[kind]
            assert np.array_equal(o if kind == "gather" else x[at * 3 + 1], wanted)
            x[at * 3 + 1] = 0
            assert not x.any()


@pytest.mark.parametrize("kind", ["gather", "scatter"])
def test_rows(kind: str) -> None:
    """The last index is that of a later iteration of the same row."""
    program = Program(moved(kind, T.f32, 2))
    x = np.zeros(LARGE // 4 + 1, np.float32)
    for shape in ((3, 500), (2, FAR + 4), (40, 20)):
        at = np.random.default_rng(2).permutation(shape[0] * shape[1]).astype(np.int32).reshape(shape)
        o = np.arange(1, at.size + 1, dtype=np.float32).reshape(shape)
        if kind == "gather":
            x[at * 3 + 1] = o[::-1]
        want = o[::-1].copy() if kind == "gather" else o.copy()
        program(o, x, at, cuts=(0.3, 0.77))
        assert np.array_equal(x[at * 3 + 1] if kind == "scatter" else o, want)
        x[...] = 0


def test_what_is_asked_for() -> None:
    """The line itself, for reading or for writing, as long as the iteration that is looked at belongs to the piece."""
    for kind, write in (("gather", 0), ("scatter", 1), ("atomic", 1)):
        code = text(moved(kind), simd=1)
        loop = code.split("\nasking:")[1].split("\nseveral.next")[0]
        assert len(re.findall(rf"prefetch\.p0\(ptr %x\.at\S*, i32 {write}, i32 3, i32 1\)", loop)) == 4
        assert code.count(REQUEST) == 4
        assert re.search(rf"icmp sge i64 %left\S*, {FAR + 4}\n", code)
        ahead = [int(k) for k in re.findall(r"%ahead\S* = add nuw nsw i64 %i\S*, (\d+)", loop)]
        assert ahead == [FAR, FAR + 1, FAR + 2, FAR + 3]


def test_what_is_not() -> None:
    """Accesses of the launch's own indices, indices of which not every iteration reads the element, chains of two loads, checked ones."""
    build = Build("copy")
    o, x, at = build.array("o", T.f32), build.array("x", T.f32), build.array("at", T.i32)
    with build.parallel((o, 0)) as (i,):
        build.store(o, build.load(x, i), i)
    assert REQUEST not in text(build.kernel, simd=1)

    build = Build("some")
    o, x, at = build.array("o", T.f32), build.array("x", T.f32), build.array("at", T.i32)
    with build.parallel((o, 0)) as (i,), build.when(build.compare("lt", build.load(o, i), build.const(T.f32, 0.0))):
        build.store(o, build.load(x, build.cast(build.load(at, i), T.i64)), i)
    assert REQUEST not in text(build.kernel, simd=1)

    build = Build("chain")
    o, x, at = build.array("o", T.f32), build.array("x", T.f32), build.array("at", T.i32)
    with build.parallel((o, 0)) as (i,):
        first = build.cast(build.load(at, i), T.i64)
        build.store(o, build.load(x, build.cast(build.load(at, first), T.i64)), i)
    code = text(build.kernel, simd=1)
    assert code.count(REQUEST) == 4  # the element of `at` that the first load tells, not the one of `x`
    assert "prefetch.p0(ptr %x" not in code
