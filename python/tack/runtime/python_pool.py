"""The thread pool behind ``TACK_CPU_POOL=python``: a ThreadPoolExecutor that helps the launching thread with its parallel loops."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["run"]

_lock = threading.Lock()
_executor: ThreadPoolExecutor | None = None
_size = 0


def _forget() -> None:
    """In a forked child: the parent's threads do not exist here, and its lock may be held by one of them."""
    global _executor, _lock, _size
    _executor, _size, _lock = None, 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _pool(threads: int) -> ThreadPoolExecutor:
    """The executor, with at least ``threads`` workers."""
    global _executor, _size
    with _lock:
        if _executor is None or _size < threads:
            if _executor is not None:
                _executor.shutdown(wait=False)
            _executor, _size = ThreadPoolExecutor(threads, thread_name_prefix="tack"), threads
        return _executor


def run(work: Callable[[], None], helpers: int) -> None:
    """Calls ``work()`` on this thread and on up to ``helpers`` others; returns when this thread finds nothing left to do.

    ``work`` releases the GIL. Where no thread can be started the calling thread does everything.
    """
    futures = []
    try:
        pool = _pool(helpers)
        for _ in range(helpers):
            futures.append(pool.submit(work))
    except RuntimeError:  # no more threads, or the interpreter is shutting down
        pass
    work()
    for future in futures:
        future.cancel()  # those that have not begun would find nothing
