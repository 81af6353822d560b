"""KernelSource: what the compiler hands to the runtime. Mirrors tack::KernelSource (kernel.hpp) field by field."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..types import DType, Layout
from .nodes import Extent

__all__ = [
    "INTERPOLATIONS", "WRAPS", "ArgumentSpec", "EntryPoint", "ExtentTerm", "HostStep", "KernelSource", "ParamSlot", "RecordSite", "Step",
    "reading",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParamSlot:
    """One 64-bit word of an entry's parameter block. kind: pointer shape stride scalar extent start step sequence scratch records
    texture."""

    kind: str
    arg: int = 0
    dim: int = 0
    dtype: str = "i64"  # of a scalar: "f32" has its bits in the low 32


@dataclass(slots=True)
class EntryPoint:
    symbol: str
    params: list[ParamSlot]
    rank: int = 1
    cost_hint: float = -1.0  # estimated ns per iteration; negative: unknown
    alone: str = ""  # CPU, of an entry with atomics: the same without locked instructions, for a launch that no other one updates beside
    locked_cost: float = 1.0  # of such an entry: how many times as long an iteration takes with locked instructions, by estimate
    group: int = 0  # GPUs: threads of a group; 0 is the device's `block`
    whole_groups: bool = False  # GPUs: an iteration is a whole group; else the grid is ceil(iterations / group) groups


@dataclass(slots=True)
class Step:
    """kind: launch sequence_begin sequence_end check (launches nothing: a loop's own ranges, for limits and messages;
    ``entry`` is one whose ``group`` the limit is taken for)."""

    kind: str
    entry: int = 0
    start: list[Extent] = field(default_factory=list)
    stop: list[Extent] = field(default_factory=list)
    step: list[Extent] = field(default_factory=list)
    match: int = 0


class ExtentTerm(NamedTuple):
    """As tack::ExtentTerm, field by field."""

    op: str
    dim: int
    arg: int
    value: int


class HostStep(NamedTuple):
    """As tack::Step, field by field, for whoever writes it down for a host: an extent is a list of terms."""

    kind: str
    entry: int
    start: list[list[ExtentTerm]]
    stop: list[list[ExtentTerm]]
    step: list[list[ExtentTerm]]
    match: int

    @classmethod
    def of(cls, made: Step) -> HostStep:
        return cls(made.kind, made.entry, _terms(made.start), _terms(made.stop), _terms(made.step), made.match)


def _terms(extents: list[Extent]) -> list[list[ExtentTerm]]:
    return [[ExtentTerm(op, dim, arg, value) for op, arg, dim, value in extent.terms] for extent in extents]


@dataclass(slots=True)
class ArgumentSpec:
    """kind: array integer unsigned floating boolean none strong."""

    name: str
    kind: str
    dtype: DType
    rank: int = 0
    layout: Layout = Layout.CONTIGUOUS
    read_only: bool = False
    written: bool = False
    min: int = -(1 << 63)
    max: int = (1 << 63) - 1
    texture: int = 0  # of an array that comes in a texture, how that is read: ``reading``


INTERPOLATIONS: Final = ("linear", "nearest")
WRAPS: Final = ("clamp", "repeat", "mirror")


def reading(interp: str, wrap: str, hardware: bool) -> int:
    """How a texture is read, as tack::Texture::reading() has it: a number from 1 on. ``hardware``: the device's texture units hold it."""
    return 1 + INTERPOLATIONS.index(interp) * len(WRAPS) + WRAPS.index(wrap) + (6 if hardware else 0)


@dataclass(frozen=True, slots=True)
class RecordSite:
    """A place that reports something while the kernel runs. kind: print assertion index. ``text``: as ``records.filled`` reads it."""

    kind: str
    text: str
    values: tuple[DType, ...] = ()
    file: str = ""
    line: int = 0


@dataclass(slots=True)
class KernelSource:
    name: str
    target: str
    arch: str
    text: str
    options: str
    arguments: list[ArgumentSpec]
    entries: list[EntryPoint]
    steps: list[Step]
    scratch_bytes: int = 0
    result_type: DType | None = None
    result_offset: int = -1
    simd: int = 1
    sites: list[RecordSite] = field(default_factory=list)
