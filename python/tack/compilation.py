"""tack.compile: a kernel for types and a target, without arguments and without the device."""

from __future__ import annotations

from . import _runtime
from .arguments import Argument, classify
from .arrays import as_dtype
from .devices import as_device
from .kernels import kernel_function
from .types import DType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._runtime import Device, Target
    from .ir.source import ArgumentSpec, EntryPoint, HostStep, KernelSource, RecordSite

__all__ = ["CompiledKernel", "compile"]

_WEAK = {int: "int", float: "float", bool: "bool"}


class CompiledKernel:
    """What tack.compile answers: a kernel as its target's compiler has it, and all that a host needs to launch it.

    Attributes: ``name``; ``target`` ("cuda:sm_90"); ``source``, the text that the target's compiler got; ``binary``, what it made of that.
    The others are those of tack::KernelSource (kernel.hpp), with enumerators by their names: ``options``, what the compiler was told;
    ``arguments``, ``entries`` and ``steps``: what a call takes, the functions of the binary with their parameters, and the launches of a
    call; ``scratch_bytes``: memory that a
    call needs beside its arguments; ``result_type`` and ``result_offset``: of a returned scalar, which lies there (None, and -1 where
    nothing is returned); ``sites``: what it may report.
    """

    __slots__ = ("_made", "binary", "target")

    def __init__(self, source: KernelSource, binary: bytes) -> None:
        self._made = source
        self.binary = binary
        self.target = f"{source.target}:{source.arch}"

    @property
    def name(self) -> str:
        return self._made.name

    @property
    def source(self) -> str:
        return self._made.text

    @property
    def options(self) -> str:
        return self._made.options

    @property
    def arguments(self) -> tuple[ArgumentSpec, ...]:
        return tuple(self._made.arguments)

    @property
    def entries(self) -> tuple[EntryPoint, ...]:
        return tuple(self._made.entries)

    @property
    def steps(self) -> tuple[HostStep, ...]:
        from .ir.source import HostStep

        return tuple(map(HostStep.of, self._made.steps))

    @property
    def scratch_bytes(self) -> int:
        return self._made.scratch_bytes

    @property
    def result_type(self) -> DType | None:
        return self._made.result_type

    @property
    def result_offset(self) -> int:
        return self._made.result_offset

    @property
    def sites(self) -> tuple[RecordSite, ...]:
        return tuple(self._made.sites)

    def __repr__(self) -> str:
        return f"<tack.compile() of '{self.name}' for {self.target}, {len(self.binary)} bytes>"


def compile(kernel: Any, *specs: Any, target: str | Device, **kwargs: Any) -> CompiledKernel:
    """``kernel`` for arguments like ``specs``, for a device that need not be there. Launches nothing; the disk cache is left alone.

    ``specs`` stand where a call has arguments: array types (``tack.f32[:, :]``), types of scalars (``int``, ``float``, ``bool``, or
    ``tack.i16`` for a NumPy scalar of that type), None, or arguments themselves, of which the types count. ``target`` is a type of
    device with an architecture, ``"cuda:sm_90"``, or a device that is there (``"cuda"``, ``"cuda:1"``, ``"cpu"``).

    Raises what the call raises about types and capabilities, CompileError about the kernel, ValueError for an unknown target, and
    RuntimeError where the target's compiler is not installed. Blocks while it compiles; the GIL is released.
    """
    from .compiler import compile_source

    function = kernel_function(kernel)
    values = function.bind(specs, kwargs)
    arguments = tuple(_argument(function.name, name, value) for name, value in zip(function.names, values, strict=True))
    special = function.specialization(arguments, _target(target))
    source = compile_source(function, special)
    return CompiledKernel(source, _runtime.compile(source))


def _target(target: str | Device) -> Device | Target:
    """The capabilities that code is compiled for: of an architecture, or of a device that is there."""
    if isinstance(target, str):
        kind, colon, arch = target.partition(":")
        if colon and not arch.isdecimal():
            return _runtime.describe(kind, arch)
    return as_device(target)


def _argument(kernel: str, name: str, value: Any) -> Argument:
    """The argument type that a spec or an example means."""
    if isinstance(value, type) and value in _WEAK:
        return Argument(_WEAK[value])
    if isinstance(value, DType):
        return Argument("strong", value)
    if isinstance(value, type) and value.__module__ == "numpy":
        return Argument("strong", as_dtype(value))
    return classify(kernel, name, value)
