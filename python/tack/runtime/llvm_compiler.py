"""Compiles LLVM IR to object code, assembly or optimised IR, and links Mach-O and COFF: the only place that imports llvmlite."""

from __future__ import annotations

import struct
import threading
from typing import Any

from ..errors import CompileError

__all__ = ["compile_ir", "link_object"]

_lock = threading.Lock()
_ready: Any = None


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


def compile_ir(name: str, llvm_ir: str, arch: str, optimize: int, output: str, triple: str | None = None) -> bytes:
    """``output``: "object" (a relocatable object, position-independent), "assembly" or "ir" (after the passes), the latter two as UTF-8.

    ``arch`` is a name of Tack's ("aarch64") or LLVM's ("x86-64-v4"), features may follow: "aarch64+sve". ``optimize``: 0 to 3. ``triple``
    is the machine's own unless given. Thread-safe, one at a time. Raises CompileError with LLVM's message if the text is not valid,
    ValueError for an unknown output.
    """
    if output not in ("object", "assembly", "ir"):
        raise ValueError(f"output must be 'object', 'assembly' or 'ir', not {output!r}")
    with _lock:
        llvm = _llvm()
        cpu, _, features = arch.partition("+")
        target = llvm.Target.from_triple(triple or llvm.get_default_triple())
        extra = ",".join(f"+{f}" for f in features.split("+") if f)
        machine = target.create_target_machine(
            cpu="generic" if cpu == "aarch64" else cpu,
            features=extra,
            opt=optimize,
            reloc="pic",
            # LLVM's linkers make no stubs for these, and the system's libraries lie too far away for plain calls.
            codemodel="large" if _is_apple(target.triple) or _is_windows(target.triple) else "small",
        )
        context = llvm.create_context()  # its types and constants go with it
        try:
            with _parsed(llvm, name, llvm_ir, context) as module:
                module.triple = machine.triple
                module.data_layout = str(machine.target_data)
                if _is_windows(target.triple):  # LLVM's linker cannot place unwind tables, and nothing unwinds through kernels
                    for function in module.functions:
                        function.add_function_attribute("nounwind")
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


def link_object(
    name: str, code: bytes, functions: list[str], imports: dict[str, int], triple: str | None = None
) -> tuple[list[int], object]:
    """Links an object of ``compile_ir`` for the same ``triple`` into this process, which for ELF the runtime does itself.

    Answers the addresses of ``functions`` in their order, and an object that owns the code: once it is dropped they must not be called.
    ``imports`` are the addresses of all that the object may use of the outside. Thread-safe, one at a time. Raises CompileError with LLVM's
    message for an object that is damaged, lacks a function, or uses something else.
    """
    with _lock:
        llvm = _llvm()
        target = llvm.Target.from_triple(triple or llvm.get_default_triple())
        if _is_windows(target.triple):  # of this format LLVM takes what is missing for a function at address 0
            for symbol in _undefined_in_coff(code):
                if symbol not in imports:
                    raise CompileError(f"Kernel '{name}': its machine code uses '{symbol}', which the runtime does not offer", kernel=name)
        # Of LLVM's two linkers the older one ends the process over COFF (an assertion on symbols' flags), and the newer one needs for
        # Mach-O a support library that llvmlite does not have. Each takes a fraction of a millisecond to make, and frees all with itself.
        jit = llvm.create_lljit_compiler(target.create_target_machine(), use_jit_link=not _is_apple(target.triple), suppress_errors=True)
        library = llvm.JITLibraryBuilder().add_object_img(code)
        for symbol, address in imports.items():
            library.import_symbol(symbol, address)
        for function in functions:
            library.export_symbol(function)
        try:
            owner = library.link(jit, "kernel")
        except RuntimeError as error:
            raise CompileError(f"Kernel '{name}': LLVM does not link its machine code: {error}", kernel=name) from error
        return [owner[function] for function in functions], owner  # which keeps the linker, too


def _undefined_in_coff(code: bytes) -> list[str]:
    """Names that a COFF object uses and does not define; as far as they can be read in one that is damaged."""
    names = []
    try:
        table, count = struct.unpack_from("<II", code, 8)
        strings = table + 18 * count
        index = 0
        while index < count:
            short, value, section, _, storage, auxiliary = struct.unpack_from("<8sIhHBB", code, table + 18 * index)
            if section == 0 and value == 0 and storage == 2:  # IMAGE_SYM_UNDEFINED, IMAGE_SYM_CLASS_EXTERNAL
                zeros, offset = struct.unpack("<II", short)
                name = short if zeros else code[strings + offset : code.index(0, strings + offset)]
                names.append(name.rstrip(b"\0").decode())
            index += 1 + auxiliary
    except (struct.error, ValueError):  # LLVM will say what is wrong
        pass
    return [name for name in names if name != "_fltused"]  # that one only says that there are floats


def _is_apple(triple: str) -> bool:
    """Whether objects are Mach-O."""
    return "-apple-" in triple


def _is_windows(triple: str) -> bool:
    """Whether objects are COFF."""
    return "-windows-" in triple


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
