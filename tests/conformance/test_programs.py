"""The eleven programs against NumPy: element types, one thread and all, one lane and the default width; and in the IR interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from programs import BY_NAME, PROGRAMS, Program, variant

import tack
from tack.compiler import _infer as typed_ir
from tack.ir.fma import form_fma
from tack.ir.interpret import run
from tack.ir.verify import verify
from tack.kernels import kernel_function
from tack.mathlink import math

NUMPY: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "u8": np.uint8, "i32": np.int32, "i64": np.int64}
CASES = [pytest.param(p, t, id=f"{p.name}-{t}") for p in PROGRAMS for t in p.dtypes]
CPU = pytest.mark.needs("lanes and threads")
SIMD = [pytest.param(1, id="lanes1", marks=CPU), pytest.param(None, id="lanes")]
THREADS = [pytest.param(1, id="thread1", marks=CPU), pytest.param(None, id="threads")]


def made(program: Program, dtype: str, size: int) -> tuple[list[Any], dict[int, np.ndarray]]:
    args = program.make(size, NUMPY[dtype], np.random.default_rng(size))
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    return args, program.oracle(*copies)


def compare(program: Program, got: np.ndarray, want: np.ndarray) -> None:
    if program.tolerance == 0:
        np.testing.assert_array_equal(got, want)
    elif got.size:
        epsilon = np.finfo(got.dtype).eps if got.dtype.kind == "f" else 0
        bound = program.tolerance * epsilon * max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(got, want, rtol=0, atol=bound)


@pytest.mark.parametrize("simd", SIMD)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(("program", "dtype"), CASES)
def test_program(device: tack.Device, program: Program, dtype: str, threads: int | None, simd: int | None) -> None:
    where = tack.device("cpu", num_threads=threads) if threads else device
    # Mandelbrot's counts are compared exactly: without fma, as NumPy has none.
    kernel = variant(program.kernel, exact=program.name == "mandelbrot", **({} if simd is None else {"simd": simd}))
    with where:
        for size in (1, 2, 77, 5000, 300_000):
            args, expected = made(program, dtype, size)
            arrays = [tack.array(a, device=where) if isinstance(a, np.ndarray) else a for a in args]
            kernel(*arrays)
            for position, want in expected.items():
                compare(program, arrays[position].numpy(), want)


@pytest.mark.parametrize(("program", "dtype"), CASES)
def test_lanes_and_threads_change_no_bit(program: Program, dtype: str) -> None:
    results = []
    for simd in (1, 4, None):
        for threads in (1, 2):
            with tack.device("cpu", num_threads=threads):
                args, expected = made(program, dtype, 40_000)
                variant(program.kernel, **({} if simd is None else {"simd": simd}))(*args)
                results.append([args[position] for position in expected])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("exact", [False, True], ids=["fma", "exact"])
@pytest.mark.parametrize(("program", "dtype"), CASES)
def test_interpreter_agrees(program: Program, dtype: str, exact: bool) -> None:
    """Generated code and interpreter agree to the bit: fma is formed in the IR, by one rule, and all math is tack's own."""
    kernel = variant(program.kernel, exact=exact)
    for size in (1, 2, 40):
        args, expected = made(program, dtype, size)
        interpreted, _ = made(program, dtype, size)
        function = kernel_function(kernel)
        kernel_ir = typed_ir(function, function.specialize(tuple(interpreted), tack.device("cpu")))
        form_fma(kernel_ir)
        verify(kernel_ir)
        run(kernel_ir, interpreted, math_library=math)
        kernel(*args)
        for position, want in expected.items():
            np.testing.assert_array_equal(args[position], interpreted[position])
            if exact or program.name != "mandelbrot":  # where one rounding decides, fma changes a count
                compare(program, interpreted[position], want)


def test_empty_programs_do_nothing(device: tack.Device) -> None:
    for name in ("saxpy", "triad", "gather", "scatter", "spmv", "black_scholes"):
        args = BY_NAME[name].make(1, np.float32, np.random.default_rng(0))
        if name == "spmv":
            args = [np.zeros(0, np.float32), np.zeros(1, np.int64), *args[2:]]
        else:
            args = [a[:0] if isinstance(a, np.ndarray) else a for a in args]
        arrays = [tack.array(a, device=device) if isinstance(a, np.ndarray) else a for a in args]
        BY_NAME[name].kernel(*arrays)


def test_histogram_counts_everything_when_threads_contend(device: tack.Device) -> None:
    values = tack.array(np.full(2_000_000, 0.5, np.float32), device=device)
    counts = tack.zeros(3, dtype=tack.i32, device=device)
    BY_NAME["histogram"].kernel(counts, values, 0.0, 1.0)
    assert counts.tolist() == [0, 2_000_000, 0]


def test_negative_and_strided_views(device: tack.Device) -> None:
    x = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    base = tack.array(x, device=device)
    out = tack.zeros(500, device=device)
    BY_NAME["saxpy"].kernel(out, base[::2], base[1::2], 0.0)
    np.testing.assert_array_equal(out.numpy(), np.float32(0) * x[::2] + x[1::2])
    BY_NAME["saxpy"].kernel(out[::-1], base[::2], base[::2], 0.0)
    np.testing.assert_array_equal(out.numpy()[::-1], np.float32(0) * x[::2] + x[::2])
