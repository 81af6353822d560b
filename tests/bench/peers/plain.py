"""Tack one iteration at a time: what the lanes of ``tack_`` must not lose to."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ["TACK_CPU_SIMD"] = "1"  # before the module below is imported

from peers.tack_ import Run
from peers.tack_ import cases as tack_cases


def cases(threads: int) -> dict[str, Callable[[dict[str, Any]], Run]]:
    return tack_cases(threads)
