"""Eleven classic programs as tack kernels, each with arguments of any size and a NumPy oracle. Imported by tests, benchmarks and docs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tack
from tack.kernels import kernel_function

# --- kernels ----------------------------------------------------------------------------------------------------------------------


@tack.kernel
def saxpy(out, x, y, a):
    for i in range(out.shape[0]):
        out[i] = a * x[i] + y[i]


@tack.kernel
def triad(a, b, c, s):
    for i in range(a.shape[0]):
        a[i] = b[i] + s * c[i]


@tack.kernel
def mandelbrot(counts, left, top, step, limit):
    """How many steps of z = z^2 + c stay within radius 2, for c on a grid."""
    for row, column in tack.ndrange(counts.shape[0], counts.shape[1]):
        c_re = left + step * column
        c_im = top + step * row
        re = c_re
        im = c_im
        n = 0
        while n < limit and re * re + im * im <= 4.0:
            re, im = re * re - im * im + c_re, 2.0 * re * im + c_im
            n += 1
        counts[row, column] = n


@tack.func
def normal_cdf(x):
    return 0.5 * (1.0 + tack.erf(x * 0.7071067811865476))


@tack.kernel
def black_scholes(call, put, price, strike, years, rate, volatility):
    """Values of European options."""
    for i in range(call.shape[0]):
        spread = volatility * tack.sqrt(years[i])
        d1 = (tack.log(price[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / spread
        d2 = d1 - spread
        discounted = strike[i] * tack.exp(-rate * years[i])
        value = price[i] * normal_cdf(d1) - discounted * normal_cdf(d2)
        call[i] = value
        put[i] = value + discounted - price[i]


@tack.kernel
def nbody(position, velocity, mass, dt, softening):
    """One leapfrog step: all velocities from all positions, then all positions."""
    for i in range(mass.shape[0]):
        ax = ay = az = 0.0
        for j in range(mass.shape[0]):
            dx = position[j, 0] - position[i, 0]
            dy = position[j, 1] - position[i, 1]
            dz = position[j, 2] - position[i, 2]
            square = dx * dx + dy * dy + dz * dz + softening
            pull = mass[j] / (square * tack.sqrt(square))
            ax += dx * pull
            ay += dy * pull
            az += dz * pull
        velocity[i, 0] += dt * ax
        velocity[i, 1] += dt * ay
        velocity[i, 2] += dt * az
    for i, k in tack.ndrange(position.shape[0], 3):
        position[i, k] += dt * velocity[i, k]


@tack.kernel
def stencil(out, u, centre, side):
    """Seven points in three dimensions; the border keeps what it has."""
    for z, y, x in tack.ndrange((1, u.shape[0] - 1), (1, u.shape[1] - 1), (1, u.shape[2] - 1)):
        around = u[z - 1, y, x] + u[z + 1, y, x] + u[z, y - 1, x] + u[z, y + 1, x] + u[z, y, x - 1] + u[z, y, x + 1]
        out[z, y, x] = centre * u[z, y, x] + side * around


@tack.kernel
def histogram(counts, values, low, high):
    """Values outside [low, high) are not counted."""
    bins = counts.shape[0]
    for i in range(values.shape[0]):
        v = values[i]
        if low <= v < high:
            tack.atomic_add(counts, min(int((v - low) / (high - low) * bins), bins - 1), 1)


@tack.kernel
def spmv(out, starts, columns, values, x):
    """A sparse matrix in compressed rows times a vector."""
    for row in range(out.shape[0]):
        total = 0.0
        for k in range(starts[row], starts[row + 1]):
            total += values[k] * x[columns[k]]
        out[row] = total


@tack.kernel
def gather(out, x, index):
    for i in range(out.shape[0]):
        out[i] = x[index[i]]


@tack.kernel
def scatter(out, x, index):
    for i in range(x.shape[0]):
        out[index[i]] = x[i]


@tack.kernel
def life(after, before):
    """One generation of Conway's game on a torus."""
    height, width = before.shape
    for y, x in tack.ndrange(height, width):
        alive = 0
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                if dy != 0 or dx != 0:
                    alive += int(before[(y + dy) % height, (x + dx) % width])
        after[y, x] = 1 if alive == 3 or (alive == 2 and before[y, x] == 1) else 0


