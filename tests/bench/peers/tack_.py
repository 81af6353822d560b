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


def cases(threads: int) -> dict[str, Callable[[dict[str, Any]], Run]]:
    tack.set_default_device(tack.device("cpu", num_threads=threads))

    def launch(kernel: Any, d: dict[str, Any], names: str, *scalars: Any, zero: str = "") -> Run:
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
        "stencil": lambda d: launch(stencil, d, "o a", 0.5, 0.08),
        "mandelbrot": lambda d: launch(mandelbrot, d, "o", 1024, 1024, 200),
        "blackscholes": lambda d: launch(blackscholes, d, "call put s k t", 0.02, 0.3),
        "nbody": lambda d: launch(nbody, d, "ax ay az x y z m"),
        "histogram": lambda d: launch(histogram, d, "h v", zero="h"),
        "gather": lambda d: launch(gather, d, "o x i"),
        "spmv": lambda d: launch(spmv, d, "o ptr col val x"),
    }
