"""What two constructs of the language cost on the CPU: a step of tack.sequential, and debug mode. ``python tests/bench/language.py``.

A step is the difference between sequences of many steps and of few over the same small loop, so that the call does not count. Debug
mode is measured on the 7-point stencil over 256^3 points of f32, one thread, in turns with the same kernel outside of it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

import numpy as np

import tack

FEW, MANY = 1_000, 101_000


@tack.kernel
def steps(x, count, b):
    for _ in tack.sequential(count):
        for i in range(x.shape[0]):
            x[i] = x[i] * 0.5 + b


@tack.kernel
def stencil(o, x):
    for i, j, k in tack.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1), (1, x.shape[2] - 1)):
        o[i, j, k] = x[i - 1, j, k] + x[i + 1, j, k] + x[i, j - 1, k] + x[i, j + 1, k] + x[i, j, k - 1] + x[i, j, k + 1] - 6.0 * x[i, j, k]


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def quartiles(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.3g} ({low:.3g}..{high:.3g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    tack.set_default_device(tack.device("cpu", num_threads=1))

    small, b = tack.zeros(8), np.float32(1)
    grid = tack.array(np.random.default_rng(0).random((256, 256, 256), np.float32))
    out = tack.zeros((256, 256, 256))

    def checked() -> None:
        with tack.debug():
            stencil(out, grid)

    steps(small, FEW, b)
    np.testing.assert_allclose(small.numpy(), 2.0)
    stencil(out, grid)
    plain = out.numpy()
    checked()
    np.testing.assert_array_equal(out.numpy(), plain)

    step, ratio = [], []
    for _ in range(rounds):
        few, many = seconds(lambda: steps(small, FEW, b)), seconds(lambda: steps(small, MANY, b))
        step.append((many - few) / (MANY - FEW) * 1e9)
        ratio.append(seconds(checked) / seconds(lambda: stencil(out, grid)))
    print(f"{rounds} rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; medians and quartiles")
    print(f"a step of tack.sequential over a loop of 8 iterations: {quartiles(step)} ns")
    print(f"debug mode, stencil 256^3, one thread: {quartiles(ratio)} times as long")


if __name__ == "__main__":
    main()
