"""Tack: the kernels as a user writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tack

Run = Callable[[], object]


@tack.kernel
def triad(o, x, y, f):
    for i in range(o.shape[0]):
        o[i] = x[i] * f + y[i]


@tack.kernel
def stencil(o, a, c0, c1):
    for i, j, k in tack.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1), (1, a.shape[2] - 1)):
        o[i, j, k] = c0 * a[i, j, k] + c1 * (
            a[i, j, k - 1] + a[i, j, k + 1] + a[i, j - 1, k] + a[i, j + 1, k] + a[i - 1, j, k] + a[i + 1, j, k]
        )


@tack.kernel
def mandelbrot(o, w, h, limit):
    for p in range(w * h):
        cx = -2.0 + 3.0 * (p % w) / w
        cy = -1.5 + 3.0 * (p // w) / h
        x = 0.0
        y = 0.0
        k = 0
        while k < limit and x * x + y * y <= 4.0:
            t = x * x - y * y + cx
            y = 2.0 * x * y + cy
            x = t
            k += 1
        o[p] = k


@tack.func
def phi(d):
    return 0.5 * (1.0 + tack.erf(d * 0.70710678))


@tack.kernel
def blackscholes(call, put, s, k, t, r, v):
    for i in range(call.shape[0]):
        root = tack.sqrt(t[i])
        d1 = (tack.log(s[i] / k[i]) + (r + 0.5 * v * v) * t[i]) / (v * root)
        d2 = d1 - v * root
        c1 = phi(d1)
        c2 = phi(d2)
        e = k[i] * tack.exp(-r * t[i])
        call[i] = s[i] * c1 - e * c2
        put[i] = e * (1.0 - c2) - s[i] * (1.0 - c1)


@tack.kernel
def nbody(ax, ay, az, x, y, z, m):
    for i in range(x.shape[0]):
        sx = 0.0
        sy = 0.0
        sz = 0.0
        for j in range(x.shape[0]):
            dx = x[j] - x[i]
            dy = y[j] - y[i]
            dz = z[j] - z[i]
            inverse = 1.0 / tack.sqrt(dx * dx + dy * dy + dz * dz + 1e-4)
            w = m[j] * inverse * inverse * inverse
            sx += dx * w
            sy += dy * w
            sz += dz * w
        ax[i] = sx
        ay[i] = sy
        az[i] = sz


@tack.kernel
def histogram(h, v):
    for i in range(v.shape[0]):
        tack.atomic_add(h, v[i], 1)


@tack.kernel
def gather(o, x, index):
    for i in range(o.shape[0]):
        o[i] = x[index[i]]


@tack.kernel
def spmv(o, ptr, col, val, x):
    for r in range(o.shape[0]):
        s = 0.0
        for k in range(ptr[r], ptr[r + 1]):
            s += val[k] * x[col[k]]
        o[r] = s


@tack.kernel
def scatter(o, x, index):
    for i in range(x.shape[0]):
        o[index[i]] = x[i]


@tack.kernel
def julia(o, n, limit):
    for i, j in tack.ndrange(n, n):
        x = -1.5 + 3.0 * j / n
        y = -1.5 + 3.0 * i / n
        k = 0
        while k < limit and x * x + y * y <= 4.0:
            t = x * x - y * y - 0.4
            y = 2.0 * x * y
            if y < 0.0:
                y += 0.6
            else:
                y -= 0.55
            x = t
            k += 1
        if k < limit:
            o[i * n + j] = k - tack.sqrt(x * x + y * y)
        else:
            o[i * n + j] = -1.0


@tack.func
def scene(x, y, z):
    """The distance to the nearest of four spheres."""
    a = tack.sqrt(x * x + y * y + z * z) - 1.0
    b = tack.sqrt((x - 1.2) * (x - 1.2) + y * y + (z - 0.8) * (z - 0.8)) - 0.7
    c = tack.sqrt((x + 1.1) * (x + 1.1) + (y - 0.6) * (y - 0.6) + z * z) - 0.6
    d = tack.sqrt(x * x + (y + 1.3) * (y + 1.3) + (z - 0.3) * (z - 0.3)) - 0.5
    return min(min(a, b), min(c, d))


@tack.kernel
def spheres(o, n):
    for i, j in tack.ndrange(n, n):
        u = (2.0 * j - n) / n
        v = (2.0 * i - n) / n
        inverse = 1.0 / tack.sqrt(u * u + v * v + 2.25)
        dx = u * inverse
        dy = v * inverse
        dz = 1.5 * inverse
        t = 0.0
        shade = 0.0
        for _ in range(80):
            x = dx * t
            y = dy * t
            z = dz * t - 3.0
            d = scene(x, y, z)
            if d < 0.001:
                nx = scene(x + 0.001, y, z) - d
                ny = scene(x, y + 0.001, z) - d
                nz = scene(x, y, z + 0.001) - d
                length = tack.sqrt(nx * nx + ny * ny + nz * nz)
                shade = max(0.05, (0.6 * nx - 0.5 * ny - 0.62 * nz) / length)
                break
            t += d
            if t > 10.0:
                break
        o[i * n + j] = shade


@tack.kernel
def nearest(o, x, y, start, cells):
    for i in range(x.shape[0]):
        px = x[i]
        py = y[i]
        column = min(int(px * cells), cells - 1)
        row = min(int(py * cells), cells - 1)
        a = tack.f32(4.0)
        b = a
        c = a
        d = a
        for r in range(max(row - 1, 0), min(row + 2, cells)):
            for k in range(start[r * cells + max(column - 1, 0)], start[r * cells + min(column + 2, cells)]):
                if k != i:
                    dx = x[k] - px
                    dy = y[k] - py
                    q = dx * dx + dy * dy
                    if q < d:
                        d = max(c, q)
                        c = min(c, max(b, q))
                        b = min(b, max(a, q))
                        a = min(a, q)
        o[i] = d


@tack.kernel
def life(o, a):
    for i, j in tack.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1)):
        s = a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
        o[i, j] = 1 if s == 3 or (s == 2 and a[i, j] == 1) else 0


@tack.kernel
def mix(o, x):
    for i in range(x.shape[0]):
        h = x[i]
        for k in range(64):
            h ^= h >> 16
            h *= 0x85EBCA6B
            h ^= h >> 13
            h += tack.u32(k)
        o[i] = h


def cases(threads: int, simd: int = 0) -> dict[str, Callable[[dict[str, Any]], Run]]:
    """``simd``: how many iterations at a time, 0 for what Tack chooses."""
    tack.set_default_device(tack.device("cpu", num_threads=threads))

    def launch(kernel: Any, d: dict[str, Any], names: str, *scalars: Any, zero: str = "") -> Run:
        if simd:
            kernel = tack.kernel(simd=simd)(kernel.__wrapped__)
        arrays = {n: tack.array(d[n]) for n in names.split()}
        inputs = [*arrays.values(), *scalars]

        def run() -> None:
            if zero:
                arrays[zero].fill(0)
            kernel(*inputs)

        def finish() -> None:
            for name, a in arrays.items():
                d[name][...] = a.numpy()

        run.finish = finish  # type: ignore[attr-defined]
        return run

    return {
        "triad": lambda d: launch(triad, d, "o x y", 2.5),
        "triad_1e5": lambda d: launch(triad, d, "o x y", 2.5),
        "triad_1e3": lambda d: launch(triad, d, "o x y", 2.5),
        "stencil": lambda d: launch(stencil, d, "o a", 0.5, 0.08),
        "mandelbrot": lambda d: launch(mandelbrot, d, "o", 1024, 1024, 200),
        "blackscholes": lambda d: launch(blackscholes, d, "call put s k t", 0.02, 0.3),
        "nbody": lambda d: launch(nbody, d, "ax ay az x y z m"),
        "histogram": lambda d: launch(histogram, d, "h v", zero="h"),
        "gather": lambda d: launch(gather, d, "o x i"),
        "scatter": lambda d: launch(scatter, d, "o x i"),
        "julia": lambda d: launch(julia, d, "o", 1024, 200),
        "spheres": lambda d: launch(spheres, d, "o", 1024),
        "nearest": lambda d: launch(nearest, d, "o x y start", 128),
        "life": lambda d: launch(life, d, "o a"),
        "hash": lambda d: launch(mix, d, "o x"),
        "spmv": lambda d: launch(spmv, d, "o ptr col val x"),
    }
