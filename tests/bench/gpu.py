"""Measures kernels on a GPU beside a device-to-device copy, CuPy and numba-cuda, in one run: ``python tests/bench/gpu.py [--device cuda]``.

Every result is checked first. Rounds take the libraries in turns; a figure is the median of its rounds. Libraries that are not installed
are left out and named. ``--tiny`` takes sizes that a simulated device can do: the figures then mean nothing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from gpu_cases import Case, cases  # noqa: E402
from gpu_libraries import LIBRARIES, Library, Tack  # noqa: E402


def seconds_of(run: Callable[[], Any], sync: Callable[[], None], repeat: int) -> float:
    """Of one run, waiting at the end of all."""
    sync()
    start = time.perf_counter()
    for _ in range(repeat):
        run()
    sync()
    return (time.perf_counter() - start) / repeat


def to_queue(run: Callable[[], Any], sync: Callable[[], None], repeat: int) -> float:
    """Of one call until it returns; the work is waited for outside of the measurement."""
    sync()
    start = time.perf_counter()
    for _ in range(repeat):
        run()
    taken = (time.perf_counter() - start) / repeat
    sync()
    return taken


class Table:
    """Seconds of every round, by row and library."""

    def __init__(self) -> None:
        self.rounds: dict[tuple[str, str], list[float]] = {}

    def add(self, row: str, library: str, seconds: float) -> None:
        self.rounds.setdefault((row, library), []).append(seconds)

    def median(self, row: str, library: str) -> float | None:
        found = self.rounds.get((row, library))
        return statistics.median(found) if found else None


def prepared(library: Library, case: Case) -> Callable[[], Any]:
    """The case, ready to be run again and again; it has been run once and its result is right."""
    inputs = [library.upload(value) for value in case.inputs]
    kernel = library.kernels[case.name]
    answer = kernel(*inputs)
    out = answer if case.inputs[0] is None else library.download(inputs[0])
    if not case.right(out):
        raise SystemExit(f"{library.name}: a wrong result of {case.name}")
    return lambda: kernel(*inputs)


def started(names: tuple[type[Library], ...], device: str) -> tuple[list[Library], list[str]]:
    """The libraries that work here, and why others do not."""
    found: list[Library] = []
    absent = []
    for kind in names:
        try:
            found.append(kind(device))
        except Exception as error:
            if kind is Tack:
                raise
            absent.append(f"{kind.name} ({str(error).splitlines()[0] if str(error) else type(error).__name__})")
    return found, absent


def measure(libraries: list[Library], tiny: bool, rounds: int) -> tuple[Table, list[Case]]:
    table, all_cases = Table(), cases(tiny)
    work: list[tuple[str, Library, Callable[[], Any], Callable[..., float], int]] = []
    for library in libraries:
        small = [library.upload(np.ones(8, np.float32)) for _ in range(3)]
        axpy = library.kernels["axpy"]
        call = lambda axpy=axpy, small=small: axpy(*small, 2.5)  # noqa: E731
        call()
        work.append(("launch", library, call, to_queue, 20 if tiny else 1000))
        for case in all_cases:
            work.append((case.name, library, prepared(library, case), seconds_of, 1 if tiny else 10))
        destination, source = (library.upload(all_cases[0].inputs[k]) for k in (0, 1))
        work.append(("copy", library, lambda d=destination, s=source, lib=library: lib.copy(d, s), seconds_of, 1 if tiny else 10))
    for _ in range(rounds):
        for row, library, run, how, repeat in work:
            table.add(row, library.name, how(run, library.sync, repeat))
    return table, all_cases


def report(table: Table, all_cases: list[Case], libraries: list[Library], absent: list[str], device: Any, tiny: bool) -> str:
    lines = [f"{date.today()}, {device.device_name} ({device.arch}), Python {sys.version.split()[0]}"]
    if tiny:
        lines.append("Tiny sizes: these figures say nothing but that all of it runs.")
    if absent:
        lines.append("Left out: " + "; ".join(absent))
    names = [library.name for library in libraries]
    lines += ["", "| | " + " | ".join(names) + " | unit |", "|---" * (len(names) + 2) + "|"]

    def row(title: str, unit: str, value: Callable[[float], float], key: str) -> None:
        cells = [f"{value(m):.3g}" if (m := table.median(key, name)) is not None else "-" for name in names]
        lines.append(f"| {title} | {' | '.join(cells)} | {unit} |")

    row("to queue a launch (3 arrays, a scalar)", "us", lambda s: s * 1e6, "launch")
    for case in all_cases:
        row(case.name, case.unit, lambda s, case=case: case.amount / s, case.name)
    copied = 8.0 * all_cases[0].inputs[0].size / 1e9
    row("copy within the device", "GB/s", lambda s: copied / s, "copy")
    triad, copy = (table.median(key, "tack") for key in ("triad", "copy"))
    assert triad and copy
    lines.append(f"\ntack's triad moves {all_cases[0].amount / triad / (copied / copy):.0%} of what a copy within the device moves.")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="sizes for a simulated device")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    libraries, absent = started(LIBRARIES, options.device)
    tack = libraries[0]
    assert isinstance(tack, Tack)
    table, all_cases = measure(libraries, options.tiny, options.rounds)
    print(report(table, all_cases, libraries, absent, tack.device, options.tiny))
    return 0


if __name__ == "__main__":
    sys.exit(main())
