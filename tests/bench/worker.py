"""One peer in one process: ``worker.py PEER THREADS``. Answers requests, one JSON line each; run.py interleaves several workers.

Requests: ``{"case": name, "budget": seconds}`` measures a throughput case; ``{"call": variant, "budget": s}`` a small call.
Answers: ``{"median": seconds, "min": seconds, "repeats": n}`` or ``{"error": text}``; ``{"absent": true}`` if the peer has no such case.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from call import variants  # noqa: E402
from data import CASES  # noqa: E402

clock = time.perf_counter


def repeat(run: Callable[[], object], budget: float) -> dict[str, float]:
    """Times single runs until the budget is spent, at least five, or what fits into twice the budget."""
    times: list[float] = []
    end = clock() + budget
    while clock() < end or (len(times) < 5 and sum(times) < 2 * budget):
        start = clock()
        run()
        times.append(clock() - start)
    return {"median": statistics.median(times), "min": min(times), "repeats": len(times)}


def repeat_call(statement: str, names: dict[str, Any], budget: float) -> dict[str, float]:
    """Times batches of a tiny call, the loop around it as cheap as Python has it; the figures are per call."""
    timer = timeit.Timer(statement, globals=names)
    timer.timeit(200)
    batch = max(20, min(20000, int(0.02 / timer.timeit(10))))
    times = []
    end = clock() + budget
    while len(times) < 5 or clock() < end:
        times.append(timer.timeit(batch) / batch)
    return {"median": statistics.median(times), "min": min(times), "repeats": len(times) * batch}


def main() -> None:
    peer, threads = sys.argv[1], int(sys.argv[2])
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a peer prints goes to stderr
    table: dict[str, Any] | None = None
    ready: dict[str, tuple[Any, dict[str, Any]]] = {}
    calls: dict[str, tuple[str, dict[str, Any]]] | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "call" in request:
                if calls is None:
                    calls = variants(peer, threads)
                name = request["call"]
                answer: dict[str, Any] = repeat_call(*calls[name], request["budget"]) if name in calls else {"absent": True}
            else:
                if table is None:
                    table = importlib.import_module(f"peers.{peer}").cases(threads)
                case = CASES[request["case"]]
                if case.name not in table:
                    answer = {"absent": True}
                else:
                    if case.name not in ready:
                        ready.clear()  # one case's arrays at a time
                        data = case.make()
                        run = table[case.name](data)
                        run()
                        run()
                        getattr(run, "finish", lambda: None)()
                        if not case.check(data):
                            raise AssertionError("wrong result")
                        ready[case.name] = (run, data)
                    answer = repeat(ready[case.name][0], request["budget"])
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        replies.write(json.dumps(answer) + "\n")
        replies.flush()


main()
