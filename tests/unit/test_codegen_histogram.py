"""Atomics on small integer arrays that private tables replace: the same results, whatever the launch, the array and the other accesses."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from codegen_harness import NUMPY, Build, Program, no_math, target

from tack import types as T
from tack.codegen import build_source, llvm_tables
from tack.ir import nodes as ir
from tack.ir.source import KernelSource
from tack.types import DType, Layout

WIDTHS = (0, 1, 2, 8, 32)
CUTS = (0.001, 0.31, 0.5, 0.77)
INTEGERS = [t for t in T.ARRAY_DTYPES if t.is_int]
OPERATIONS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
}


def update(build: Build, kind: str, array: ir.ArrayParam, value: ir.Instr, *index: ir.Instr) -> ir.Instr:
    return build.op("atomic", array.dtype, value, *index, attr=(kind, array))


def histogram(kind: str, dtype: DType, rank: int = 1, layout: Layout = Layout.CONTIGUOUS) -> ir.Kernel:
    """h[places[i], ...] = kind(h[...], values[i])."""
    build = Build("hist")
    h, values = build.array("h", dtype, rank, layout), build.array("values", dtype)
    places = [build.array(f"places{d}", T.i32) for d in range(rank)]
    with build.parallel((values, 0)) as (i,):
        update(build, kind, h, build.load(values, i), *(build.cast(build.load(p, i), T.i64) for p in places))
    return build.kernel


def counting() -> tuple[Build, ir.ArrayParam, ir.ArrayParam]:
    build = Build("count")
    return build, build.array("h", T.i32), build.array("v", T.i32)


def text_of(kernel: ir.Kernel, **changes: Any) -> str:
    source: KernelSource = build_source(kernel, target(**changes), no_math)
    return source.text


def private(kernel: ir.Kernel, **changes: Any) -> bool:
    return "\nprivate:" in text_of(kernel, **changes)


def expected(kind: str, h: np.ndarray, values: np.ndarray, *places: np.ndarray) -> np.ndarray:
    out = h.copy()
    OPERATIONS[kind].at(out, places, values)
    return out


def random_of(dtype: DType, n: int, seed: int = 0) -> np.ndarray:
    info = np.iinfo(NUMPY[dtype.name])
    return np.random.default_rng(seed).integers(info.min, info.max, n, NUMPY[dtype.name], endpoint=True)


@pytest.mark.parametrize("kind", OPERATIONS)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_every_type_and_operation(dtype: DType, kind: str) -> None:
    """Values over the whole range, so that sums wrap around; pieces that are too short for a table, and long ones."""
    kernel = histogram(kind, dtype)
    assert private(kernel)
    n = 5003
    values, places = random_of(dtype, n), np.random.default_rng(1).integers(0, 37, n).astype(np.int32)
    for simd in WIDTHS:
        program = Program(kernel, simd)
        got = random_of(dtype, 37, 2)
        want = expected(kind, got, values, places)
        program(got, values, places, cuts=CUTS)
        assert np.array_equal(got, want), simd


@pytest.mark.parametrize("simd", WIDTHS)
@pytest.mark.parametrize("dtype", [T.i32, T.u8, T.i64], ids=str)
def test_every_size(dtype: DType, simd: int) -> None:
    """Around the sizes from which on there is one copy, or no table: in elements, with the reserve behind a table of 64 bytes."""
    program = Program(histogram("add", dtype), simd)
    size = dtype.itemsize
    several, one = (llvm_tables._BYTES // 4 - 64) // size, (llvm_tables._BYTES - 64) // size
    for count in (1, 2, 3, 63, 64, 65, several - 65, several - 1, several, several + 1, several + 65, one - 1, one, one + 1, one + 70):
        n = min(5 * count + 7, 40_000)  # 4 per element is the least; the last few sizes of one byte fall short of it
        values = random_of(dtype, n)
        places = np.random.default_rng(count).integers(0, count, n).astype(np.int32)
        places[:3] = count - 1, 0, count - 1
        around = random_of(dtype, count + 32, 3)
        want = around.copy()
        want[16:-16] = expected("add", around[16:-16], values, places)
        program(around[16:-16], values, places)
        assert np.array_equal(around, want), count


@pytest.mark.parametrize("simd", WIDTHS)
def test_how_many_iterations_pay(simd: int) -> None:
    program = Program(histogram("add", T.i32), simd)
    for n in (0, 1, 2, 39, 40, 41, 100):
        places = (np.arange(n) * 7 % 10).astype(np.int32)
        values = np.arange(n, dtype=np.int32)
        got = np.full(10, 5, np.int32)
        program(got, values, places)
        assert np.array_equal(got, 5 + np.bincount(places, values, minlength=10)), n


@pytest.mark.parametrize("simd", (0, 1, 8))
@pytest.mark.parametrize("layout", [Layout.CONTIGUOUS, Layout.INNER, Layout.GENERAL], ids=lambda layout: layout.name)
@pytest.mark.parametrize("rank", (1, 2, 3))
def test_views(rank: int, layout: Layout, simd: int) -> None:
    """The table is contiguous whatever the array is; elements between a view's own stay as they are."""
    program = Program(histogram("add", T.i32, rank, layout), simd)
    shape = (5, 4, 6)[:rank]
    n = 3001
    random = np.random.default_rng(7)
    values = random_of(T.i32, n)
    places = [random.integers(0, m, n).astype(np.int32) for m in shape]
    room = np.zeros(tuple(3 * m for m in shape), np.int32)
    views = [np.ascontiguousarray(room[tuple(slice(0, m) for m in shape)])]
    if layout != Layout.CONTIGUOUS:
        inner = slice(2, 2 + shape[-1])
        views.append(room[(*(slice(1, 1 + 2 * m, 2) for m in shape[:-1]), inner)])
        views.append(room[(*(slice(2 * m - 1, m - 1, -1) for m in shape[:-1]), inner)])
    if layout == Layout.GENERAL:
        views.append(room[tuple(slice(3 * m - 1, None, -3) for m in shape)])
        views.append(room.transpose()[tuple(slice(0, 2 * m, 2) for m in shape)])
    for view in views:
        room[...] = 11
        view[...] = 11
        want = expected("add", view, values, *places)
        others = room.sum(dtype=np.int64) - view.sum(dtype=np.int64) if view.base is not None else 0
        program(view, values, *places, cuts=CUTS)
        assert np.array_equal(view, want)
        if view.base is not None:
            assert room.sum(dtype=np.int64) - view.sum(dtype=np.int64) == others


