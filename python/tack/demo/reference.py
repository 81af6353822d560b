"""The demo's kernels in NumPy: what each result is checked against, and the time that it is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["blur", "brightness", "escape_time", "glow", "histogram", "sharpen", "tone"]

F32 = NDArray[np.float32]


def brightness(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    wide = picture.astype(np.int32)
    return ((77 * wide[..., 0] + 150 * wide[..., 1] + 29 * wide[..., 2]) >> 8).astype(np.uint8)


def histogram(gray: NDArray[np.uint8]) -> NDArray[Any]:
    return np.bincount(gray.ravel(), minlength=256)


def blur(a: F32, weights: tuple[float, ...], axis: int) -> F32:
    radius = len(weights) // 2
    widths = [(radius, radius) if d == axis else (0, 0) for d in range(a.ndim)]
    padded = np.pad(a, widths, mode="edge")
    out = np.zeros_like(a)
    for k, weight in enumerate(weights):
        window = [slice(None)] * a.ndim
        window[axis] = slice(k, k + a.shape[axis])
        out += np.float32(weight) * padded[tuple(window)]
    return out


def sharpen(a: F32, blurred: F32, amount: float) -> F32:
    sharper: F32 = np.clip(a + np.float32(amount) * (a - blurred), 0, 1)
    return sharper


def tone(a: F32, exposure: float, gamma: float) -> F32:
    e, g = np.float32(exposure), np.float32(gamma)
    curved: F32 = ((1 - np.exp(-e * a)) / (1 - np.exp(-e))) ** g
    return curved


def escape_time(shape: tuple[int, int], cx: float, cy: float, span: float, limit: int) -> NDArray[np.int32]:
    h, w = shape
    scale = np.float32(span) / np.float32(h)
    a = (np.float32(cx) + (np.arange(h, dtype=np.float32) - np.float32(h) * np.float32(0.5)) * scale)[:, None].repeat(w, 1)
    b = (np.float32(cy) + (np.arange(w, dtype=np.float32) - np.float32(w) * np.float32(0.5)) * scale)[None, :].repeat(h, 0)
    steps = np.zeros(h * w, np.int32)
    left = np.arange(h * w)  # the points that have not escaped
    a, b = a.ravel(), b.ravel()
    p, q = np.zeros_like(a), np.zeros_like(b)
    for _ in range(limit):
        inside = p * p + q * q <= 4
        left, a, b, p, q = left[inside], a[inside], b[inside], p[inside], q[inside]
        steps[left] += 1
        p, q = p * p - q * q + a, 2 * p * q + b
    return steps.reshape(h, w)


def glow(picture: F32, steps: NDArray[np.int32], limit: int, strength: float) -> NDArray[np.uint8]:
    n = steps.astype(np.float32)
    t = np.log2(1 + n) / np.log2(np.float32(1 + limit))
    inside = steps == limit
    light = np.where(inside, np.float32(0), np.float32(strength) * t * t * t)
    shade = np.where(inside, np.float32(1), np.float32(0.3) + np.float32(0.4) * t)
    tint = np.array([1.0, 0.55, 0.2], np.float32)
    lit = 1 - (1 - shade[..., None] * picture) * (1 - np.clip(tint * light[..., None], 0, 1))
    out: NDArray[np.uint8] = (np.clip(lit, 0, 1) * np.float32(255) + np.float32(0.5)).astype(np.uint8)
    return out
