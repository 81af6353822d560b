"""Runs f32 math functions over all bit patterns (or every n-th) on the CPU and reports the largest error. All of them take minutes.

python tests/fuzz/exhaustive_math.py --stride 64 exp sin
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import tack
from tack.codegen import mathlib

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))
from test_mathlib import LIMIT, REFERENCE_F32, ulp_errors  # noqa: E402

CHUNK = 1 << 22
UNARY = [name for name in mathlib.names("f32") if name not in ("pow", "atan2", "hypot", "fmod")]


def unary(function: Any) -> Any:
    @tack.kernel
    def apply(out, x):
        for i in range(out.shape[0]):
            out[i] = function(x[i])

    return apply


def largest_error(name: str, stride: int) -> tuple[float, float]:
    """The largest error in ulp, and the argument that has it. NaNs must be NaNs, and infinities infinities; else it is infinite."""
    kernel, worst, at = unary(getattr(tack, name)), 0.0, 0.0
    for start in range(0, 1 << 32, CHUNK * stride):
        x = np.arange(start, min(start + CHUNK * stride, 1 << 32), stride, dtype=np.uint64).astype(np.uint32).view(np.float32)
        got = np.empty_like(x)
        kernel(got, x)
        exact = REFERENCE_F32[name](x.astype(np.float64))
        errors, fine = ulp_errors(got, exact, "f32")
        rest = ~fine
        wrong = rest & ~((np.isnan(got) & np.isnan(exact)) | (got == exact.astype(np.float32)))
        errors[wrong] = np.inf
        k = int(np.argmax(errors))
        if errors[k] > worst:
            worst, at = float(errors[k]), float(x[k])
    return worst, at


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=UNARY, help="functions (default: all of one argument)")
    parser.add_argument("--stride", type=int, default=1, help="take every n-th bit pattern; an odd number reaches all kinds")
    options = parser.parse_args()
    bad = 0
    with np.errstate(all="ignore"):
        for name in options.names:
            worst, at = largest_error(name, options.stride)
            print(f"{name:6} {worst:8.3f} ulp at {at!r}", flush=True)
            bad += worst > LIMIT
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