@pytest.mark.parametrize("simd", WIDTHS)
def test_conditions_loops_and_two_tables(simd: int) -> None:
    """Lanes that part, loops of each lane's length, an early end, two arrays of different types, an element that all lanes meet in."""
    build, h, v = counting()
    sums, total, out = build.array("sums", T.u16, 2), build.array("total", T.i64), build.array("out", T.i32)
    with build.parallel((v, 0)) as (i,):
        x = build.load(v, i)
        place = build.cast(x, T.i64)
        build.store(out, build.same("add", x, build.const(T.i32, 1)), i)
        with build.when(build.compare("eq", build.same("mod", x, build.const(T.i32, 3)), build.const(T.i32, 0))):
            update(build, "add", h, build.const(T.i32, 2), place)
            update(build, "sub", h, x, build.same("mod", i, build.i(20)))
        update(build, "add", total, place, build.i(0))
        with build.when(build.compare("gt", x, build.const(T.i32, 15))):
            build.continue_()
        with build.loop(place) as (_, k):
            update(build, "add", sums, build.cast(x, T.u16), build.same("mod", k, build.i(4)), build.same("mod", place, build.i(3)))
            with build.when(build.compare("eq", k, build.i(5))):
                build.break_()
    assert private(build.kernel)
    program = Program(build.kernel, simd)
    n = 2011
    values = np.random.default_rng(3).integers(0, 20, n).astype(np.int32)
    counts, by_round, sum_, outs = np.zeros(20, np.int32), np.zeros((4, 3), np.uint16), np.zeros(2, np.int64), np.zeros(n, np.int32)
    program(counts, values, by_round, sum_, outs, cuts=CUTS)
    want, rounds = np.zeros(20, np.int64), np.zeros((4, 3), np.int64)
    for i, x in enumerate(values):
        if x % 3 == 0:
            want[x] += 2
            want[i % 20] -= x
        if x <= 15:
            for k in range(min(x, 6)):
                rounds[k % 4, x % 3] += x
    assert np.array_equal(counts, want)
    assert np.array_equal(by_round, rounds.astype(np.uint16))
    assert sum_.tolist() == [values.sum(), 0]
    assert np.array_equal(outs, values + 1)


