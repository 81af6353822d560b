"""Comparisons of 64-bit integers inside of long expressions, which the device compiler of ROCm 7.0 and 7.1 can evaluate wrongly."""

from __future__ import annotations

import numpy as np

import tack


@tack.kernel
def inside(out, a, b, c):
    for i in range(out.shape[0]):
        x = a[i]
        y = b[i]
        z = c[i]
        out[i] = (
            ((x * 31 + y) ^ (z << 3))
            - ((x % 7 - 253) if x - 253 < y - 1 else (z * 5 - y))
            + (((y & 1023) | (x >> 2)) if (x ^ z) - 253 < -1 else ((z | 255) - x))
            + min(max(x - y, z - 253), (y + 1) if -253 + x * 0 < -1 + z * 0 else (y - 1))
            - (1 if (x - 253 < -1) == (y * 3 - z < x) else 2) * (3 if not (z - 253 < -1) else 4)
        )


def expected(x: int, y: int, z: int) -> int:
    """The same in Python's integers, of which the kernel's values keep well within 64 bits."""
    return (
        ((x * 31 + y) ^ (z << 3))
        - ((x % 7 - 253) if x - 253 < y - 1 else (z * 5 - y))
        + (((y & 1023) | (x >> 2)) if (x ^ z) - 253 < -1 else ((z | 255) - x))
        + min(max(x - y, z - 253), (y + 1) if -253 + x * 0 < -1 + z * 0 else (y - 1))
        - (1 if (x - 253 < -1) == (y * 3 - z < x) else 2) * (3 if not (z - 253 < -1) else 4)
    )


def test_comparisons_inside_of_long_expressions(device: tack.Device) -> None:
    """The case that is known: -253 < -1 was false."""
    random = np.random.default_rng(7)
    a, b, c = (np.concatenate([[0, 252, -1, 1], random.integers(-1000, 1000, 300)]).astype(np.int64) for _ in range(3))
    b[:4] = c[:4] = 0
    out = tack.zeros(len(a), dtype=tack.i64)
    inside(out, *(tack.array(v) for v in (a, b, c)))
    assert out.tolist() == [expected(*map(int, row)) for row in zip(a, b, c, strict=True)]


@tack.kernel
def plainly(out, a, b):
    for i in range(out.shape[0]):
        out[i] = a[i] < b[i]


def test_the_pair_by_itself(device: tack.Device) -> None:
    out = tack.zeros(2, dtype=tack.i64)
    plainly(out, tack.array(np.array([-253, -1], np.int64)), tack.array(np.array([-1, -253], np.int64)))
    assert out.tolist() == [1, 0]
