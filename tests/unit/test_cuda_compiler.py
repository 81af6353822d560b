"""The real NVRTC, found in pip's package: machine code, PTX for architectures that it does not know, refusals. No GPU is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata

import pytest

PRELUDE = """
from tack import _runtime
from tack.ir.source import EntryPoint, KernelSource, Step
from tack.ir.nodes import Extent

def source(text, arch="sm_90", options=""):
    entry = EntryPoint("k", [])
    return KernelSource("k", "cuda", arch, text, options, [], [entry], [Step("launch", 0, [], [Extent.constant(1)], [])])

GOOD = 'extern "C" __global__ void k(float* a, float s) { a[threadIdx.x] = a[threadIdx.x] * s + s; }'
"""


@pytest.fixture(autouse=True)
def _nvrtc() -> None:
    try:
        metadata.version("nvidia-cuda-nvrtc")
    except metadata.PackageNotFoundError:
        pytest.skip("needs the package nvidia-cuda-nvrtc (pip install nvidia-cuda-nvrtc)")


def run(body: str) -> str:
    """Runs in a process of its own, in which no setting leads to another library."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("TACK_LIB")}
    done = subprocess.run([sys.executable, "-c", PRELUDE + body], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_machine_code_for_each_architecture() -> None:
    out = run(
        """
for arch in ("sm_75", "sm_90", "sm_120"):
    code = _runtime.compile(source(GOOD, arch))
    print(arch, code[:4] == b"\\x7fELF", b"k" in code)
"""
    )
    assert out.splitlines() == [f"{arch} True True" for arch in ("sm_75", "sm_90", "sm_120")]


def test_a_newer_gpu_gets_ptx_without_contraction() -> None:
    ptx = run("print(_runtime.compile(source(GOOD, 'sm_999')).decode())")
    assert ".visible .entry k(" in ptx
    assert "fma.rn.f32" not in ptx
    assert "mul.f32" in ptx or "mul.rn.f32" in ptx


def test_options_of_the_kernel_reach_the_compiler() -> None:
    code = "print(_runtime.compile(source(GOOD, 'sm_999', {!r})).decode())"
    assert "mul.ftz.f32" not in run(code.format(""))
    assert "mul.ftz.f32" in run(code.format("  --ftz=true  -DX=1 ")).replace(".rn", "")


def test_refusals_are_short_and_in_the_kernels_words() -> None:
    out = run(
        """
bad = '#line 42 "kern.py"\\nextern "C" __global__ void k(float* a) { int unused; a[0] = nothing; }'
for text, arch in ((bad, "sm_90"), (GOOD, "sm_60")):
    try:
        _runtime.compile(source(text, arch))
    except Exception as error:
        print(type(error).__name__, error)
"""
    )
    refused, too_old = out.split("RuntimeError ")
    assert "Kernel 'k' cannot be compiled for CUDA (sm_90):" in refused
    assert 'kern.py(42): error: identifier "nothing" is undefined' in refused
    assert "warning" not in refused and "detected" not in refused
    assert "compiles no more for sm_60" in too_old
    assert "pip install nvidia-cuda-nvrtc-cu12" in too_old
