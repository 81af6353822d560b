"""Measures Tack beside its peers in one interleaved run and writes Markdown tables: ``python tests/bench/run.py [--docs]``.

Each peer lives in worker processes of its own; every round asks each worker once, in another order, so that a slow minute of the
machine meets all of them. Figures are medians over rounds of a round's median. A ratio is the median of the rounds' own ratios, since
what slows one peer in a round slows the others; its spread are the quartiles of these. Peers that are not installed
(``pip install '.[bench]'``) are left out and named. A whole run takes about 20 minutes; ``--docs`` puts its tables, and which bars are
reached, between the markers of docs/benchmarks.md.
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
PAGE = HERE.parent.parent / "docs" / "benchmarks.md"
MARKERS = "<!-- measured: begin -->", "<!-- measured: end -->"
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
# The bars: a case, the peers of which the best one counts, and how many times its time Tack may take.
BARS = (
    ("mandelbrot", ("hand",), 1.1),
    ("blackscholes", ("hand",), 0.9),
    ("nbody", ("hand",), 1.1),
    ("stencil", ("cpp",), 1.0),
    ("triad", ("hand",), 1.05),
    ("triad_1e3", ("cpp", "hand"), 1.1),
    ("triad_1e5", ("cpp", "hand"), 1.1),
    ("gather", ("hand", "cpp", "numba_", "drjit_"), 1.0),
    ("scatter", ("hand", "cpp", "numba_", "drjit_"), 1.0),
    *((case, ("hand",), 1.2) for case in ("julia", "spheres", "nearest", "life", "hash")),
)
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
    """A peer's process. One that died answered an error, and is replaced at the next question."""

    def __init__(self, peer: str, threads: int) -> None:
        self.peer, self.threads = peer, threads
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), self.peer, str(self.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        if self.process.poll() is not None:
            self.start()
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

    def over(self, other: Figure) -> tuple[float, float, float]:
        """This over ``other``, round by round: lower quartile, median, upper quartile."""
        if len(self.rounds) != len(other.rounds) or len(self.rounds) < 2:  # one of them failed in some round
            return (self.value / other.value,) * 3
        low, middle, high = statistics.quantiles([a / b for a, b in zip(self.rounds, other.rounds, strict=True)], n=4, method="inclusive")
        return low, middle, high

    def ratio(self, other: Figure) -> str:
        low, middle, high = self.over(other)
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
    workers = {p: Worker(p, threads) for p in peers}
    for case in cases:
        figures = {p: Figure() for p in peers}
        order = list(workers)
        for _ in range(rounds):
            order.append(order.pop(0))  # nobody always follows the same one
            for peer in order:
                figures[peer].add(workers[peer].ask(**{kind: case, "budget": budget}))
        result[case] = figures
        for p, f in figures.items():
            print(f"  {case} {threads}T {TITLE[p]}: {si(f.value) if f.rounds else f.error or 'absent'}", file=sys.stderr, flush=True)
    for worker in workers.values():
        worker.close()
    return result


def bar_rows(figures: dict[str, dict[str, Figure]], call: float) -> list[str]:
    """Which bars are reached; ``call``: seconds of a small call, which the bars of short launches allow."""
    out = []
    for case, peers, bound in BARS:
        own, others = figures.get(case, {}).get("tack_"), [f for p in peers if (f := figures.get(case, {}).get(p)) and f.rounds]
        if own is None or not own.rounds or not others:
            continue
        best = min(others, key=lambda f: f.value)
        allowed = bound + (call / best.value if case in ("triad_1e3", "triad_1e5") else 0.0)
        low, middle, high = own.over(best)
        name = next(TITLE[p] for p in peers if figures[case].get(p) is best)
        verdict = "yes" if middle <= allowed else "within the spread" if low <= allowed else "**no**"
        out.append(f"| {case} | at most {allowed:.2f} x {name} | {verdict}: {middle:.2f} ({low:.2f}..{high:.2f}) |")
    lost = []
    for case, f in figures.items():
        if "plain" in f and f["plain"].rounds and f["tack_"].rounds:
            _, middle, high = f["plain"].over(f["tack_"])
            if middle < 1 / 1.05 and high < 1:
                lost.append(f"{case} {1 / middle:.2f}")
    if any("plain" in f for f in figures.values()):
        out.append(f"| all | no slower than with simd=1 by more than 5 % | {'**no**: ' + ', '.join(lost) if lost else 'yes'} |")
    return out


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
    parser.add_argument("--out", type=Path, help="write the tables there as well")
    parser.add_argument("--docs", action="store_true", help="put the tables into docs/benchmarks.md")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.25, help="seconds per case, peer and round")
    parser.add_argument("--parts", default="call,loops,start,fanout,lanes,rows")
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
    load = os.getloadavg()[0]
    load = os.getloadavg()[0]
    lines = [f"Measured {date.today()} (load {load:.1f} when it began) on {os.cpu_count()} cores of {cpu}, {system}."]
    lines += [
        f"Medians of {args.rounds} interleaved rounds; in brackets the ratio to Tack of the same round, its median and quartiles",
        "(above 1: Tack is faster); for Tack, after x, slowest over fastest round.",
        "",
    ]
    if missing:
        lines += [f"Not installed, so left out: {', '.join(missing)}.", ""]
    call = 0.0
    if "call" in parts:
        lines += ["### One small call (three arrays of 8 elements and a scalar, one thread)", "", *header("way", peers)]
        calls = interleave(CALLS, "call", peers, 1, args.rounds, args.budget)
        lines += [row(name, f, peers) for name, f in calls.items()] + [""]
        call = calls["positional"]["tack_"].value if "tack_" in peers else 0.0
    if "loops" in parts:
        for threads in (1, 2):
            some = [p for p in peers if p != "plain" or threads == 1]
            lines += [f"### Loops, {threads} thread{'s' if threads > 1 else ''}", "", *header("case", some)]
            figures = interleave(args.cases.split(","), "case", some, threads, args.rounds, args.budget)
            lines += [row(name, f, some) for name, f in figures.items()] + [""]
            lines += ["| case | bar | reached: Tack's time over the peer's |", "|---|---|---|", *bar_rows(figures, call), ""]
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
    for part, title in (("lanes", "Lanes beside simd=1"), ("rows", "Loops along rows, one thread")):
        if part in parts:
            answer = subprocess.run([sys.executable, str(HERE / f"{part}.py")], capture_output=True, text=True)
            lines += [f"### {title}", "", answer.stdout or answer.stderr]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text)
    if args.docs:
        before, _, rest = PAGE.read_text().partition(MARKERS[0])
        after = rest.partition(MARKERS[1])[2]
        PAGE.write_text(f"{before}{MARKERS[0]}\n\n{text}\n{MARKERS[1]}{after}")


if __name__ == "__main__":
    main()
