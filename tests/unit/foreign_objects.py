"""Kernels in another system's object format, linked by LLVM as on that system: on x86-64 Linux their code runs here. For child processes.

Mach-O code follows the same calling convention as Linux. COFF code does so where its entry points say so; what it calls inside does not
matter, and of the outside it may call what `_windows_imports` has.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import re
import weakref
from typing import Any

from tack import _runtime
from tack.runtime.llvm_compiler import compile_ir, link_object

TRIPLES = {"mach-o": "x86_64-apple-macosx11.0", "coff": "x86_64-pc-windows-msvc"}
MAGIC = {"mach-o": b"\xcf\xfa\xed\xfe", "coff": b"\x64\x86"}

compiled: list[str] = []  # names of kernels
linked: list[str] = []
owners: list[weakref.ref[Any]] = []  # what keeps each kernel's code in memory


# Windows grows a stack page by page, and has its code touch each: `__chkstk`. Here it has nothing to do.
_nothing = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
_nothing[0] = 0xC3  # ret

_THUNKS = """
declare x86_64_sysvcc ptr @memset(ptr, i32, i64)
declare x86_64_sysvcc ptr @memcpy(ptr, ptr, i64)
define ptr @windows_memset(ptr %to, i32 %byte, i64 %count) {
  %r = call x86_64_sysvcc ptr @memset(ptr %to, i32 %byte, i64 %count)
  ret ptr %r
}
define ptr @windows_memcpy(ptr %to, ptr %from, i64 %count) {
  %r = call x86_64_sysvcc ptr @memcpy(ptr %to, ptr %from, i64 %count)
  ret ptr %r
}
"""


@functools.cache
def _windows_imports(memset: int, memcpy: int) -> tuple[dict[str, int], object]:
    """What code with Windows' calling convention may call, and what keeps it."""
    triple = TRIPLES["coff"]
    code = compile_ir("thunks", _THUNKS, "x86-64", 0, "object", triple)
    imports = {"memset": memset, "memcpy": memcpy}
    addresses, owner = link_object("thunks", code, ["windows_memset", "windows_memcpy"], imports, triple)
    chkstk = ctypes.addressof(ctypes.c_char.from_buffer(_nothing))
    return dict(zip(("memset", "memcpy", "__chkstk"), [*addresses, chkstk], strict=True)), owner


def install(form: str) -> None:
    """From here on the process compiles to ``form`` and links that."""
    triple = TRIPLES[form]

    def compile_foreign(name: str, text: str, arch: str, optimize: int, output: str) -> bytes:
        compiled.append(name)
        if form == "coff":
            text = re.sub(r"^define void @", "define x86_64_sysvcc void @", text, flags=re.MULTILINE)
        code = compile_ir(name, text, arch, optimize, output, triple)
        assert output != "object" or code.startswith(MAGIC[form])
        return code

    def link_foreign(name: str, code: bytes, functions: list[str], imports: dict[str, int]) -> tuple[list[int], object]:
        linked.append(name)
        assert code.startswith(MAGIC[form])
        if form == "coff":
            imports, _ = _windows_imports(imports["memset"], imports["memcpy"])
        addresses, owner = link_object(name, code, functions, imports, triple)
        owners.append(weakref.ref(owner))
        return addresses, owner

    _runtime.set_cpu_compiler(compile_foreign)
    _runtime.set_object_linker(link_foreign)
