"""A small client of the CUDA driver and NVRTC by ctypes, for the tests of the stand-ins themselves: no tack in it."""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from ctypes import byref, c_char_p, c_float, c_int, c_long, c_longlong, c_size_t, c_uint, c_ulonglong, c_void_p
from pathlib import Path
from typing import Any

import standins

# CUresult of the driver's manual, without CUDA_ERROR_.
ERRORS = {
    0: "SUCCESS",
    1: "INVALID_VALUE",
    2: "OUT_OF_MEMORY",
    3: "NOT_INITIALIZED",
    100: "NO_DEVICE",
    101: "INVALID_DEVICE",
    200: "INVALID_IMAGE",
    201: "INVALID_CONTEXT",
    209: "NO_BINARY_FOR_GPU",
    222: "UNSUPPORTED_PTX_VERSION",
    400: "INVALID_HANDLE",
    500: "NOT_FOUND",
    600: "NOT_READY",
    700: "ILLEGAL_ADDRESS",
    701: "LAUNCH_OUT_OF_RESOURCES",
    709: "CONTEXT_IS_DESTROYED",
    710: "ASSERT",
    716: "MISALIGNED_ADDRESS",
    719: "LAUNCH_FAILED",
    801: "NOT_SUPPORTED",
}


class DriverError(Exception):
    """A driver call did not succeed; the first argument is the short name of its result."""


class CompileError(Exception):
    """NVRTC refused a program: its result and its log."""


class Nvrtc:
    """NVRTC, as far as the tests need it."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(os.environ["TACK_LIBNVRTC"])

    def _text(self, program: c_void_p, what: str) -> bytes:
        size = c_size_t()
        getattr(self.library, f"nvrtcGet{what}Size")(program, byref(size))
        out = ctypes.create_string_buffer(max(size.value, 1))
        getattr(self.library, f"nvrtcGet{what}")(program, out)
        return out.raw[: size.value]

    def compile(self, text: str, *options: str, arch: str = "sm_90", what: str = "CUBIN", name: str = "kernel.py") -> bytes:
        program = c_void_p()
        assert self.library.nvrtcCreateProgram(byref(program), text.encode(), name.encode(), 0, None, None) == 0
        given = [f"--gpu-architecture={arch}".encode(), b"--fmad=false", *(o.encode() for o in options)]
        result = self.library.nvrtcCompileProgram(program, len(given), (c_char_p * len(given))(*given))
        log = self._text(program, "ProgramLog").rstrip(b"\0").decode()
        image = b"" if result else self._text(program, what)
        assert self.library.nvrtcDestroyProgram(byref(program)) == 0
        if result:
            raise CompileError(result, log)
        return image

    def counters(self) -> dict[str, Any]:
        return _counters(self.library)


class Gpu:
    """A device's primary context, current on this thread, and calls that raise DriverError."""

    def __init__(self, ordinal: int = 0, current: bool = True) -> None:
        self.library = ctypes.CDLL(os.environ["TACK_LIBCUDA"])
        self.nvrtc = Nvrtc()
        self.context = c_void_p()
        self.ordinal = ordinal
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", byref(self.context), ordinal)
        if current:
            self.call("cuCtxSetCurrent", self.context)

    def result(self, name: str, *arguments: Any) -> str:
        code = getattr(self.library, name)(*arguments)
        return ERRORS.get(code, str(code))

    def call(self, name: str, *arguments: Any) -> None:
        result = self.result(name, *arguments)
        if result != "SUCCESS":
            raise DriverError(result, name)

    def alloc(self, size: int) -> int:
        pointer = c_ulonglong()
        self.call("cuMemAlloc_v2", byref(pointer), c_size_t(size))
        return pointer.value

    def free(self, pointer: int) -> None:
        self.call("cuMemFree_v2", c_ulonglong(pointer))

    def pinned(self, size: int) -> int:
        pointer = c_void_p()
        self.call("cuMemAllocHost_v2", byref(pointer), c_size_t(size))
        assert pointer.value is not None
        return pointer.value

    def upload(self, values: list[Any], kind: Any = c_float) -> int:
        array = (kind * len(values))(*values)
        pointer = self.alloc(ctypes.sizeof(array))
        self.call("cuMemcpyHtoD_v2", c_ulonglong(pointer), array, c_size_t(ctypes.sizeof(array)))
        return pointer

    def download(self, pointer: int, count: int, kind: Any = c_float) -> list[Any]:
        array = (kind * count)()
        self.call("cuMemcpyDtoH_v2", array, c_ulonglong(pointer), c_size_t(ctypes.sizeof(array)))
        return list(array)

    def module(self, image: bytes) -> c_void_p:
        module = c_void_p()
        self.call("cuModuleLoadData", byref(module), image)
        return module

    def function(self, module: c_void_p, name: str) -> c_void_p:
        function = c_void_p()
        self.call("cuModuleGetFunction", byref(function), module, name.encode())
        return function

    def kernel(self, text: str, name: str = "k", *options: str) -> c_void_p:
        return self.function(self.module(self.nvrtc.compile(text, *options)), name)

    def stream(self, flags: int = 0) -> c_void_p:
        stream = c_void_p()
        self.call("cuStreamCreate", byref(stream), flags)
        return stream

    def event(self) -> c_void_p:
        event = c_void_p()
        self.call("cuEventCreate", byref(event), 0)
        return event

    def launch(
        self,
        function: c_void_p,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        *arguments: Any,
        shared: int = 0,
        stream: Any = None,
    ) -> None:
        """ints are passed as pointers (64 bits), ctypes values as they are."""
        values = [c_ulonglong(a) if isinstance(a, int) else a for a in arguments]
        pointers = (c_void_p * max(len(values), 1))(*(ctypes.cast(byref(v), c_void_p) for v in values))
        sizes = [(*((x,) if isinstance(x, int) else x), 1, 1)[:3] for x in (grid, block)]
        self.call("cuLaunchKernel", function, *(c_uint(n) for n in (*sizes[0], *sizes[1])), c_uint(shared), stream, pointers, None)

    def sync(self) -> None:
        self.call("cuCtxSynchronize")

    def outcome(self) -> str:
        """What a wait for everything says."""
        return self.result("cuCtxSynchronize")

    def close(self) -> None:
        self.call("cuDevicePrimaryCtxRelease_v2", self.ordinal)

    def fail_at(self, n: int, code: int) -> None:
        self.library.tack_sim_fail_at(c_long(n), code)

    def counters(self) -> dict[str, Any]:
        return _counters(self.library)

    def reports(self) -> list[str]:
        return list(self.counters()["reports"])


