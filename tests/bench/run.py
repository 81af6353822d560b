"""Measures Tack beside its peers in one interleaved run and writes one Markdown table: ``python tests/bench/run.py [--out FILE]``.

Each peer lives in worker processes of its own; every round asks each worker once, in another order, so that a slow minute of the
machine meets all of them. Figures are medians over rounds of a round's median. A ratio is the median of the rounds' own ratios, since
what slows one peer in a round slows the others; its spread are the quartiles of these. Peers that are not installed
(``pip install '.[bench]'``) are left out and named.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from data import CASES  # noqa: E402
from start import FIRST_TACK, ten  # noqa: E402

PEERS = ("tack_", "plain", "hand", "cpp", "numba_", "drjit_", "warp_", "quadrants_", "numpy_")
TITLE = {
    "tack_": "tack",
    "plain": "tack, simd=1",
    "hand": "by hand",
    "cpp": "C++ -O3",
    "numba_": "numba",
    "drjit_": "drjit",
    "warp_": "warp",
    "quadrants_": "quadrants",
    "numpy_": "numpy",
}
CALLS = ["positional", "keywords", "globals", "attributes", "six", "numpy"]
PACKAGE = {
    "tack_": "tack",
    "plain": "tack",
    "numba_": "numba",
    "drjit_": "drjit",
    "warp_": "warp",
    "quadrants_": "quadrants",
    "numpy_": "numpy",
}


class Worker:
    """A peer's process. A worker that dies answers errors."""

    def __init__(self, peer: str, threads: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), peer, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            return dict(json.loads(self.process.stdout.readline() or '{"error": "the worker died"}'))
        except (BrokenPipeError, json.JSONDecodeError) as error:
            return {"error": str(error)}

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


