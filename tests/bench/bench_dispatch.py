"""What one call costs: three arrays and a scalar, n = 8, through the dispatcher alone (the kernel is written in LLVM IR by hand).

Run it with the Python that tack is installed in: ``python tests/bench/bench_dispatch.py``. Medians of interleaved repeats, ns per call.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tack
from tack import _runtime

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "unit"))
import hand_kernels

CALLS, REPEATS = 20_000, 15


def dispatcher(guards: list[tuple[object, str | None, object]]) -> _runtime.Dispatcher:
    return _runtime.Dispatcher("saxpy", ("x", "y", "out", "a"), (), lambda d, args, device: (hand_kernels.saxpy(device), guards))


def main() -> None:
    x, y, out = tack.array(np.ones(8, np.float32)), tack.array(np.ones(8, np.float32)), tack.zeros(8)
    namespace = {f"G{i}": value for i, value in enumerate((1, 2.5, np.float32(3), (1, 2), "word"))}
    plain, captured = dispatcher([]), dispatcher([(namespace, name, value) for name, value in namespace.items()])
    nx, ny, nout = (np.ones(8, np.float32) for _ in range(3))

    def python(x: object, y: object, out: object, a: object) -> None:
        pass

    def positional(n: range) -> None:
        for _ in n:
            plain(x, y, out, 2.0)

    def keywords(n: range) -> None:
        for _ in n:
            plain(x=x, y=y, out=out, a=2.0)

    def globals_(n: range) -> None:
        for _ in n:
            captured(x, y, out, 2.0)

    def numpy_arrays(n: range) -> None:
        for _ in n:
            plain(nx, ny, nout, 2.0)

    def python_function(n: range) -> None:
        for _ in n:
            python(x, y, out, 2.0)

    def empty(n: range) -> None:
        for _ in n:
            pass

    cases: dict[str, Callable[[range], None]] = {
        "positional": positional,
        "four keywords": keywords,
        "five captured globals": globals_,
        "NumPy arrays, in place": numpy_arrays,
        "a Python function that does nothing": python_function,
        "the empty loop": empty,
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    calls = range(CALLS)
    for _ in range(REPEATS):
        for name, case in cases.items():
            start = time.perf_counter_ns()
            case(calls)
            times[name].append((time.perf_counter_ns() - start) / CALLS)
    idle = statistics.median(times.pop("the empty loop"))
    for name, values in times.items():
        values.sort()
        low, high = values[len(values) // 4], values[-len(values) // 4]
        print(f"{name:38}{statistics.median(values) - idle:8.0f} ns   (quartiles {low - idle:.0f} to {high - idle:.0f})")


if __name__ == "__main__":
    main()
