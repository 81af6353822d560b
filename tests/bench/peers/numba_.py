"""Numba: njit on one thread, njit(parallel=True) on more."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import erf, exp, log, sqrt
from typing import Any

import numpy as np

Run = Callable[[], object]
f4 = np.float32


def cases(threads: int) -> dict[str, Callable[[dict[str, Any]], Run]]:
    os.environ["NUMBA_NUM_THREADS"] = str(threads)
    from numba import njit, prange

    jit = njit(parallel=threads > 1, error_model="numpy")

    @jit
    def triad(o, x, y, f):
        for i in prange(o.shape[0]):
            o[i] = x[i] * f + y[i]

    @jit
    def stencil(o, a, c0, c1):
        n = a.shape[0]
        for q in prange(n - 2):
            i = q + 1
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    o[i, j, k] = c0 * a[i, j, k] + c1 * (
                        a[i, j, k - 1] + a[i, j, k + 1] + a[i, j - 1, k] + a[i, j + 1, k] + a[i - 1, j, k] + a[i + 1, j, k]
                    )

    @jit
    def mandelbrot(o, w, h, limit):
        for p in prange(w * h):
            cx = f4(-2.0) + f4(3.0) * f4(p % w) / f4(w)
            cy = f4(-1.5) + f4(3.0) * f4(p // w) / f4(h)
            x = f4(0.0)
            y = f4(0.0)
            k = 0
            while k < limit and x * x + y * y <= f4(4.0):
                t = x * x - y * y + cx
                y = f4(2.0) * x * y + cy
                x = t
                k += 1
            o[p] = k

    @njit(error_model="numpy")
    def phi(d):
        return f4(0.5) * (f4(1.0) + f4(erf(d * f4(0.70710678))))

    @jit
    def blackscholes(call, put, s, k, t, r, v):
        for i in prange(call.shape[0]):
            root = f4(sqrt(t[i]))
            d1 = (f4(log(s[i] / k[i])) + (r + f4(0.5) * v * v) * t[i]) / (v * root)
            d2 = d1 - v * root
            c1 = phi(d1)
            c2 = phi(d2)
            e = k[i] * f4(exp(-r * t[i]))
            call[i] = s[i] * c1 - e * c2
            put[i] = e * (f4(1.0) - c2) - s[i] * (f4(1.0) - c1)

    @jit
    def nbody(ax, ay, az, x, y, z, m):
        n = x.shape[0]
        for i in prange(n):
            sx = f4(0)
            sy = f4(0)
            sz = f4(0)
            for j in range(n):
                dx = x[j] - x[i]
                dy = y[j] - y[i]
                dz = z[j] - z[i]
                inverse = f4(1) / f4(sqrt(dx * dx + dy * dy + dz * dz + f4(1e-4)))
                w = m[j] * inverse * inverse * inverse
                sx += dx * w
                sy += dy * w
                sz += dz * w
            ax[i] = sx
            ay[i] = sy
            az[i] = sz

    @njit  # Numba has no CPU atomics, so this is a serial loop without them
    def histogram(h, v):
        h[:] = 0
        for i in range(v.shape[0]):
            h[v[i]] += 1

    @jit
    def gather(o, x, index):
        for i in prange(o.shape[0]):
            o[i] = x[index[i]]

    @jit
    def spmv(o, ptr, col, val, x):
        for r in prange(o.shape[0]):
            s = f4(0)
            for k in range(ptr[r], ptr[r + 1]):
                s += val[k] * x[col[k]]
            o[r] = s

    @jit
    def scatter(o, x, index):
        for i in prange(x.shape[0]):
            o[index[i]] = x[i]

    @jit
    def julia(o, n, limit):
        for i in prange(n):
            for j in range(n):
                x = f4(-1.5) + f4(3.0) * f4(j) / f4(n)
                y = f4(-1.5) + f4(3.0) * f4(i) / f4(n)
                k = 0
                while k < limit and x * x + y * y <= f4(4.0):
                    t = x * x - y * y - f4(0.4)
                    y = f4(2.0) * x * y
                    if y < f4(0.0):
                        y += f4(0.6)
                    else:
                        y -= f4(0.55)
                    x = t
                    k += 1
                o[i * n + j] = f4(k) - f4(sqrt(x * x + y * y)) if k < limit else f4(-1.0)

    @njit(error_model="numpy")
    def length(x, y, z):
        return f4(sqrt(x * x + y * y + z * z))

    @njit(error_model="numpy")
    def scene(x, y, z):
        a = length(x, y, z) - f4(1.0)
        b = length(x - f4(1.2), y, z - f4(0.8)) - f4(0.7)
        c = length(x + f4(1.1), y - f4(0.6), z) - f4(0.6)
        d = length(x, y + f4(1.3), z - f4(0.3)) - f4(0.5)
        return min(min(a, b), min(c, d))

    @jit
    def spheres(o, n):
        for i in prange(n):
            for j in range(n):
                u = (f4(2.0) * f4(j) - f4(n)) / f4(n)
                v = (f4(2.0) * f4(i) - f4(n)) / f4(n)
                inverse = f4(1.0) / length(u, v, f4(1.5))
                dx = u * inverse
                dy = v * inverse
                dz = f4(1.5) * inverse
                t = f4(0.0)
                shade = f4(0.0)
                e = f4(0.001)
                for _ in range(80):
                    x = dx * t
                    y = dy * t
                    z = dz * t - f4(3.0)
                    d = scene(x, y, z)
                    if d < e:
                        nx = scene(x + e, y, z) - d
                        ny = scene(x, y + e, z) - d
                        nz = scene(x, y, z + e) - d
                        shade = max(f4(0.05), (f4(0.6) * nx - f4(0.5) * ny - f4(0.62) * nz) / length(nx, ny, nz))
                        break
                    t += d
                    if t > f4(10.0):
                        break
                o[i * n + j] = shade

    @jit
    def nearest(o, x, y, start, cells):
        for i in prange(x.shape[0]):
            column = min(int(x[i] * f4(cells)), cells - 1)
            row = min(int(y[i] * f4(cells)), cells - 1)
            a = b = c = d = f4(4.0)
            for r in range(max(row - 1, 0), min(row + 2, cells)):
                for k in range(start[r * cells + max(column - 1, 0)], start[r * cells + min(column + 2, cells)]):
                    if k != i:
                        dx = x[k] - x[i]
                        dy = y[k] - y[i]
                        q = dx * dx + dy * dy
                        if q < d:
                            d = max(c, q)
                            c = min(c, max(b, q))
                            b = min(b, max(a, q))
                            a = min(a, q)
            o[i] = d

    @jit
    def life(o, a):
        for i in prange(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                s = a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1]
                s += a[i, j + 1] + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                o[i, j] = 1 if s == 3 or (s == 2 and a[i, j] == 1) else 0

    @jit
    def mix(o, x):
        for i in prange(x.shape[0]):
            h = x[i]
            for k in range(64):
                h ^= h >> np.uint32(16)
                h = np.uint32(h * np.uint32(0x85EBCA6B))
                h ^= h >> np.uint32(13)
                h = np.uint32(h + np.uint32(k))
            o[i] = h

    table: dict[str, Callable[[dict[str, Any]], Run]] = {
        "triad": lambda d: lambda: triad(d["o"], d["x"], d["y"], f4(2.5)),
        "triad_1e5": lambda d: lambda: triad(d["o"], d["x"], d["y"], f4(2.5)),
        "triad_1e3": lambda d: lambda: triad(d["o"], d["x"], d["y"], f4(2.5)),
        "stencil": lambda d: lambda: stencil(d["o"], d["a"], f4(0.5), f4(0.08)),
        "mandelbrot": lambda d: lambda: mandelbrot(d["o"], 1024, 1024, 200),
        "blackscholes": lambda d: lambda: blackscholes(d["call"], d["put"], d["s"], d["k"], d["t"], f4(0.02), f4(0.3)),
        "nbody": lambda d: lambda: nbody(d["ax"], d["ay"], d["az"], d["x"], d["y"], d["z"], d["m"]),
        "gather": lambda d: lambda: gather(d["o"], d["x"], d["i"]),
        "scatter": lambda d: lambda: scatter(d["o"], d["x"], d["i"]),
        "julia": lambda d: lambda: julia(d["o"], 1024, 200),
        "spheres": lambda d: lambda: spheres(d["o"], 1024),
        "nearest": lambda d: lambda: nearest(d["o"], d["x"], d["y"], d["start"], 128),
        "life": lambda d: lambda: life(d["o"], d["a"]),
        "hash": lambda d: lambda: mix(d["o"], d["x"]),
        "spmv": lambda d: lambda: spmv(d["o"], d["ptr"], d["col"], d["val"], d["x"]),
    }
    if threads == 1:
        table["histogram"] = lambda d: lambda: histogram(d["h"], d["v"])
    return table