@pytest.mark.parametrize("simd", WIDTHS)
@pytest.mark.parametrize("columns", (1, 3, 5, 200))
def test_pictures(columns: int, simd: int) -> None:
    """Short rows and long ones; a table for each channel."""
    build = Build("picture")
    h, a = build.array("h", T.u32, 2), build.array("a", T.u8, 3)
    with build.parallel((a, 0), (a, 1), (a, 2)) as (i, j, c):
        update(build, "add", h, build.const(T.u32, 1), c, build.cast(build.load(a, i, j, c), T.i64))
    assert private(build.kernel)
    program = Program(build.kernel, simd)
    picture = np.random.default_rng(5).integers(0, 32, (40, 50, columns)).astype(np.uint8)
    got = np.zeros((columns, 32), np.uint32)
    program(got, picture, cuts=CUTS)
    assert np.array_equal(got, [np.bincount(picture[..., c].ravel(), minlength=32) for c in range(columns)])


@pytest.mark.parametrize("simd", WIDTHS)
def test_other_arrays_in_the_same_memory(simd: int) -> None:
    """An iteration that reads, under another name, what it has just counted sees it: so no table then. Neighbours do not matter."""
    build = Build("alias")
    h, g, out = build.array("h", T.i32), build.array("g", T.i32, 1, Layout.GENERAL), build.array("out", T.i32)
    with build.parallel((out, 0)) as (i,):
        place = build.same("mod", i, build.i(4))
        update(build, "add", h, build.const(T.i32, 1), place)
        build.store(out, build.load(g, place), i)
    assert private(build.kernel)
    program = Program(build.kernel, simd)
    lanes = max(1, program.source.simd)
    for shift, step in ((0, 1), (0, 2), (3, 1), (0, -1), (4, 1), (5, 3), (-1, 0)):
        room = np.zeros(64, np.int32)
        counts = room[20:24]
        first = 20 + shift if step >= 0 else 23
        view = room[first : first + 4 * step : step] if step else room[23:24].repeat(4)
        out = np.full(400, -1, np.int32)
        program(counts, view, out)
        assert counts.tolist() == [100] * 4
        for k in range(4):
            at = first + k * step
            if step and 20 <= at < 24 and at == 20 + k:  # lanes run in step, so each sees its own update and those of some others
                seen = out[k::4]
                assert (seen >= 1 + np.arange(100)).all()
                assert (seen <= 1 + np.arange(100) + lanes).all()
            elif not (step and 20 <= at < 24):
                assert (out[k::4] == 0).all()


