"""Joins the math library's sources and the front end: (name, dtype) -> typed device function. Imported only where something is compiled."""

from __future__ import annotations

import functools
from typing import Final

from .codegen import mathlib
from .frontend.meaning import Constant, DTypeMeaning, Environment, FuncMeaning, FunctionSource, Intrinsic, Meaning, ModuleMeaning
from .ir.nodes import Function
from .ir.target import Target
from .types import ARRAY_DTYPES, DType, by_name

__all__ = ["MathEnvironment", "function_source", "has_math", "math"]

_CASTS: Final = ("i32", "u32", "i64", "u64", "f32", "f64")


def function_source(name: str) -> FunctionSource:
    """The source of the library called ``name`` ("exp_f32"), as the front end takes it."""
    found = mathlib.source(name)
    return FunctionSource(found.name, f"tack.math.{found.name}", found.file, found.line, found.text)


class MathEnvironment:
    """What names mean inside the library: its other functions, a few intrinsics, casts, inf and nan. The same for all of them."""

    def lookup(self, name: str) -> Meaning | None:
        if name in mathlib.INTRINSICS:
            return Intrinsic(name, "tack")
        if name in mathlib.CONSTANTS:
            return Constant(mathlib.CONSTANTS[name])
        if name in _CASTS:
            return DTypeMeaning(by_name(name))
        try:
            return FuncMeaning(function_source(name), self, name)
        except KeyError:
            return None

    def attribute(self, module: ModuleMeaning, name: str) -> Meaning | None:
        return None  # there are no modules


_ENVIRONMENT: Final[Environment] = MathEnvironment()
# The typed functions are the same for all targets; whether a kernel may use f64 is decided for the kernel.
_ANY_TARGET: Final = Target("any", "any device", "", frozenset(ARRAY_DTYPES), frozenset(), True, False, False)


def has_math(name: str, dtype: DType) -> bool:
    """Whether the library has the function; what every target has itself (sqrt, floor, ...) is not in it."""
    return (name, dtype.name) in mathlib.FUNCTIONS


@functools.cache
def math(name: str, dtype: DType) -> Function:
    """The typed function that computes ``name`` for the float type; KeyError where the library has none."""
    from .frontend.infer import infer_function
    from .frontend.parse import parse

    source = function_source(mathlib.FUNCTIONS[name, dtype.name])
    parsed = parse(source, kernel=name)
    return infer_function(parsed, [dtype] * len(parsed.params), _ENVIRONMENT, _ANY_TARGET)
