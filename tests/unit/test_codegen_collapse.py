"""Loops with a short innermost dimension: lanes run over the two innermost dimensions as one, where the arrays' rows allow it."""

from __future__ import annotations

import numpy as np
import pytest
from codegen_harness import NUMPY, Build, Program, no_math, target

from tack import types as T
from tack.codegen import build_source, collapse, cost
from tack.ir import nodes as ir
from tack.ir.source import KernelSource
from tack.types import DType

WIDTHS = (0, 2, 8, 32)
CUTS = (0.03, 0.31, 0.5, 0.77)


def counter(rank: int, dtype: DType, inner: int | None = None, start: int = 0) -> Build:
    """Stores a[index] * 2 + what tells the indices apart, one row further where there is a start."""
    build = Build("short")
    o, a = build.array("o", dtype, rank), build.array("a", dtype, rank)
    extents = [(a, d) for d in range(rank - 1)] + [inner if inner is not None else (a, rank - 1)]
    first = [0] * rank
    first[-2] = start
    with build.parallel(*extents, start=first) as index:
        total = build.i(0)
        for k in index:
            total = build.same("add", build.same("mul", total, build.i(10)), k)
        place = list(index)
        from_ = [*index[:-2], build.same("sub", index[-2], build.i(start)), index[-1]]
        value = build.same("mul", build.load(a, *from_), build.const(dtype, 2))
        build.store(o, build.same("add", value, build.cast(total, dtype)), *place)
    return build


def expected_of(a: np.ndarray, columns: int, start: int) -> np.ndarray:
    out = np.full_like(a, 99)
    for index in np.ndindex(*a.shape[:-1], columns):
        if index[-2] >= start:
            total = 0
            for k in index:
                total = total * 10 + k
            source = (*index[:-2], index[-2] - start, index[-1])
            out[index] = (int(a[source]) * 2 + total) % (256 if a.dtype == np.uint8 else 1 << 24)
    return out


@pytest.fixture
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if rows were so short that nothing else pays."""
    monkeypatch.setattr(cost, "_COLUMNS", 1e-6)


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("simd", WIDTHS)
@pytest.mark.parametrize("dtype", [T.f32, T.f64, T.u8, T.i32], ids=str)
def test_every_short_extent(dtype: DType, simd: int) -> None:
    """All columns from 1 to beyond the limit, pieces cut anywhere, two and three dimensions, a start that is not 0."""
    for rank, start in ((2, 0), (3, 0), (3, 1)):
        program = Program(counter(rank, dtype, start=start).kernel, simd)
        assert "\nflat:" in program.source.text
        for columns in (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 40, 70):
            shape = (11, columns) if rank == 2 else (3, 5, columns)
            a = (np.arange(np.prod(shape)) % 23).reshape(shape).astype(NUMPY[dtype.name])
            got = np.full(shape, 99, a.dtype)
            program(got, a, cuts=CUTS)
            assert np.array_equal(got, expected_of(a, columns, start)), (rank, start, columns)


def test_arrays_with_longer_rows_are_walked_row_by_row() -> None:
    """Three of four channels: the fourth stays as it is."""
    program = Program(counter(3, T.f32, inner=3).kernel)
    a = (np.arange(4 * 9 * 4) % 17).reshape(4, 9, 4).astype("f")
    got = np.full(a.shape, 99, "f")
    program(got, a, cuts=CUTS)
    assert np.array_equal(got, expected_of(a, 3, 0))


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("simd", WIDTHS)
def test_other_accesses_follow_their_lanes(simd: int) -> None:
    """A neighbour, a table by channel, a value by row, a branch by channel, a loop of each lane's length, an atomic, a local array."""
    build = Build("mixed")
    o, a = build.array("o", T.i32, 3), build.array("a", T.i32, 3)
    table, row = build.array("table", T.i32), build.array("row", T.i32, 2)
    counts, hits = build.array("counts", T.i32), build.array("hits", T.i32, 3)
    local = ir.LocalArray("shelf", T.i32, (2,))
    with build.parallel((o, 0), (o, 1), (o, 2)) as (i, j, c):
        near = build.load(a, i, build.same("add", j, build.i(1)), c)
        total = build.var("total", build.same("add", near, build.load(table, c)))
        build.set(total, build.same("add", build.get(total), build.load(row, i, j)))
        build.store(local, build.load(table, build.i(0)), build.i(1))
        with build.when(build.compare("eq", c, build.i(1))):
            build.set(total, build.same("mul", build.get(total), build.load(local, build.i(1))))
        with build.loop(build.same("add", j, c)) as (_, k):
            build.set(total, build.same("add", build.get(total), build.cast(k, T.i32)))
        build.op("atomic", T.i32, build.const(T.i32, 1), c, attr=("add", counts))
        build.op("atomic", T.i32, build.const(T.i32, 2), i, j, c, attr=("add", hits))
        build.store(o, build.get(total), i, j, c)
    program = Program(build.kernel, simd)
    assert "\nflat:" in program.source.text or program.source.simd == 1
    random = np.random.default_rng(1)
    for columns in (3, 5):
        shape = (3, 7, columns)
        source = random.integers(0, 50, (3, 8, columns)).astype(np.int32)
        tables, rows = random.integers(1, 9, columns).astype(np.int32), random.integers(0, 9, (3, 7)).astype(np.int32)
        got, counted, hit = np.zeros(shape, np.int32), np.zeros(columns, np.int32), np.zeros(shape, np.int32)
        program(got, source, tables, rows, counted, hit, cuts=CUTS)
        want = source[:, 1:] + tables + rows[:, :, None]
        want[:, :, 1] *= tables[0]
        rounds = np.arange(7)[:, None] + np.arange(columns)
        assert np.array_equal(got, want + rounds * (rounds - 1) // 2)
        assert (counted == 21).all()
        assert (hit == 2).all()


def wide(kernel: ir.Kernel, simd: int = 0) -> KernelSource:
    return build_source(kernel, target(simd, arch="x86-64-v4", vector_bits=512), no_math)


def test_who_gets_the_loop() -> None:
    assert "\nflat:" in wide(counter(2, T.f32, inner=3).kernel, 8).text
    assert "\nflat:" not in wide(counter(2, T.f32, inner=100).kernel, 8).text  # rows known to be long
    assert "\nflat:" not in wide(counter(2, T.f32).kernel, 1).text
    assert wide(counter(2, T.f32, inner=3).kernel).simd == wide(counter(2, T.f32).kernel).simd  # not three lanes
    build = Build("transposed")
    o, a = build.array("o", T.f32, 2), build.array("a", T.f32, 2)
    with build.parallel((a, 1), (a, 0)) as (i, j):
        build.store(o, build.load(a, j, i), j, i)
    assert "\nflat:" not in wide(build.kernel, 8).text  # nothing that would be contiguous
    build = Build("divides")
    o, a, table = build.array("o", T.f32, 2), build.array("a", T.f32, 2), build.array("table", T.f32)
    with build.parallel((a, 0), (a, 1)) as (i, j):
        picked = build.load(table, build.same("mod", i, build.i(7)))
        build.store(o, build.same("mul", build.load(a, i, j), picked), i, j)
    assert "\nflat:" not in wide(build.kernel, 8).text  # a division for each row is less than one for each element


def test_the_limit_of_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collapse, "_SIZE", 0)
    assert "\nflat:" not in wide(counter(2, T.f32, inner=3).kernel, 8).text
