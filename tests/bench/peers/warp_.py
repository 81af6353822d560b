"""NVIDIA Warp on its CPU device, which runs a launch on one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import warp as wp

wp.config.log_level = 30
wp.init()
wp.set_module_options({"enable_backward": False})
Run = Callable[[], object]
F1 = wp.array(dtype=wp.float32)
F3 = wp.array(dtype=wp.float32, ndim=3)
I1 = wp.array(dtype=wp.int32)


@wp.kernel
def triad(o: F1, x: F1, y: F1, f: wp.float32):
    i = wp.tid()
    o[i] = x[i] * f + y[i]


@wp.kernel
def stencil(o: F3, a: F3, c0: wp.float32, c1: wp.float32):
    i, j, k = wp.tid()
    i = i + 1
    j = j + 1
    k = k + 1
    o[i, j, k] = c0 * a[i, j, k] + c1 * (
        a[i, j, k - 1] + a[i, j, k + 1] + a[i, j - 1, k] + a[i, j + 1, k] + a[i - 1, j, k] + a[i + 1, j, k]
    )


@wp.kernel
def mandelbrot(o: I1, w: int, h: int, limit: int):
    p = wp.tid()
    cx = -2.0 + 3.0 * float(p % w) / float(w)
    cy = -1.5 + 3.0 * float(p // w) / float(h)
    x = float(0.0)
    y = float(0.0)
    k = int(0)
    while k < limit and x * x + y * y <= 4.0:
        t = x * x - y * y + cx
        y = 2.0 * x * y + cy
        x = t
        k += 1
    o[p] = k


@wp.kernel
def nbody(ax: F1, ay: F1, az: F1, x: F1, y: F1, z: F1, m: F1, n: int):
    i = wp.tid()
    sx = float(0.0)
    sy = float(0.0)
    sz = float(0.0)
    for j in range(n):
        dx = x[j] - x[i]
        dy = y[j] - y[i]
        dz = z[j] - z[i]
        inverse = 1.0 / wp.sqrt(dx * dx + dy * dy + dz * dz + 1.0e-4)
        w = m[j] * inverse * inverse * inverse
        sx += dx * w
        sy += dy * w
        sz += dz * w
    ax[i] = sx
    ay[i] = sy
    az[i] = sz


@wp.kernel
def histogram(h: I1, v: I1):
    i = wp.tid()
    wp.atomic_add(h, v[i], 1)


@wp.kernel
def gather(o: F1, x: F1, index: I1):
    i = wp.tid()
    o[i] = x[index[i]]


@wp.kernel
def spmv(o: F1, ptr: I1, col: I1, val: F1, x: F1):
    r = wp.tid()
    s = float(0.0)
    for k in range(ptr[r], ptr[r + 1]):
        s += val[k] * x[col[k]]
    o[r] = s


def cases(threads: int) -> dict[str, Callable[[dict[str, Any]], Run]]:
    if threads > 1:
        return {}

    def launch(kernel: Any, dim: Any, d: dict[str, Any], names: str, *scalars: Any, zero: str = "") -> Run:
        arrays = {n: wp.array(d[n], device="cpu") for n in names.split()}
        inputs = [*arrays.values(), *scalars]

        def run() -> None:
            if zero:
                arrays[zero].zero_()
            wp.launch(kernel, dim=dim, inputs=inputs, device="cpu")

        def finish() -> None:
            for name, a in arrays.items():
                d[name][...] = a.numpy()

        run.finish = finish  # type: ignore[attr-defined]
        return run

    return {
        "triad": lambda d: launch(triad, len(d["o"]), d, "o x y", 2.5),
        "stencil": lambda d: launch(stencil, tuple(n - 2 for n in d["a"].shape), d, "o a", 0.5, 0.08),
        "mandelbrot": lambda d: launch(mandelbrot, 1024 * 1024, d, "o", 1024, 1024, 200),
        "nbody": lambda d: launch(nbody, len(d["x"]), d, "ax ay az x y z m", len(d["x"])),
        "histogram": lambda d: launch(histogram, len(d["v"]), d, "h v", zero="h"),
        "gather": lambda d: launch(gather, len(d["o"]), d, "o x i"),
        "spmv": lambda d: launch(spmv, len(d["o"]), d, "o ptr col val x"),
    }
