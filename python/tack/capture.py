"""What a function captures: the values behind its free names, as text for the key and as guards for the dispatcher.

All of a kernel's meaning that is not its own text comes through here, its helpers' captures included. Nothing of the compiler is
imported, so that a process whose kernels are all in the disk cache never loads it.
"""

from __future__ import annotations

import sys

from ._runtime import ABSENT
from .funcs import Func
from .intrinsics import WORKGROUP, IntrinsicFunction
from .types import DType, by_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType
    from typing import Any, TypeAlias

    from .source_text import SourceText

    Path: TypeAlias = tuple[str, ...]
    Paths: TypeAlias = tuple[Path, ...]
    Guard: TypeAlias = tuple[Any, str | None, Any]

__all__ = ["MISSING", "Captured", "Captures", "builtin_name", "capture", "dtype_named", "numpy_function"]

MISSING = object()
_TRUSTED = frozenset(("tack", "math", "numpy", "builtins"))  # modules whose attributes stay what they are


class Captured:
    """The captured names of one function: ``values`` by dotted path ("np", "np.float32" as tuples), MISSING where bound nowhere.

    ``defaults``: those of a func's parameters, by name; a kernel's are arguments like any others.
    """

    __slots__ = ("defaults", "function", "index", "paths", "source", "values")

    def __init__(self, index: int, function: FunctionType, source: SourceText, paths: Paths) -> None:
        self.index = index
        self.function = function
        self.source = source
        self.paths = paths
        self.values: dict[Path, Any] = {}
        self.defaults: dict[str, Any] = _defaults(function) if index else {}


class Captures:
    """All that a kernel captures, through its funcs at any depth.

    ``functions``: the kernel first, then the funcs it reaches. ``tokens``: all texts and values, for the key. ``guards``: what the
    dispatcher checks at every call. ``workgroup``: the workgroup functions that are named anywhere, with the function that names them.
    """

    __slots__ = ("_guarded", "_indices", "functions", "guards", "tokens", "workgroup")

    def __init__(self) -> None:
        self.functions: list[Captured] = []
        self.tokens: list[str] = []
        self.guards: list[Guard] = []
        self.workgroup: dict[str, str] = {}
        self._indices: dict[Func, int] = {}
        self._guarded: set[tuple[int, str | None]] = set()

    def of(self, function: Func) -> Captured:
        """The captured names of a func that was reached."""
        return self.functions[self._indices[function]]

    def guard(self, place: Any, name: str | None, value: Any) -> None:
        """Has ``place`` (a namespace, a cell, an object) checked for still having ``value``."""
        if (id(place), name) not in self._guarded:
            self._guarded.add((id(place), name))
            self.guards.append((place, name, value))

    def index_of(self, function: Func) -> int:
        """The number of a func, which is new or was reached before: funcs may call one another in circles."""
        known = self._indices.get(function)
        if known is None:
            known = self._indices[function] = self.reserve(function.function, function.source)
        return known

    def reserve(self, function: FunctionType, source: SourceText) -> int:
        self.functions.append(Captured(len(self.functions), function, source, ()))
        return len(self.functions) - 1


def capture(function: FunctionType, source: SourceText, paths_of: Callable[[SourceText], Paths]) -> Captures:
    """Resolves the free names of ``function`` and of the funcs that it reaches.

    ``paths_of`` answers the dotted paths that a source text names; it raises CompileError for text that is no kernel code.
    """
    captures = Captures()
    captures.reserve(function, source)
    done = 0
    while done < len(captures.functions):  # grows as funcs are found
        captured = captures.functions[done]
        captured.paths = paths_of(captured.source)
        captures.tokens.append(captured.source.text)
        for path in captured.paths:
            value = _resolve(captures, captured, path)
            captures.tokens.append(f"{'.'.join(path)}={_token(captures, captured, value)}")
        for name, value in captured.defaults.items():
            captures.tokens.append(f"{name}:={_token(captures, captured, value)}")
        done += 1
    return captures


def _defaults(function: FunctionType) -> dict[str, Any]:
    code = function.__code__
    values = function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**dict(zip(names, values, strict=True)), **(function.__kwdefaults__ or {})}


def _resolve(captures: Captures, captured: Captured, path: Path) -> Any:
    """The value of a dotted path; the values of all its prefixes are recorded as well. Stops at the first that is no module or class."""
    value = _root(captures, captured, path[0])
    captured.values[path[:1]] = value
    for length in range(2, len(path) + 1):
        if not is_namespace(value):
            return value
        owner, name = value, path[length - 1]
        value = _attribute(owner, name)
        captured.values[path[:length]] = value
        if getattr(owner, "__name__", "") not in _TRUSTED:
            captures.guard(owner, name, ABSENT if value is MISSING else value)
    return value


def is_namespace(value: Any) -> bool:
    """Whether attributes of ``value`` have a meaning in kernels: it is a module, or a class that is no type of numbers."""
    if isinstance(value, type(sys)):
        return True
    return isinstance(value, type) and value.__module__ not in ("builtins", "numpy")