def _counters(library: ctypes.CDLL) -> dict[str, Any]:
    library.tack_sim_counters_json.restype = c_char_p
    return dict(json.loads(library.tack_sim_counters_json()))


class Ended:
    """How a process ended: exit status, what it printed, and the counters of each stand-in."""

    def __init__(self, done: subprocess.CompletedProcess[str], written: dict[str, dict[str, Any]]) -> None:
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.counters = {name.rsplit("-", 1)[0]: value for name, value in written.items()}


def in_process(program: Callable[[], None], expect: int | None = 0, kind: str = "cuda", **settings: object) -> Ended:
    """Runs a module's function in a process of its own, on stand-ins with these settings."""
    source = Path(inspect.getfile(program)).resolve()
    path = [str(source.parent), str(Path(__file__).parent)]
    code = f"import sys; sys.path[:0] = {path!r}; import {source.stem} as m; m.{program.__name__}()"
    with tempfile.TemporaryDirectory() as written:
        variables = {**os.environ, **standins.environment(kind, report=written, **settings), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=120)
        ended = Ended(done, standins.reports(Path(written)))
    assert expect is None or done.returncode == expect, f"{program.__name__} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return ended


__all__ = [
    "CompileError",
    "DriverError",
    "Ended",
    "Gpu",
    "Nvrtc",
    "byref",
    "c_float",
    "c_int",
    "c_long",
    "c_longlong",
    "c_size_t",
    "c_uint",
    "c_ulonglong",
    "c_void_p",
    "in_process",
]
