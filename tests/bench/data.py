"""The benchmark cases: sizes, seeded data, NumPy references. The same for every peer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["CASES", "Case", "f32"]

N = 10_000_000
MANDEL = (1024, 1024, 200)
OPTIONS = 10_000_000
BODIES = 4096
GRID = 256
ROWS, PER_ROW = 1_000_000, 10
PIXELS = 1024
POINTS, CELLS, NEAREST = 1 << 17, 128, 4  # in the unit square, cells along a side, neighbours looked for
BOARD = 2048
HASHES, HASH_ROUNDS = 1 << 22, 64


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


def triad_case(name: str, n: int) -> Case:
    return Case(
        name,
        lambda: {"o": np.zeros(n, "f4"), "x": f32(n), "y": f32(n, seed=1)},
        lambda d: close(d["o"], d["x"] * np.float32(2.5) + d["y"]),
        12.0 * n,
        "GB/s",
    )


def julia_reference(rows: int) -> np.ndarray:
    """The first rows of the picture: z -> z^2 with another constant added on each side of the real axis."""
    y, x = (v[:rows].ravel() for v in np.mgrid[0:PIXELS, 0:PIXELS].astype(np.float64))
    x, y = -1.5 + 3.0 * x / PIXELS, -1.5 + 3.0 * y / PIXELS
    count = np.zeros(x.shape)
    live = np.ones(x.shape, bool)
    for _ in range(200):
        live &= x * x + y * y <= 4.0
        with np.errstate(over="ignore"):
            nx, ny = x * x - y * y - 0.4, 2.0 * x * y
            ny = np.where(ny < 0.0, ny + 0.6, ny - 0.55)
        x, y = np.where(live, nx, x), np.where(live, ny, y)
        count += live
    return np.where(count < 200, count - np.sqrt(x * x + y * y), -1.0)


def mostly(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal but for few places: of chaotic iterations, where the last bit of an early step decides."""
    return bool(np.mean(np.abs(a - b) > 1e-2) < 0.03)


def spheres_check(d: dict[str, Any]) -> bool:
    """A sphere faces the camera: its middle is lit, its shade grows towards the light; the corners see the background."""
    o = d["o"].reshape(PIXELS, PIXELS)
    return bool(o[0, 0] == 0.0 and (o >= 0).all() and (o <= 1.001).all() and 0.2 < np.mean(o > 0) < 0.9 and 0.1 < o[o > 0].mean() < 0.9)


def points() -> dict[str, Any]:
    """Points sorted by their cells, and where each cell's points begin."""
    x, y = f32(POINTS, 0, 1, 11), f32(POINTS, 0, 1, 12)
    cell = np.minimum((y * CELLS).astype(np.int32), CELLS - 1) * CELLS + np.minimum((x * CELLS).astype(np.int32), CELLS - 1)
    order = np.argsort(cell, kind="stable")
    start = np.searchsorted(cell[order], np.arange(CELLS * CELLS + 1)).astype(np.int32)
    return {"o": np.zeros(POINTS, "f4"), "x": x[order].copy(), "y": y[order].copy(), "start": start}


def nearest_reference(d: dict[str, Any], count: int) -> np.ndarray:
    """Squared distances to the neighbour number NEAREST, of the points in the 3 x 3 cells around."""
    x, y = d["x"].astype(np.float64), d["y"].astype(np.float64)
    column, row = (np.minimum((v * CELLS).astype(np.int64), CELLS - 1) for v in (d["x"], d["y"]))
    out = np.empty(count)
    for i in range(count):
        near = (np.abs(column - column[i]) <= 1) & (np.abs(row - row[i]) <= 1)
        near[i] = False
        out[i] = np.sort((x[near] - x[i]) ** 2 + (y[near] - y[i]) ** 2)[NEAREST - 1]
    return out


def life_reference(a: np.ndarray) -> np.ndarray:
    n = a.shape[0]
    around = sum(a[1 + i : n - 1 + i, 1 + j : n - 1 + j] for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return np.asarray((around == 3) | ((around == 2) & (a[1:-1, 1:-1] == 1)))


def hash_reference(x: np.ndarray) -> np.ndarray:
    h = x.copy()
    for k in range(HASH_ROUNDS):
        h ^= h >> np.uint32(16)
        h *= np.uint32(0x85EBCA6B)
        h ^= h >> np.uint32(13)
        h += np.uint32(k)
    return h


W, H, MAXIT = MANDEL
CASES = {
    c.name: c
    for c in (
        triad_case("triad", N),
        triad_case("triad_1e5", 100_000),
        triad_case("triad_1e3", 1000),
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
        Case(
            "scatter",
            lambda: {"o": np.zeros(N, "f4"), "x": f32(N), "i": np.random.default_rng(9).permutation(N).astype(np.int32)},
            lambda d: bool((d["o"][d["i"]] == d["x"]).all()),
            12.0 * N,
            "GB/s",
        ),
        Case(
            "julia",
            lambda: {"o": np.zeros(PIXELS**2, "f4")},
            lambda d: mostly(d["o"][: 64 * PIXELS], julia_reference(64)),
            1.0 * PIXELS**2,
            "Gop/s",
        ),
        Case("spheres", lambda: {"o": np.zeros(PIXELS**2, "f4")}, spheres_check, 1.0 * PIXELS**2, "Gop/s"),
        Case("nearest", points, lambda d: close(d["o"][:200], nearest_reference(d, 200), rtol=1e-3, atol=1e-9), 1.0 * POINTS, "Gop/s"),
        Case(
            "life",
            lambda: {"o": np.zeros((BOARD, BOARD), "u1"), "a": (ints(BOARD**2, 3, 13) == 0).astype("u1").reshape(BOARD, BOARD)},
            lambda d: bool((d["o"][1:-1, 1:-1] == life_reference(d["a"])).all()),
            1.0 * BOARD**2,
            "Gop/s",
        ),
        Case(
            "hash",
            lambda: {"o": np.zeros(HASHES, "u4"), "x": ints(HASHES, 1 << 31, 14).astype("u4")},
            lambda d: bool((d["o"] == hash_reference(d["x"])).all()),
            5.0 * HASHES * HASH_ROUNDS,
            "Gop/s",
        ),
        Case("spmv", csr, lambda d: close(d["o"], spmv_reference(d)), 12.0 * ROWS * PER_ROW, "GB/s"),
    )
}
