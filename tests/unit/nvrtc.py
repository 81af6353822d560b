"""The real NVRTC through ctypes, for tests: where it is, and what it says about a text."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unit import units

OPTIONS = ("--fmad=false", "--std=c++17", "-default-device")


@functools.cache
def library() -> Any:
    """NVRTC from NVIDIA's wheel (nvidia-cuda-nvrtc), or None."""
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec is not None else ():
        for path in sorted(Path(root).glob("*/lib/libnvrtc.so.*"), reverse=True):
            if "builtins" not in path.name and "alt" not in path.name:
                return ctypes.CDLL(str(path))
    return None


def joined(texts: Sequence[str]) -> str:
    """Several kernels as one text, each in a namespace: the compiler's start costs more than a kernel."""
    return "\n".join(f"namespace kernel{k} {{\n{text}\n}}" for k, text in enumerate(t.replace('extern "C" ', "") for t in texts))


def refused(texts: Sequence[str], arch: str, options: Sequence[str] = ()) -> list[str]:
    """What NVRTC says about those texts that it refuses."""

    def said(unit: Sequence[str]) -> str:
        try:
            compile_text(joined(unit), arch, options)
        except AssertionError as error:
            return f"{arch}: {error}"
        return ""

    return units.refused(texts, said)


def compile_text(text: str, arch: str, options: Sequence[str] = ()) -> tuple[bytes, str]:
    """The PTX or cubin of a text, and the compiler's log. Raises AssertionError with the log where the text is refused."""
    nvrtc = library()
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None) == 0
    try:
        given = [f"--gpu-architecture={arch}", *OPTIONS, *options]
        array = (ctypes.c_char_p * len(given))(*(o.encode() for o in given))
        code = nvrtc.nvrtcCompileProgram(program, len(given), array)
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        nvrtc.nvrtcGetProgramLog(program, log)
        said = log.value.decode("utf-8", "replace")
        assert code == 0, said[:4000]
        kind = "PTX" if arch.startswith("compute_") else "CUBIN"
        assert getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)) == 0
        binary = ctypes.create_string_buffer(size.value)
        assert getattr(nvrtc, f"nvrtcGet{kind}")(program, binary) == 0
        return binary.raw, said
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
