"""Programs that once differed, made small, with the right values. tests/fuzz/kernels.py --shrink prints new ones."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))

from check import Compiled, verify

from tack.codegen import build_source
from tack.compiler import target_of
from tack.mathlink import math


def test_a_loop_that_surely_runs_binds_its_variable_inside_another_loop() -> None:
    verify(
        """\
@tack.kernel(exact=True)
def k(lo, hi, a_i8, o_i64):
    for i in range(lo, hi):
        w = 0
        while w < 4 and a_i8[i % 64] >= 0:
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


def test_a_lane_that_is_off_does_not_divide() -> None:
    """It may hold poison, to which no test of the divisor applies: LLVM then divided by what was in a register, at times by 0."""
    text = """\
@tack.kernel(exact=True)
def k(lo, hi, a_i8, a_u32, o_i8, o_i32):
    for i in range(lo, hi):
        for j in range(a_i8[i % 64] % 4):
            if a_u32[j] > 2:
                continue
            v = a_i8[(i + j) % 64]
            if v != a_i8[j]:
                w = v - a_i8[j]
                o_i8[0, i] += tack.i8(100) // w
                for m in range(0, 20, w):
                    o_i32[0, i] += m % w + 1
"""
    verify(
        text,
        o_i8=[
            [1, 2, 3, 16, 5, 51, 2, 1, 54, 3, -1, 3, 0, 4, 5, 51, 2, 3],
            [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3],
        ],
        o_i32=[
            [1, 2, 3, 7, 6, 11, 3, 3, 14, 5, 1, 3, 3, 4, 5, 11, 2, 3],
            [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3],
        ],
    )
    compiled = Compiled(text, ["lo", "hi", "a_i8", "a_u32", "o_i8", "o_i32"], 2)
    compiled.ir.options["simd"] = 16
    llvm_ir = build_source(compiled.ir, target_of(compiled.device), math).text
    order = re.findall(r"= (freeze|[su]div|[su]rem) <\d+ x i\d+>", llvm_ir)  # each division has a frozen divisor of its own
    divisions = [k for k, kind in enumerate(order) if kind != "freeze"]
    assert divisions
    assert all(k and order[k - 1] == "freeze" for k in divisions), order
    by_lanes = re.findall(r"^define internal fastcc <\d+ x i\d+> @tack_(?:quot|rem)_.*?^}", llvm_ir, re.MULTILINE | re.DOTALL)
    assert all("freeze" in function for function in by_lanes)


def test_what_a_divisor_is_known_to_be_holds_in_lanes_that_are_on_alone() -> None:
    """Seed 6001390: the test for 0 went, as the divisor's interval has none, and a lane that was off divided by 0."""
    text = """\
@tack.kernel(exact=True)
def k(lo, hi, p, a_i8, a_u16, o_i64):
    for i in range(lo, hi):
        if a_i8[i % 64] > 3:
            v = tack.i64(a_u16[i % 64]) + 3
            o_i64[0, i] = p // v
"""
    compiled = Compiled(text, ["lo", "hi", "p", "a_i8", "a_u16", "o_i64"], 2)
    compiled.ir.options["simd"] = 16
    llvm_ir = build_source(compiled.ir, target_of(compiled.device), math).text
    assert "or i1 false" not in llvm_ir
    assert "select i1 false" not in llvm_ir


def test_the_high_part_of_a_product_as_16_bits() -> None:
    """LLVM 22 lost the product where a shift by 32 or more of one of sign-extended numbers was cut to 16 bits."""
    text = """\
@tack.kernel(exact=True)
def k(lo, hi, a_i8, a_i16, o_i16, o_u16):
    for i in range(lo, hi):
        o_i16[0, i] = tack.i16(tack.mulhi(a_i8[i % 64], tack.u32(3)))
        o_u16[0, i] = tack.bitcast(tack.mulhi(a_i8[i % 64], tack.u32(1)), tack.u64)
        o_i16[1, i] = tack.i16((tack.i64(a_i16[i % 64]) * a_i8[i % 64]) >> 40)
        o_u16[1, i] = (tack.u64(a_i16[i % 64]) * tack.u64(a_i8[i % 64])) // 2**33
"""
    from check import FEW, inputs

    a, b = inputs("i8", 64).tolist(), inputs("i16", 64).tolist()
    verify(
        text,
        o_i16=[[(a[i] * 3) >> 64 for i in range(FEW)], [(b[i] * a[i]) >> 40 for i in range(FEW)]],
        o_u16=[
            [(a[i] >> 64) % 2**16 for i in range(FEW)],
            [((b[i] * a[i]) % 2**64 >> 33) % 2**16 for i in range(FEW)],
        ],
    )
