"""Sums, products and divisions of small integers, which lanes take in as few bits as hold them: to the values of unbounded integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tack

SHARPEN = (0, -1, 0, -1, 5, -1, 0, -1, 0)


def image(dtype: str, *shape: int, seed: int = 1) -> np.ndarray:
    """Random elements, the extremes among them."""
    info = np.iinfo(dtype)
    values = np.random.default_rng(seed).integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    values.flat[::7] = info.max
    values.flat[::11] = info.min
    return values


def run(device: Any, kernel: Any, *args: Any) -> list[np.ndarray]:
    """The arrays after a call."""
    arrays = [tack.array(a, device=device) if isinstance(a, np.ndarray) else a for a in args]
    kernel(*arrays)
    return [a.numpy() for a in arrays if isinstance(a, tack.Array)]


@tack.kernel
def sharpen(o, a):  # type: ignore[no-untyped-def]
    for y, x in tack.ndrange(o.shape[0], o.shape[1]):
        s = 0
        for dy in range(3):
            for dx in range(3):
                s += int(a[y + dy, x + dx]) * SHARPEN[3 * dy + dx]
        o[y, x] = min(max(s, 0), 255)


@tack.kernel
def box(o, a):  # type: ignore[no-untyped-def]
    for y, x in tack.ndrange(o.shape[0], o.shape[1]):
        s = 0
        for dy in range(3):
            for dx in range(3):
                s += int(a[y + dy, x + dx])
        o[y, x] = s // 9 + s % 7


def windows(a: np.ndarray) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(a.astype(np.int64), (3, 3)).reshape(a.shape[0] - 2, a.shape[1] - 2, 9)


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4"])
def test_windows(device: Any, dtype: str) -> None:
    """The sum of a window is as wide as its rounds and elements make it: 12 bits of bytes, 36 of words."""
    a = image(dtype, 13, 150)
    w = windows(a)
    out = np.zeros(w.shape[:2], np.uint8)
    sharp = run(device, sharpen, out, a)[0]
    np.testing.assert_array_equal(sharp, (w * np.array(SHARPEN)).sum(axis=2).clip(0, 255).astype(np.uint8))
    s = w.sum(axis=2)
    for to in ("u1", "i8"):
        np.testing.assert_array_equal(run(device, box, np.zeros(w.shape[:2], to), a)[0], (s // 9 + s % 7).astype(to))


@tack.kernel
def weighted(o, p, a, b, t):  # type: ignore[no-untyped-def]
    for i in range(o.shape[0]):
        k = int(t[i])
        o[i] = (a[i] * k + b[i] * (255 - k) + 127) // 255
        p[i] = (a[i] * k - b[i] * (255 - k)) // 255


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "i4"])
def test_weighted_means(device: Any, dtype: str) -> None:
    a, b, t = image(dtype, 700), image(dtype, 700, seed=2), image("u1", 700, seed=3)
    o, p = run(device, weighted, np.zeros(700, np.int64), np.zeros(700, np.int64), a, b, t)[:2]
    x, y, k = (v.astype(np.int64) for v in (a, b, t))
    np.testing.assert_array_equal(o, (x * k + y * (255 - k) + 127) // 255)
    np.testing.assert_array_equal(p, (x * k - y * (255 - k)) // 255)


@tack.kernel
def quotients(o, p, a, b):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):
        x = int(a[i])
        y = int(b[i])
        o[i, 0] = x // y
        o[i, 1] = (x * y) // 100
        o[i, 2] = (x + y) // 641
        o[i, 3] = (abs(x) * 3) // 7
        o[i, 4] = x // -5
        p[i, 0] = x % y
        p[i, 1] = (x * y) % 100
        p[i, 2] = (x + y) % 641
        p[i, 3] = (abs(x) * 3) % 7
        p[i, 4] = x % -5


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "i4"])
def test_divisions(device: Any, dtype: str) -> None:
    a, b = image(dtype, 900), image(dtype, 900, seed=2)
    b[::5] = 0
    o, p = run(device, quotients, np.zeros((900, 5), np.int64), np.zeros((900, 5), np.int64), a, b)[:2]
    for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        dividends, divisors = (x, x * y, x + y, abs(x) * 3, x), (y, 100, 641, 7, -5)
        assert o[k].tolist() == [u // v if v else 0 for u, v in zip(dividends, divisors, strict=True)]
        assert p[k].tolist() == [u % v if v else 0 for u, v in zip(dividends, divisors, strict=True)]


@tack.kernel
def bits(o, a, b):  # type: ignore[no-untyped-def]
    for i in range(o.shape[0]):
        v = int(a[i] > b[i]) << 7 | int(a[i] == b[i]) << 3 | int(a[i] < b[i])
        o[i] = v ^ (v >> 2)


def test_bits_of_comparisons(device: Any) -> None:
    a, b = image("u1", 500), image("u1", 500, seed=2)
    b[::3] = a[::3]
    v = (a > b).astype(int) << 7 | (a == b).astype(int) << 3 | (a < b)
    for dtype in ("u1", "i1", "i2", "i8"):
        np.testing.assert_array_equal(run(device, bits, np.zeros(500, dtype), a, b)[0], (v ^ (v >> 2)).astype(dtype))


@tack.kernel
def rounds(o, a, b):  # type: ignore[no-untyped-def]
    for i in range(o.shape[0]):
        n = int(a[i]) * int(b[i])
        k = 0
        for j in range(n, n + min(a[i], 3)):
            k += j % 16
        o[i] = k


def test_bounds_of_loops_beyond_what_is_kept_of_sums(device: Any) -> None:
    a = np.array([3, 2_000_000_000, -2_000_000_000, 1 << 20, 0, 7, -1, 65536] * 9, np.int32)
    b = np.array([5, 2_000_000_000, 2_000_000_000, 1 << 12, 9, -7, 1, 65537] * 9, np.int32)
    expected = [sum(j % 16 for j in range(x * y, x * y + min(x, 3))) % 256 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert run(device, rounds, np.zeros(72, np.uint8), a, b)[0].tolist() == expected


@tack.kernel
def shades(o, p, x):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        o[i] = int(min(max(x[i] * 255.0 + 0.5, 0.0), 255.0))
        p[i] = int(min(x[i], 100.0)) + int(max(x[i], -5.5)) + int(x[i])


def test_floats_as_bytes(device: Any) -> None:
    """Clamped ones need few bits, others saturate at 64; what is NaN is 0, and the number where it meets one."""
    special = [np.nan, np.inf, -np.inf, -0.0, 1e30, -1e30, 0.999, 1.0, 99.5, -5.7, 5e18]
    x = np.concatenate([np.array(special), np.random.default_rng(4).uniform(-0.2, 1.2, 189)]).astype(np.float32)
    o, p = run(device, shades, np.zeros(200, np.uint8), np.zeros(200, np.int64), x)[:2]
    with np.errstate(all="ignore"):
        shade = np.fmin(np.fmax(np.float32(np.float64(x) * 255.0 + 0.5), np.float32(0)), np.float32(255))
    np.testing.assert_array_equal(o, shade.astype(np.uint8))

    def whole(v: float) -> int:
        return 0 if v != v else max(-(1 << 63), min(int(v) if abs(v) < 1e30 else int(np.sign(v)) * (1 << 64), (1 << 63) - 1))

    for k, v in enumerate(x.tolist()):
        low, high = (100.0 if v != v else min(v, 100.0)), (-5.5 if v != v else max(v, -5.5))
        exact = whole(low) + whole(high) + whole(v)
        assert (int(p[k]) - exact) % (1 << 64) == 0, v


@tack.kernel
def unsigned(o, p, x):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        o[i] = int(tack.u16(min(max(x[i], -128.0), 127.0))) + 16
        p[i] = int(tack.u8(min(max(x[i], -3.0), 300.0))) - 200


def test_negative_floats_that_are_made_unsigned(device: Any) -> None:
    """They are 0, also where fewer bits would hold what they were."""
    x = np.linspace(-400.0, 400.0, 161).astype(np.float32)
    o, p = run(device, unsigned, np.zeros(161, np.int8), np.zeros(161, np.int16), x)[:2]
    np.testing.assert_array_equal(o, (np.clip(x, 0, 127).astype(int) + 16).astype(np.int8))
    np.testing.assert_array_equal(p, np.clip(x, 0, 255).astype(int) - 200)


@tack.kernel
def distances(a, b):  # type: ignore[no-untyped-def]
    s = 0
    t = 0
    for i in range(a.shape[0]):
        s += abs(int(a[i]) - int(b[i]))
        t += int(a[i]) * int(b[i])
    return s * 3 + t


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u2", "i4"])
def test_sums_over_all(device: Any, dtype: str) -> None:
    a, b = image(dtype, 5000), image(dtype, 5000, seed=2)
    x, y = a.astype(np.int64), b.astype(np.int64)
    got = distances(tack.array(a, device=device), tack.array(b, device=device))
    exact = 3 * sum(abs(x - y).tolist()) + sum(int(u) * int(v) for u, v in zip(x.tolist(), y.tolist(), strict=True))
    assert (got - exact) % (1 << 64) == 0


@tack.kernel
def gains(o, a, b, g, h):  # type: ignore[no-untyped-def]
    for i in range(o.shape[0]):
        o[i] = (int(a[i]) * g - int(b[i]) * (h - 3)) // 255


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4"])
def test_arguments_as_weights(device: Any, dtype: str) -> None:
    """Those of 15 bits, and those that take more than is expected of them."""
    a, b = image(dtype, 300), image(dtype, 300, seed=2)
    for g, h in [(0, 0), (255, -255), (32767, 32767), (32768, 5), (-32767, -32767), (9, -32768), (1 << 31, 7), (1 << 62, -(1 << 63))]:
        for to in ("u1", "i8"):
            o = run(device, gains, np.zeros(300, to), a, b, g, h)[0]
            for x, y, got in zip(a.tolist(), b.tolist(), o.tolist(), strict=True):
                exact = (x * g - y * (h - 3) + (1 << 63)) % (1 << 64) - (1 << 63)
                assert (got - exact // 255) % (1 << 8 * o.itemsize) == 0, (x, y, g, h)
