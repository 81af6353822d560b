"""Dr.Jit's LLVM backend, which traces whole arrays. Needs an LLVM library (DRJIT_LIBLLVM_PATH; Debian: libllvm19)."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from typing import Any

if "DRJIT_LIBLLVM_PATH" not in os.environ:
    for path in sorted(glob.glob("/usr/lib/*/libLLVM.so.*") + glob.glob("/usr/lib/*/libLLVM-*.so*")):
        os.environ["DRJIT_LIBLLVM_PATH"] = path

import drjit as dr
from drjit.llvm import Float, Int, UInt

Run = Callable[[], object]


def evaluate(*values: Any) -> None:
    dr.eval(*values)
    dr.sync_thread()


@dr.syntax
def mandel(w, h, limit):
    p = dr.arange(Int, w * h)
    cx = -2.0 + 3.0 * Float(p % w) / w
    cy = -1.5 + 3.0 * Float(p // w) / h
    x = Float(0.0)
    y = Float(0.0)
    k = Int(0)
    while (k < limit) & (x * x + y * y <= 4.0):
        t = x * x - y * y + cx
        y = 2.0 * x * y + cy
        x = t
        k += 1
    return k


def black_scholes(s, k, t, r=0.02, v=0.3):
    root = dr.sqrt(t)
    d1 = (dr.log(s / k) + (r + 0.5 * v * v) * t) / (v * root)
    d2 = d1 - v * root
    c1 = 0.5 * (1 + dr.erf(d1 * 0.70710678))
    c2 = 0.5 * (1 + dr.erf(d2 * 0.70710678))
    e = k * dr.exp(-r * t)
    return s * c1 - e * c2, e * (1 - c2) - s * (1 - c1)


@dr.syntax
def bodies(x, y, z, m, n):
    sx = Float(0)
    sy = Float(0)
    sz = Float(0)
    j = UInt(0)
    while j < n:
        dx = dr.gather(Float, x, j) - x
        dy = dr.gather(Float, y, j) - y
        dz = dr.gather(Float, z, j) - z
        inverse = dr.rsqrt(dx * dx + dy * dy + dz * dz + 1e-4)
        w = dr.gather(Float, m, j) * inverse * inverse * inverse
        sx += dx * w
        sy += dy * w
        sz += dz * w
        j += 1
    return sx, sy, sz


@dr.syntax
def product(ptr, col, val, x, rows):
    r = dr.arange(UInt, rows)
    k = dr.gather(Int, ptr, r)
    end = dr.gather(Int, ptr, r + 1)
    s = Float(0)
    while k < end:
        s += dr.gather(Float, val, k) * dr.gather(Float, x, dr.gather(Int, col, k))
        k += 1
    return s


@dr.syntax
def julia_set(n, limit):
    p = dr.arange(Int, n * n)
    x = -1.5 + 3.0 * Float(p % n) / n
    y = -1.5 + 3.0 * Float(p // n) / n
    k = Int(0)
    while (k < limit) & (x * x + y * y <= 4.0):
        t = x * x - y * y - 0.4
        y = 2.0 * x * y
        y = dr.select(y < 0.0, y + 0.6, y - 0.55)
        x = t
        k += 1
    return dr.select(k < limit, Float(k) - dr.sqrt(x * x + y * y), -1.0)


def scene(x, y, z):
    def length(a, b, c):
        return dr.sqrt(a * a + b * b + c * c)

    a = length(x, y, z) - 1.0
    b = length(x - 1.2, y, z - 0.8) - 0.7
    c = length(x + 1.1, y - 0.6, z) - 0.6
    d = length(x, y + 1.3, z - 0.3) - 0.5
    return dr.minimum(dr.minimum(a, b), dr.minimum(c, d))


@dr.syntax
def march(n):
    p = dr.arange(Int, n * n)
    u = (2.0 * Float(p % n) - n) / n
    v = (2.0 * Float(p // n) - n) / n
    inverse = 1.0 / dr.sqrt(u * u + v * v + 2.25)
    dx = u * inverse
    dy = v * inverse
    dz = 1.5 * inverse
    t = Float(0.0)
    d = Float(1.0)
    step = Int(0)
    while (step < 80) & (d >= 0.001) & (t <= 10.0):
        d = scene(dx * t, dy * t, dz * t - 3.0)
        t = dr.select(d >= 0.001, t + d, t)
        step += 1
    x = dx * t
    y = dy * t
    z = dz * t - 3.0
    nx = scene(x + 0.001, y, z) - d
    ny = scene(x, y + 0.001, z) - d
    nz = scene(x, y, z + 0.001) - d
    shade = dr.maximum(0.05, (0.6 * nx - 0.5 * ny - 0.62 * nz) / dr.sqrt(nx * nx + ny * ny + nz * nz))
    return dr.select(d < 0.001, shade, 0.0)


@dr.syntax
def mix(x):
    h = UInt(x)
    k = UInt(0)
    while k < 64:
        h ^= h >> 16
        h *= 0x85EBCA6B
        h ^= h >> 13
        h += k
        k += 1
    return h


def cases(threads: int) -> dict[str, Callable[[dict[str, Any]], Run]]:
    dr.set_thread_count(threads)

    def trace(d: dict[str, Any], outputs: str, f: Callable[..., Any], *inputs: Any) -> Run:
        evaluate(*(i for i in inputs if not isinstance(i, int)))
        last: list[Any] = []

        def run() -> None:
            result = f(*inputs)
            last[:] = result if isinstance(result, tuple) else (result,)
            evaluate(*last)

        def finish() -> None:
            for name, value in zip(outputs.split(), last, strict=True):
                d[name][...] = value.numpy().reshape(d[name].shape)

        run.finish = finish  # type: ignore[attr-defined]
        return run

    def stencil(d: dict[str, Any]) -> Run:
        n = d["a"].shape[0]
        m = n - 2
        a, out = Float(d["a"].ravel()), dr.zeros(Float, n**3)
        evaluate(a, out)

        def f() -> Any:
            t = dr.arange(UInt, m**3)
            p = ((t // (m * m) + 1) * n + (t // m) % m + 1) * n + t % m + 1
            g = lambda q: dr.gather(Float, a, q)  # noqa: E731
            dr.scatter(out, 0.5 * g(p) + 0.08 * (g(p - 1) + g(p + 1) + g(p - n) + g(p + n) + g(p - n * n) + g(p + n * n)), p)
            return out

        return trace(d, "o", f)

    def histogram(v: Any) -> Any:
        h = dr.zeros(UInt, 256)
        dr.scatter_add(h, UInt(1), v)
        return h

    def scatter(d: dict[str, Any]) -> Run:
        out = dr.zeros(Float, len(d["o"]))
        evaluate(out)

        def f(x: Any, i: Any) -> Any:
            dr.scatter(out, x, i)
            return out

        return trace(d, "o", f, Float(d["x"]), UInt(d["i"]))

    def triad(d: dict[str, Any]) -> Run:
        return trace(d, "o", lambda x, y, f: x * f + y, Float(d["x"]), Float(d["y"]), dr.opaque(Float, 2.5))

    return {
        "triad": triad,
        "triad_1e5": triad,
        "triad_1e3": triad,
        "stencil": stencil,
        "mandelbrot": lambda d: trace(d, "o", mandel, 1024, 1024, 200),
        "blackscholes": lambda d: trace(d, "call put", black_scholes, Float(d["s"]), Float(d["k"]), Float(d["t"])),
        "nbody": lambda d: trace(d, "ax ay az", bodies, *(Float(d[n]) for n in "xyzm"), len(d["x"])),
        "histogram": lambda d: trace(d, "h", histogram, UInt(d["v"])),
        "gather": lambda d: trace(d, "o", lambda x, i: dr.gather(Float, x, i), Float(d["x"]), UInt(d["i"])),
        "scatter": scatter,
        "julia": lambda d: trace(d, "o", julia_set, 1024, 200),
        "spheres": lambda d: trace(d, "o", march, 1024),
        "hash": lambda d: trace(d, "o", mix, UInt(d["x"])),
        "spmv": lambda d: trace(d, "o", product, Int(d["ptr"]), Int(d["col"]), Float(d["val"]), Float(d["x"]), len(d["o"])),
    }
