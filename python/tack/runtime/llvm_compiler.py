"""Compiles LLVM IR to object code, assembly or optimised IR: the only place that imports llvmlite."""

from __future__ import annotations

import threading
from typing import Any

from ..errors import CompileError

__all__ = ["compile_ir"]

_lock = threading.Lock()
_ready: Any = None
# Instructions of a straight piece of code beyond which LLVM's scheduler and register allocator would take time that grows with its
# square (minutes for 60,000): such code goes through its fast path, in time that grows with its length.
_LONG_BLOCK = 6_000


def _llvm() -> Any:
    """llvmlite.binding, with the native target ready."""
    global _ready
    if _ready is None:
        try:
            import llvmlite.binding as binding
        except ImportError as error:
            raise RuntimeError(
                f"Cannot compile for the 'cpu' device: missing dependency.\n  {error}\n  Requires llvmlite:\n    pip install llvmlite"
            ) from error
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        _ready = binding
    return _ready


def compile_ir(name: str, llvm_ir: str, arch: str, optimize: int, output: str) -> bytes:
    """``output``: "object" (a relocatable object, PIC, small code model), "assembly" or "ir" (after the passes), the latter as UTF-8.

    ``arch`` is LLVM's CPU name, features may follow: "x86-64-v4", "generic+sve". ``optimize``: 0 to 3. Thread-safe, one at a time.
    Raises CompileError with LLVM's message if the text is not valid, ValueError for an unknown output.
    """
    if output not in ("object", "assembly", "ir"):
        raise ValueError(f"output must be 'object', 'assembly' or 'ir', not {output!r}")
    with _lock:
        llvm = _llvm()
        cpu, _, features = arch.partition("+")
        target = llvm.Target.from_default_triple()
        extra = ",".join(f"+{f}" for f in features.split("+") if f)
        level = optimize if _longest_block(llvm_ir) <= _LONG_BLOCK else 0
        machine = target.create_target_machine(cpu=cpu, features=extra, opt=level, reloc="pic", codemodel="small")
        context = llvm.create_context()  # its types and constants go with it
        try:
            with _parsed(llvm, name, llvm_ir, context) as module:
                module.triple = machine.triple
                module.data_layout = str(machine.target_data)
                if optimize:
                    _optimize(llvm, module, machine, optimize)
                if output == "ir":
                    return str(module).encode()
                if output == "assembly":
                    text: str = machine.emit_assembly(module)
                    return text.encode()
                code: bytes = machine.emit_object(module)
                return code
        finally:
            context.close()


def _longest_block(llvm_ir: str) -> int:
    """Instructions of the longest straight piece of code."""
    longest = length = 0
    for line in llvm_ir.splitlines():
        length = length + 1 if line.startswith(" ") else 0
        if length > longest:
            longest = length
    return longest


def _parsed(llvm: Any, name: str, llvm_ir: str, context: Any) -> Any:
    """The module, checked; a context manager."""
    try:
        module = llvm.parse_assembly(llvm_ir, context)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"Kernel '{name}': LLVM does not take the generated code: {error}", kernel=name) from error
    return module


def _optimize(llvm: Any, module: Any, machine: Any, optimize: int) -> None:
    """LLVM's simplification of functions; no vectoriser, no unrolling but of tiny loops: lanes are explicit in the text.

    Measured on ten kernels of 40 lines and on stencils: as fast as code from the whole -O2 pipeline, in two thirds of its time.
    """
    tuning = llvm.create_pipeline_tuning_options(speed_level=max(1, optimize - 1))
    builder = llvm.create_pass_builder(machine, tuning)
    passes = builder.getFunctionPassManager()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
