"""The order in which a parallel loop's contributions are combined: it depends on the loop's extent alone, on every backend.

Consecutive iterations form at most ``BLOCKS`` equal blocks of at least ``BLOCK_SIZE``. In a block, ``WIDTH`` running results take the
iterations of each row (along the last dimension) in turns, and are folded by halves. The blocks' results are added to what the variable
held before the loop, in order.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BLOCKS", "BLOCK_SIZE", "WIDTH"]

BLOCKS: Final = 1024
BLOCK_SIZE: Final = 1024
WIDTH: Final = 64
