"""The benchmark cases: sizes, seeded data, NumPy references. The same for every peer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["CASES", "Case", "f32"]

N = 10_000_000
MANDEL = (1024, 1024, 200)
OPTIONS = 1_000_000
BODIES = 4096
GRID = 256
ROWS, PER_ROW = 1_000_000, 10


def f32(n: int, low: float = 0.1, high: float = 1.0, seed: int = 0) -> np.ndarray:
    """``n`` uniform f32 numbers in [low, high)."""
    return (np.random.default_rng(seed).random(n, dtype=np.float32) * np.float32(high - low) + np.float32(low)).astype(np.float32)


def ints(n: int, high: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, n).astype(np.int32)


@dataclass(frozen=True)
class Case:
    """``make`` gives the input arrays by name, ``check`` compares the outputs with NumPy, ``amount`` is what the rate counts."""

    name: str
    make: Callable[[], dict[str, Any]]
    check: Callable[[dict[str, Any]], bool]
    amount: float
    unit: str  # "GB/s" or "Gop/s"


def close(a: np.ndarray, b: np.ndarray, rtol: float = 1e-4, atol: float = 1e-4) -> bool:
    return bool(np.allclose(a, b, rtol=rtol, atol=atol))


def black_scholes_reference(d: dict[str, Any]) -> np.ndarray:
    from math import erf

    s, k, t = (d[n][:500].astype(np.float64) for n in ("s", "k", "t"))
    phi = np.vectorize(lambda v: 0.5 * (1 + erf(v / 2**0.5)))
    d1 = (np.log(s / k) + (0.02 + 0.045) * t) / (0.3 * np.sqrt(t))
    return np.asarray(s * phi(d1) - k * np.exp(-0.02 * t) * phi(d1 - 0.3 * np.sqrt(t)))


def nbody_reference(d: dict[str, Any]) -> np.ndarray:
    x, y, z, m = (d[n].astype(np.float64) for n in "xyzm")
    dx, dy, dz = (v - v[:8, None] for v in (x, y, z))
    return np.asarray((dx * m * (dx**2 + dy**2 + dz**2 + 1e-4) ** -1.5).sum(axis=1))


def stencil_reference(a: np.ndarray) -> np.ndarray:
    p = a[99:102].astype(np.float64)
    around = p[1, 1:-1, :-2] + p[1, 1:-1, 2:] + p[1, :-2, 1:-1] + p[1, 2:, 1:-1] + p[0, 1:-1, 1:-1] + p[2, 1:-1, 1:-1]
    return np.asarray(0.5 * p[1, 1:-1, 1:-1] + 0.08 * around)


def csr() -> dict[str, Any]:
    return {
        "ptr": (np.arange(ROWS + 1) * PER_ROW).astype(np.int32),
        "col": ints(ROWS * PER_ROW, ROWS, 5),
        "val": f32(ROWS * PER_ROW, seed=6),
        "x": f32(ROWS, seed=7),
        "o": np.zeros(ROWS, np.float32),
    }


def spmv_reference(d: dict[str, Any]) -> np.ndarray:
    return np.asarray((d["val"].astype(np.float64) * d["x"][d["col"]]).reshape(ROWS, PER_ROW).sum(axis=1))


W, H, MAXIT = MANDEL
CASES = {
    c.name: c
    for c in (
        Case(
            "triad",
            lambda: {"o": np.zeros(N, "f4"), "x": f32(N), "y": f32(N, seed=1)},
            lambda d: close(d["o"], d["x"] * np.float32(2.5) + d["y"]),
            12.0 * N,
            "GB/s",
        ),
        Case(
            "stencil",
            lambda: {"o": np.zeros((GRID,) * 3, "f4"), "a": f32(GRID**3).reshape((GRID,) * 3)},
            lambda d: close(d["o"][100, 1:-1, 1:-1], stencil_reference(d["a"])),
            8.0 * GRID**3,
            "GB/s",
        ),
        Case("mandelbrot", lambda: {"o": np.zeros(W * H, "i4")}, lambda d: bool(20e6 < d["o"].sum() < 60e6), 10.0 * 37e6, "Gop/s"),
        Case(
            "blackscholes",
            lambda: {
                "call": np.zeros(OPTIONS, "f4"),
                "put": np.zeros(OPTIONS, "f4"),
                "s": f32(OPTIONS, 10, 100, 1),
                "k": f32(OPTIONS, 10, 100, 2),
                "t": f32(OPTIONS, 0.1, 2.1, 3),
            },
            lambda d: close(d["call"][:500], black_scholes_reference(d), atol=1e-3),
            1.0 * OPTIONS,
            "Gop/s",
        ),
        Case(
            "nbody",
            lambda: {**{f"a{n}": np.zeros(BODIES, "f4") for n in "xyz"}, **{n: f32(BODIES, seed=s) for s, n in enumerate("xyzm")}},
            lambda d: close(d["ax"][:8], nbody_reference(d), rtol=1e-2),
            20.0 * BODIES * BODIES,
            "Gop/s",
        ),
        Case(
            "histogram",
            lambda: {"h": np.zeros(256, "i4"), "v": ints(N, 256, 4)},
            lambda d: bool((d["h"] == np.bincount(d["v"], minlength=256)).all()),
            4.0 * N,
            "GB/s",
        ),
        Case(
            "gather",
            lambda: {"o": np.zeros(N, "f4"), "x": f32(N), "i": ints(N, N, 3)},
            lambda d: bool((d["o"] == d["x"][d["i"]]).all()),
            12.0 * N,
            "GB/s",
        ),
        Case("spmv", csr, lambda d: close(d["o"], spmv_reference(d)), 12.0 * ROWS * PER_ROW, "GB/s"),
    )
}
