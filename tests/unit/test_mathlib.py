"""Accuracy of tack's mathlib: at most 4 ulp everywhere, right at the corners. Prints a table (``pytest -s``): function, type, max ulp.

The sources run as NumPy vector code (mathlib_numpy). References: f64 functions for f32, mpmath with 120 bits for f64.
"""

from __future__ import annotations

import ast
import math
import zlib
from collections.abc import Callable
from typing import Any

import mathlib_fit
import mpmath
import numpy as np
import pytest
from mathlib_numpy import Library

from tack.codegen import mathlib

LIMIT = 4.0
LIBRARIES = {t: Library(t) for t in ("f32", "f64")}
FLOAT = {"f32": np.float32, "f64": np.float64}
BITS = {"f32": np.uint32, "f64": np.uint64}
ALL = [(name, t) for t in ("f32", "f64") for name in mathlib.names(t)]
SAMPLES = {"f32": 1_000_000, "f64": 10_000}
# Where a function does something interesting, beyond all bit patterns: (low, high), sampled evenly. Two pairs for two arguments.
RANGES: dict[str, list[Any]] = {
    "exp": [(-110, 92), (-1, 1), (-750, 712)],
    "exp2": [(-152, 130), (-1, 1), (-1080, 1026)],
    "expm1": [(-20, 90), (-1, 1), (-40, 712)],
    "sinh": [(-92, 92), (-2, 2), (-712, 712)],
    "cosh": [(-92, 92), (-2, 2), (-712, 712)],
    "tanh": [(-12, 12), (-1, 1), (-22, 22)],
    "log": [(0, 3), (0.7, 1.5), (0.99, 1.01)],
    "log2": [(0, 3), (0.7, 1.5), (0.99, 1.01)],
    "log10": [(0, 3), (0.7, 1.5), (0.99, 1.01)],
    "log1p": [(-1, 3), (-0.01, 0.01), (-0.5, 1)],
    "asinh": [(-2, 2), (-1e6, 1e6)],
    "acosh": [(1, 2), (1, 1.001), (1, 1e6)],
    "atanh": [(-1, 1), (-0.6, 0.6), (0.999, 1)],
    "sin": [(-10, 10), (-1e5, 1e5), (-1e8, 1e8), (3.14159, 3.1416)],
    "cos": [(-10, 10), (-1e5, 1e5), (-1e8, 1e8), (1.57079, 1.5708)],
    "tan": [(-10, 10), (-1e5, 1e5), (-1e8, 1e8), (1.57, 1.5715), (3.14159, 3.1416)],
    "asin": [(-1, 1), (-0.6, 0.6), (0.99, 1)],
    "acos": [(-1, 1), (-0.6, 0.6), (0.99, 1), (-1, -0.99)],
    "atan": [(-2, 2), (-20, 20), (0.4, 0.43), (2.38, 2.45)],
    "atan2": [((-2, 2), (-2, 2)), ((-1e-3, 1e-3), (-2, 2))],
    "erf": [(-5, 5), (-1.1, 1.1)],
    "erfc": [(-5, 11), (0, 2), (0, 28)],
    "rsqrt": [(0, 4)],
    "cbrt": [(-9, 9)],
    "hypot": [((-2, 2), (-2, 2)), ((-1e30, 1e30), (-1e30, 1e30))],
    "fmod": [((-100, 100), (-3, 3)), ((-1e9, 1e9), (-3, 3)), ((-1e30, 1e30), (-3, 3))],
    "pow": [((0, 4), (-100, 100)), ((0.9, 1.1), (-500, 500)), ((0, 1e30), (-3, 3)), ((0.999, 1.001), (-1e5, 1e5)), ((-9, 9), (-4, 4))],
}


