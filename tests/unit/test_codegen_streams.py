"""How launches walk through memory: rows that begin with a short group so that the others are aligned, rows that are asked for ahead."""

from __future__ import annotations

import re

import numpy as np
import pytest
from codegen_harness import Build, Program, host_arch, target

from tack import types as T
from tack.codegen import build_source
from tack.ir import nodes as ir

X86 = host_arch()[0].startswith("x86-64")
SHIFTS = ((0, 0, 0), (0, 0, -1), (0, 0, 1), (0, -1, 0), (0, 1, 0), (-1, 0, 0), (1, 0, 0))


def stencil(dtype: T.DType = T.f32, loads: int = 7) -> Build:
    """The sum of a cell and its neighbours, over what is not at the border."""
    build = Build("stencil")
    o, a = build.array("o", dtype, 3), build.array("a", dtype, 3)
    with build.parallel((a, 0), (a, 1), (a, 2)) as index:
        near = [build.same("add", k, build.i(1)) for k in index]
        total: ir.Instr | None = None
        for shift in SHIFTS[:loads]:
            place = [build.same("add" if s > 0 else "sub", k, build.i(abs(s))) if s else k for k, s in zip(near, shift, strict=True)]
            value = build.load(a, *place)
            total = value if total is None else build.same("add", total, value)
        assert total is not None
        build.store(o, total, *near)
    build.kernel.items[0].stop = [  # type: ignore[union-attr]
        ir.Extent((("shape", 1, d, 0), ("constant", 0, 0, 2), ("sub", 0, 0, 0))) for d in range(3)
    ]
    return build


@pytest.mark.parametrize("simd", [0, 1, 8])
@pytest.mark.parametrize("dtype", [T.f32, T.f64, T.u8], ids=str)
def test_rows_of_any_length_and_alignment(dtype: T.DType, simd: int) -> None:
    """Nothing but the elements asked for is stored, wherever the arrays begin and wherever a piece is cut."""
    program = Program(stencil(dtype).kernel, simd)
    kind = np.dtype(f"{ {'f': 'float', 'u': 'uint'}[dtype.code] }{dtype.bits}")
    random = np.random.default_rng(7)
    for shape, first, second in (((3, 4, 70), 0, 0), ((4, 3, 131), 3, 1), ((3, 3, 260), 7, 15), ((5, 5, 5), 1, 0), ((3, 3, 67), 15, 2)):
        size = int(np.prod(shape))
        values = np.zeros(size + 64, kind)
        a = values[first : first + size].reshape(shape)
        a[...] = random.integers(0, 30, shape)
        memory = np.full(size + 64, 7, kind)
        o = memory[second : second + size].reshape(shape)
        program(o, a, cuts=(0.13, 0.5, 0.77))
        expected = np.full_like(memory, 7)
        inner = expected[second : second + size].reshape(shape)
        inner[1:-1, 1:-1, 1:-1] = sum(np.roll(a, (-i, -j, -k), (0, 1, 2))[1:-1, 1:-1, 1:-1] for i, j, k in SHIFTS)
        assert np.array_equal(memory, expected)


def text(build: Build, **changes: object) -> str:
    return build_source(build.kernel, target(**changes), lambda name, dtype: ir.Function(name, [], ir.Block(), [])).text


@pytest.mark.skipif(not X86, reason="rows are aligned on x86 alone")
def test_rows_are_aligned_to_what_most_accesses_share() -> None:
    """Five of a stencil's loads and its store are at one place within a vector; the load of another column would be the wrong one."""
    wide = text(stencil(), arch="x86-64-v4", vector_bits=512)
    part = wide[wide.index("\nalign:") : wide.index("ptrtoint")]
    assert ", 63" in wide[wide.index("ptrtoint") :].splitlines()[2]
    assert "getelementptr float, ptr %a" in part  # five loads of `a` outvote the store
    steps = re.findall(r"= (add|sub) i64 %[^,]+, (\d+)", part)
    assert steps == [("add", "1")] * 3  # the cell itself, which is not at the border: neither the column before it nor the one after it
    assert "\nalign:" not in text(stencil(), arch="x86-64-v2", vector_bits=128)


def test_the_foremost_row_is_asked_for_ahead() -> None:
    """One of seven loads runs ahead, in full groups alone; loads of one row need no help."""
    wide = text(stencil())
    assert wide.count("call void @llvm.prefetch.p0(") == 1
    before = wide[wide.index("\ngroup:") : wide.index("call void @llvm.prefetch.p0(")]
    steps = re.findall(r"%(\S+) = (add|sub) i64 %([^,\n]+), (\d+)", before)
    assert steps[-1][1:] == ("add", steps[0][0], "1")  # the plane after this cell's
    assert steps[0][2].startswith("coordinate0")
    assert "llvm.prefetch" not in text(stencil(loads=3))
