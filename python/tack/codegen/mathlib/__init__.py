"""Tack's math library: functions written in the kernel language, as text that the compiler's front end compiles like a user's.

The sources are ordinary Python (``exponential.py`` and its neighbours) and are never imported: ``source`` answers the text of one
function. Inside, a name means: another function of the library; an intrinsic (``fma bitcast sqrt floor fabs copysign``); a dtype
(a cast); ``inf``, ``nan``. They keep to rules that let one text run on every target and in every lane of a vector: no early
return, ``a if c else b`` for choices, an ``if`` statement only around a rare and long way, ``fma`` only where it is written,
f32 functions without f64 arithmetic. All answers are within 4 ulp (tests/unit/test_mathlib.py prints how far), and right for
infinities, NaN, subnormals and huge arguments. The polynomials come from tests/unit/mathlib_fit.py; the identities are in the
docstrings.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["CONSTANTS", "FUNCTIONS", "INTRINSICS", "MathSource", "names", "source", "source_names"]

_FILES: Final = ("exponential.py", "logarithm.py", "trigonometric.py", "inverse_trigonometric.py", "error_function.py", "root.py")

_NAMES: Final = (
    *("exp", "exp2", "expm1", "sinh", "cosh", "tanh"),
    *("log", "log2", "log10", "log1p", "asinh", "acosh", "atanh", "pow"),
    *("sin", "cos", "tan"),
    *("asin", "acos", "atan", "atan2"),
    *("erf", "erfc"),
    *("rsqrt", "cbrt", "hypot", "fmod"),
)

FUNCTIONS: Final[dict[tuple[str, str], str]] = {(name, dtype): f"{name}_{dtype}" for name in _NAMES for dtype in ("f32", "f64")}
"""(name, dtype name) -> the name of its source. What is absent has no implementation yet, but for what every target has itself."""

INTRINSICS: Final = ("fma", "bitcast", "sqrt", "floor", "trunc", "fabs", "copysign")
CONSTANTS: Final[dict[str, float]] = {"inf": float("inf"), "nan": float("nan")}


@dataclass(frozen=True, slots=True)
class MathSource:
    """The text of one function. ``line``: the 1-based line of its first line in ``file``."""

    name: str
    file: str
    line: int
    text: str


@functools.cache
def _sources() -> dict[str, MathSource]:
    found: dict[str, MathSource] = {}
    for file in _FILES:
        path = Path(__file__).with_name(file)
        text = path.read_text(encoding="utf-8")
        starts = [m.start() for m in re.finditer(r"^def ", text, re.MULTILINE)]
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
            body = text[start:end].rstrip() + "\n"
            name = body[4 : body.index("(")]
            found[name] = MathSource(name, str(path), text.count("\n", 0, start) + 1, body)
    return found


def source(name: str) -> MathSource:
    """The source called ``name`` ("exp_f32", or a helper's); KeyError if there is none."""
    return _sources()[name]


def source_names() -> list[str]:
    """All sources, helpers included."""
    return list(_sources())


def names(dtype: str) -> list[str]:
    """The math functions that exist for the float type called ``dtype``."""
    return [name for name, t in FUNCTIONS if t == dtype]
