"""One small call: three arrays of 8 elements and a scalar, for each peer, in the ways that users call."""

from __future__ import annotations

import os
import types
from typing import Any

import numpy as np

__all__ = ["variants"]

A, B, C, D, E = 1.0, 2.0, 3.0, 4.0, 5.0  # captured globals
module = types.ModuleType("module")  # and attributes
module.a, module.b, module.c, module.d, module.e = 1.0, 2.0, 3.0, 4.0, 5.0  # type: ignore[attr-defined]


class Settings:
    rate = 6.0


def axpy(o, x, y, f):
    for i in range(o.shape[0]):
        o[i] = x[i] * f + y[i]


def axpy_globals(o, x, y, f):
    for i in range(o.shape[0]):
        o[i] = x[i] * f + y[i] + A + B + C + D + E


def axpy_attributes(o, x, y, f):
    for i in range(o.shape[0]):
        o[i] = x[i] * f + y[i] + module.a + module.b + module.c + module.d + module.e


def axpy_six(o, x, y, f):
    for i in range(o.shape[0]):
        o[i] = x[i] * f + y[i] + A + B + C + module.a + module.b + Settings.rate


def variants(peer: str, threads: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Statement and names of each way: "positional", "keywords", "globals" (five captured ones); for Tack also "attributes" (five of a
    module), "six" (three globals, two attributes of a module, one of a class) and "numpy" (NumPy arrays passed straight in)."""
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
        return {
            "positional": (
                "add(multiply(x, f, out=o), y, out=o)",
                {"add": np.add, "multiply": np.multiply, "o": o, "x": x, "y": y, "f": np.float32(2.5)},
            )
        }
    elif peer == "warp_":
        import warp as wp
        from peers import warp_

        a = [wp.array(v, device="cpu") for v in (o, x, y)]
        return {
            "positional": (
                "launch(triad, dim=8, inputs=[o, x, y, 2.5], device='cpu')",
                {"launch": wp.launch, "triad": warp_.triad, "o": a[0], "x": a[1], "y": a[2]},
            )
        }
    elif peer in ("quadrants_", "drjit_"):
        import importlib

        run = importlib.import_module(f"peers.{peer}").cases(threads)["triad"]({"o": o, "x": x, "y": y})
        return {"positional": ("run()", {"run": run})}
    else:
        return {}
    names = {"kernel": kernel, "captured": captured, "o": p, "x": q, "y": r}
    table = {
        "positional": ("kernel(o, x, y, 2.5)", names),
        "keywords": ("kernel(o=o, x=x, y=y, f=2.5)", names),
        "globals": ("captured(o, x, y, 2.5)", names),
    }
    if peer == "tack_":
        table["attributes"] = ("captured(o, x, y, 2.5)", {**names, "captured": tack.kernel(axpy_attributes)})
        table["six"] = ("captured(o, x, y, 2.5)", {**names, "captured": tack.kernel(axpy_six)})
        table["numpy"] = ("kernel(o, x, y, 2.5)", {"kernel": kernel, "o": o, "x": x, "y": y})
    return table