def samples(name: str, t: str, count: int) -> list[np.ndarray]:
    """Arguments: all bit patterns, all magnitudes, the ranges above."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {t}".encode()))
    arity = 2 if isinstance(RANGES[name][0][0], tuple) else 1
    kind = FLOAT[t]

    def patterns(n: int) -> np.ndarray:
        return rng.integers(0, np.iinfo(BITS[t]).max, n, dtype=BITS[t], endpoint=True).view(kind)

    def magnitudes(n: int) -> np.ndarray:
        return (np.exp2(rng.uniform(-30, 12, n)) * rng.choice([-1, 1], n)).astype(kind)

    per = count // (len(RANGES[name]) + 2)
    columns: list[list[np.ndarray]] = [[] for _ in range(arity)]
    for column in range(arity):
        columns[column] += [patterns(per), magnitudes(per)]
        for r in RANGES[name]:
            low, high = r[column] if arity == 2 else r
            columns[column].append(rng.uniform(low, high, per).astype(kind))
    result = [np.concatenate(c) for c in columns]
    if name in ("log", "log2", "log10", "acosh", "rsqrt"):
        result[0][::2] = np.abs(result[0][::2])
    if name == "pow":
        whole = rng.random(result[1].size) < 0.3
        result[1][whole] = np.round(result[1][whole])
        negative = (result[0] < 0) & (np.floor(result[1]) != result[1])
        result[0][negative] = -result[0][negative]
    return result


def _ufunc(f: Callable[..., float], arity: int = 1) -> Callable[..., np.ndarray]:
    def guarded(*args: float) -> float:
        try:
            return f(*args)
        except (ValueError, OverflowError):
            return math.nan

    made = np.frompyfunc(guarded, arity, 1)
    return lambda *a: made(*a).astype(np.float64)


REFERENCE_F32: dict[str, Callable[..., np.ndarray]] = {
    **{n: getattr(np, n) for n in ("exp", "exp2", "expm1", "sinh", "cosh", "tanh", "log", "log2", "log10", "log1p", "sin", "cos", "tan")},
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "erf": _ufunc(math.erf),
    "erfc": _ufunc(math.erfc),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "hypot": np.hypot,
    "fmod": np.fmod,
    "pow": np.power,
}


def _mp(name: str) -> Callable[..., Any]:
    special: dict[str, Callable[..., Any]] = {
        "exp2": lambda x: mpmath.power(2, x),
        "log2": lambda x: mpmath.log(x, 2),
        "rsqrt": lambda x: 1 / mpmath.sqrt(x),
        "cbrt": lambda x: mpmath.cbrt(x) if x >= 0 else -mpmath.cbrt(-x),
        "pow": mpmath.power,
        "fmod": lambda x, y: mpmath.sign(x) * mpmath.fmod(abs(x), abs(y)),
    }
    return special.get(name) or getattr(mpmath, name)


def ulp_errors(got: np.ndarray, exact: Any, t: str) -> tuple[np.ndarray, np.ndarray]:
    """The errors in units of the last place of the exact value, and which of the samples have a finite exact value in range."""
    info = np.finfo(FLOAT[t])
    if t == "f32":
        fine = np.isfinite(exact) & (np.abs(exact) <= float(info.max))
        unit = np.exp2(np.maximum(np.floor(np.log2(np.abs(np.where(exact == 0, 1e-300, exact)))), -126) - 23)
        return np.where(fine, np.abs(got.astype(np.float64) - exact) / unit, 0), fine
    errors, fine = np.zeros(got.size), np.zeros(got.size, bool)
    for k, (g, e) in enumerate(zip(got, exact, strict=True)):
        if e is None or not mpmath.isfinite(e) or abs(e) > info.max:
            continue
        fine[k] = True
        exponent = max(mpmath.frexp(e)[1] - 1, -1022) if e else -1022
        errors[k] = float(abs(mpmath.mpf(float(g)) - e) / mpmath.mpf(2) ** (exponent - 52)) if math.isfinite(g) else math.inf
    return errors, fine


def exact_f64(name: str, args: list[np.ndarray]) -> list[Any]:
    """mpmath's answers; None where there is none (domain, or too large to compute)."""
    f, out = _mp(name), []
    with mpmath.workprec(120):
        for values in zip(*args, strict=True):
            if not all(map(math.isfinite, values)):
                out.append(None)
                continue
            numbers = [mpmath.mpf(float(v)) for v in values]
            if name in ("exp", "exp2", "expm1", "sinh", "cosh") and abs(numbers[0]) > 2000:
                out.append(None)
                continue
            if name == "tanh" and abs(numbers[0]) > 100:
                out.append(mpmath.sign(numbers[0]))
                continue
            if name in ("erf", "erfc") and abs(numbers[0]) > 30:
                out.append(mpmath.erf(mpmath.sign(numbers[0]) * 30) if name == "erf" else mpmath.mpf(0 if numbers[0] > 0 else 2))
                continue
            if name == "pow" and (numbers[0] == 0 or abs(numbers[1] * mpmath.log(abs(numbers[0]), 2)) > 1100):
                out.append(None)
                continue
            try:
                if name in ("expm1", "log1p", "sinh", "tanh", "atanh", "asinh") and abs(numbers[0]) < 1e-20:
                    out.append(numbers[0])
                elif name in ("sin", "cos", "tan", "fmod"):
                    with mpmath.workprec(1300 if name != "fmod" else 2300):
                        out.append(f(*numbers))
                elif name == "acosh" and numbers[0] < 1:
                    out.append(None)
                else:
                    value = f(*numbers)
                    out.append(None if isinstance(value, mpmath.mpc) else value)
            except (ValueError, ZeroDivisionError):
                out.append(None)
    return out