def test_threads() -> None:
    """Pieces of one launch at the same time: totals are exact."""
    program = Program(histogram("add", T.u32))
    n = 400_000
    values, places = random_of(T.u32, n), np.random.default_rng(9).integers(0, 50, n).astype(np.int32)
    got = np.zeros(50, np.uint32)
    threads = [
        threading.Thread(target=program, args=(got, values[k::4].copy(), places[k::4].copy()), kwargs={"cuts": CUTS}) for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(got, expected("add", np.zeros(50, np.uint32), values, places))


def test_who_gets_a_table() -> None:
    def kernel(more: Any) -> ir.Kernel:
        build, h, v = counting()
        with build.parallel((v, 0)) as (i,):
            place = build.cast(build.load(v, i), T.i64)
            old = update(build, "add", h, build.const(T.i32, 1), place)
            more(build, h, v, place, old)
        return build.kernel

    assert private(kernel(lambda *_: None))
    assert private(kernel(lambda b, h, v, place, old: update(b, "sub", h, b.const(T.i32, 1), place)))
    assert not private(kernel(lambda b, h, v, place, old: update(b, "max", h, b.const(T.i32, 1), place)))
    assert not private(kernel(lambda b, h, v, place, old: update(b, "exchange", h, b.const(T.i32, 1), place)))
    assert not private(kernel(lambda b, h, v, place, old: b.store(v, old, place)))
    assert not private(kernel(lambda b, h, v, place, old: b.store(v, b.load(h, place), place)))
    assert not private(kernel(lambda b, h, v, place, old: b.store(h, b.const(T.i32, 1), place)))
    assert not private(kernel(lambda *_: None), debug=True)
    build, h, v = counting()
    with build.parallel((v, 0)) as (i,):
        update(build, "add", h, build.load(v, i), i)
    assert not private(build.kernel)  # an element for every iteration


@pytest.mark.parametrize("simd", (0, 1, 8))
def test_an_old_value_that_bounds_a_loop(simd: int) -> None:
    """The only use of an atomic's result."""
    build = Build("bound")
    h, v, out = build.array("h", T.i64), build.array("v", T.i64), build.array("out", T.i64)
    with build.parallel((v, 0)) as (i,):
        old = update(build, "add", h, build.i(1), build.load(v, i))
        total = build.var("total", build.i(0))
        with build.loop(old):
            build.set(total, build.same("add", build.get(total), build.i(1)))
        build.store(out, build.get(total), i)
    assert not private(build.kernel)
    program = Program(build.kernel, simd)
    got, counts = np.zeros(60, np.int64), np.zeros(2, np.int64)
    program(counts, np.arange(60) % 2, got)
    assert sorted(got[::2]) == sorted(got[1::2]) == list(range(30))


def test_debug_mode_counts_as_well() -> None:
    build, h, v = counting()
    with build.parallel((v, 0)) as (i,):
        update(build, "add", h, build.const(T.i32, 1), build.cast(build.load(v, i), T.i64))
    program = Program(build.kernel, debug=True)
    values = (np.arange(300) % 7).astype(np.int32)
    counts = np.zeros(7, np.int32)
    program(counts, values)
    assert np.array_equal(counts, np.bincount(values))
    assert program.failure() is None
    program(counts, np.full(300, 7, np.int32))
    failure = program.failure()
    assert failure is not None
    assert failure[0] == "index"


def test_indices_out_of_range_stay_in_the_table() -> None:
    """Undefined by the language, but nothing else on the stack is overwritten: the function returns, and the other elements are right."""
    for simd in WIDTHS:
        program = Program(histogram("add", T.i32), simd)
        places = (np.arange(4000) % 16).astype(np.int32)
        places[100], places[2000], places[3999] = 1 << 20, -1, 16
        counts = np.zeros(16, np.int32)
        program(counts, np.ones(4000, np.int32), places)
        assert np.array_equal(counts, np.bincount(places[(places >= 0) & (places < 16)], minlength=16))


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_tables, "_SIZE", 1)
    assert not private(histogram("add", T.i32))
    monkeypatch.undo()
    monkeypatch.setattr(llvm_tables, "_PRINTED", 7)
    assert not private(histogram("add", T.i32), simd=8)
    assert private(histogram("add", T.i32), simd=4)
