"""What a name or an expression can be during inference: a number (constant or computed), an array, a tuple, a range, ..."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..ir.nodes import Array, Instr, Loc, ScratchArray, Var
from ..types import BOOL, DType, by_name
from .meaning import DTypeMeaning, FuncMeaning, Intrinsic, ModuleMeaning, Opaque

__all__ = [
    "NONE",
    "REFUSED",
    "W_FLOAT",
    "W_INT",
    "W_UINT",
    "ArrayRef",
    "Binding",
    "Flat",
    "NoneValue",
    "Num",
    "Piece",
    "RangeValue",
    "Reduced",
    "Refused",
    "Sampler",
    "Shape",
    "Text",
    "Texture",
    "Thing",
    "Tuple",
    "Type",
    "Unusable",
    "Weak",
    "describe",
    "type_text",
]


class Weak:
    """The type of a number that takes the dtype it meets. ``rank`` orders them: int, uint (above 2^63-1), float."""

    __slots__ = ("is_float", "name", "rank")

    def __init__(self, name: str, rank: int, is_float: bool) -> None:
        self.name = name
        self.rank = rank
        self.is_float = is_float

    def __repr__(self) -> str:
        return f"weak {self.name}"


W_INT = Weak("int", 0, False)
W_UINT = Weak("uint", 1, False)
W_FLOAT = Weak("float", 2, True)

Type: TypeAlias = DType | Weak


class Num:
    """A number. Constants have ``const`` and no instruction: one is made wherever, and in the type that, it is used.

    ``param``: the index of the scalar parameter that this is, unchanged (its range is checked where it meets a narrower type), or -1.
    ``index``: a loop index, a shape or a length: an i64 that becomes u64 where it meets u64.
    """

    __slots__ = ("const", "index", "instr", "param", "type")

    def __init__(
        self, type: Type, instr: Instr | None = None, const: int | float | bool | None = None, param: int = -1, index: bool = False
    ) -> None:
        self.type = type
        self.instr = instr
        self.const = const
        self.param = param
        self.index = index


class ArrayRef:
    __slots__ = ("array", "dtype", "name", "rank")

    def __init__(self, array: Array, name: str) -> None:
        self.array = array
        self.name = name
        self.dtype = array.dtype
        self.rank = len(array.shape) if isinstance(array, ScratchArray) else array.rank


class Texture:
    """A texture argument: its texels, and how they are read. ``hardware``: by the device's texture units."""

    __slots__ = ("hardware", "interp", "sampler", "texels", "wrap")

    def __init__(self, texels: ArrayRef, interp: str, wrap: str, hardware: bool) -> None:
        self.texels = texels
        self.interp = interp
        self.wrap = wrap
        self.hardware = hardware
        self.sampler = Sampler(self)


class Sampler:
    """``tex.sample``. ``direct``: what the texture units themselves take and give."""

    __slots__ = ("direct", "texture")

    def __init__(self, texture: Texture, direct: bool = False) -> None:
        self.texture = texture
        self.direct = direct


class Flat:
    """``a.flat``."""

    __slots__ = ("ref",)

    def __init__(self, ref: ArrayRef) -> None:
        self.ref = ref


class Shape:
    """``a.shape``: a tuple of lengths, each asked for when it is used."""

    __slots__ = ("ref",)

    def __init__(self, ref: ArrayRef) -> None:
        self.ref = ref


class Reduced:
    """A name that a parallel loop reduces into, inside the loop: every iteration's contributions go to ``var``."""

    __slots__ = ("type", "var")

    def __init__(self, type: Type, var: Var) -> None:
        self.type = type
        self.var = var


class Tuple:
    """``depth``: how many tuples lie inside one another."""

    __slots__ = ("depth", "items")

    def __init__(self, items: tuple[Thing, ...]) -> None:
        self.items = items
        self.depth: int = 1 + max((item.depth for item in items if isinstance(item, Tuple)), default=0)


class RangeValue:
    """What range(), tack.ndrange() (``bounds`` of 1 to 4 dimensions) and tack.sequential() give to a for loop."""

    __slots__ = ("bounds", "kind")

    def __init__(self, kind: str, bounds: tuple[tuple[Num, Num, Num], ...]) -> None:
        self.kind = kind
        self.bounds = bounds  # (start, stop, step) each


class Text:
    """A string of a message, in pieces: plain text, and numbers with their format specifications."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        self.pieces = pieces


class NoneValue:
    __slots__ = ()


NONE = NoneValue()


class Refused:
    """What an operation gives that was refused in a pass over a loop's body which may not be the last one."""

    __slots__ = ()


REFUSED = Refused()


@dataclass(eq=False, slots=True)
class Unusable:
    """What a name is where it has no one value; the error is raised where it is read.

    kind: "unbound" (on some path), "private" (bound in a parallel loop before), "conflict" (types that don't join),
    "elsewhere" (a local array of another loop).
    """

    kind: str
    loc: Loc
    text: str = ""
    hint: str = ""


Piece: TypeAlias = "str | tuple[Num, str]"
Value: TypeAlias = (
    "Num | ArrayRef | Texture | Sampler | Flat | Shape | Reduced | Tuple | RangeValue | Text | NoneValue | Unusable | Refused"
)
Thing: TypeAlias = "Value | DTypeMeaning | Intrinsic | FuncMeaning | ModuleMeaning | Opaque"


class Binding:
    """What a name is bound to, and where."""

    __slots__ = ("loc", "thing")

    def __init__(self, thing: Thing, loc: Loc) -> None:
        self.thing = thing
        self.loc = loc


def type_text(type: Type) -> str:
    """A type as messages call it."""
    if isinstance(type, Weak):
        return "a Python float" if type.is_float else "a Python int"
    return "a bool" if type == BOOL else str(type)


def describe(thing: Thing) -> str:
    """What a thing is, with its article, for messages."""
    if isinstance(thing, Num):
        text = type_text(thing.type)
        return text if text.startswith("a ") else f"a {text} value"
    if isinstance(thing, ArrayRef):
        return f"the array '{thing.name}'"
    if isinstance(thing, Texture):
        return f"the texture '{thing.texels.name}'"
    if isinstance(thing, Sampler):
        return f"'{thing.texture.texels.name}.sample'"
    if isinstance(thing, Flat):
        return f"'{thing.ref.name}.flat'"
    if isinstance(thing, Tuple):
        return f"a tuple of {len(thing.items)}"
    if isinstance(thing, Shape):
        return f"'{thing.ref.name}.shape'"
    if isinstance(thing, RangeValue):
        return "a range" if thing.kind == "range" else f"tack.{thing.kind}(...)"
    if isinstance(thing, Text):
        return "a string"
    if isinstance(thing, NoneValue):
        return "None"
    if isinstance(thing, DTypeMeaning):
        return f"the dtype {thing.dtype}"
    if isinstance(thing, Intrinsic):
        return f"the function '{thing.name}'"
    if isinstance(thing, FuncMeaning):
        return f"the function '{thing.source.name}'"
    if isinstance(thing, ModuleMeaning):
        return f"the module '{thing.name}'"
    if isinstance(thing, Opaque):
        return thing.description
    return "a name without a value"


def canonical(dtype: DType) -> DType:
    """The one object of a dtype, so that types can be compared by identity."""
    return by_name(dtype.name)
