"""Images of pixels with a few channels: read and written channel by channel, in loops over them, in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tack


def pixels(channels: int, dtype: str = "u1", n: int = 331) -> np.ndarray:
    return np.random.default_rng(channels).integers(0, 256, (n, channels)).astype(dtype)


@tack.kernel
def reversed_channels(o, a):  # type: ignore[no-untyped-def]
    for i in range(o.shape[0]):
        o[i, 0] = a[i, 2]
        o[i, 1] = a[i, 1]
        o[i, 2] = a[i, 0]


@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8"])
def test_channels_stored_while_others_are_read(device: Any, dtype: str) -> None:
    if dtype == "f8" and not device.supports_f64:
        pytest.skip("no f64")
    for channels, outs in ((3, 3), (4, 3), (4, 4), (3, 4), (7, 3), (3, 7)):
        a = pixels(channels, dtype)
        o = tack.full((331, outs), 9, dtype=np.dtype(dtype), device=device)
        reversed_channels(o, tack.array(a, device=device))
        expected = np.full((331, outs), 9, dtype)
        expected[:, :3] = a[:, 2::-1]
        np.testing.assert_array_equal(o.numpy(), expected)


def test_channels_in_place_follow_the_program(device: Any) -> None:
    """The first store is seen by the last load: rows are not held back until all channels are there."""
    a = pixels(3)
    o = tack.array(a, device=device)
    reversed_channels(o, o)
    np.testing.assert_array_equal(o.numpy(), a[:, [2, 1, 2]])


@tack.kernel
def over(o, front, back):  # type: ignore[no-untyped-def]
    for y, x in tack.ndrange(o.shape[0], o.shape[1]):
        t = int(front[y, x, 3])
        for c in range(3):
            o[y, x, c] = (front[y, x, 2 - c] * t + back[y, x, c] * (255 - t) + 127) // 255


@pytest.mark.parametrize("width", [1, 31, 64, 130])
def test_loops_over_channels(device: Any, width: int) -> None:
    front, back = pixels(4, n=3 * width).reshape(3, width, 4), pixels(3, n=3 * width).reshape(3, width, 3)
    o = tack.zeros((3, width, 3), dtype=tack.u8, device=device)
    over(o, tack.array(front, device=device), tack.array(back, device=device))
    f, b = front.astype(int), back.astype(int)
    t = f[..., 3:]
    np.testing.assert_array_equal(o.numpy(), (f[..., 2::-1] * t + b * (255 - t) + 127) // 255)


@tack.kernel
def planes(o, s, a):  # type: ignore[no-untyped-def]
    for y, x in tack.ndrange(a.shape[0], a.shape[1]):
        total = 0
        for c in range(4):
            if a[y, x, c] > 100:
                o[c, y, x] = a[y, x, c] * 0.5
                total += int(a[y, x, c])
        s[y, x, 0] = total
        s[y, x, 1] = total >> 8


def test_loops_over_channels_with_conditions(device: Any) -> None:
    a = pixels(4, n=5 * 67).reshape(5, 67, 4)
    o, s = tack.zeros((4, 5, 67), device=device), tack.zeros((5, 67, 2), dtype=tack.u8, device=device)
    planes(o, s, tack.array(a, device=device))
    bright = np.where(a > 100, a, 0).astype(int)
    np.testing.assert_array_equal(o.numpy(), np.moveaxis(bright, 2, 0) * 0.5)
    total = bright.sum(axis=2)
    np.testing.assert_array_equal(s.numpy(), np.stack([total % 256, total // 256], axis=2))