class Figure:
    """The rounds of one peer at one case."""

    def __init__(self) -> None:
        self.rounds: list[float] = []
        self.error = ""

    def add(self, answer: dict[str, Any]) -> None:
        if "median" in answer:
            self.rounds.append(answer["median"])
        elif "error" in answer:
            self.error = answer["error"]

    @property
    def value(self) -> float:
        return statistics.median(self.rounds)

    @property
    def spread(self) -> float:
        return max(self.rounds) / min(self.rounds)

    def ratio(self, other: Figure) -> str:
        """This over ``other``, round by round: median and quartiles."""
        if len(self.rounds) != len(other.rounds) or len(self.rounds) < 2:  # one of them failed in some round
            return f"{self.value / other.value:.2f}"
        ratios = [a / b for a, b in zip(self.rounds, other.rounds, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return f"{middle:.2f}: {low:.2f}..{high:.2f}"


def si(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def row(title: str, figures: dict[str, Figure], peers: list[str]) -> str:
    """One line: each peer's time and its ratio to Tack's (above 1: Tack is faster)."""
    own = figures.get("tack_")
    cells = []
    for peer in peers:
        f = figures.get(peer)
        if f is None or not f.rounds:
            cells.append("error" if f is not None and f.error else "")
        elif peer == "tack_" or own is None or not own.rounds:
            cells.append(f"**{si(f.value)}** (x{f.spread:.2f})")
        else:
            cells.append(f"{si(f.value)} ({f.ratio(own)})")
    return f"| {title} | " + " | ".join(cells) + " |"


def header(first: str, peers: list[str]) -> list[str]:
    return [f"| {first} | " + " | ".join(TITLE[p] for p in peers) + " |", "|---|" + "---:|" * len(peers)]


def interleave(cases: list[str], kind: str, peers: list[str], threads: int, rounds: int, budget: float) -> dict[str, dict[str, Figure]]:
    result: dict[str, dict[str, Figure]] = {}
    for case in cases:
        workers = {p: Worker(p, threads) for p in peers}
        figures = {p: Figure() for p in peers}
        order = list(workers)
        for _ in range(rounds):
            order.append(order.pop(0))  # nobody always follows the same one
            for peer in order:
                figures[peer].add(workers[peer].ask(**{kind: case, "budget": budget}))
        for worker in workers.values():
            worker.close()
        result[case] = figures
        for p, f in figures.items():
            print(f"  {case} {threads}T {TITLE[p]}: {si(f.value) if f.rounds else f.error or 'absent'}", file=sys.stderr, flush=True)
    return result


def process_time(command: list[str], env: dict[str, str]) -> tuple[float, str]:
    start = time.perf_counter()
    out = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return time.perf_counter() - start, out.stdout


def start_up(peers: list[str], rounds: int) -> tuple[dict[str, Figure], dict[str, Figure]]:
    """Whole processes: NumPy's import against Tack's cached first call; then the ten cold kernels."""
    script = str(HERE / "start.py")
    first, cold = {"numpy_": Figure(), "tack_": Figure()}, {p: Figure() for p in peers if p in ("tack_", "numba_", "warp_", "quadrants_")}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "first_tack_.py").write_text(FIRST_TACK)
        for p in cold:
            (Path(folder) / f"ten_{p}.py").write_text(ten(p))
        base = {k: v for k, v in os.environ.items() if not k.startswith("TACK_")} | {"BENCH_FOLDER": folder}
        warm = base | {"TACK_CACHE_DIR": f"{folder}/warm"}
        process_time([sys.executable, script, "first", "tack_"], warm)
        for _ in range(3 * rounds):
            first["numpy_"].rounds.append(process_time([sys.executable, script, "numpy", "-"], base)[0])
            first["tack_"].rounds.append(process_time([sys.executable, script, "first", "tack_"], warm)[0])
        for n in range(rounds):
            for p, figure in cold.items():
                home = f"{folder}/home{n}{p}"
                os.mkdir(home)
                env = base | {
                    "HOME": home,
                    "XDG_CACHE_HOME": home,
                    "TACK_CACHE_DIR": f"{home}/tack",
                    "WARP_CACHE_PATH": home,
                    "NUMBA_CACHE_DIR": home,
                }
                try:
                    figure.rounds.append(float(process_time([sys.executable, script, "ten", p], env)[1].split()[-1]))
                except subprocess.CalledProcessError as error:
                    figure.error = error.stderr[-300:]
    return first, cold


def fan_out(rounds: int) -> str:
    """Handing work to two threads, Tack's pool beside libgomp's: a table of tests/bench/cpp/fanout.cpp, in microseconds."""
    root = HERE.parent.parent
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/fanout"
        core = ("thread_pool", "thread_host_posix", "parking_linux" if sys.platform == "linux" else "parking_elsewhere", "error", "text")
        sources = [str(HERE / "cpp" / "fanout.cpp"), *(str(root / f"cpp/src/core/{name}.cpp") for name in core)]
        options = ["-O2", "-fopenmp", "-std=c++20", "-pthread", f"-I{root}/cpp/include", f"-I{root}/cpp/src"]
        subprocess.run(["g++", *options, *sources, "-o", program], check=True)
        return subprocess.run([program, str(rounds), "neighbour"], check=True, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the table there as well")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.25, help="seconds per case, peer and round")
    parser.add_argument("--parts", default="call,loops,start,fanout")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--peers", default=",".join(PEERS))
    args = parser.parse_args()
    missing = []
    peers = []
    for p in args.peers.split(","):
        if p in PACKAGE and subprocess.run([sys.executable, "-c", f"import {PACKAGE[p]}"], capture_output=True).returncode:
            missing.append(TITLE[p])
        else:
            peers.append(p)
    parts = args.parts.split(",")
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")),
        platform.processor(),
    )
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    lines = [f"Measured {date.today()} on {os.cpu_count()} cores of {cpu}, {system}."]
    lines += [
        f"Medians of {args.rounds} interleaved rounds; in brackets the ratio to Tack of the same round, its median and quartiles",
        "(above 1: Tack is faster); for Tack, after x, slowest over fastest round.",
        "",
    ]
    if missing:
        lines += [f"Not installed, so left out: {', '.join(missing)}.", ""]
    if "call" in parts:
        lines += ["### One small call (three arrays of 8 elements and a scalar, one thread)", "", *header("way", peers)]
        lines += [row(name, f, peers) for name, f in interleave(CALLS, "call", peers, 1, args.rounds, args.budget).items()] + [""]
    if "loops" in parts:
        for threads in (1, 2):
            lines += [f"### Loops, {threads} thread{'s' if threads > 1 else ''}", "", *header("case", peers)]
            lines += [
                row(name, f, peers)
                for name, f in interleave(args.cases.split(","), "case", peers, threads, args.rounds, args.budget).items()
            ] + [""]
    if "start" in parts:
        first, cold = start_up(peers, args.rounds)
        lines += [
            "### A fresh process",
            "",
            *header("what", ["tack_", "numpy_"]),
            row("import, first call of a cached kernel (NumPy: import alone)", first, ["tack_", "numpy_"]),
            "",
        ]
        names = list(cold)
        lines += [*header("what", names), row("ten distinct 40-line kernels, compiled and called", cold, names), ""]
    if "fanout" in parts:
        lines += ["### Handing work to two threads", "", fan_out(args.rounds)]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text)


if __name__ == "__main__":
    main()
