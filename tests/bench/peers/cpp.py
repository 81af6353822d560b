"""C++ loops with OpenMP, built by g++ -O3 -march=native, called through ctypes."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[[], object]


def library() -> ctypes.CDLL:
    source = Path(__file__).parent.parent / "cpp" / "loops.cpp"
    out = Path(tempfile.gettempdir()) / f"tack-bench-{os.getuid()}-loops.so"
    if not out.exists() or out.stat().st_mtime < source.stat().st_mtime:
        temporary = f"{out}.{os.getpid()}"
        subprocess.run(
            ["g++", "-O3", "-march=native", "-fopenmp", "-std=c++20", "-shared", "-fPIC", str(source), "-o", temporary], check=True
        )
        os.replace(temporary, out)
    return ctypes.CDLL(str(out))


def cases(threads: int) -> dict[str, Callable[[dict[str, Any]], Run]]:
    os.environ["OMP_NUM_THREADS"] = str(threads)
    lib = library()

    def call(name: str, *args: Any) -> Run:
        function = getattr(lib, name)
        function.restype = None
        values = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in args]
        return lambda: function(*values)

    f, i, n = ctypes.c_float, ctypes.c_int, ctypes.c_int64

    def histogram(d: dict[str, Any]) -> Run:
        run = call("histogram", d["h"], d["v"], n(len(d["v"])))
        return lambda: (d["h"].fill(0), run())

    return {
        "triad": lambda d: call("triad", d["o"], d["x"], d["y"], f(2.5), n(len(d["o"]))),
        "stencil": lambda d: call("stencil", d["o"], d["a"], i(d["a"].shape[0]), f(0.5), f(0.08)),
        "mandelbrot": lambda d: call("mandelbrot", d["o"], i(1024), i(1024), i(200)),
        "blackscholes": lambda d: call("blackscholes", d["call"], d["put"], d["s"], d["k"], d["t"], f(0.02), f(0.3), n(len(d["s"]))),
        "nbody": lambda d: call("nbody", d["ax"], d["ay"], d["az"], d["x"], d["y"], d["z"], d["m"], i(len(d["x"]))),
        "histogram": histogram,
        "gather": lambda d: call("gather", d["o"], d["x"], d["i"], n(len(d["o"]))),
        "spmv": lambda d: call("spmv", d["o"], d["ptr"], d["col"], d["val"], d["x"], i(len(d["o"]))),
    }
