"""Atomics on floats: private tables for what may be combined in any order, one exchange for lanes that meet in one element."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest
from codegen_harness import Build, Program, no_math, target

from tack import types as T
from tack.codegen import build_source
from tack.ir import nodes as ir
from tack.types import DType

WIDTHS = (0, 1, 2, 8, 32)
CUTS = (0.001, 0.31, 0.5, 0.77)
NUMPY = {"f32": np.float32, "f64": np.float64}
FLOATS = pytest.mark.parametrize("dtype", [T.f32, T.f64], ids=str)


def histogram(kind: str, dtype: DType, **options: Any) -> ir.Kernel:
    """``h[places[i]] = kind(h[...], values[i])``."""
    build = Build("hist", **options)
    h, values, places = build.array("h", dtype), build.array("values", dtype), build.array("places", T.i32)
    with build.parallel((values, 0)) as (i,):
        build.op("atomic", dtype, build.load(values, i), build.cast(build.load(places, i), T.i64), attr=(kind, h))
    return build.kernel


def total(kind: str, dtype: DType, **options: Any) -> ir.Kernel:
    """``t[0] = kind(t[0], x[i])`` for every x that is not 7."""
    build = Build("total", **options)
    t, x = build.array("t", dtype), build.array("x", dtype)
    with build.parallel((x, 0)) as (i,):
        value = build.load(x, i)
        with build.when(build.compare("ne", value, build.const(dtype, 7.0))):
            build.op("atomic", dtype, value, build.i(0), attr=(kind, t))
    return build.kernel


def text(kernel: ir.Kernel, **changes: Any) -> str:
    return build_source(kernel, target(**changes), no_math).text


def bits(a: np.ndarray) -> np.ndarray:
    return a.view(f"u{a.itemsize}")


@pytest.mark.parametrize("kind", ["min", "max"])
@FLOATS
def test_tables_of_the_least_and_the_greatest(dtype: DType, kind: str) -> None:
    """Numbers rather than NaNs, in the array and among the values; elements that nobody updates keep their bits."""
    kernel = histogram(kind, dtype)
    assert "\nprivate:" in text(kernel)
    random = np.random.default_rng(4)
    n, count = 3001, 23
    values = random.normal(0, 100, n).astype(NUMPY[dtype.name])
    values[random.integers(0, n, 900)] = np.nan
    values[random.integers(0, n, 20)] = np.inf
    values[random.integers(0, n, 20)] = -np.inf
    places = random.integers(0, 20, n).astype(np.int32)
    values[places == 3] = np.nan
    values[places == 4] = -0.0
    first = random.normal(0, 1, count).astype(values.dtype)
    first[[2, 3, 21]] = np.nan
    first[[4, 22]] = -0.0
    bits(first)[21] += 5  # of NaNs, one of its own
    want = first.copy()
    (np.fmin if kind == "min" else np.fmax).at(want, places, values)
    for simd in WIDTHS:
        got = first.copy()
        Program(kernel, simd)(got, values, places, cuts=CUTS)
        assert np.array_equal(got, want, equal_nan=True), simd
        assert np.array_equal(bits(got)[20:], bits(first)[20:]), simd
        assert np.signbit(got[4])


@pytest.mark.parametrize("kind", ["add", "sub"])
@FLOATS
def test_tables_of_sums_are_fast_maths_alone(dtype: DType, kind: str) -> None:
    assert "\nprivate:" not in text(histogram(kind, dtype))
    kernel = histogram(kind, dtype, fast_math=True)
    assert "\nprivate:" in text(kernel)
    random = np.random.default_rng(4)
    n, count = 3001, 23
    values = random.integers(-50, 50, n).astype(NUMPY[dtype.name])
    places = random.integers(0, 20, n).astype(np.int32)
    first = random.integers(-9, 9, count).astype(values.dtype)
    first[20:] = np.nan, -0.0, 0.0
    want = first.copy()
    (np.add if kind == "add" else np.subtract).at(want, places, values)
    for simd in WIDTHS:
        got = first.copy()
        Program(kernel, simd)(got, values, places, cuts=CUTS)
        assert np.array_equal(got[:20], want[:20]), simd
        assert np.array_equal(bits(got)[20:], bits(first)[20:]), simd


@pytest.mark.parametrize("kind", ["add", "sub"])
@FLOATS
def test_lanes_that_meet_in_one_element_add_in_turn(dtype: DType, kind: str) -> None:
    """The bits of as many atomics in the order of the iterations, from a piece's first lanes to its last ones."""
    kernel = total(kind, dtype)
    random = np.random.default_rng(6)
    for simd in WIDTHS:
        program = Program(kernel, simd)
        for n in (1, 15, 64, 1003):
            x = (random.normal(0, 1, n) * 10.0 ** random.integers(-6, 6, n)).astype(NUMPY[dtype.name])
            x[random.random(n) < 0.3] = 7.0
            want = x.dtype.type(0.1)
            for v in x[x != 7.0]:
                want = want + v if kind == "add" else want - v
            for cuts in (CUTS, ()):
                got = np.full(1, 0.1, x.dtype)
                program(got, x, cuts=cuts)
                assert bits(got)[0] == bits(np.array([want], x.dtype))[0], (simd, n, cuts)
        nothing = np.full(1, -0.0, x.dtype)
        program(nothing, np.full(70, -0.0 if kind == "add" else 0.0, x.dtype))
        assert np.signbit(nothing[0])


