"""The stand-in for Metal by itself: what it compiles, runs, checks and counts. No tack in it but the header of the functions."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from ctypes import byref, c_char, c_char_p, c_float, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "simulators"))

import standins
from cuda_client import in_process

try:
    standins.compiler()
except standins.Unavailable as missing:
    pytest.skip(str(missing), allow_module_level=True)

DONE, FAILED = 1, 2  # how far committed commands are


class Problem(ctypes.Structure):
    _fields_ = [("code", c_int64), ("domain", c_char * 64), ("text", c_char * 8000)]


class Facts(ctypes.Structure):
    _fields_ = [
        ("name", c_char * 128),
        ("family", c_uint32),
        ("max_threads", c_uint32),
        ("group_bytes", c_uint64),
        ("filters", c_uint32),
    ]


class Binding(ctypes.Structure):
    _fields_ = [("buffer", c_void_p), ("offset", c_size_t)]


class Dispatch(ctypes.Structure):
    _fields_ = [
        ("pipeline", c_void_p),
        ("buffers", ctypes.POINTER(Binding)),
        ("count", c_size_t),
        ("textures", c_void_p),
        ("texture_count", c_size_t),
        ("constants", c_void_p),
        ("constant_bytes", c_size_t),
        ("groups", c_uint64),
        ("threads", c_uint32),
    ]


class MetalError(Exception):
    """What a function answers that fails: domain, code, text."""


class Gpu:
    def __init__(self) -> None:
        self.library = ctypes.CDLL(os.environ["TACK_LIBMETAL"])
        self.facts = Facts()
        self.device = self.new("device", byref(self.facts), first=True)
        self.queue = self.new("queue", self.device)

    def call(self, name: str, *arguments: Any) -> None:
        problem = Problem()
        if getattr(self.library, f"tack_metal_{name}")(*arguments, byref(problem)) != 0:
            raise MetalError(problem.domain.decode(), problem.code, problem.text.decode())

    def new(self, name: str, *arguments: Any, first: bool = False, also: tuple[Any, ...] = ()) -> c_void_p:
        made = c_void_p()
        self.call(name, *((byref(made), *arguments) if first else (*arguments, byref(made), *also)))
        return made

    def release(self, *objects: c_void_p) -> None:
        for handle in objects:
            self.library.tack_metal_release(handle)

    def buffer(self, values: list[float]) -> tuple[c_void_p, Any]:
        contents = c_void_p()
        made = self.new("buffer", self.device, c_size_t(4 * len(values)), also=(byref(contents),))
        view = (c_float * len(values)).from_address(contents.value or 0)
        view[:] = values
        return made, view

    def compile(self, text: str) -> c_void_p:
        return self.new("compile", self.device, text.encode(), 0)

    def pipeline(self, library: c_void_p, name: str, threads: int) -> c_void_p:
        most = c_uint32()
        return self.new("pipeline", self.device, library, name.encode(), None, c_uint32(threads), also=(byref(most),))

    def run(self, pipeline: c_void_p, groups: int, threads: int, buffers: list[Any], constants: list[int] | None = None) -> Any:
        """Commits a launch and answers its commands."""
        commands = self.new("commands", self.queue, b"test")
        bound = (Binding * max(len(buffers), 1))(*(b if isinstance(b, Binding) else Binding(b, 0) for b in buffers))
        words = (c_uint64 * max(len(constants or ()), 1))(*(constants or ()))
        at = ctypes.cast(words, c_void_p)
        launch = Dispatch(pipeline, bound, len(buffers), None, 0, at, 8 * len(constants or ()), groups, threads)
        self.call("dispatch", commands, byref(launch))
        self.library.tack_metal_commit(commands)
        return commands

    def wait(self, commands: Any) -> tuple[int, int, str]:
        problem = Problem()
        return self.library.tack_metal_wait(commands, byref(problem)), problem.code, problem.text.decode()

    def counters(self) -> dict[str, Any]:
        self.library.tack_sim_counters_json.restype = c_char_p
        return dict(json.loads(self.library.tack_sim_counters_json()))


HEAD = "#include <metal_stdlib>\nusing namespace metal;\n#pragma METAL fp contract(off)\n"
TRIAD = (
    HEAD
    + """
