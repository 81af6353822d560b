"""Programs that once differed, made small, with the right values. tests/fuzz/kernels.py --shrink prints new ones."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))

from check import verify


def test_a_loop_that_surely_runs_binds_its_variable_inside_another_loop() -> None:
    verify(
        """\
@tack.kernel(exact=True)
def k(lo, hi, a_i8, o_i64):
    for i in range(lo, hi):
        w = 0
        while w < 4 and a_i8[i] >= 0:
            w += 1
            for j in range(3):
                v = j + w
            o_i64[0, i] = v * 10 + j
""",
        o_i64=[
            [1, 62, 62, 62, 62, 62, 62, 3, 62, 5, 1, 62, 3, 62, 62, 62, 62, 62],
            [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3],
        ],
    )


def test_the_tail_of_two_lanes_stores_no_more_than_its_lane() -> None:
    verify(
        """\
@tack.kernel(exact=True)
def k(lo, hi, a_u64, o_i32):
    for i in range(lo, hi - 1):
        o_i32[0, i] = a_u64[i % 64] % 1000
""",
        o_i32=[
            [5, 13, 614, 196, 426, 6, 0, 7, 807, 289, 609, 609, 2, 8, 826, 2, 614, 3],
            [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3],
        ],
    )
