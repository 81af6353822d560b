"""From a specialization to a KernelSource: joins front end and code generator. Imported only where something is compiled."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from . import _runtime
from .codegen import build_source
from .codegen.dialects import dialect_of
from .devices import title_of
from .environment import environment_of, function_source
from .frontend.infer import infer
from .frontend.meaning import ArgType, ArrayArg, NoneArg, ScalarArg, TextureArg
from .frontend.parse import captured_names, parse
from .ir.target import Target
from .ir.text import to_text
from .mathlink import math
from .types import BOOL, Layout, by_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._runtime import Device
    from ._runtime import Target as Described
    from .arguments import Argument
    from .capture import Paths
    from .ir.nodes import Kernel
    from .ir.source import KernelSource
    from .kernels import KernelFunction, Specialization
    from .source_text import SourceText

OPTIMIZE = 2  # the level that the runtime asks for

__all__ = ["OPTIMIZE", "assemble", "captured_paths", "compile_source", "ir_text", "target_of", "uncollected"]


def captured_paths(source: SourceText, kernel: str) -> Paths:
    """The dotted paths that a function's text takes from outside. Raises CompileError for text that is no kernel code."""
    names = captured_names(parse(function_source(source), kernel=kernel))
    return tuple(tuple(name.split(".")) for name in names)


def target_of(device: Device | Described, debug: bool = False) -> Target:
    """What the compiler needs to know of a device, and whether kernels check."""
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
        max_group=device.max_group,
        shared_bytes=device.shared_bytes,
        max_buffers=device.max_buffers,
        vector_bits=device.vector_bits,
        simd=int(_runtime.config_get("TACK_CPU_SIMD")),
        debug=debug,
    )


@contextmanager
def uncollected() -> Iterator[None]:
    """Holds off the collector of cyclic garbage. A compile makes many objects and no cycles: the collector would look at all of them
    again and again, for more than half of the time of a large kernel. Several threads may do so at a time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _argument_type(argument: Argument) -> ArgType:
    if argument.kind == "array":
        assert argument.dtype is not None
        return ArrayArg(argument.dtype, argument.rank, Layout(argument.layout), argument.read_only)
    if argument.kind == "texture":
        return TextureArg(*argument.reading, argument.hardware)
    if argument.kind == "none":
        return NoneArg()
    return ScalarArg(argument.kind, BOOL if argument.kind == "bool" else argument.dtype)


def _infer(function: KernelFunction, special: Specialization) -> Kernel:
    """The typed IR of a specialization. Raises CompileError about the user's text."""
    source = function_source(function.source, function.options)
    arguments = [_argument_type(argument) for argument in special.arguments]
    return infer(
        parse(source, kernel=function.name),
        arguments,
        environment_of(special.captures),
        target_of(special.device, special.debug),
        dict(function.options),
    )


def ir_text(function: KernelFunction, special: Specialization) -> str:
    """The typed IR as text."""
    return to_text(_infer(function, special))


def compile_source(function: KernelFunction, special: Specialization) -> KernelSource:
    """What the runtime builds the kernel from."""
    with uncollected():
        return build_source(_infer(function, special), target_of(special.device, special.debug), math)


def assemble(source: KernelSource, mode: str) -> str:
    """The compiler's answer as text: ``mode`` "optimized" (after its passes) or "asm". GPUs' compilers have one such text for both."""
    dialect = dialect_of(source.target)
    if dialect is not None:
        if dialect.readable is None:
            title = title_of(source.target)
            raise ValueError(f"tack.inspect() has no mode {mode!r} on {title}: its compiler writes no text. 'ir' and 'source' are there.")
        readable = replace(source, arch=dialect.readable(source.arch))
        return _runtime.compile(readable).rstrip(b"\0").decode("utf-8", "replace")
    from .runtime.llvm_compiler import compile_ir

    output = "ir" if mode == "optimized" else "assembly"
    return compile_ir(source.name, source.text, source.arch, OPTIMIZE, output).decode("utf-8", "replace")
