"""What arrays cost the host: memory of a freed size, and a call's arrays by where they come from: ``python tests/bench/arrays.py``.

The bars: an array whose size was freed before (tack.empty: object, memory, and both given back) 0.3 us; NumPy arrays or PyTorch
tensors, where torch is installed, 1.5 us a call more than tack's own. Figures are the best of many short rounds, which a busy machine
leaves alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import timeit
from typing import Any

import numpy as np

import tack


def axpy(o, x, y, f):
    for i in range(o.shape[0]):
        o[i] = x[i] * f + y[i]


def best(statement: str, names: dict[str, Any], rounds: int) -> float:
    """Nanoseconds."""
    calls = 200
    return min(timeit.repeat(statement, globals=names, number=calls, repeat=rounds)) / calls * 1e9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3000)
    rounds = parser.parse_args().rounds
    cpu = tack.device("cpu", num_threads=1)
    tack.set_default_device(cpu)
    names = {"tack": tack, "cpu": cpu, "np": np}
    bars = []
    for made in ("tack.empty(1000)", "tack.empty((10, 100), tack.f64, cpu)"):
        bars.append((f"an array of a freed size, made and given back: {made}", best(made, names, rounds), 300.0))
        print(f"{bars[-1][0]}: {bars[-1][1]:.0f} ns")
    for made in ("tack.zeros(1000)", "np.empty(1000)"):
        print(f"beside it {made}: {best(made, names, rounds):.0f} ns")
    kernel = tack.kernel(axpy)
    host = [np.zeros(8, "f4"), np.ones(8, "f4"), np.ones(8, "f4")]
    kinds: dict[str, list[Any]] = {"tack's arrays": [tack.array(a) for a in host], "NumPy arrays": host}
    if importlib.util.find_spec("torch"):
        import torch

        kinds["PyTorch tensors"] = [torch.from_numpy(a.copy()) for a in host]
    own = 0.0
    for kind, (o, x, y) in kinds.items():
        kernel(o, x, y, 2.5)
        took = best("kernel(o, x, y, 2.5)", {"kernel": kernel, "o": o, "x": x, "y": y}, rounds)
        own = own or took
        bars.append((f"a call with three {kind}", took - own, 1500.0))
        print(f"a call with three {kind}: {took:.0f} ns (+{took - own:.0f})")
    slow = [f"{what}: {took:.0f} ns, the bar is {bar:.0f}" for what, took, bar in bars if took > bar]
    print("\n".join(slow) or "all within their bars")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
