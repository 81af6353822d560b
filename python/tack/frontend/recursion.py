"""Room for Python's own parser, which calls itself: the recursion limit, raised while it runs, restored after it. Only it needs that."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

__all__ = ["deep_recursion"]

_LIMIT: Final = 6000  # frames, beyond those of the caller; CPython 3.11 builds an AST three times as deep
_lock = threading.Lock()
_users = 0
_before = 0


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raises the limit, which is the whole interpreter's: the last of several threads that are inside restores it."""
    global _users, _before
    with _lock:
        if _users == 0:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, _LIMIT))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and sys.getrecursionlimit() == max(_before, _LIMIT):
                with suppress(RecursionError):  # the caller itself is deeper than its limit allows
                    sys.setrecursionlimit(_before)
