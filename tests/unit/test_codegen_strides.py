"""Every second, third or fourth element: the right values whatever the type, the width and the tail, and no gather in the code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tack

DTYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.float32, np.float64]


@tack.kernel
def spread(out, a):
    for i in range(a.shape[0]):
        out[2 * i] = a[i]
        out[2 * i + 1] = a[i] + a[i]


@tack.kernel
def join(out, a):
    for i in range(out.shape[0]):
        out[i] = a[3 * i + 2] - a[3 * i]


@tack.kernel
def backwards(out, a):
    n = a.shape[0]
    for i in range(out.shape[0]):
        out[i] = a[n - 1 - 4 * i] + a[n - 1 - 2 * i]


@tack.kernel
def thirds(out, a):
    n = out.shape[0]
    for i in range(a.shape[0]):
        if a[i] > 3:
            out[n - 1 - 3 * i] = a[i]


@tack.kernel
def halve(out, a):
    for y, x in tack.ndrange(out.shape[0], out.shape[1]):
        total = tack.i32(a[2 * y, 2 * x]) + a[2 * y, 2 * x + 1] + a[2 * y + 1, 2 * x] + a[2 * y + 1, 2 * x + 1]
        out[y, x] = tack.u8((total + 2) // 4)


@tack.kernel
def fifth(out, a):
    for i in range(out.shape[0]):
        out[i] = a[5 * i]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 15, 16, 33, 64, 1037])
def test_every_length(n: int, dtype: type) -> None:
    rng = np.random.default_rng(n)
    a = rng.integers(0, 50, n).astype(dtype)
    out = np.zeros(2 * n, dtype)
    spread(out, a)
    assert np.array_equal(out[::2], a)
    assert np.array_equal(out[1::2], a + a)
    b = rng.integers(0, 50, 3 * n).astype(dtype)
    out = np.zeros(n, dtype)
    join(out, b)
    assert np.array_equal(out, b[2::3] - b[::3])
    if n:
        c = rng.integers(0, 50, 4 * n).astype(dtype)
        backwards(out, c)
        assert np.array_equal(out, c[::-4] + c[: 2 * n - 1 : -2] if n > 1 else c[-1:] + c[-1:])
    out = np.full(3 * n, 7, dtype)
    thirds(out, a)
    right = np.full(3 * n, 7, dtype)
    right[::-3] = np.where(a > 3, a, 7)
    assert np.array_equal(out, right)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 181), (50, 64)])
def test_the_mean_of_two_by_two(shape: tuple[int, int]) -> None:
    h, w = shape
    a = np.random.default_rng(h).integers(0, 256, (2 * h, 2 * w)).astype(np.uint8)
    out = np.zeros(shape, np.uint8)
    halve(out, a)
    assert np.array_equal(out, (a.astype(int).reshape(h, 2, w, 2).sum((1, 3)) + 2) // 4)


@pytest.mark.parametrize("simd", [2, 4, 8, 16, 32, 64])
def test_widths(simd: int) -> None:
    a = np.arange(3 * 131, dtype=np.float32)
    out = np.zeros(131, np.float32)
    tack.kernel(simd=simd)(join.__wrapped__)(out, a)
    assert (out == 2).all()
    wide = np.zeros(2 * 131, np.float32)
    tack.kernel(simd=simd)(spread.__wrapped__)(wide, out)
    assert np.array_equal(wide, np.tile([2, 4], 131))


@pytest.mark.parametrize(
    ("kernel", "lengths", "gathers"), [(join, (64, 192), False), (backwards, (64, 256), False), (fifth, (64, 320), True)]
)
def test_what_is_gathered(kernel: Callable[..., object], lengths: tuple[int, int], gathers: bool) -> None:
    arrays = [np.zeros(n, np.float32) for n in lengths]
    if tack.device("cpu").arch != "x86-64-v4":
        pytest.skip("without AVX-512 such elements are gathered where lanes are off")
    text = tack.inspect(tack.kernel(simd=16)(kernel.__wrapped__), *arrays, mode="source")
    assert ("masked.gather" in text) == gathers
