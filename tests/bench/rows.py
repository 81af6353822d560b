"""Kernels of a parallel loop over rows and inner loops along them, as users of NumPy and Numba write them: ``rows.py [NAME...]``

Prints a Markdown table of the time that a thread spends: Tack, Tack one iteration at a time (``simd=1``), and Numba (``njit``) of the same
text, where it is installed. The ways take turns in one process, and the least of each counts, as the ratios are what is looked at: lanes
must not lose to plain code by more than 5 %, nor to Numba by more than a fifth.
"""

from __future__ import annotations

import argparse
import linecache
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("TACK_CPU_THREADS", "1")

import numpy as np

import tack

SIDE = 300  # most rows and columns of matrices that are multiplied

SOURCES = {
    "row_scale": """
def row_scale(a, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] * f32(2.0)
""",
    "row_bias": """
def row_bias(a, b, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] * f32(2.0) + b[j]
""",
    "row_sum": """
def row_sum(a, r):
    for i in range(a.shape[0]):
        s = f32(0.0)
        for j in range(a.shape[1]):
            s += a[i, j]
        r[i] = s
""",
    "row_sum_i32": """
def row_sum_i32(k, n):
    for i in range(k.shape[0]):
        s = 0
        for j in range(k.shape[1]):
            s += k[i, j]
        n[i] = s
""",
    "row_max": """
def row_max(a, r):
    for i in range(a.shape[0]):
        s = a[i, 0]
        for j in range(a.shape[1]):
            s = max(s, a[i, j])
        r[i] = s
""",
    "row_softmax": """
def row_softmax(a, out):
    for i in range(a.shape[0]):
        m = a[i, 0]
        for j in range(a.shape[1]):
            m = max(m, a[i, j])
        s = f32(0.0)
        for j in range(a.shape[1]):
            e = exp(a[i, j] - m)
            out[i, j] = e
            s += e
        for j in range(a.shape[1]):
            out[i, j] = out[i, j] / s
""",
    "row_matvec": """
def row_matvec(a, b, r):
    for i in range(a.shape[0]):
        s = f32(0.0)
        for j in range(a.shape[1]):
            s += a[i, j] * b[j]
        r[i] = s
""",
    "row_stencil": """
def row_stencil(a, out):
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            out[i, j] = f32(0.25) * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
""",
    "row_matmul_ijk": """
def row_matmul_ijk(p, q, c):
    for i in range(p.shape[0]):
        for j in range(q.shape[1]):
            s = f32(0.0)
            for k in range(p.shape[1]):
                s += p[i, k] * q[k, j]
            c[i, j] = s
""",
    "row_matmul_ikj": """
def row_matmul_ikj(p, q, c):
    for i in range(p.shape[0]):
        for k in range(p.shape[1]):
            for j in range(q.shape[1]):
                c[i, j] += p[i, k] * q[k, j]
""",
    "row_histogram": """
def row_histogram(k, h):
    for i in range(k.shape[0]):
        for j in range(k.shape[1]):
            h[i, k[i, j]] += 1
""",
    "row_prefix": """
def row_prefix(a, out):
    for i in range(a.shape[0]):
        s = f32(0.0)
        for j in range(a.shape[1]):
            s += a[i, j]
            out[i, j] = s
""",
    "row_floyd": """
def row_floyd(c, pivot):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = min(c[i, j], c[i, pivot] + c[pivot, j])
""",
    "row_eliminate": """
def row_eliminate(c, pivot):
    for i in range(c.shape[0]):
        for j in range(pivot + 1, c.shape[1]):
            c[i, j] -= c[i, pivot] * c[pivot, j]
""",
    "row_residual": """
def row_residual(a, out):
    error = f32(0.0)
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            v = f32(0.25) * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
            error = max(error, abs(v - a[i, j]))
            out[i, j] = v
    return error
""",
    "row_total": """
def row_total(a):
    total = f32(0.0)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j]
    return total
""",
    "row_clip": """
def row_clip(a, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            v = a[i, j]
            if v > f32(0.5):
                out[i, j] = v
            else:
                out[i, j] = f32(0.0)
""",
    "row_argmax": """
def row_argmax(a, n):
    for i in range(a.shape[0]):
        best = a[i, 0]
        where = 0
        for j in range(a.shape[1]):
            v = a[i, j]
            if v > best:
                best = v
                where = j
        n[i] = where
""",
    "row_transpose": """
def row_transpose(a, t):
    for i in range(t.shape[0]):
        for j in range(t.shape[1]):
            t[i, j] = a[j, i]
""",
    "row_local": """
def row_local(p, q, c):
    for i in range(p.shape[0]):
        acc = scratch()
        for j in range(q.shape[1]):
            acc[j] = f32(0.0)
        for k in range(p.shape[1]):
            for j in range(q.shape[1]):
                acc[j] += p[i, k] * q[k, j]
        for j in range(q.shape[1]):
            c[i, j] = acc[j]
""",
    "row_convolve": """
def row_convolve(a, w, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1] - w.shape[0] + 1):
            s = f32(0.0)
            for t in range(w.shape[0]):
                s += a[i, j + t] * w[t]
            out[i, j] = s
""",
}


