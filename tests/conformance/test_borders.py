"""Neighbours of elements at the borders: indices that wrap round, that stop at the ends, that are asked about, in rows of any length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tack

WIDTHS = [0, 1, 2, 3, 7, 16, 17, 33, 64, 67, 130, 257]


def elements(*shape: int, dtype: str = "u1") -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 256, shape).astype(dtype)


@tack.kernel
def around(o, a):  # type: ignore[no-untyped-def]
    h, w = a.shape
    for y, x in tack.ndrange(h, w):
        s = 0
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                s += int(a[(y + dy) % h, (x + dx) % w]) * (3 * dy + dx + 5)
        o[y, x] = s


@tack.kernel
def held(o, a):  # type: ignore[no-untyped-def]
    h, w = a.shape
    for y, x in tack.ndrange(h, w):
        s = 0
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                s += int(a[min(max(y + dy, 0), h - 1), max(0, min(x + dx, w - 1))]) * (3 * dy + dx + 5)
        o[y, x] = s


@tack.kernel
def asked(o, a):  # type: ignore[no-untyped-def]
    h, w = a.shape
    for y, x in tack.ndrange(h, w):
        s = 0
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                v, u = y + dy, x + dx
                if 0 <= v < h and u >= 0 and not u >= w:
                    s += int(a[v, u]) * (3 * dy + dx + 5)
        o[y, x] = s


PADDED = {"around": (around, "wrap"), "held": (held, "edge"), "asked": (asked, "constant")}


@pytest.mark.parametrize("name", PADDED)
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4"])
def test_windows_that_reach_over_the_border(device: Any, name: str, dtype: str) -> None:
    kernel, mode = PADDED[name]
    for h, w in [(1, 40), (2, 5), *((3, w) for w in WIDTHS)]:
        a = elements(h, w, dtype=dtype)
        o = tack.zeros((h, w), dtype=tack.i32, device=device)
        kernel(o, tack.array(a, device=device))
        if w:
            p = np.pad(a.astype(np.int64), 1, mode=mode)  # type: ignore[call-overload]
            expected = sum(p[1 + y : 1 + y + h, 1 + x : 1 + x + w] * (3 * y + x + 5) for y in (-1, 0, 1) for x in (-1, 0, 1))
            np.testing.assert_array_equal(o.numpy(), expected)


@tack.kernel
def moved(o, p, a, dx, n):  # type: ignore[no-untyped-def]
    w = a.shape[0]
    for x in range(w):
        o[x] = a[(x + dx) % w]
        p[x] = (x - dx) % n


@pytest.mark.parametrize("dx", [0, 1, -1, 5, -30, 129, 130, 131, 1 << 50, -(1 << 63), (1 << 63) - 1])
def test_shifts_of_any_size_by_any_divisor(device: Any, dx: int) -> None:
    a = elements(130)
    for n in (130, 131, 7, 0, -130, -1, 1 << 62, -(1 << 63)):
        o, p = tack.zeros(130, dtype=tack.u8, device=device), tack.zeros(130, dtype=tack.i64, device=device)
        moved(o, p, tack.array(a, device=device), dx, n)
        wrapped = [((x + dx + (1 << 63)) % (1 << 64) - (1 << 63)) % 130 for x in range(130)]
        assert o.numpy().tolist() == a[wrapped].tolist()
        apart = [(x - dx + (1 << 63)) % (1 << 64) - (1 << 63) for x in range(130)]
        assert p.numpy().tolist() == [v % n if n else 0 for v in apart]


@tack.kernel
def smoothed(o, a, w, first, last):  # type: ignore[no-untyped-def]
    for y, x in tack.ndrange(a.shape[0] // w, (first, last)):
        s = 2.0 * a[y * w + x]
        if x > 0:
            s += a[y * w + x - 1]
        if x + 1 < w:
            s += a[y * w + x + 1]
        if x == 0 or x == w - 1:
            s = -s
        o[y * w + x] = s


@pytest.mark.parametrize("w", [1, 2, 5, 40, 100, 300])
def test_flat_arrays_whose_width_is_an_argument(device: Any, w: int) -> None:
    a = elements(4 * w, dtype="f4")
    for first, last in ((0, w), (1, w - 1), (w // 2, w), (0, w // 3)):
        o = tack.zeros(4 * w, device=device)
        smoothed(o, tack.array(a, device=device), w, first, last)
        rows = np.pad(a.reshape(4, w), ((0, 0), (1, 1)))
        expected = 2 * rows[:, 1:-1] + rows[:, :-2] + rows[:, 2:]
        expected[:, [0, -1]] *= -1
        expected[:, :first] = 0
        expected[:, max(first, last) :] = 0
        np.testing.assert_array_equal(o.numpy().reshape(4, w), expected)


@tack.kernel
def split(o, a, t):  # type: ignore[no-untyped-def]
    for x in range(a.shape[0]):
        if x < t:
            o[x] = a[x] + 1
        else:
            o[x] = a[min(x - t, a.shape[0] - 1)]


@pytest.mark.parametrize("t", [-5, 0, 3, 100, 197, 200, 1000, 1 << 45])
def test_rows_of_two_parts(device: Any, t: int) -> None:
    a = elements(200)
    o = tack.zeros(200, dtype=tack.u8, device=device)
    split(o, tack.array(a, device=device), t)
    assert o.numpy().tolist() == [(int(a[x]) + 1) % 256 if x < t else int(a[min(x - t, 199)]) for x in range(200)]
