"""Math functions over their whole ranges: every n-th bit pattern of f32 on the CPU, and (with --long) a million f64 samples."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))

from exhaustive_math import UNARY, largest_error
from test_mathlib import LIBRARIES, LIMIT, exact_f64, samples, ulp_errors

from tack.codegen import mathlib

COARSE, FINE = 100_003, 127  # odd, so that all last bits are met


@pytest.mark.parametrize("name", UNARY)
@np.errstate(all="ignore")
def test_f32_functions_at_bit_patterns_far_apart(name: str) -> None:
    worst, at = largest_error(name, COARSE)
    assert worst <= LIMIT, f"{name}({at!r}): {worst} ulp"


@pytest.mark.long
@pytest.mark.parametrize("name", UNARY)
@np.errstate(all="ignore")
def test_f32_functions_over_their_whole_range(name: str) -> None:
    worst, at = largest_error(name, FINE)
    assert worst <= LIMIT, f"{name}({at!r}): {worst} ulp"


@pytest.mark.long
@pytest.mark.parametrize("name", mathlib.names("f64"))
@np.errstate(all="ignore")
def test_f64_functions_at_a_million_samples(name: str) -> None:
    args = samples(name, "f64", 1_000_000)
    got = LIBRARIES["f64"].math(name)(*args)
    for start in range(0, len(got), 50_000):
        part = slice(start, start + 50_000)
        errors, _ = ulp_errors(got[part], exact_f64(name, [a[part] for a in args]), "f64")
        worst = int(np.argmax(errors))
        assert errors[worst] <= LIMIT, f"{name}{tuple(float(a[part][worst]) for a in args)}: {errors[worst]} ulp"