INF, NAN = math.inf, math.nan
HALF_PI, PI = math.pi / 2, math.pi
CORNERS: dict[str, list[tuple[Any, ...]]] = {  # arguments, then the answer
    "exp": [(INF, INF), (-INF, 0.0), (0.0, 1.0), (-0.0, 1.0), (1e4, INF), (-1e4, 0.0)],
    "exp2": [(INF, INF), (-INF, 0.0), (0.0, 1.0), (10.0, 1024.0), (-3.0, 0.125), (1e5, INF), (-1e5, 0.0)],
    "expm1": [(INF, INF), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (1e4, INF), (-1e4, -1.0), (1e-40, 1e-40)],
    "sinh": [(INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0), (1e4, INF), (-1e4, -INF), (1e-40, 1e-40)],
    "cosh": [(INF, INF), (-INF, INF), (0.0, 1.0), (-1e4, INF)],
    "tanh": [(INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (1e-40, 1e-40), (-1e6, -1.0)],
    "log": [(INF, INF), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (1.0, 0.0)],
    "log2": [(INF, INF), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (1.0, 0.0), (1024.0, 10.0), (2.0**-140, -140.0)],
    "log10": [(INF, INF), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (1.0, 0.0)],
    "log1p": [(INF, INF), (0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-2.0, NAN), (-INF, NAN), (-1e-40, -1e-40)],
    "asinh": [(INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0), (1e-40, 1e-40)],
    "acosh": [(INF, INF), (1.0, 0.0), (0.5, NAN), (-2898.4, NAN), (-INF, NAN)],
    "atanh": [(1.0, INF), (-1.0, -INF), (0.0, 0.0), (-0.0, -0.0), (2.0, NAN), (-INF, NAN), (INF, NAN)],
    "sin": [(INF, NAN), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0), (-1e-40, -1e-40)],
    "cos": [(INF, NAN), (-INF, NAN), (0.0, 1.0), (-0.0, 1.0)],
    "tan": [(INF, NAN), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0), (1e-40, 1e-40)],
    "asin": [(1.0, HALF_PI), (-1.0, -HALF_PI), (0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-INF, NAN)],
    "acos": [(1.0, 0.0), (-1.0, PI), (0.0, HALF_PI), (-0.0, HALF_PI), (1.5, NAN), (INF, NAN)],
    "atan": [(INF, HALF_PI), (-INF, -HALF_PI), (0.0, 0.0), (-0.0, -0.0), (1.0, PI / 4), (1e38, HALF_PI)],
    "atan2": [
        *[(0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, -1.0, PI), (-0.0, -1.0, -PI), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0)],
        *[(0.0, -0.0, PI), (-0.0, -0.0, -PI), (1.0, 0.0, HALF_PI), (-1.0, -0.0, -HALF_PI), (1.0, 1.0, PI / 4), (1.0, -1.0, 3 * PI / 4)],
        *[(INF, INF, PI / 4), (-INF, -INF, -3 * PI / 4), (INF, 1.0, HALF_PI), (1.0, INF, 0.0), (-1.0, -INF, -PI), (NAN, INF, NAN)],
        *[(1e38, 1e-38, HALF_PI), (1e-38, -1e38, PI), (3e38, 3e38, PI / 4), (1e-40, 1e-40, PI / 4), (5e-324, 1e38, 0.0)],
    ],
    "erf": [(INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (100.0, 1.0)],
    "erfc": [(INF, 0.0), (-INF, 2.0), (0.0, 1.0), (100.0, 0.0), (-100.0, 2.0)],
    "rsqrt": [(INF, 0.0), (0.0, INF), (-0.0, -INF), (-1.0, NAN), (4.0, 0.5)],
    "cbrt": [(INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0), (27.0, 3.0), (-8.0, -2.0)],
    "hypot": [(INF, NAN, INF), (NAN, -INF, INF), (3.0, -4.0, 5.0), (0.0, -0.0, 0.0), (3e38, 3e-38, 3e38), (NAN, 1.0, NAN)],
    "fmod": [
        *[(5.5, 2.0, 1.5), (-5.5, 2.0, -1.5), (5.5, -2.0, 1.5), (1.0, 0.0, NAN), (INF, 2.0, NAN), (3.0, INF, 3.0), (-0.0, 1.0, -0.0)],
        *[(-4.0, 2.0, -0.0), (1e-40, 1.0, 1e-40), (NAN, 1.0, NAN), (1.0, NAN, NAN), (0.0, 0.0, NAN)],
    ],
    "pow": [
        *[(NAN, 0.0, 1.0), (1.0, NAN, 1.0), (NAN, 1.0, NAN), (2.0, NAN, NAN), (2.0, 10.0, 1024.0), (-2.0, 3.0, -8.0), (-2.0, 2.0, 4.0)],
        *[(-2.0, 0.5, NAN), (0.0, 2.0, 0.0), (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0), (0.0, -1.0, INF), (-0.0, -1.0, -INF), (-0.0, -2.0, INF)],
        *[(INF, 2.0, INF), (INF, -2.0, 0.0), (-INF, 3.0, -INF), (-INF, 2.0, INF), (-INF, -3.0, -0.0), (-INF, 0.5, INF), (-0.0, 0.5, 0.0)],
        *[(2.0, INF, INF), (0.5, INF, 0.0), (2.0, -INF, 0.0), (0.5, -INF, INF), (-1.0, INF, 1.0), (-1.0, -INF, 1.0), (-2.0, INF, INF)],
        *[(1e30, 1e30, INF), (1e-30, 1e30, 0.0), (-1e30, 3.0 * 2**20 + 1, -INF), (0.0, INF, 0.0), (0.0, -INF, INF), (9.0, 0.5, 3.0)],
    ],
}


