"""The math library through the front end: well-formed IR for every function, and in the interpreter the bits of the vector run."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from mathlib_numpy import Library
from test_mathlib import CORNERS, samples

from tack import mathlink
from tack.codegen import mathlib
from tack.frontend.meaning import Constant, DTypeMeaning, FuncMeaning, Intrinsic
from tack.ir.interpret import evaluate
from tack.ir.verify import verify_function
from tack.types import by_name, f32, f64, i32

LIBRARIES = {t: Library(t) for t in ("f32", "f64")}


def same(a: float, b: float) -> bool:
    return struct.pack("<d", a) == struct.pack("<d", b) or (a != a and b != b)


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("name", mathlib.names("f32"))
@np.errstate(all="ignore")
def test_interpreted_bits_are_those_of_the_vector_run(name: str, t: str) -> None:
    function = mathlink.math(name, by_name(t))
    verify_function(function)
    assert [v.type.name for v in function.params + function.results] == [t] * (len(function.params) + 1)
    kind = np.float32 if t == "f32" else np.float64
    args = [a[:: max(1, a.size // 40)] for a in samples(name, t, 4000)]
    for position in range(len(args)):
        corner = np.array([row[position] for row in CORNERS[name]], kind)
        args[position] = np.concatenate([args[position], corner])
    expected = LIBRARIES[t].math(name)(*args)
    for k, want in enumerate(expected):
        values = [float(a[k]) for a in args]
        (got,) = evaluate(function, values, math_library=mathlink.math)
        assert same(float(got), float(want)), f"{name}{tuple(values)}: {got}, not {want}"


def test_functions_are_made_once_and_unknown_ones_are_key_errors() -> None:
    assert mathlink.math("exp", f32) is mathlink.math("exp", f32)
    assert mathlink.math("exp", f32) is not mathlink.math("exp", f64)
    for name, t in (("gamma", f32), ("exp", i32), ("exp_parts", f32)):
        assert not mathlink.has_math(name, t)
        with pytest.raises(KeyError):
            mathlink.math(name, t)
    assert mathlink.has_math("exp", f32)


def test_environment() -> None:
    environment = mathlink.MathEnvironment()
    assert environment.lookup("fma") == Intrinsic("fma", "tack")
    assert environment.lookup("inf") == Constant(float("inf"))
    assert environment.lookup("u64") == DTypeMeaning(by_name("u64"))
    assert isinstance(environment.lookup("exp_parts_f32"), FuncMeaning)
    assert environment.lookup("print") is None
