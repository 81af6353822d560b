"""C++ with OpenMP, built by g++ -O3 -march=native, called through ctypes: plain loops here, other sources and flags for ``hand``."""

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


f, i, n = ctypes.c_float, ctypes.c_int, ctypes.c_int64


def library(name: str, threads: int, *options: str) -> ctypes.CDLL:
    """The functions of cpp/NAME.cpp under these options, built when the source is newer than what was built."""
    os.environ["OMP_NUM_THREADS"] = str(threads)  # read when the library brings OpenMP
    source = Path(__file__).parent.parent / "cpp" / f"{name}.cpp"
    out = Path(tempfile.gettempdir()) / f"tack-bench-{os.getuid()}-{name}{''.join(options)}.so"
    if not out.exists() or out.stat().st_mtime < source.stat().st_mtime:
        temporary = f"{out}.{os.getpid()}"
        command = ["g++", "-O3", "-march=native", *options, "-fopenmp", "-std=c++20", "-shared", "-fPIC", str(source), "-o", temporary]
        subprocess.run(command, check=True)
        os.replace(temporary, out)
    return ctypes.CDLL(str(out))


def calls(find: Callable[[str], Any]) -> dict[str, Callable[[dict[str, Any]], Run]]:
    """The cases by the functions that ``find`` gives by name."""

    def call(name: str, *args: Any) -> Run:
        function = find(name)
        function.restype = None
        values = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in args]
        return lambda: function(*values)

    def histogram(d: dict[str, Any]) -> Run:
        run = call("histogram", d["h"], d["v"], n(len(d["v"])))
        return lambda: (d["h"].fill(0), run())

    def triad(d: dict[str, Any]) -> Run:
        return call("triad", d["o"], d["x"], d["y"], f(2.5), n(len(d["o"])))

    return {
        "triad": triad,
        "triad_1e5": triad,
        "triad_1e3": triad,
        "stencil": lambda d: call("stencil", d["o"], d["a"], i(d["a"].shape[0]), f(0.5), f(0.08)),
        "mandelbrot": lambda d: call("mandelbrot", d["o"], i(1024), i(1024), i(200)),
        "blackscholes": lambda d: call("blackscholes", d["call"], d["put"], d["s"], d["k"], d["t"], f(0.02), f(0.3), n(len(d["s"]))),
        "nbody": lambda d: call("nbody", d["ax"], d["ay"], d["az"], d["x"], d["y"], d["z"], d["m"], i(len(d["x"]))),
        "histogram": histogram,
        "gather": lambda d: call("gather", d["o"], d["x"], d["i"], n(len(d["o"]))),
        "scatter": lambda d: call("scatter", d["o"], d["x"], d["i"], n(len(d["o"]))),
        "julia": lambda d: call("julia", d["o"], i(1024), i(200)),
        "spheres": lambda d: call("spheres", d["o"], i(1024)),
        "nearest": lambda d: call("nearest", d["o"], d["x"], d["y"], d["start"], i(128), n(len(d["x"]))),
        "life": lambda d: call("life", d["o"], d["a"], i(d["a"].shape[0]), i(d["a"].shape[1])),
        "hash": lambda d: call("hash", d["o"], d["x"], n(len(d["x"]))),
        "spmv": lambda d: call("spmv", d["o"], d["ptr"], d["col"], d["val"], d["x"], i(len(d["o"]))),
    }


def cases(threads: int) -> dict[str, Callable[[dict[str, Any]], Run]]:
    loops, prices = library("loops", threads), library("black_scholes", threads)
    return calls(lambda name: getattr(prices if name == "blackscholes" else loops, name))
