"""NumPy itself, array at a time; one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Run = Callable[[], object]


def cases(threads: int) -> dict[str, Callable[[dict[str, Any]], Run]]:
    if threads > 1:
        return {}

    def triad(d: dict[str, Any]) -> Run:
        f = np.float32(2.5)
        return lambda: np.add(np.multiply(d["x"], f, out=d["o"]), d["y"], out=d["o"])

    def stencil(d: dict[str, Any]) -> Run:
        a, o, c0, c1 = d["a"], d["o"], np.float32(0.5), np.float32(0.08)

        def run() -> None:
            around = (
                a[1:-1, 1:-1, :-2] + a[1:-1, 1:-1, 2:] + a[1:-1, :-2, 1:-1] + a[1:-1, 2:, 1:-1] + a[:-2, 1:-1, 1:-1] + a[2:, 1:-1, 1:-1]
            )
            o[1:-1, 1:-1, 1:-1] = c0 * a[1:-1, 1:-1, 1:-1] + c1 * around

        return run

    def histogram(d: dict[str, Any]) -> Run:
        return lambda: np.copyto(d["h"], np.bincount(d["v"], minlength=256))

    return {"triad": triad, "stencil": stencil, "histogram": histogram, "gather": lambda d: lambda: np.take(d["x"], d["i"], out=d["o"])}
