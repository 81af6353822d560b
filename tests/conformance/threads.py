"""Work on several threads at once, for tests of what threads share."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["at_once"]


def at_once(count: int, work: Callable[[int], None]) -> None:
    """Runs ``work(0..count)`` in threads that start together; the first failure is raised."""
    start = threading.Barrier(count)
    failures: list[BaseException] = []

    def run(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