@pytest.mark.parametrize("kind", ["min", "max"])
@FLOATS
def test_lanes_that_meet_in_one_element_leave_the_least(dtype: DType, kind: str) -> None:
    kernel = total(kind, dtype)
    for simd in WIDTHS:
        program = Program(kernel, simd)
        for n in (1, 15, 64, 1003):
            x = np.random.default_rng(n).normal(0, 100, n).astype(NUMPY[dtype.name])
            x[::3] = np.nan
            for first in (np.nan, 0.0, 1e9, -1e9):
                want = (np.fmin if kind == "min" else np.fmax).reduce([x.dtype.type(first), *x[x != 7.0]])
                for cuts in (CUTS, ()):
                    got = np.full(1, first, x.dtype)
                    program(got, x, cuts=cuts)
                    assert np.array_equal(got[0], want, equal_nan=True), (simd, n, first, cuts)


def test_one_exchange_for_all_lanes() -> None:
    strict, fast = (text(total("add", T.f32, fast_math=f), simd=8) for f in (False, True))
    in_turn = re.findall(r"call float @llvm.vector.reduce.fadd.v8f32\(float %", strict)
    assert strict.count("= cmpxchg") == 2  # in full groups of lanes, and in the last one
    assert len(in_turn) == 4  # each also for a launch that is alone
    assert "atomic.turn" not in strict
    assert "atomic.turn" not in fast
    assert re.search(r"call (fast|.*reassoc.*) float @llvm.vector.reduce.fadd.v8f32\(float 0x8000000000000000, ", fast)
    used = Build("used")
    t, x = used.array("t", T.f32), used.array("x", T.f32)
    with used.parallel((x, 0)) as (i,):
        used.store(x, used.op("atomic", T.f32, used.load(x, i), used.i(0), attr=("add", t)), i)
    assert "atomic.turn" in text(used.kernel, simd=8)  # each lane's old value is its own


def test_threads() -> None:
    """Pieces at the same time lose no update: sums of whole numbers are exact."""
    program = Program(total("add", T.f64), 8)
    x = np.random.default_rng(3).integers(8, 90, 200_000).astype(np.float64)
    got = np.zeros(1)
    threads = [threading.Thread(target=program, args=(got, x[k::4].copy()), kwargs={"cuts": CUTS}) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got[0] == x.sum()


def test_code_for_a_launch_that_is_alone() -> None:
    """The same function, told so: the code is there once. Entries without atomics have none."""
    source = build_source(total("add", T.f32), target(simd=1), no_math)
    entry = source.entries[0]
    assert entry.alone == f"{entry.symbol}.alone"
    assert entry.locked_cost > 2
    for symbol, told in ((entry.symbol, "false"), (entry.alone, "true")):
        assert re.search(
            rf"define void @{re.escape(symbol)}\([^\n]*\n  call fastcc void @{entry.symbol}\.run\([^\n]*, i1 {told}\)", source.text
        )
    assert source.text.count("br i1 %alone, ") == source.text.count("cmpxchg") + source.text.count("atomicrmw")
    build = Build("plain")
    x = build.array("x", T.f32)
    with build.parallel((x, 0)) as (i,):
        build.store(x, build.load(x, i), i)
    plain = build_source(build.kernel, target(), no_math)
    assert (plain.entries[0].alone, plain.entries[0].locked_cost) == ("", 1.0)
    assert "%alone" not in plain.text
