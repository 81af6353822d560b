"""Reductions: the same bits on every run, thread count and width, in the order that the IR interpreter spells out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from programs import variant

import tack
from tack.compiler import _infer as typed_ir
from tack.ir import interpret
from tack.ir.fma import form_fma
from tack.kernels import kernel_function
from tack.mathlink import math


@tack.kernel
def row_sums(x):
    s = 10
    least = x[0]
    for i in range(x.shape[0]):
        s += x[i]
        if i % 3 != 0:
            s -= x[i] * x[i]
        least = min(least, x[i])
    return s * least


@tack.kernel
def grid(x):
    total = 0
    most = x[0, 0]
    for i, j in tack.ndrange(x.shape[0], x.shape[1]):
        if x[i, j] == 3:
            continue
        for k in range(j % 3):
            total += x[i, j] * k
        most = max(most, x[i, j])
    return total + most


@tack.kernel
def bits(x):
    every = -1
    some = 0
    odd = 0
    product = 1
    for i in range(x.shape[0]):
        every &= x[i]
        some |= x[i]
        odd ^= x[i]
        product *= x[i]
    return every + 3 * some + 5 * odd + 7 * product


def interpreted(kernel: Any, x: np.ndarray) -> Any:
    function = kernel_function(kernel)
    kernel_ir = typed_ir(function, function.specialize((x,), tack.device("cpu")))
    form_fma(kernel_ir)
    return interpret.run(kernel_ir, [x], math_library=math)


def values(shape: Any, t: Any) -> np.ndarray:
    rng = np.random.default_rng(11)
    x = rng.standard_normal(shape) * np.exp2(rng.integers(-20, 20, shape)) if np.issubdtype(t, np.floating) else rng.integers(-9, 9, shape)
    return x.astype(t)


SIZES = [(row_sums, n) for n in (1, 63, 64, 65, 1024, 1025, 5000)] + [(grid, s) for s in ((7, 13), (1, 200), (40, 70), (300, 3))]


@pytest.mark.parametrize("t", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize(("kernel", "shape"), SIZES)
def test_bits_are_those_of_the_interpreter(device: tack.Device, kernel: Any, shape: Any, t: Any) -> None:
    x = values(shape, t)
    want = interpreted(kernel, x)
    assert kernel(tack.array(x, device=device)) == want
    if device.type == "cpu":
        for lanes in (1, 4):
            for threads in (1, 2):
                with tack.device("cpu", num_threads=threads):
                    assert variant(kernel, simd=lanes)(x) == want


@pytest.mark.parametrize("n", [0, 1, 5, 2000])
def test_integer_operators(device: tack.Device, n: int) -> None:
    x = values(n, np.int64)
    want = interpreted(bits, x)
    assert bits(tack.array(x, device=device)) == want
    reduce = [np.bitwise_and.reduce(x), np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x), np.multiply.reduce(x)]
    with np.errstate(over="ignore"):
        assert want == int(reduce[0] + 3 * reduce[1] + 5 * reduce[2] + 7 * reduce[3])


def test_minimum_prefers_numbers_to_nans(device: tack.Device) -> None:
    x = np.full(3000, np.nan, np.float32)
    x[1234] = 5.0
    x[77] = 6.0

    @tack.kernel
    def least(x):
        m = x[0]
        for i in range(x.shape[0]):
            m = min(m, x[i])
        return m

    assert least(tack.array(x, device=device)) == 5.0
    assert np.isnan(least(tack.array(x[:50], device=device)))


@tack.kernel
def count_cube(n):
    s = 0
    for _i, _j, _k in tack.ndrange(n, n, n):
        s += 1
    return s


@tack.kernel
def count_range(start, stop, step):
    s = 0
    for _i in range(start, stop, step):
        s += 1
    return s


def test_loops_too_long_to_count_are_refused(device: tack.Device) -> None:
    assert count_cube(30) == 27000 and count_cube(0) == 0 and count_cube(-5) == 0
    for n in (1 << 30, (1 << 22) + 1):
        with pytest.raises(ValueError, match=rf"Kernel 'count_cube': {n} x {n} x {n} iterations; the limit on [\w ]+ is"):
            count_cube(n)


def test_bounds_too_far_apart_are_refused(device: tack.Device) -> None:
    assert count_range(-(2**61), 2**62 - 1, 1 << 60) == 6
    assert count_range(5, -5, -3) == 4
    with pytest.raises(ValueError, match=r"Kernel 'count_range': a loop with a reduction takes 8 steps of .* Count from 0"):
        count_range(-(2**63), 2**63 - 1, 1 << 61)
