"""Quadrants (the continuation of Taichi) on the CPU with ndarray arguments and its default fast math.

No postponed annotations here: Quadrants looks their names up in the module, and these are local.
"""

from collections.abc import Callable
from typing import Any

import quadrants as qd

Run = Callable[[], object]


def cases(threads: int) -> dict[str, Callable[[dict[str, Any]], Run]]:
    qd.init(arch=qd.cpu, cpu_max_num_threads=threads, log_level="error", offline_cache=False)
    F1 = qd.types.ndarray(dtype=qd.f32, ndim=1)
    F3 = qd.types.ndarray(dtype=qd.f32, ndim=3)
    I1 = qd.types.ndarray(dtype=qd.i32, ndim=1)

    @qd.kernel
    def triad(o: F1, x: F1, y: F1, f: qd.f32):
        for i in range(o.shape[0]):
            o[i] = x[i] * f + y[i]

    @qd.kernel
    def stencil(o: F3, a: F3, c0: qd.f32, c1: qd.f32):
        for i, j, k in qd.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1), (1, a.shape[2] - 1)):
            o[i, j, k] = c0 * a[i, j, k] + c1 * (
                a[i, j, k - 1] + a[i, j, k + 1] + a[i, j - 1, k] + a[i, j + 1, k] + a[i - 1, j, k] + a[i + 1, j, k]
            )

    @qd.kernel
    def mandelbrot(o: I1, w: qd.i32, h: qd.i32, limit: qd.i32):
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

    @qd.kernel
    def nbody(ax: F1, ay: F1, az: F1, x: F1, y: F1, z: F1, m: F1):
        for i in range(x.shape[0]):
            sx = 0.0
            sy = 0.0
            sz = 0.0
            for j in range(x.shape[0]):
                dx = x[j] - x[i]
                dy = y[j] - y[i]
                dz = z[j] - z[i]
                inverse = 1.0 / qd.sqrt(dx * dx + dy * dy + dz * dz + 1e-4)
                w = m[j] * inverse * inverse * inverse
                sx += dx * w
                sy += dy * w
                sz += dz * w
            ax[i] = sx
            ay[i] = sy
            az[i] = sz

    @qd.kernel
    def histogram(h: I1, v: I1):
        for i in range(v.shape[0]):
            qd.atomic_add(h[v[i]], 1)

    @qd.kernel
    def gather(o: F1, x: F1, index: I1):
        for i in range(o.shape[0]):
            o[i] = x[index[i]]

    @qd.kernel
    def spmv(o: F1, ptr: I1, col: I1, val: F1, x: F1):
        for r in range(o.shape[0]):
            s = 0.0
            for k in range(ptr[r], ptr[r + 1]):
                s += val[k] * x[col[k]]
            o[r] = s

    def launch(kernel: Any, d: dict[str, Any], names: str, *scalars: Any, zero: str = "") -> Run:
        arrays = {}
        for name in names.split():
            a = d[name]
            arrays[name] = qd.ndarray(qd.f32 if a.dtype.kind == "f" else qd.i32, shape=a.shape)
            arrays[name].from_numpy(a)
        inputs = [*arrays.values(), *scalars]

        def run() -> None:
            if zero:
                arrays[zero].fill(0)
            kernel(*inputs)

        def finish() -> None:
            for name, a in arrays.items():
                d[name][...] = a.to_numpy()

        run.finish = finish  # type: ignore[attr-defined]
        return run

    return {
        "triad": lambda d: launch(triad, d, "o x y", 2.5),
        "stencil": lambda d: launch(stencil, d, "o a", 0.5, 0.08),
        "mandelbrot": lambda d: launch(mandelbrot, d, "o", 1024, 1024, 200),
        "nbody": lambda d: launch(nbody, d, "ax ay az x y z m"),
        "histogram": lambda d: launch(histogram, d, "h v", zero="h"),
        "gather": lambda d: launch(gather, d, "o x i"),
        "spmv": lambda d: launch(spmv, d, "o ptr col val x"),
    }
