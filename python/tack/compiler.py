"""From a specialization to a KernelSource: the one place that joins front end and code generator. Imported only where something is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _runtime
from .devices import title_of
from .environment import environment_of, function_source
from .frontend.meaning import ArgType, ArrayArg, NoneArg, ScalarArg
from .frontend.parse import captured_names, parse
from .ir.target import Target
from .types import BOOL, Layout, by_name

if TYPE_CHECKING:
    from ._runtime import Device
    from .arguments import Argument
    from .capture import Paths
    from .ir.nodes import Kernel
    from .ir.source import KernelSource
    from .kernels import KernelFunction, Specialization
    from .source_text import SourceText

__all__ = ["assemble", "captured_paths", "compile_source", "ir_text", "target_of"]


def captured_paths(source: SourceText, kernel: str) -> Paths:
    """The dotted paths that a function's text takes from outside. Raises CompileError for text that is no kernel code."""
    names = captured_names(parse(function_source(source), kernel=kernel))
    return tuple(tuple(name.split(".")) for name in names)


def target_of(device: Device) -> Target:
    """What the compiler needs to know of a device."""
    return Target(
        backend=device.type,
        title=title_of(device.type),
        arch=device.arch,
        array_dtypes=frozenset(map(by_name, device.array_dtypes)),
        atomic_dtypes=frozenset(map(by_name, device.atomic_dtypes)),
        supports_f64=device.supports_f64,
        supports_workgroups=device.supports_workgroups,
        supports_images=device.supports_images,
        block=device.block,
        vector_bits=device.vector_bits,
        simd=int(_runtime.config_get("TACK_CPU_SIMD")),
        debug=_runtime.config_get("TACK_DEBUG") not in ("0", "false"),
    )


def _argument_type(argument: Argument) -> ArgType:
    if argument.kind == "array":
        assert argument.dtype is not None
        return ArrayArg(argument.dtype, argument.rank, Layout(argument.layout), argument.read_only)
    if argument.kind == "none":
        return NoneArg()
    return ScalarArg(argument.kind, BOOL if argument.kind == "bool" else argument.dtype)
