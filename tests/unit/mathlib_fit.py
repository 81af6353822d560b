"""Derives the polynomial coefficients of tack's mathlib: ``python tests/unit/mathlib_fit.py [NAME...]`` prints them with their errors.

Remez's exchange algorithm on a fixed fine grid, in mpmath's arithmetic: the polynomial whose largest weighted error over the
interval is least. Nothing is taken from another library. The leading terms of each function are written out in the source exactly,
and only the rest is fitted, so that rounding the coefficients costs nothing that matters.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpmath import mp, mpf

mp.dps = 60
F = Callable[[Any], Any]


@dataclass(frozen=True)
class Fit:
    """``function`` on [low, high] by a polynomial of ``degree``; ``weight`` times the error is what counts (relative to the result)."""

    function: F
    low: Any
    high: Any
    degree: int
    weight: F
    doc: str = ""


def remez(fit: Fit, points: int = 0) -> tuple[list[Any], Any]:
    """Coefficients, lowest power first, and the largest weighted error."""
    n = fit.degree + 2
    count = points or 40 * n
    low, high = mpf(fit.low), mpf(fit.high)
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (k + mpf(1) / 2) / count) for k in range(count)]
    values = [fit.function(x) for x in grid]
    weights = [fit.weight(x) for x in grid]
    picked = [round(k * (count - 1) / (n - 1)) for k in range(n)]
    coefficients: list[Any] = []
    worst = mpf(0)
    for _ in range(30):
        matrix, right = mp.matrix(n, n), mp.matrix(n, 1)
        for row, k in enumerate(picked):
            power = mpf(1)
            for column in range(n - 1):
                matrix[row, column] = power
                power *= grid[k]
            matrix[row, n - 1] = (-1) ** row / weights[k]
            right[row] = values[k]
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[k] for k in range(n - 1)]
        level = abs(solution[n - 1])
        errors = [w * (v - _value(coefficients, x)) for x, v, w in zip(grid, values, weights, strict=True)]
        worst = max(abs(e) for e in errors)
        if worst <= level * mpf("1.001"):
            break
        picked = _alternation(errors, n)
    return coefficients, worst


def _value(coefficients: list[Any], x: Any) -> Any:
    value = mpf(0)
    for c in reversed(coefficients):
        value = value * x + c
    return value


def _alternation(errors: list[Any], n: int) -> list[int]:
    """The places of n errors of alternating sign, the largest among them."""
    peaks: list[int] = []
    for k, e in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[peaks[-1]]):
                peaks[-1] = k
        else:
            peaks.append(k)
    while len(peaks) > n:
        if len(peaks) - n == 1:  # the smaller end goes
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        else:  # the smallest with its smaller neighbour
            least = min(range(len(peaks)), key=lambda j: abs(errors[peaks[j]]))
            other = min((j for j in (least - 1, least + 1) if 0 <= j < len(peaks)), key=lambda j: abs(errors[peaks[j]]))
            for j in sorted((least, other), reverse=True):
                peaks.pop(j)
    assert len(peaks) == n, "no alternation: the degree is too high for the precision, or the function is odd on the interval"
    return peaks


# Relative error means: weight = (part that the polynomial adds to the result per unit) / result.
def _rest(f: F, terms: Callable[[Any], Any], power: int, at_zero: Any) -> F:
    """(f(x) - terms(x)) / x^power, with its limit at 0."""
    return lambda x: mpf(at_zero) if x == 0 else (f(x) - terms(x)) / x**power


LN2_2 = mp.log(2) / 2
half = mpf(1) / 2
SQRT2 = mp.sqrt(2)


def _odd(f: F) -> F:
    """(f(r) / r - 1) / r^2 in z = r^2, of an odd function with slope 1."""

    def g(z: Any) -> Any:
        r = mp.sqrt(z) if z > 0 else mpf(10) ** -12
        return (f(r) / r - 1) / r**2

    return g


def _even_cos(z: Any) -> Any:
    r = mp.sqrt(z) if z > 0 else mpf(10) ** -10
    return (mp.cos(r) - 1 + r**2 / 2) / r**4


def _exp_fit(degree: int) -> Fit:
    """exp(r) = 1 + r + r^2 q(r) on half a period of ln 2."""
    limit = LN2_2 * mpf("1.0001")
    return Fit(_rest(mp.exp, lambda r: 1 + r, 2, half), -limit, limit, degree, lambda r: r**2 / mp.exp(r), "exp(r) = 1 + r + r^2 q(r)")


def _expm1_fit(degree: int) -> Fit:
    limit = LN2_2 * mpf("1.0001")
    rest = _rest(mp.expm1, lambda r: r + r**2 / 2, 3, mpf(1) / 6)
    return Fit(rest, -limit, limit, degree, lambda r: r**2, "expm1(r) = r + r^2/2 + r^3 q(r)")


def _exp2_fit(degree: int) -> Fit:
    """2^r = 1 + r q(r) on [-1/2, 1/2]."""
    rest = lambda r: mp.log(2) if r == 0 else (mp.power(2, r) - 1) / r  # noqa: E731
    return Fit(rest, -half, half, degree, lambda r: r / mp.power(2, r), "2^r = 1 + r q(r)")


def _log_fit(degree: int) -> Fit:
    """log(1 + f) = f - f^2/2 + f^3 q(f) between sqrt(1/2) and sqrt(2)."""
    rest = _rest(lambda f: mp.log(1 + f), lambda f: f - f**2 / 2, 3, mpf(1) / 3)
    weight = lambda f: f**2 if f == 0 else abs(f**3 / mp.log(1 + f))  # noqa: E731
    return Fit(rest, 1 / SQRT2 - 1, SQRT2 - 1, degree, weight, "log(1+f) = f - f^2/2 + f^3 q(f)")


def _atanh_series(z: Any) -> Any:
    s = mp.sqrt(z) if z > 0 else mpf(10) ** -12
    return (2 * mp.atanh(s) / s - 2) / z if z > 0 else mpf(2) / 3


def _atanh_fit(degree: int) -> Fit:
    """2 atanh(s) = 2 s + s^3 q(s^2); log(1 + f) with s = f / (2 + f)."""
    return Fit(_atanh_series, 0, (3 - 2 * SQRT2) ** 2, degree, lambda z: z / 2, "2 atanh(s) = 2s + s^3 q(s^2)")


def _atanh_tail(z: Any, terms: int) -> Any:
    """The same series without its first ``terms`` terms, over s^(2 terms + 1)."""
    if z == 0:
        return mpf(2) / (2 * terms + 1)
    s = mp.sqrt(z)
    known = sum(2 * s ** (2 * k + 1) / (2 * k + 1) for k in range(terms))
    return (2 * mp.atanh(s) - known) / s ** (2 * terms + 1)


def _odd_fit(f: F, low: Any, high: Any, degree: int, doc: str) -> Fit:
    """An odd function f(r) = r + r^3 q(r^2) for |r| <= high."""
    g = _odd(f)
    return Fit(g, mpf(low) ** 2, mpf(high) ** 2, degree, lambda z: z / (1 + z * g(z)) if z else mpf(0) + mpf(10) ** -20, doc)


def _erf_fit(high: Any, degree: int) -> Fit:
    """erf(x) = x + x p(x^2)."""

    def g(z: Any) -> Any:
        return 2 / mp.sqrt(mp.pi) - 1 if z == 0 else mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1

    return Fit(g, 0, mpf(high) ** 2, degree, lambda z: 1 / (1 + g(z)), "erf(x) = x + x q(x^2)")


def _erfcx(x: Any) -> Any:
    return mp.exp(x**2) * mp.erfc(x)


def _erfc_fit(low: Any, degree: int, k: Any, high: Any = None) -> Fit:
    """exp(x^2) erfc(x) (1 + 2x) as a polynomial in t = (x - k) / (x + k)."""

    def g(t: Any) -> Any:
        x = mpf(k) * (1 + t) / (1 - t)
        return _erfcx(x) * (1 + 2 * x)

    top = (mpf(high) - k) / (mpf(high) + k)
    doc = f"erfc(x) exp(x^2) (1 + 2x) = q((x - {k}) / (x + {k}))"
    return Fit(g, (mpf(low) - k) / (mpf(low) + k), top, degree, lambda t: 1 / g(t), doc)


QUARTER = mp.pi / 4 * mpf("1.0001")
TAN_EIGHTH = mp.tan(mp.pi / 8) * mpf("1.0001")


def _both(name: str, make: Callable[[int], Fit], f32: int, f64: int) -> dict[str, Callable[[], Fit]]:
    return {f"{name}_f32": lambda: make(f32), f"{name}_f64": lambda: make(f64)}


def _cos_fit(degree: int) -> Fit:
    return Fit(_even_cos, 0, QUARTER**2, degree, lambda z: z**2 / mp.cos(mp.sqrt(z)), "cos(r) = 1 - r^2/2 + r^4 q(r^2)")


def _log2_tail_fit(degree: int) -> Fit:
    tail = lambda z: _atanh_tail(z, 2) / mp.log(2)  # noqa: E731
    return Fit(tail, mpf(10) ** -8, (3 - 2 * SQRT2) ** 2, degree, lambda z: z**2, "log2((1+s)/(1-s)) beyond its terms s and s^3, over s^5")


FITS: dict[str, Callable[[], Fit]] = {
    **_both("exp", _exp_fit, 4, 9),
    **_both("expm1", _expm1_fit, 4, 9),
    **_both("exp2", _exp2_fit, 6, 12),
    **_both("sinh", lambda d: _odd_fit(mp.sinh, 0, 1, d, "sinh(r) = r + r^3 q(r^2)"), 3, 6),
    **_both("tanh", lambda d: _odd_fit(mp.tanh, 0, mpf("0.625"), d, "tanh(r) = r + r^3 q(r^2)"), 5, 12),
    "log_f32": lambda: _log_fit(8),
    "log_f64": lambda: _atanh_fit(6),
    **_both("powtail", _log2_tail_fit, 2, 7),
    **_both("sin", lambda d: _odd_fit(mp.sin, 0, QUARTER, d, "sin(r) = r + r^3 q(r^2)"), 2, 5),
    **_both("cos", _cos_fit, 2, 5),
    **_both("tan", lambda d: _odd_fit(mp.tan, 0, QUARTER, d, "tan(r) = r + r^3 q(r^2)"), 7, 15),
    **_both("asin", lambda d: _odd_fit(mp.asin, 0, half, d, "asin(r) = r + r^3 q(r^2)"), 5, 12),
    **_both("atan", lambda d: _odd_fit(mp.atan, 0, TAN_EIGHTH, d, "atan(r) = r + r^3 q(r^2)"), 4, 11),
    **_both("erf", lambda d: _erf_fit(1, d), 7, 13),
    "erf_far_f32": lambda: Fit(
        lambda u: mp.log(mp.erfc(1 + u), 2), 0, 3, 6, lambda u: mp.erfc(1 + u) * mp.log(2), "erfc(1 + u) = 2^q(u), beside 1"
    ),
    "exp2_short_f32": lambda: Fit(lambda r: mp.power(2, r), -half, half, 6, lambda r: mp.power(2, -r), "2^r, for erf"),
    "erfc_f32": lambda: _erfc_fit(half, 11, 3, 11),
    "erfc_f64": lambda: _erfc_fit(half, 23, 4, 28),
}


def coefficients(name: str) -> tuple[list[Any], Any, str]:
    """The fit called ``name``: coefficients (lowest power first), largest weighted error, what it is."""
    fit = FITS[name]()
    c, error = remez(fit)
    return c, error, fit.doc


def main(names: list[str]) -> None:
    for name in names or FITS:
        values, error, doc = coefficients(name)
        digits = 9 if name.endswith("f32") else 17
        print(f"{name}: {doc}; error 2^{float(mp.log(error, 2)):.1f}")
        for k, c in enumerate(values):
            print(f"  {k:2d}  {mp.nstr(c, digits)}")


if __name__ == "__main__":
    main(sys.argv[1:])
