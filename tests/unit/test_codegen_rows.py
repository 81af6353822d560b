"""Arrays of short rows: columns picked from whole rows, whatever the rows' length is when a launch starts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from codegen_harness import NUMPY, Build, Program, no_math, target

from tack import types as T
from tack.codegen import build_source
from tack.ir import nodes as ir


def kernel(dtype: T.DType, columns: int, rank: int, first: int = 1) -> ir.Kernel:
    """out[..., i, c] = sum over k of (k + 2) x[..., i, k] + c for the columns from ``first`` on."""
    build = Build("rows")
    out, x = build.array("out", dtype, rank), build.array("x", dtype, rank)
    build.kernel.written = frozenset({out.index})
    with build.parallel(*((x, d) for d in range(rank - 1))) as indices:
        total: ir.Instr | None = None
        for k in range(columns):
            term = build.same("mul", build.load(x, *indices, build.i(k)), build.const(dtype, k + 2))
            total = term if total is None else build.same("add", total, term)
        assert total is not None
        for c in range(first, columns):
            build.store(out, build.same("add", total, build.const(dtype, c)), *indices, build.i(c))
    return build.kernel


@pytest.mark.parametrize("longer", [0, 1, 5])
@pytest.mark.parametrize("simd", [2, 8, 16, 32])
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("dtype", [T.f32, T.f64, T.u8, T.i16], ids=lambda t: t.name)
def test_columns(dtype: T.DType, columns: int, first: int, rank: int, simd: int, longer: int) -> None:
    program = Program(kernel(dtype, columns, rank, first), simd)
    row = f"<{simd} x i{dtype.bits * columns}>" if dtype.bits <= 16 and columns != 3 else f"<{simd * columns} x"
    assert row in program.source.text
    assert ("rows.whole" in program.source.text) == (first == 0)
    shape = ((5,) if rank == 3 else ()) + (71, columns + longer)
    x = np.random.default_rng(0).integers(0, 9, shape).astype(NUMPY[dtype.name])
    out = np.full(shape, 77, NUMPY[dtype.name])
    program(out, x, cuts=(0.1, 0.6))
    total = sum(x[..., k] * (k + 2) for k in range(columns))
    for c in range(shape[-1]):
        np.testing.assert_array_equal(out[..., c], total + c if first <= c < columns else 77)


def test_rows_end_with_the_array() -> None:
    """The last row's last column is the array's end: nothing behind it is read or written."""
    memory = np.full(71 * 3 * 2, np.nan, np.float32)
    x, out = memory[: 71 * 3].reshape(71, 3), np.full((71, 3), 7, np.float32)
    x[:] = 1
    Program(kernel(T.f32, 3, 2), 16)(out, x)
    assert np.isnan(memory[71 * 3 :]).all()
    np.testing.assert_array_equal(out, [[7, 10, 11]] * 71)


def test_lanes_are_worth_it() -> None:
    assert build_source(kernel(T.f32, 3, 2), target(arch="x86-64-v4", vector_bits=512), no_math).simd == 16


def test_the_lines_of_later_rows_are_asked_for_once() -> None:
    """By the first of the stores to an array's rows, all that a group of lanes covers, for writing."""
    text = build_source(kernel(T.f32, 4, 2), target(arch="x86-64-v4", vector_bits=512), no_math).text
    lines = [int(k) for k in re.findall(r"%ahead\S* = getelementptr i8, ptr %out\S*, i64 (\d+)", text)]
    assert lines == [4096 + 64 * k for k in range(4)]
    assert text.count("i32 1, i32 3, i32 1)") == 4
