"""The compiler's view of captured values: implements frontend.meaning.Environment over what tack.capture has resolved.

Imported only where a kernel is compiled, never on a hit of the disk cache.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from .capture import MISSING, Captured, Captures, builtin_name, dtype_named, is_namespace
from .frontend.meaning import Constant, DTypeMeaning, FuncMeaning, FunctionSource, Intrinsic, Meaning, ModuleMeaning, Opaque, TupleMeaning
from .funcs import Func
from .intrinsics import IntrinsicFunction
from .source_text import SourceText
from .types import DType

__all__ = ["CapturedEnvironment", "environment_of", "function_source"]


def function_source(source: SourceText, options: tuple[tuple[str, object], ...] = ()) -> FunctionSource:
    """A source text as the front end takes it."""
    return FunctionSource(source.name, source.qualname, source.file, source.line, source.text, options)


def environment_of(captures: Captures) -> CapturedEnvironment:
    """The environment of the kernel itself."""
    return CapturedEnvironment(captures, captures.functions[0])


class CapturedEnvironment:
    """The captured names of one function, exactly as they entered the key."""

    def __init__(self, captures: Captures, captured: Captured) -> None:
        self._captures = captures
        self._values = captured.values
        # Where a module or class was reached: attributes are answered from what was resolved, so that the key covers them.
        self._attributes = {(id(captured.values[path[:-1]]), path[-1]): value for path, value in captured.values.items() if len(path) > 1}

    def lookup(self, name: str) -> Meaning | None:
        """What a free name means, or None if it is bound nowhere."""
        value = self._values[(name,)]
        return None if value is MISSING else self._meaning(value)

    def attribute(self, module: ModuleMeaning, name: str) -> Meaning | None:
        """What ``module.name`` means, or None if there is no such attribute."""
        value = self._attributes[(id(module.value), name)]
        return None if value is MISSING else self._meaning(value)

    def _meaning(self, value: Any) -> Meaning:
        if isinstance(value, bool):
            return Constant(value)
        if isinstance(value, tuple):
            return TupleMeaning(tuple(self._meaning(item) for item in value))
        if isinstance(value, DType):
            return DTypeMeaning(value)
        if isinstance(value, IntrinsicFunction):
            return Intrinsic(value.__name__, "tack")
        if isinstance(value, Func):
            captured = self._captures.of(value)
            environment = CapturedEnvironment(self._captures, captured)
            defaults = tuple((name, self._meaning(default)) for name, default in captured.defaults.items())
            return FuncMeaning(function_source(value.source), environment, value, defaults)
        builtin = builtin_name(value)
        if builtin is not None:
            return Intrinsic(builtin[1], builtin[0])
        dtype = dtype_named(value)
        if dtype is not None:
            return DTypeMeaning(dtype)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.generic):
            strong = dtype_named(value.dtype)
            number = value.item()
            if strong is not None and isinstance(number, (bool, int, float)):
                return Constant(number, strong) if strong.code != "b" else Constant(number)
        elif isinstance(value, (int, float)):
            return Constant(int(value) if isinstance(value, int) else float(value))
        if is_namespace(value):
            return ModuleMeaning(value.__name__, value)
        return Opaque(_opaque_kind(value), _described(value))


def _opaque_kind(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, (str, bytes)):
        return "str"
    if isinstance(value, type):
        return "other"
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"):
        numpy = sys.modules.get("numpy")
        return "other" if numpy is not None and isinstance(value, numpy.generic) else "array"
    if type(value).__name__ == "Dispatcher" and type(value).__module__.startswith("tack"):
        return "kernel"
    if isinstance(getattr(value, "__func__", value), types.FunctionType):
        return "function"
    return "callable" if callable(value) else "other"


def _described(value: Any) -> str:
    kind = type(value)
    if isinstance(value, type):
        return f"the class {value.__module__}.{value.__qualname__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"{value.__name__}()"
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return "None" if value is None else f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