[[max_total_threads_per_threadgroup(64)]] kernel void triad(device float* out [[buffer(0)]], const device float* x [[buffer(1)]],
    constant ulong* words [[buffer(2)]], uint thread_number [[thread_position_in_threadgroup]], uint group [[threadgroup_position_in_grid]],
    uint size [[threads_per_threadgroup]]) {
  const ulong i = (ulong)group * size + thread_number;
  if (i >= words[1]) return;
  out[i] = as_type<float>((uint)words[0]) * x[i];
}
kernel void reversed(device float* out [[buffer(0)]], uint t [[thread_position_in_threadgroup]], uint g [[thread_position_in_grid]]) {
  threadgroup float shared[32];
  shared[t] = out[g];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[g] = shared[31 - t];
}
"""
)
TWO = 0x40000000  # 2.0f


def program_launches() -> None:
    gpu = Gpu()
    assert gpu.facts.family == 8 and b"no hardware" in gpu.facts.name
    library = gpu.compile(TRIAD)
    triad, swap = gpu.pipeline(library, "triad", 64), gpu.pipeline(library, "reversed", 32)
    out, values = gpu.buffer([0.0] * 100)
    x, _ = gpu.buffer([float(i) for i in range(100)])
    first = gpu.run(triad, 2, 64, [out, x], [TWO, 100])
    second = gpu.run(swap, 1, 32, [Binding(out, 4)])
    gpu.release(x, library)  # commands keep what they use
    assert values[:3] == [0.0] * 3, "nothing runs before it is waited for"
    assert gpu.wait(second)[0] == DONE == gpu.wait(first)[0]
    assert list(values) == [0.0, *(2.0 * i for i in range(32, 0, -1)), *(2.0 * i for i in range(33, 100))]
    fill = gpu.new("commands", gpu.queue, b"fill")
    gpu.call("fill", fill, byref(Binding(out, 8)), c_size_t(8), ctypes.c_uint8(0))
    gpu.call("copy", fill, byref(Binding(out, 8)), byref(Binding(out, 16)), c_size_t(8))
    gpu.library.tack_metal_commit(fill)
    assert gpu.wait(fill)[0] == DONE and values[2:6] == [0.0] * 4
    contents, size = c_void_p(), c_size_t()
    held = gpu.new("adopt", gpu.device, out, also=(byref(contents), byref(size)))  # one more that keeps it
    assert contents.value == ctypes.addressof(values) and size.value == 400
    gpu.release(held)
    values[0] = 1.0
    gpu.release(first, second, fill, out, triad, swap, gpu.queue, gpu.device)
    assert gpu.counters()["reports"] == [] and set(gpu.counters()["counters"].values()) == {0}


def test_launches_fills_and_copies_run_in_the_order_of_commits() -> None:
    in_process(program_launches, kind="metal")


BAD = {
    "race": ("threadgroup float s[8]; s[t / 2] = 1.0f;", "race in shared memory"),
    "unwritten": ("threadgroup float s[8]; p[t] = s[t];", "shared memory is read that no thread of the block has written"),
    "divergent": (
        "if (t < 3) { threadgroup_barrier(mem_flags::mem_threadgroup); } else { threadgroup_barrier(mem_flags::mem_threadgroup); }",
        "divergent barriers",
    ),
    "flags": ("threadgroup_barrier(mem_flags::mem_device);", "threadgroup_barrier without mem_threadgroup"),
    "past the end": ("p[t + 1000] = 1.0f;", "past the end of an allocation of 32 bytes"),
    "overflow": ("p[0] = (int)t + 2147483647;", "undefined behaviour"),
}


def program_bad_kernels() -> None:
    gpu = Gpu()
    for text, told in BAD.values():
        kernel = f"kernel void k(device float* p [[buffer(0)]], uint t [[thread_position_in_threadgroup]]) {{ {text} }}\n"
        p, _ = gpu.buffer([0.0] * 8)
        progress, code, words = gpu.wait(gpu.run(gpu.pipeline(gpu.compile(HEAD + kernel), "k", 8), 1, 8, [p]))
        assert progress == FAILED and code in (3, 9) and told in words, (text, progress, code, words)
        assert told in gpu.counters()["reports"][-1]


def test_what_kernels_do_wrong_is_found() -> None:
    in_process(program_bad_kernels, kind="metal")


def program_refusals() -> None:
    gpu = Gpu()

    def refused(call: Any) -> str:
        try:
            call()
        except MetalError as error:
            return str(error)
        raise AssertionError("taken")

    parameter = "kernel void k(device float* p [[buffer({})]]) {{}}\n"
    assert "between 0 and 30" in refused(lambda: gpu.compile(HEAD + parameter.format(31)))
    assert "needs an attribute" in refused(lambda: gpu.compile(HEAD + "kernel void k(device float* p) {}\n"))
    for text in ("double d;", "std::size_t d;", "float f = sinh(1.0f);", "printf(1);"):
        kernel = f"kernel void k(device float* p [[buffer(0)]]) {{ {text} p[0] = 1; }}\n"
        assert "program_source:4:" in refused(lambda: gpu.compile(HEAD + kernel)), text
    library = gpu.compile(TRIAD)
    assert "MTLLibraryErrorDomain" in refused(lambda: gpu.pipeline(library, "nothing", 64))
    assert "more threads" in refused(lambda: gpu.pipeline(library, "triad", 128))
    x, _ = gpu.buffer([1.0] * 4)
    swap = gpu.pipeline(library, "reversed", 32)
    assert "31 buffers" in refused(lambda: gpu.run(swap, 1, 32, [x] * 31, [1]))
    assert "larger ones" in refused(lambda: gpu.run(swap, 1, 33, [x]))
    assert "past the end" in refused(lambda: gpu.run(swap, 1, 32, [Binding(x, 17)]))
    odd = gpu.new("commands", gpu.queue, b"odd")
    for offset, size in ((1, 4), (0, 3)):
        assert "no whole words" in refused(lambda: gpu.call("fill", odd, byref(Binding(x, offset)), c_size_t(size), ctypes.c_uint8(0)))
        assert "no whole words" in refused(lambda: gpu.call("copy", odd, byref(Binding(x, offset)), byref(Binding(x, 8)), c_size_t(size)))
    assert "no buffer" in refused(lambda: gpu.new("adopt", gpu.device, swap, also=(byref(c_void_p()), byref(c_size_t()))))
    commands = gpu.new("commands", gpu.queue, b"twice")
    gpu.library.tack_metal_commit(commands)
    gpu.library.tack_metal_commit(commands)
    assert "twice" in gpu.counters()["reports"][-1]


def test_wrong_calls_are_refused_and_reported() -> None:
    in_process(program_refusals, kind="metal")


def program_archive() -> None:
    gpu = Gpu()
    path = os.environ["TACK_TEST_ARCHIVE"].encode()
    library = gpu.compile(TRIAD)
    archive = gpu.new("archive", gpu.device, None)
    gpu.call("archive_add", archive, library, b"triad", c_uint32(64))
    gpu.call("archive_save", archive, path)
    again = gpu.new("archive", gpu.device, path)
    functions = gpu.new("functions", gpu.device, path)
    gpu.pipeline(functions, "triad", 64)
    try:
        gpu.pipeline(functions, "reversed", 32)
        raise AssertionError("it was not added")
    except MetalError as error:
        assert "no function 'reversed'" in str(error)
    gpu.release(again)
    Path(path.decode()).write_bytes(Path(path.decode()).read_bytes().replace(b"triad", b"tr1ad", 1))
    try:
        gpu.new("archive", gpu.device, path)
        raise AssertionError("it is damaged")
    except MetalError as error:
        assert "no archive" in str(error)


def test_an_archive_keeps_what_was_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACK_TEST_ARCHIVE", str(tmp_path / "a.metallib"))
    in_process(program_archive, kind="metal")


FUSED = HEAD + "kernel void k(device float* p [[buffer(0)]]) { p[0] = p[1] * p[2] + p[3]; }\n"


def program_contraction() -> None:
    gpu = Gpu()
    e = 2.0**-12
    results = []
    for text in (FUSED, FUSED.replace("#pragma METAL fp contract(off)\n", "")):
        p, values = gpu.buffer([0.0, 1 + e, 1 + e, -1.0])
        gpu.wait(gpu.run(gpu.pipeline(gpu.compile(text), "k", 1), 1, 1, [p]))
        results.append(values[0])
    assert results == [2 * e, 2 * e + e * e], results


def test_metal_contracts_unless_it_is_told_not_to() -> None:
    in_process(program_contraction, kind="metal")
