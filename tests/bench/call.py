"""One small call: three arrays of 8 elements and a scalar, for each peer, in the ways that users call."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["variants"]

A, B, C, D, E = 1.0, 2.0, 3.0, 4.0, 5.0  # captured globals


def axpy(o, x, y, f):
    for i in range(o.shape[0]):
        o[i] = x[i] * f + y[i]


def axpy_globals(o, x, y, f):
    for i in range(o.shape[0]):
        o[i] = x[i] * f + y[i] + A + B + C + D + E


def variants(peer: str, threads: int) -> dict[str, Callable[[], object]]:
    """"positional", "keywords", "globals" and, for Tack, "numpy" (NumPy arrays passed straight in)."""
    o, x, y = np.zeros(8, "f4"), np.ones(8, "f4"), np.ones(8, "f4")
    kernel: Any
    captured: Any
    if peer == "tack_":
        import tack

        tack.set_default_device(tack.device("cpu", num_threads=threads))
        kernel, captured = tack.kernel(axpy), tack.kernel(axpy_globals)
        p, q, r = tack.array(o), tack.array(x), tack.array(y)
    elif peer == "numba_":
        os.environ["NUMBA_NUM_THREADS"] = str(threads)
        from numba import njit

        kernel, captured = njit(axpy), njit(axpy_globals)
        p, q, r = o, x, y
    elif peer == "numpy_":
        f = np.float32(2.5)
        return {"positional": lambda: np.add(np.multiply(x, f, out=o), y, out=o)}
    elif peer == "warp_":
        import warp as wp
        from peers import warp_

        a = [wp.array(v, device="cpu") for v in (o, x, y)]
        return {"positional": lambda: wp.launch(warp_.triad, dim=8, inputs=[*a, 2.5], device="cpu")}
    elif peer == "quadrants_":
        import quadrants as qd
        from peers import quadrants_

        run = quadrants_.cases(threads)["triad"]({"o": o, "x": x, "y": y})
        assert qd is not None
        return {"positional": run}
    elif peer == "drjit_":
        from peers import drjit_

        return {"positional": drjit_.cases(threads)["triad"]({"o": o, "x": x, "y": y})}
    else:
        return {}
    kernel(p, q, r, 2.5)
    captured(p, q, r, 2.5)
    table = {
        "positional": lambda: kernel(p, q, r, 2.5),
        "keywords": lambda: kernel(o=p, x=q, y=r, f=2.5),
        "globals": lambda: captured(p, q, r, 2.5),
    }
    if peer == "tack_":
        kernel(o, x, y, 2.5)
        table["numpy"] = lambda: kernel(o, x, y, 2.5)
    return table
