"""What the arguments of a call are (types, kinds, devices), and the messages for those that a kernel cannot take."""

from __future__ import annotations

import sys

from ._runtime import ABSENT, Device
from .arrays import Array, as_dtype, check_numpy, wrap_numpy
from .devices import as_device, unsupported_dtype
from .sharing import borrowed, is_tensor
from .textures import Texture3D
from .types import ArraySpec, DType, by_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Never

    from ._runtime import Target

__all__ = ["Argument", "check_dtypes", "classify", "place", "raise_bad_call"]


class Argument:
    """The type of one argument: all of it that a specialization depends on.

    ``kind``: "array" (then ``dtype``, ``rank``, ``layout``, ``read_only``), "texture" (then ``reading``, its interp and wrap, and
    ``hardware``: texture units hold it), "int", "uint", "float", "bool" (weak scalars), "strong" (a NumPy scalar of ``dtype``) or "none".
    ``device`` is that of an array or texture, None for a spec.
    """

    __slots__ = ("device", "dtype", "hardware", "kind", "layout", "rank", "read_only", "reading")

    def __init__(
        self,
        kind: str,
        dtype: DType | None = None,
        rank: int = 0,
        layout: int = 0,
        read_only: bool = False,
        device: Device | None = None,
        reading: tuple[str, str] = ("", ""),
        hardware: bool = False,
    ) -> None:
        self.kind = kind
        self.dtype = dtype
        self.rank = rank
        self.layout = layout
        self.read_only = read_only
        self.device = device
        self.reading = reading
        self.hardware = hardware

    def token(self) -> str:
        """The type as text, for the key."""
        if self.kind == "array":
            assert self.dtype is not None
            return f"a{self.dtype.name},{self.rank},{int(self.layout)}{'r' if self.read_only else ''}"
        if self.kind == "texture":
            return f"texture:{','.join(self.reading)}{',hardware' if self.hardware else ''}"
        return f"{self.kind}:{self.dtype.name}" if self.dtype is not None else self.kind

    def __str__(self) -> str:
        """The type as messages show it: "tack.f32[:, :]", "int"."""
        if self.kind == "array":
            assert self.dtype is not None
            return f"{self.dtype}[{', '.join(':' * self.rank)}]"
        return (
            str(self.dtype)
            if self.kind == "strong"
            else {"none": "None", "uint": "int", "texture": "tack.texture3d"}.get(self.kind, self.kind)
        )


def classify(kernel: str, name: str, value: Any) -> Argument:
    """The type of the argument ``value`` of parameter ``name``. Raises TypeError, ValueError or OverflowError naming both."""
    if isinstance(value, Array):
        return Argument("array", value.dtype, value.ndim, value.layout, value.read_only, value.device)
    if value is None:
        return Argument("none")
    kind = type(value)
    if kind is bool:
        return Argument("bool")
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.ndarray):
            return _classify_numpy(kernel, name, value)
        if isinstance(value, numpy.generic):
            if isinstance(value, numpy.bool_):
                return Argument("bool")
            try:
                return Argument("strong", as_dtype(value.dtype))
            except TypeError:
                raise TypeError(f"{_where(kernel, name)} is a NumPy scalar of dtype {value.dtype}, which kernels do not know") from None
    if isinstance(value, int):
        if -(1 << 63) <= value < 1 << 63:
            return Argument("int")
        if 0 <= value < 1 << 64:
            return Argument("uint")
        raise OverflowError(f"{_where(kernel, name)}: the int {value} does not fit 64 bits")
    if isinstance(value, float):
        return Argument("float")
    if isinstance(value, Texture3D):
        return Argument("texture", device=value.device, reading=(value.interp, value.wrap), hardware=value.hardware)
    if isinstance(value, ArraySpec):
        return Argument("array", value.dtype, value.rank, value.layout, value.read_only)
    if is_tensor(value):
        return _classify_tensor(kernel, name, value)
    raise TypeError(f"{_where(kernel, name)} {_not_an_argument(value)}")


def _classify_tensor(kernel: str, name: str, value: Any) -> Argument:
    """Another library's array, used in place on the device whose memory it has."""
    try:
        array = borrowed(value)
    except (TypeError, ValueError, BufferError) as error:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise type(error)(f"{_where(kernel, name)} is a {kind} that cannot be used in place: {error}") from None
    return Argument("array", by_name(array.dtype_name), array.ndim, array.layout, array.read_only, array.device)


def _classify_numpy(kernel: str, name: str, value: Any) -> Argument:
    """A NumPy array counts as an array on the CPU, in place."""
    try:
        dtype = as_dtype(value.dtype)
    except TypeError:
        raise TypeError(
            f"{_where(kernel, name)} is a NumPy array of dtype {value.dtype}, which kernels do not know: convert it with astype()"
        ) from None
    check_numpy(value, _where(kernel, name))
    if value.ndim > 8:
        raise ValueError(f"{_where(kernel, name)} has {value.ndim} dimensions; arrays have at most 8")
    cpu = as_device("cpu")
    layout = wrap_numpy(value, cpu).layout  # the runtime's own word: the dispatcher's keys have it
    return Argument("array", dtype, value.ndim, layout, not value.flags.writeable, cpu)


def _where(kernel: str, name: str) -> str:
    return f"Kernel '{kernel}': parameter '{name}'"


