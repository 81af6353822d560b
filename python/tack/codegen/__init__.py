"""Code generation: typed IR to a KernelSource for a target."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import UnsupportedError
from ..ir.nodes import Kernel
from ..ir.source import EntryPoint, KernelSource
from ..ir.target import Target
from ..types import DType
from .c_printer import Text, print_text
from .dialects import dialect_of
from .llvm_module import Module, print_module
from .llvm_text import identifier
from .lower import MathLibrary
from .machine import NO_FMA
from .params import argument_specs, plan

__all__ = ["MathLibrary", "build_source"]

_ADDRESSES = frozenset({"pointer", "scratch", "records"})  # words that are buffers of their own where kernels bind buffers


def build_source(kernel: Kernel, target: Target, math: MathLibrary) -> KernelSource:
    """Lowers and prints ``kernel``. ``math(name, dtype)`` answers the typed body of a function of tack's math library.

    Changes nothing in ``kernel``. The same kernel and target give the same text in every process.
    Raises CompileNotImplementedError for what the code generator does not do, UnsupportedError for more arrays than the target binds.
    """
    dialect = dialect_of(target.backend)
    if dialect is None and target.backend != "cpu":
        raise UnsupportedError(f"Kernel '{kernel.name}': no code generator for {target.title}", kernel=kernel.name)
    contract = not kernel.options.get("exact") and target.arch not in NO_FMA
    planned = plan(kernel, f"tack_{identifier(kernel.name)}", math, contract, target.debug)
    module: Module | Text
    options = ""
    if dialect is None:
        module = print_module(kernel.name, planned, target, kernel.options, math)
    else:
        module = print_text(kernel.name, planned, target, kernel.options, math, dialect)
        options = dialect.options(bool(kernel.options.get("fast_math")))
    if target.max_buffers:
        _check_buffers(kernel.name, module.entries, target)
    result: DType | None = kernel.result.type if kernel.result is not None else None
    return KernelSource(
        name=kernel.name,
        target=target.backend,
        arch=target.arch,
        text=module.text,
        options=options,
        arguments=argument_specs(kernel),
        entries=module.entries,
        steps=planned.steps,
        scratch_bytes=planned.scratch_bytes,
        result_type=result,
        result_offset=planned.result_offset,
        simd=module.lanes if isinstance(module, Module) else 1,
        sites=planned.sites,
    )


def _check_buffers(name: str, entries: Iterable[EntryPoint], target: Target) -> None:
    """Refuses a kernel one of whose entries binds too many buffers: one for each address, and one for all numbers together."""
    for entry in entries:
        kinds = {slot.kind for slot in entry.params}
        needed = sum(slot.kind in _ADDRESSES for slot in entry.params) + bool(kinds - _ADDRESSES - {"texture"})
        if needed > target.max_buffers:
            raise UnsupportedError(
                f"Kernel '{name}' needs {needed} buffers, one for each array and one for all scalars; the limit on {target.title} is "
                f"{target.max_buffers}. Put several arrays into one, or split the kernel.",
                kernel=name,
            )