def function(name: str, space: dict[str, Any]) -> Any:
    """The function of a text, its source there to be found."""
    file = f"<{name}>"
    linecache.cache[file] = (len(SOURCES[name]), None, SOURCES[name].splitlines(keepends=True), file)
    exec(compile(SOURCES[name], file, "exec"), space)
    return space[name]


def ways() -> dict[str, Callable[[str], Any]]:
    """What compiles a text, by title."""
    space = {"f32": tack.f32, "exp": tack.exp, "scratch": tack.func(lambda: tack.local_array(tack.f32, SIDE))}
    found: dict[str, Callable[[str], Any]] = {
        "tack": lambda name: tack.kernel(function(name, dict(space))),
        "tack, simd=1": lambda name: tack.kernel(simd=1)(function(name, dict(space))),
    }
    try:
        from numba import njit
    except ImportError:
        return found
    peer = {"f32": np.float32, "exp": math.exp, "scratch": njit(lambda: np.empty(SIDE, np.float32))}
    return found | {"numba": lambda name: njit(error_model="numpy")(function(name, dict(peer)))}


def arguments(n: int, m: int) -> dict[str, Any]:
    r = np.random.default_rng(1)
    side = min(n, m, SIDE)
    return {
        "a": r.random((n, m), np.float32),
        "b": r.random(m, np.float32),
        "out": np.zeros((n, m), np.float32),
        "t": np.zeros((m, n), np.float32),
        "r": np.zeros(n, np.float32),
        "k": r.integers(0, 64, (n, m), np.int32),
        "n": np.zeros(n, np.int32),
        "h": np.zeros((n, 64), np.int32),
        "p": r.random((side, side), np.float32),
        "q": r.random((side, side), np.float32),
        "c": np.zeros((side, side), np.float32),
        "w": r.random(min(7, m), np.float32),
        "pivot": 1,
    }


def measure(n: int, m: int, names: list[str], budget: float) -> Iterator[tuple[str, dict[str, float]]]:
    """The least seconds of each way, kernel by kernel."""
    data = arguments(n, m)
    for name in names:
        head = SOURCES[name].split("(", 1)[1].split(")", 1)[0]
        args = [data[a.strip()] for a in head.split(",")]
        kernels = {title: compiled(name) for title, compiled in ways().items()}
        best = dict.fromkeys(kernels, math.inf)
        for kernel in kernels.values():
            kernel(*args)
        end = time.perf_counter() + budget * len(kernels)
        rounds = 0
        while rounds < 5 or time.perf_counter() < end:
            rounds += 1
            for title, kernel in kernels.items():
                start = time.thread_time()
                kernel(*args)
                best[title] = min(best[title], time.thread_time() - start)
        yield name, best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(SOURCES))
    parser.add_argument("--shape", action="append", help="rows,columns")
    parser.add_argument("--budget", type=float, default=0.3, help="seconds per kernel and way")
    options = parser.parse_args()
    for shape in options.shape or ["400,400", "2000,2000", "1000000,4", "8,1000000"]:
        n, m = (int(v) for v in shape.split(","))
        titles = list(ways())
        print(f"\n| {n} x {m} | {' | '.join(titles)} |\n|---|{'---:|' * len(titles)}")
        for name, best in measure(n, m, options.names or list(SOURCES), options.budget):
            own = best["tack"]
            cells = [f"{1e6 * v:.1f} us" + ("" if t == "tack" else f" ({v / own:.2f})") for t, v in best.items()]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
