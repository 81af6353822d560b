"""Math functions in kernels: the bits of tack's library, whatever the lanes, for samples of all magnitudes and at the corners."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tack
from tack.codegen import mathlib

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))
from mathlib_numpy import Library  # noqa: E402
from test_mathlib import CORNERS, samples  # noqa: E402

NUMPY = {"f32": np.float32, "f64": np.float64}
LIBRARIES = {t: Library(t) for t in NUMPY}
CASES = [pytest.param(name, t, id=f"{name}-{t}") for t in NUMPY for name in mathlib.names(t)]


def one(function: Any, **options: Any) -> Any:
    @tack.kernel(**options)
    def apply(out, x):
        for i in range(out.shape[0]):
            out[i] = function(x[i])

    return apply


def two(function: Any, **options: Any) -> Any:
    @tack.kernel(**options)
    def apply(out, x, y):
        for i in range(out.shape[0]):
            out[i] = function(x[i], y[i])

    return apply


@pytest.mark.parametrize(
    "lanes", [pytest.param(1, marks=pytest.mark.needs("lanes and threads"), id="lanes1"), pytest.param(None, id="lanes")]
)
@pytest.mark.parametrize(("name", "t"), CASES)
def test_bits_are_the_librarys(device: tack.Device, name: str, t: str, lanes: int | None) -> None:
    args = samples(name, t, 3000)
    for position, column in enumerate(zip(*CORNERS[name], strict=True)):
        if position < len(args):
            args[position] = np.concatenate([args[position], np.array(column, NUMPY[t])])
    with np.errstate(all="ignore"):
        expected = LIBRARIES[t].math(name)(*args)
    options = {"exact": True} if lanes is None else {"exact": True, "simd": lanes}
    kernel = (one if len(args) == 1 else two)(getattr(tack, name), **options)
    out = tack.zeros(len(expected), dtype=NUMPY[t], device=device)
    kernel(out, *(tack.array(a, device=device) for a in args))
    got = out.numpy()
    assert got.dtype == NUMPY[t]
    same = (got.view(f"u{got.itemsize}") == expected.view(f"u{got.itemsize}")) | (np.isnan(got) & np.isnan(expected))
    first = int(np.argmin(same))
    assert same.all(), f"{(~same).sum()} differ; {name}{tuple(float(a[first]) for a in args)}: {got[first]!r}, not {expected[first]!r}"


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_functions_that_have_one_right_answer(device: tack.Device, t: str) -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(-9, 9, 500), [0.0, -0.0, 0.5, 1.5, -2.5, 1e20, np.inf, -np.inf, np.nan]]).astype(NUMPY[t])
    a = tack.array(x, device=device)
    with np.errstate(all="ignore"):
        for name, reference in (
            ("sqrt", np.sqrt),
            ("floor", np.floor),
            ("ceil", np.ceil),
            ("trunc", np.trunc),
            ("round", np.rint),
            ("fabs", np.abs),
        ):
            out = tack.zeros_like(a)
            one(getattr(tack, name))(out, a)
            np.testing.assert_array_equal(out.numpy(), reference(x), err_msg=name)
            np.testing.assert_array_equal(np.signbit(out.numpy()), np.signbit(reference(x)), err_msg=name)
        for name, reference in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
            flags = tack.zeros(len(x), dtype=tack.u8, device=device)
            one(getattr(tack, name))(flags, a)
            np.testing.assert_array_equal(flags.numpy().astype(bool), reference(x), err_msg=name)
    y = tack.array(x[::-1].copy(), device=device)
    out = tack.zeros_like(a)
    two(tack.copysign)(out, a, y)
    np.testing.assert_array_equal(np.signbit(out.numpy()), np.signbit(x[::-1]))
