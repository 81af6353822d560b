"""What a queued launch costs the host, 3 arrays and a scalar, on a simulated driver: ``python tests/bench/gpu_call.py``.

It starts itself again over the stand-ins of tests/simulators, which count a launch and run nothing; what is left is Tack's own: the
dispatcher, the parameter block, the queue and the call of the driver. The bar is 0.6 us. The null device has no driver: the difference
is what the backend adds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import timeit
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOOP = "axpy(o, x, y, 2.5)"


def axpy(o, x, y, f):
    for i in range(o.shape[0]):
        o[i] = x[i] * f + y[i]


def measure(device: str, calls: int, rounds: int) -> list[float]:
    """Nanoseconds of a call, for each round."""
    import tack

    tack.set_default_device(device)
    kernel = tack.kernel(axpy)
    o, x, y = tack.zeros(8), tack.ones(8), tack.ones(8)
    kernel(o, x, y, 2.5)
    timer = timeit.Timer(LOOP, globals={"axpy": kernel, "o": o, "x": x, "y": y})
    found = []
    for _ in range(rounds):
        found.append(timer.timeit(calls) / calls * 1e9)
        tack.sync()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if os.environ.get("TACK_SIM_ORDER") != "record":
        sys.path.insert(0, str(ROOT / "tests"))
        from simulators import standins

        environment = standins.environment("cuda", order="record", check=0)
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **environment, "TACK_CACHE": "0"})
    for device, title in (("cuda", "a queued launch"), ("null", "the same on the null device")):
        found = measure(device, options.calls, options.rounds)
        low, _, high = statistics.quantiles(found, n=4)
        print(f"{title} costs the host {statistics.median(found):.0f} ns (quartiles {low:.0f} to {high:.0f}; best {min(found):.0f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