@tack.kernel
def prefix_sum(out, x, sums, block):
    """Inclusive sums by blocks: each block's total, then the totals before each block, then the blocks themselves."""
    n = x.shape[0]
    for b in range((n + block - 1) // block):
        total = 0
        for i in range(b * block, min((b + 1) * block, n)):
            total += x[i]
        sums[b] = total
    for _ in range(1):
        before = 0
        for b in range((n + block - 1) // block):
            total = sums[b]
            sums[b] = before
            before += total
    for b in range((n + block - 1) // block):
        running = sums[b]
        for i in range(b * block, min((b + 1) * block, n)):
            running += x[i]
            out[i] = running


# --- arguments and oracles --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """``make(size, dtype, rng)`` gives the arguments; ``oracle(*args)`` the expected contents by position, from the arguments as they
    were. ``tolerance``: of the result, in units of the dtype's epsilon times the largest magnitude; 0 is bit for bit.
    """

    name: str
    kernel: Any
    make: Callable[[int, Any, np.random.Generator], list[Any]]
    oracle: Callable[..., dict[int, np.ndarray]]
    dtypes: tuple[str, ...] = ("f32", "f64")
    tolerance: float = 0.0


def _saxpy(size: int, t: Any, rng: np.random.Generator) -> list[Any]:
    return [np.zeros(size, t), rng.standard_normal(size).astype(t), rng.standard_normal(size).astype(t), 1.7]


def _mandelbrot(size: int, t: Any, rng: np.random.Generator) -> list[Any]:
    side = max(1, math.isqrt(size))
    return [np.zeros((side, side + 1), np.int32), t(-2.2), t(-1.5), t(3.0 / side), 60]


def _mandelbrot_oracle(counts: np.ndarray, left: Any, top: Any, step: Any, limit: int) -> dict[int, np.ndarray]:
    t = type(left)
    c_re = np.broadcast_to(left + step * np.arange(counts.shape[1]).astype(t), counts.shape)
    c_im = np.broadcast_to((top + step * np.arange(counts.shape[0]).astype(t))[:, None], counts.shape)
    re, im, n = c_re.copy(), c_im.copy(), np.zeros(counts.shape, np.int32)
    with np.errstate(all="ignore"):
        for _ in range(limit):
            inside = re * re + im * im <= 4
            re, im = np.where(inside, re * re - im * im + c_re, re), np.where(inside, t(2) * re * im + c_im, im)
            n += inside
    return {0: n}


def _black_scholes(size: int, t: Any, rng: np.random.Generator) -> list[Any]:
    price, strike, years = rng.uniform(5, 30, size), rng.uniform(5, 30, size), rng.uniform(0.25, 10, size)
    return [np.zeros(size, t), np.zeros(size, t), price.astype(t), strike.astype(t), years.astype(t), 0.02, 0.3]


def _black_scholes_oracle(
    call: Any, put: Any, price: Any, strike: Any, years: Any, rate: float, volatility: float
) -> dict[int, np.ndarray]:
    price, strike, years = (a.astype(np.float64) for a in (price, strike, years))
    spread = volatility * np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + 0.5 * volatility**2) * years) / spread
    cdf = np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)), otypes=[np.float64])
    discounted = strike * np.exp(-rate * years)
    value = price * cdf(d1) - discounted * cdf(d1 - spread)
    return {0: value, 1: value + discounted - price}


def _nbody(size: int, t: Any, rng: np.random.Generator) -> list[Any]:
    n = max(1, math.isqrt(size))
    position, velocity = rng.standard_normal((n, 3)).astype(t), rng.standard_normal((n, 3)).astype(t)
    return [position, velocity, rng.uniform(0.1, 1, n).astype(t), 0.01, 0.05]


def _nbody_oracle(position: Any, velocity: Any, mass: Any, dt: float, softening: float) -> dict[int, np.ndarray]:
    p, v = position.astype(np.float64), velocity.astype(np.float64)
    d = p[None, :, :] - p[:, None, :]
    square = (d**2).sum(axis=2) + softening
    v = v + dt * (d * (mass / square**1.5)[:, :, None]).sum(axis=1)
    return {0: p + dt * v, 1: v}


def _stencil(size: int, t: Any, rng: np.random.Generator) -> list[Any]:
    n = max(1, round(size ** (1 / 3)))
    u = rng.standard_normal((n, n + 1, n + 2)).astype(t)
    return [u.copy(), u, 0.5, 1 / 12]


def _stencil_oracle(out: Any, u: Any, centre: float, side: float) -> dict[int, np.ndarray]:
    v, result = u.astype(np.float64), out.astype(np.float64)
    around = v[:-2, 1:-1, 1:-1] + v[2:, 1:-1, 1:-1] + v[1:-1, :-2, 1:-1] + v[1:-1, 2:, 1:-1] + v[1:-1, 1:-1, :-2] + v[1:-1, 1:-1, 2:]
    result[1:-1, 1:-1, 1:-1] = centre * v[1:-1, 1:-1, 1:-1] + side * around
    return {0: result}


def _histogram(size: int, t: Any, rng: np.random.Generator) -> list[Any]:
    values = rng.normal(0.5, 0.3, size).astype(t)
    if size > 2:
        values[0], values[1] = np.nan, 1.0
    return [np.zeros(37, np.int32), values, 0.0, 1.0]


def _histogram_oracle(counts: Any, values: Any, low: float, high: float) -> dict[int, np.ndarray]:
    with np.errstate(invalid="ignore"):
        v = values[(values >= low) & (values < high)]
    t, bins = values.dtype.type, len(counts)
    places = np.minimum((v - t(low)) / (t(high) - t(low)) * t(bins), bins - 1).astype(np.int64)
    return {0: counts + np.bincount(places, minlength=bins)}


def _spmv(size: int, t: Any, rng: np.random.Generator) -> list[Any]:
    lengths = rng.integers(0, 9, size)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    columns = rng.integers(0, size, starts[-1]).astype(np.int32)
    return [np.zeros(size, t), starts, columns, rng.standard_normal(starts[-1]).astype(t), rng.standard_normal(size).astype(t)]


def _spmv_oracle(out: Any, starts: Any, columns: Any, values: Any, x: Any) -> dict[int, np.ndarray]:
    products = values.astype(np.float64) * x.astype(np.float64)[columns]
    rows = np.repeat(np.arange(len(out)), np.diff(starts))
    return {0: np.bincount(rows, weights=products, minlength=len(out))}


def _gather(size: int, t: Any, rng: np.random.Generator) -> list[Any]:
    return [np.zeros(size, t), rng.standard_normal(2 * size).astype(t), rng.integers(0, 2 * size, size).astype(np.int32)]


def _scatter(size: int, t: Any, rng: np.random.Generator) -> list[Any]:
    return [np.full(2 * size, -1, t), rng.standard_normal(size).astype(t), rng.permutation(2 * size)[:size].astype(np.int64)]


def _scatter_oracle(out: Any, x: Any, index: Any) -> dict[int, np.ndarray]:
    result = out.copy()
    result[index] = x
    return {0: result}


def _life(size: int, t: Any, rng: np.random.Generator) -> list[Any]:
    side = max(1, math.isqrt(size))
    before = (rng.random((side, side + 3)) < 0.4).astype(t)
    return [np.zeros_like(before), before]


def _life_oracle(after: Any, before: Any) -> dict[int, np.ndarray]:
    turns = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]
    alive = sum(np.roll(before, turn, axis=(0, 1)).astype(np.int64) for turn in turns)
    return {0: ((alive == 3) | ((alive == 2) & (before == 1))).astype(before.dtype)}


def _prefix(size: int, t: Any, rng: np.random.Generator) -> list[Any]:
    block = max(1, math.isqrt(size))
    x = rng.integers(-50, 50, size).astype(t) if np.issubdtype(t, np.integer) else rng.uniform(0, 1, size).astype(t)
    return [np.zeros(size, t), x, np.zeros(-(-size // block), t), block]


def _prefix_oracle(out: Any, x: Any, sums: Any, block: int) -> dict[int, np.ndarray]:
    return {0: np.cumsum(x, dtype=x.dtype if x.dtype.kind == "i" else np.float64)}


PROGRAMS: tuple[Program, ...] = (
    Program("saxpy", saxpy, _saxpy, lambda out, x, y, a: {0: x.dtype.type(a) * x + y}, tolerance=2),
    Program("triad", triad, _saxpy, lambda a, b, c, s: {0: b + b.dtype.type(s) * c}, tolerance=2),
    Program("mandelbrot", mandelbrot, _mandelbrot, _mandelbrot_oracle),
    Program("black_scholes", black_scholes, _black_scholes, _black_scholes_oracle, tolerance=20),
    Program("nbody", nbody, _nbody, _nbody_oracle, tolerance=50),
    Program("stencil", stencil, _stencil, _stencil_oracle, tolerance=6),
    Program("histogram", histogram, _histogram, _histogram_oracle),
    Program("spmv", spmv, _spmv, _spmv_oracle, tolerance=50),
    Program("gather", gather, _gather, lambda out, x, index: {0: x[index]}),
    Program("scatter", scatter, _scatter, _scatter_oracle),
    Program("life", life, _life, _life_oracle, dtypes=("u8", "i32", "f32", "f64")),
    Program("prefix_sum", prefix_sum, _prefix, _prefix_oracle, dtypes=("f32", "f64", "i64"), tolerance=300),
)
BY_NAME = {program.name: program for program in PROGRAMS}


def variant(kernel: Any, **options: Any) -> Any:
    """The same function as a kernel with other options, e.g. ``simd=1``."""
    return tack.kernel(**options)(kernel_function(kernel).function)
