"""What a captured name can mean in a kernel, and the environment that the compiler asks. Implemented by tack.capture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ..types import DType, Layout

__all__ = [
    "ArgType",
    "ArrayArg",
    "Constant",
    "DTypeMeaning",
    "Environment",
    "FuncMeaning",
    "FunctionSource",
    "Intrinsic",
    "Meaning",
    "ModuleMeaning",
    "NoneArg",
    "Opaque",
    "ScalarArg",
    "TextureArg",
    "TupleMeaning",
]


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """The text of a kernel or device function, as found without parsing. ``line`` is the 1-based line of its first line in ``file``.

    ``text`` keeps the original indentation. ``options`` are the decorator's.
    """

    name: str
    qualname: str
    file: str
    line: int
    text: str
    options: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """A number: weak when ``dtype`` is None (int, float, bool), else strong (a NumPy scalar, tack.constant)."""

    value: int | float | bool
    dtype: DType | None = None


@dataclass(frozen=True, slots=True)
class TupleMeaning:
    items: tuple[Meaning, ...]


@dataclass(frozen=True, slots=True)
class DTypeMeaning:
    dtype: DType


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A function that the compiler knows: "sqrt", "atomic_add", "ndrange", "barrier", ...

    ``origin``: "tack", "math", "numpy", "builtins".
    """

    name: str
    origin: str


@dataclass(frozen=True, slots=True)
class FuncMeaning:
    """A @tack.func: its source and the environment of its own captured names.

    ``identity`` tells equal ones apart (for recursion, caching). ``defaults``: what its parameters' defaults were when the def ran.
    """

    source: FunctionSource
    environment: Environment
    identity: object
    defaults: tuple[tuple[str, Meaning], ...] = ()


@dataclass(frozen=True, slots=True)
class ModuleMeaning:
    """A module or class whose attributes are asked for through Environment.attribute."""

    name: str
    value: object


@dataclass(frozen=True, slots=True)
class Opaque:
    """Anything that has no meaning in kernels.

    ``kind``: "array", "function" (a plain Python function), "callable" (one without Python text), "kernel", "none", "str", "other".
    """

    kind: str
    description: str  # "numpy.ndarray", "a list", ...


Meaning: TypeAlias = Constant | TupleMeaning | DTypeMeaning | Intrinsic | FuncMeaning | ModuleMeaning | Opaque


class Environment(Protocol):
    """The captured names of one function."""

    def lookup(self, name: str) -> Meaning | None:
        """What a free name means (closure, globals, builtins), or None if it is bound nowhere."""

    def attribute(self, module: ModuleMeaning, name: str) -> Meaning | None:
        """What ``module.name`` means, or None if there is no such attribute."""


@dataclass(frozen=True, slots=True)
class ArrayArg:
    dtype: DType
    rank: int
    layout: Layout = Layout.CONTIGUOUS
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class ScalarArg:
    """kind: "int" "uint" "float" "bool" (weak) or "strong" with a dtype."""

    kind: str
    dtype: DType | None = None


@dataclass(frozen=True, slots=True)
class TextureArg:
    """A 3-D texture: contiguous f32 texels, and what ``textures`` knows of how they are read. ``hardware``: the device's texture units hold
    it as well."""

    interp: str
    wrap: str
    hardware: bool = False


@dataclass(frozen=True, slots=True)
class NoneArg:
    pass


ArgType: TypeAlias = ArrayArg | ScalarArg | TextureArg | NoneArg
