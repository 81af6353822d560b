"""A dict for an environment, and short ways to infer a kernel from text: what the front end's unit tests share."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from tack import types
from tack.frontend.infer import infer
from tack.frontend.meaning import (
    ArgType,
    ArrayArg,
    Constant,
    DTypeMeaning,
    FuncMeaning,
    FunctionSource,
    Intrinsic,
    Meaning,
    ModuleMeaning,
    NoneArg,
    Opaque,
    ScalarArg,
    TupleMeaning,
)
from tack.frontend.names import FUNCTIONS, NUMPY_NAMES
from tack.frontend.parse import parse
from tack.ir.nodes import Kernel
from tack.ir.target import Target
from tack.ir.verify import verify

BUILTINS = ("range", "len", "int", "float", "bool", "abs", "min", "max", "round", "print", "divmod", "pow", "sum", "enumerate", "zip")
TACK = ModuleMeaning("tack", "tack")
MATH = ModuleMeaning("math", "math")
NUMPY = ModuleMeaning("numpy", "numpy")

CPU = Target(
    backend="cpu",
    title="CPU",
    arch="test",
    array_dtypes=frozenset(types.ARRAY_DTYPES),
    atomic_dtypes=frozenset(types.ARRAY_DTYPES),
    supports_f64=True,
    supports_workgroups=False,
    supports_images=False,
)

X32 = ArrayArg(types.f32, 1)
X64 = ArrayArg(types.f64, 1)
I32 = ArrayArg(types.i32, 1)
INT = ScalarArg("int")
UINT = ScalarArg("uint")
FLOAT = ScalarArg("float")
BOOL = ScalarArg("bool")
NONE = NoneArg()


class DictEnvironment:
    """Captured names by name; tack, math, np and the builtins are there. Functions are given as text."""

    def __init__(self, names: dict[str, Any] | None = None) -> None:
        self.names = {key: self.meaning(key, value) for key, value in (names or {}).items()}
        self.asked: list[str] = []

    def meaning(self, name: str, value: Any) -> Meaning:
        if isinstance(value, (bool, int, float)):
            return Constant(value)
        if isinstance(value, tuple):
            return TupleMeaning(tuple(self.meaning(name, item) for item in value))
        if isinstance(value, str):  # the text of a @tack.func
            return FuncMeaning(source(value, name), self, (name, value))
        if isinstance(value, types.DType):
            return DTypeMeaning(value)
        if value is None:
            return Opaque("none", "None")
        return value

    def lookup(self, name: str) -> Meaning | None:
        if name[0] == ":":  # a parameter's annotation, ":n:tack:u8"
            _, _, *path = name.split(":")
            meaning = self.lookup(path[0]) if path else Opaque("none", "None")
            for attribute in path[1:]:
                meaning = self.attribute(meaning, attribute) if isinstance(meaning, ModuleMeaning) else meaning
            return meaning
        self.asked.append(name)
        known = self.names.get(name)
        if known is not None:
            return known
        if name in ("tack", "math", "np"):
            return {"tack": TACK, "math": MATH, "np": NUMPY}[name]
        return Intrinsic(name, "builtins") if name in BUILTINS else None

    def attribute(self, module: ModuleMeaning, name: str) -> Meaning | None:
        if module is TACK and name in FUNCTIONS:
            return DTypeMeaning(types.by_name(name)) if name[1:].isdigit() else Intrinsic(name, "tack")
        if module is MATH and hasattr(math, name):
            value = getattr(math, name)
            return Constant(value) if isinstance(value, float) else Intrinsic(name, "math")
        if module is NUMPY:
            if name in ("float32", "float64", "int32", "int64", "uint8"):
                return DTypeMeaning(
                    types.by_name({"float": "f", "int": "i", "uint": "u"}[name.rstrip("0123456789")] + name.lstrip("uintfloa"))
                )
            if name in FUNCTIONS or name in NUMPY_NAMES or name in ("maximum", "minimum"):
                return Intrinsic(name, "numpy")
            if name == "pi":
                return Constant(math.pi)
        if isinstance(module.value, dict):
            return module.value.get(name)
        return None


def source(text: str, name: str = "k", file: str = "/x/kernels.py", line: int = 10) -> FunctionSource:
    return FunctionSource(name, name, file, line, textwrap.dedent(text).strip("\n") + "\n")


def kernel(text: str, *args: ArgType, target: Target = CPU, **names: Any) -> Kernel:
    """Infers the kernel ``k`` in ``text`` for the argument types, and verifies the result."""
    result = infer(parse(source(text)), args, DictEnvironment(names), target, {})
    verify(result)
    return result