def _annotation(captures: Captures, captured: Captured, name: str) -> Any:
    """What a parameter's annotation says: a dtype; None where that is no dtype; MISSING where only an enclosing function knew it.

    ``name``: the parameter and the annotation's dotted name, if it is one, as ":n:tack:u8".
    """
    _, parameter, *path = name.split(":")
    text = ".".join(path)
    try:
        value = captured.function.__annotations__.get(parameter, text)
    except NameError:  # where annotations are evaluated when they are asked for, from names that only type checkers see
        value = text
    if isinstance(value, str):  # the annotation's own text, with its quotes, or a string that it led to
        if not path or "".join(value.split()).strip("'\"") != text:
            return None
        value = _resolve(captures, captured, tuple(path))
        if value is MISSING and path[0] not in _names_around(captured.function):
            return None
    return value if value is MISSING or isinstance(value, DType) else dtype_named(value)


def _names_around(function: FunctionType) -> set[str]:
    """The local names of the functions around one, as far as these can be found: "make.<locals>.k" stands in make."""
    first, *inner = function.__qualname__.split(".<locals>.")[:-1] or [""]
    outer: Any = function.__globals__.get(first.partition(".")[0])
    for name in first.split(".")[1:]:
        outer = getattr(outer, name, None)
    while hasattr(outer, "__wrapped__"):
        outer = outer.__wrapped__
    code = getattr(outer, "__code__", None)
    names: set[str] = set()
    for name in (*inner, ""):
        if code is None:
            break
        names.update(code.co_varnames, code.co_cellvars)
        code = next((c for c in code.co_consts if getattr(c, "co_name", None) == name), None)
    return names


def _root(captures: Captures, captured: Captured, name: str) -> Any:
    if name[0] == ":":
        return _annotation(captures, captured, name)
    function = captured.function
    free = function.__code__.co_freevars
    if name in free:
        cell = (function.__closure__ or ())[free.index(name)]
        try:
            value = cell.cell_contents
        except ValueError:  # not bound yet
            captures.guard(cell, None, ABSENT)
            return MISSING
        captures.guard(cell, None, value)
        return value
    namespace = function.__globals__
    if name in namespace:
        captures.guard(namespace, name, namespace[name])
        return namespace[name]
    captures.guard(namespace, name, ABSENT)  # a global that is bound later hides the builtin
    builtins = namespace.get("__builtins__", {})
    if not isinstance(builtins, dict):
        builtins = builtins.__dict__
    return builtins.get(name, MISSING)


def _attribute(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        return MISSING


def _token(captures: Captures, captured: Captured, value: Any) -> str:
    """``value`` as text: equal texts mean the same in a kernel."""
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"({','.join(_token(captures, captured, item) for item in value)})"
    if isinstance(value, DType):
        return f"dtype {value.name}"
    if isinstance(value, IntrinsicFunction):
        if value.__name__ in WORKGROUP:
            captures.workgroup.setdefault(value.__name__, captured.source.name)
        return f"tack {value.__name__}"
    if isinstance(value, Func):
        return f"func {captures.index_of(value)}"
    builtin = builtin_name(value)
    if builtin is not None:
        return f"{builtin[0]} {builtin[1]}"
    named = dtype_named(value)
    if named is not None:
        return f"dtype {named.name}"
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return f"{value.dtype.str} {value.tobytes().hex()}"
    if isinstance(value, int):
        return f"int {int(value)}"
    if isinstance(value, float):
        return f"float {float(value).hex()}"
    if value is MISSING:
        return "missing"
    if is_namespace(value):
        return f"namespace {value.__name__}"
    return f"opaque {kind.__module__}.{kind.__qualname__}"


def builtin_name(value: Any) -> tuple[str, str] | None:
    """(module, name) of a function of Python's builtins, of math or of NumPy that kernels may know: ("math", "sqrt")."""
    kind = type(value).__name__
    if kind == "builtin_function_or_method" or kind == "type":
        module, name = getattr(value, "__module__", None), str(getattr(value, "__name__", ""))
        if module in ("builtins", "math") and getattr(sys.modules.get(module), name, None) is value:
            return module, name
        if kind == "type":
            return None
    return numpy_function(value)


def numpy_function(value: Any) -> tuple[str, str] | None:
    """("numpy", "sqrt") for a NumPy ufunc or function."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    name = getattr(value, "__name__", None)
    if isinstance(value, numpy.ufunc) or (
        callable(value) and getattr(value, "__module__", None) == "numpy" and not isinstance(value, type)
    ):
        # By identity, so that a user's own ufunc called "exp" is not taken for NumPy's.
        return ("numpy", name) if isinstance(name, str) and getattr(numpy, name, None) is value else None
    return None


_NUMPY_DTYPES = {
    "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64",
    "float32": "f32", "float64": "f64", "bool": "bool",
}  # fmt: skip


def dtype_named(value: Any) -> DType | None:
    """The tack dtype that a NumPy dtype or scalar type stands for."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(value, numpy.dtype):
        name = value.name if value.isnative else ""
    elif isinstance(value, type) and issubclass(value, numpy.generic):
        try:
            name = numpy.dtype(value).name
        except TypeError:  # an abstract type, numpy.floating
            return None
    else:
        return None
    known = _NUMPY_DTYPES.get(name)
    return None if known is None else by_name(known)
