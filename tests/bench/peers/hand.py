"""What can be reached by hand: AVX-512 intrinsics, and for Black-Scholes g++'s fast-math with glibc's vector functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers.cpp import Run, calls, library


def cases(threads: int) -> dict[str, Callable[[dict[str, Any]], Run]]:
    if "avx512bw" not in Path("/proc/cpuinfo").read_text():
        return {}
    wide = "-mprefer-vector-width=512"
    hand, prices = library("hand", threads, wide), library("black_scholes", threads, "-ffast-math", wide)
    table = calls(lambda name: getattr(prices if name == "blackscholes" else hand, name))
    return {name: case for name, case in table.items() if name not in ("stencil", "histogram", "spmv")}