@pytest.mark.parametrize(("name", "t"), ALL)
@np.errstate(all="ignore")
def test_corners(name: str, t: str) -> None:
    for *args, expected in CORNERS[name]:
        (got,) = LIBRARIES[t].math(name)(*(np.array([a], FLOAT[t]) for a in args))
        want = FLOAT[t](expected)
        assert got == want or (np.isnan(got) and np.isnan(want)), f"{name}{tuple(args)} is {got}, not {want}"
        assert np.signbit(got) == np.signbit(want) or np.isnan(want), f"{name}{tuple(args)} is {got}, not {want}"
    arity = len(CORNERS[name][0]) - 1
    nans = LIBRARIES[t].math(name)(*[np.array([NAN], FLOAT[t])] * arity)
    assert np.isnan(nans[0])


def test_signs_of_odd_functions() -> None:
    for t, library in LIBRARIES.items():
        x = samples("erf", t, 1000)[0]
        for name in ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "cbrt", "expm1", "log1p"):
            if name not in ("expm1", "log1p"):
                with np.errstate(all="ignore"):
                    np.testing.assert_array_equal(library.math(name)(-x), -library.math(name)(x))


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_fmod_is_exact(t: str) -> None:
    x, y = samples("fmod", t, 20_000)
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    np.testing.assert_array_equal(LIBRARIES[t].math("fmod")(x, y), expected)


def test_f32_functions_use_no_f64() -> None:
    for name in mathlib.source_names():
        text = mathlib.source(name).text
        assert ("f64" in text) == name.endswith("f64"), name


def test_coefficients_are_those_of_the_fits() -> None:
    numbers: dict[str, set[float]] = {"f32": set(), "f64": set()}
    for name in mathlib.source_names():
        t = name[-3:]
        constants = [n.value for n in ast.walk(ast.parse(mathlib.source(name).text)) if isinstance(n, ast.Constant)]
        numbers[t] |= {abs(float(FLOAT[t](c))) for c in constants if isinstance(c, float)}
    for name in mathlib_fit.FITS:
        t = name[-3:]
        values, error, _ = mathlib_fit.coefficients(name)
        assert error < 2.0 ** (-27 if t == "f32" else -56), name
        missing = [c for c in values if abs(float(FLOAT[t](float(c)))) not in numbers[t]]
        assert not missing, f"{name}: {missing}"


def test_sources_are_found_with_their_lines() -> None:
    for name in mathlib.source_names():
        source = mathlib.source(name)
        with open(source.file, encoding="utf-8") as file:
            lines = file.read().splitlines()
        assert lines[source.line - 1] == source.text.splitlines()[0]
        assert lines[source.line - 1].startswith(f"def {name}(")
    with pytest.raises(KeyError):
        mathlib.source("nonsense_f32")


TABLE: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def table() -> Any:
    yield
    print("\nfunction  type  max ulp  at")
    for line in TABLE:
        print(line)


@pytest.mark.parametrize(("name", "t"), ALL)
@np.errstate(all="ignore")
def test_within_four_ulp(name: str, t: str) -> None:
    args = samples(name, t, SAMPLES[t])
    got = LIBRARIES[t].math(name)(*args)
    assert got.dtype == FLOAT[t]
    if t == "f32":
        exact: Any = REFERENCE_F32[name](*(a.astype(np.float64) for a in args))
    else:
        exact = exact_f64(name, args)
    errors, fine = ulp_errors(got, exact, t)
    assert fine.mean() > 0.3, "too few samples have an answer"
    if t == "f32":  # no answer, or one out of range: the same NaN or infinity
        with np.errstate(all="ignore"):
            rounded = exact.astype(np.float32)
        np.testing.assert_array_equal(got[~fine], rounded[~fine])
    worst = int(np.argmax(errors))
    TABLE.append(f"{name:8}  {t}   {errors[worst]:7.3f}  {', '.join(repr(float(a[worst])) for a in args)}")
    assert errors[worst] <= LIMIT, TABLE[-1]
