"""How arrays lie in memory: strides of new shapes, and what Array.flags says."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .arrays import Array

__all__ = ["Flags", "reshaped_strides", "row_major"]


class Flags:
    """``Array.flags``: ``c_contiguous`` (row-major without gaps), ``f_contiguous`` (column-major), ``contiguous`` (either), ``writeable``,
    ``aligned`` (always True), ``owndata`` (False where the memory is shared with another library). ``flags["WRITEABLE"]`` is the same.
    """

    __slots__ = ("aligned", "c_contiguous", "contiguous", "f_contiguous", "owndata", "writeable")

    def __init__(self, array: Array) -> None:
        self.c_contiguous = array.layout == 0
        self.f_contiguous = array.size == 0 or _is_column_major(array)
        self.contiguous = self.c_contiguous or self.f_contiguous
        self.writeable = not array.read_only
        self.aligned = True
        self.owndata = not array.shared

    def __getitem__(self, name: str) -> bool:
        if not isinstance(name, str) or name.lower() not in self.__slots__:
            raise KeyError(f"unknown flag {name!r}: there are {', '.join(self.__slots__)}")
        return bool(getattr(self, name.lower()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flags) and all(self[name] == other[name] for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "\n".join(f"  {name.upper()} : {self[name]}" for name in self.__slots__)


def _is_column_major(array: Array) -> bool:
    step = array.itemsize
    for length, stride in zip(array.shape, array.strides, strict=True):
        if length > 1 and stride != step:
            return False
        step *= length
    return True


def reshaped_strides(shape: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...], itemsize: int) -> tuple[int, ...] | None:
    """Strides that show memory of ``shape`` and ``strides`` as ``new`` (of the same size) without moving an element, or None."""
    if 0 in new:
        return row_major(new, itemsize)
    old = [(length, stride) for length, stride in zip(shape, strides, strict=True) if length != 1]
    # Runs of dimensions that are one another's continuation count as one long dimension each: (length, innermost stride).
    runs: list[tuple[int, int]] = []
    for length, stride in old:
        if runs and runs[-1][1] == length * stride:
            runs[-1] = (runs[-1][0] * length, stride)
        else:
            runs.append((length, stride))
    result: list[int] = [0] * len(new)
    left = step = 1
    for axis in range(len(new) - 1, -1, -1):
        length = new[axis]
        if length == 1:
            result[axis] = itemsize
            continue
        if left == 1:
            left, step = runs.pop()
        if left % length:
            return None
        result[axis] = step
        left, step = left // length, step * length
    return tuple(result)


def row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides, in bytes, of an array without gaps."""
    strides = []
    step = itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(1, length)
    return tuple(reversed(strides))