def _not_an_argument(value: Any) -> str:
    """Why ``value`` cannot be an argument, and what to pass instead."""
    kind = type(value)
    named = f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else kind.__qualname__
    if isinstance(value, (list, tuple)):
        return f"is a {named}: pass an array, tack.array(...)"
    if isinstance(value, (str, bytes)):
        return f"is a {named}, which kernels cannot take: pass a number, or tack.array(...) of numbers"
    if isinstance(value, DType) or kind.__name__ == "dtype" or isinstance(value, type):
        return f"is a type ({value!r}): a dtype is no argument; let the kernel capture it as a global"
    if hasattr(value, "__array__"):
        return f"is a {named}: pass tack.array(...) or tack.asarray(...) of it"
    if callable(value):
        return f"is a function ({named}): functions are captured by name, not passed"
    if isinstance(value, complex):
        return "is complex, which kernels cannot take: pass real and imaginary part"
    return f"is a {named}, which kernels cannot take: pass arrays, ints, floats, bools or None"


def check_dtypes(kernel: str, names: Sequence[str], arguments: Sequence[Argument], device: Device | Target) -> None:
    """Refuses arrays of a dtype that ``device`` does not support, before anything is compiled."""
    known = device.array_dtypes
    for name, argument in zip(names, arguments, strict=True):
        if argument.kind == "array" and argument.dtype is not None and argument.dtype.name not in known:
            raise TypeError(f"{_where(kernel, name)} has dtype {unsupported_dtype(argument.dtype, device)}")


def place(kernel: str, names: Sequence[str], arguments: Sequence[Argument], values: Sequence[Any]) -> Device:
    """The device that a call runs on: the default one if it can address all arrays, else the first array's.

    Raises ValueError where no one device can address all of them.
    """
    default = as_device(None)
    first: Argument | None = None
    everything = True
    for argument in arguments:
        if argument.device is None:
            continue
        first = first or argument
        everything = everything and default.can_address(argument.device)
    if first is None or everything:
        return default
    home = first.device
    assert home is not None
    for name, argument, value in zip(names, arguments, values, strict=True):
        if argument.device is not None and not home.can_address(argument.device):
            if isinstance(value, Texture3D):
                cure = f"make the texture {name!r} of an array on {str(home)!r}"
            elif isinstance(value, Array):
                cure = f"move one with to_device(), e.g. {name}.to_device({str(home)!r})"
            else:
                cure = f"copy the NumPy array {name!r} with tack.array(..., device={str(home)!r})"
            raise ValueError(f"Kernel '{kernel}': its arrays are on two devices, {home} and {argument.device} (parameter '{name}'): {cure}")
    return home


def raise_bad_call(
    kernel: str,
    names: Sequence[str],
    defaults: Sequence[Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    positional_only: int = 0,
    keyword_only: int = 0,
) -> Never:
    """Raises the TypeError for a call whose arguments do not fit the parameters, in Python's manner; for wrong kinds, classify's error.

    ``defaults``: of the last parameters, ABSENT meaning none. The first ``positional_only`` take no keyword, the last ``keyword_only``
    nothing else.
    """
    most = len(names) - keyword_only
    optional = {name for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True) if value is not ABSENT}
    without = [name for name in names[:positional_only] if name in kwargs]
    if without:
        raise TypeError(f"{kernel}() got some positional-only arguments passed as keyword arguments: '{', '.join(without)}'")
    for key in kwargs:
        if key not in names:
            raise TypeError(f"{kernel}() got an unexpected keyword argument '{key}'; its parameters are {', '.join(names)}")
        if key in names[: min(len(args), most)]:
            raise TypeError(f"{kernel}() got multiple values for argument '{key}'")
    if len(args) > most:
        raise TypeError(_too_many(kernel, most, sum(name not in optional for name in names[:most]), len(args), names[most:], kwargs))
    bound: dict[str, Any] = {**dict(zip(names, args, strict=False)), **kwargs}
    for kind, group in (("positional", names[:most]), ("keyword-only", names[most:])):
        missing = [name for name in group if name not in bound and name not in optional]
        if missing:
            raise TypeError(f"{kernel}() missing {len(missing)} required {kind} argument{_s(len(missing))}: {_listed(missing)}")
    problems: dict[str, Exception] = {}
    for name, value in bound.items():
        try:
            classify(kernel, name, value)
        except (TypeError, ValueError, OverflowError) as error:
            problems[name] = error
    if not problems:
        raise TypeError(f"{kernel}() cannot take these arguments:\n{_table(bound, problems)}")
    first = next(iter(problems.values()))
    if len(bound) == 1:
        raise first
    raise type(first)(f"{first}\n{_table(bound, problems)}")


def _too_many(kernel: str, most: int, required: int, given: int, keyword_only: Sequence[str], kwargs: dict[str, Any]) -> str:
    takes, several = (f"from {required} to {most}", True) if required < most else (f"{most}", most != 1)
    named = sum(name in kwargs for name in keyword_only)
    also = f" positional argument{_s(given)} (and {named} keyword-only argument{_s(named)})" if named else ""
    verb = "was" if given == 1 and not named else "were"
    return f"{kernel}() takes {takes} positional argument{'s' if several else ''} but {given}{also} {verb} given"


def _listed(names: Sequence[str]) -> str:
    """As Python lists them: 'a', 'b', and 'c'."""
    quoted = list(map(repr, names))
    if len(quoted) < 3:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _table(bound: dict[str, Any], problems: dict[str, Exception]) -> str:
    """All arguments with their types, the bad ones marked."""
    width = max(map(len, bound))
    rows = []
    for name, value in bound.items():
        if name in problems:
            rows.append(f"  > {name:<{width}}  {type(value).__name__}  <- not accepted")
        else:
            rows.append(f"    {name:<{width}}  {classify('', name, value)}")
    return "\n".join(rows)
