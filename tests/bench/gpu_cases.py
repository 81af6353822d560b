"""What the GPU benchmarks compute: data, sizes and the numbers that are right. The same for every library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Case", "cases"]

LIMIT = 200  # of Mandelbrot's iterations
BINS = 256
SOFT = 1e-4  # of the n-body's distances


@dataclass(frozen=True)
class Case:
    """``inputs``: arrays and scalars in the order of the kernel's parameters, the output first; None is an output of one number.

    ``right`` says whether an output is; ``amount`` is what a rate counts, in ``unit`` once divided by seconds.
    """

    name: str
    inputs: tuple[Any, ...]
    right: Callable[[Any], bool]
    amount: float
    unit: str


def _mandelbrot(size: int) -> np.ndarray:
    x = np.arange(size, dtype=np.float32)
    cx, cy = np.meshgrid(np.float32(-2) + np.float32(3) * x / np.float32(size), np.float32(-1.5) + np.float32(3) * x / np.float32(size))
    zx, zy = np.zeros_like(cx), np.zeros_like(cy)
    count = np.zeros(cx.shape, np.int32)
    with np.errstate(all="ignore"):
        for _ in range(LIMIT):
            inside = zx * zx + zy * zy <= 4
            count += inside
            zx, zy = np.where(inside, zx * zx - zy * zy + cx, zx), np.where(inside, 2 * zx * zy + cy, zy)
    return count


def cases(tiny: bool) -> list[Case]:
    """All cases, of the sizes of a GPU or, ``tiny``, of a test on a simulated one."""
    n = 5_000 if tiny else 1 << 26
    size = 24 if tiny else 2048
    bodies = 64 if tiny else 16_384
    values = 5_000 if tiny else 1 << 25
    rng = np.random.default_rng(7)
    x, y = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)
    place, mass = rng.random((3, bodies), dtype=np.float32), rng.random(bodies, dtype=np.float32)
    data = rng.random(values, dtype=np.float32)
    counts = np.histogram(data, BINS, (0.0, 1.0))[0]
    d = place[0] - place[0, :8, None], place[1] - place[1, :8, None], place[2] - place[2, :8, None]
    pull = (d[0].astype(np.float64) * mass / (d[0] ** 2 + d[1] ** 2 + d[2] ** 2 + SOFT) ** 1.5).sum(axis=1)
    few = min(size, 128)
    picture = _mandelbrot(size)[:few] if size <= 256 else None

    def mandelbrot_is_right(out: Any) -> bool:
        out = out.reshape(size, size)
        if picture is not None:
            return float((out[:few] == picture).mean()) > 0.99  # where a rounding decides, fma changes a count
        return bool(out[size // 2, size // 2] == LIMIT and out[0, 0] == 1 and out.max() == LIMIT)

    return [
        Case("triad", (np.zeros_like(x), x, y, 2.5), lambda out: np.allclose(out, 2.5 * x + y, rtol=1e-6), 12.0 * n / 1e9, "GB/s"),
        Case("mandelbrot", (np.zeros(size * size, np.int32), size), mandelbrot_is_right, size * size / 1e6, "Mpixel/s"),
        Case(
            "n-body",
            (np.zeros(bodies, np.float32), *place, mass),
            lambda out: np.allclose(out[:8], pull, rtol=1e-3, atol=1e-2),
            bodies * bodies / 1e9,
            "Gpair/s",
        ),
        Case(
            "reduction", (None, data), lambda out: abs(out - float(data.sum(dtype=np.float64))) < 1e-4 * values, 4.0 * values / 1e9, "GB/s"
        ),
        Case(
            "histogram",
            (np.zeros(BINS, np.int32), data),
            lambda out: bool(np.abs(out.astype(np.int64) - counts).sum() <= 1e-4 * values + 4),
            values / 1e9,
            "Gvalue/s",
        ),
    ]
