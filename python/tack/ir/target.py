"""What the compiler knows of the device it compiles for: plain data, filled from the runtime's capabilities."""

from __future__ import annotations

from dataclasses import dataclass

from ..types import DType

__all__ = ["Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """Mirrors tack::Capabilities. ``title`` is how messages call the backend ("CPU", "Metal", "Level Zero")."""

    backend: str
    title: str
    arch: str
    array_dtypes: frozenset[DType]
    atomic_dtypes: frozenset[DType]
    supports_f64: bool
    supports_workgroups: bool
    supports_images: bool
    block: int = 256  # threads of a group where the kernel does not say
    max_group: int = 0  # the most threads of a group; 0: the device has no groups
    shared_bytes: int = 0  # memory that a group's threads share
    max_buffers: int = 0  # that a kernel binds: one for each array, one for all scalars; 0: no limit
    vector_bits: int = 0
    simd: int = 0  # TACK_CPU_SIMD or @kernel(simd=): 0 lets the printer choose
    debug: bool = False
