"""Tack one iteration at a time: what the lanes of ``tack_`` must not lose to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peers import tack_


def cases(threads: int) -> dict[str, Callable[[dict[str, Any]], tack_.Run]]:
    return tack_.cases(threads, simd=1)
