"""Intel's real offline compiler, libocloc, through ctypes, for tests: where it is, and what it says about a text."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_ubyte, c_uint32, c_uint64
from typing import Any

from unit import units


@functools.cache
def library() -> Any:
    """libocloc (Debian: intel-opencl-icd; newer: libocloc1 or intel-ocloc), or None."""
    for name in ("libocloc.so", "libocloc.so.1"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def joined(texts: Sequence[str]) -> str:
    """Several kernels as one text: the compiler's start costs more than a kernel. All that a text defines has a name of the printer's."""
    return "\n".join(re.sub(r"\btack_", f"tack_{k}_", text) for k, text in enumerate(texts))


def refused(texts: Sequence[str], device: str, options: str = "") -> list[str]:
    """What ocloc says about those texts that it refuses."""

    def said(unit: Sequence[str]) -> str:
        code, log = compile_text(joined(unit), device, options)
        return f"{device}: {log or 'refused'}" if code is None else ""

    return units.refused(texts, said)


def compile_text(text: str, device: str, options: str = "") -> tuple[bytes | None, str]:
    """The SPIR-V of a text, or None where it is refused; and the compiler's log."""
    ocloc = library()
    arguments = ["ocloc", "compile", "-q", "-file", "kernel.cl", "-device", device, "-output_no_suffix", "-output", "kernel", "-spv_only"]
    arguments += ["-options", options] if options else []
    argv = (c_char_p * len(arguments))(*(a.encode() for a in arguments))
    source = text.encode() + b"\0"
    count, data, sizes, names = c_uint32(), POINTER(POINTER(c_ubyte))(), POINTER(c_uint64)(), POINTER(c_char_p)()
    outputs = byref(count), byref(data), byref(sizes), byref(names)
    inputs = (c_char_p * 1)(source), (c_uint64 * 1)(len(source)), (c_char_p * 1)(b"kernel.cl")
    result = ocloc.oclocInvoke(len(arguments), argv, 1, *inputs, 0, None, None, None, *outputs)
    files = {names[k].decode(): bytes(data[k][: sizes[k]]) for k in range(count.value)}  # type: ignore[union-attr]
    assert ocloc.oclocFreeOutput(*outputs) == 0
    log = files.get("stdout.log", b"").decode("utf-8", "replace").rstrip("\0")
    return (files.get("kernel.spv") if result == 0 else None), log[:4000]
