"""The real NVRTC, found in pip's package: machine code, PTX for architectures that it does not know, refusals. No GPU is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

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


def run(body: str, settings: Mapping[str, str] | None = None) -> str:
    """Runs in a process of its own, in which no other setting leads to another library."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("TACK_LIB")} | dict(settings or {})
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


def test_fast_math_contracts_and_nothing_else_does() -> None:
    ptx = run(
        """
from tack.codegen.dialects import dialect_of
for fast in (False, True):
    text = _runtime.compile(source(GOOD, "sm_999", dialect_of("cuda").options(fast))).decode()
    print("fma.rn" in text, "ftz" in text)
"""
    )
    assert ptx.splitlines() == ["False False", "True True"]


@pytest.mark.long
def test_nvrtc_12_compiles_what_13_does_not(tmp_path: Path) -> None:
    """The library of pip's nvidia-cuda-nvrtc-cu12, by the setting, and found beside Python's packages where there is no newer one."""
    try:
        files = metadata.files("nvidia-cuda-nvrtc-cu12") or []
    except metadata.PackageNotFoundError:
        pytest.skip("needs the package nvidia-cuda-nvrtc-cu12 (pip install nvidia-cuda-nvrtc-cu12)")
    library = next(Path(str(f.locate())) for f in files if f.name == "libnvrtc.so.12")
    packages = tmp_path / "site-packages"
    (packages / "nvidia").mkdir(parents=True)
    (packages / "nvidia" / "cuda_nvrtc").symlink_to(library.parents[1])
    compiled = """
for arch in ("sm_60", "sm_75", "sm_90", "sm_120"):
    print(arch, _runtime.compile(source(GOOD, arch))[:4] == b"\\x7fELF", end=" ")
print("fma.rn" in _runtime.compile(source(GOOD, "compute_90")).decode(), "fma.rn" in
      _runtime.compile(source(GOOD, "compute_90", "--use_fast_math --fmad=true")).decode())
print(sorted({line.split()[-1] for line in open("/proc/self/maps") if "libnvrtc.so" in line}))
"""
    by_setting = {"TACK_LIBNVRTC": str(library)}, ""
    beside_packages = {}, f"import sys; sys.path[:] = [{str(packages)!r}]"
    for settings, first_line in (by_setting, beside_packages):
        what, loaded = run(first_line + compiled, settings).splitlines()
        assert what == "sm_60 True sm_75 True sm_90 True sm_120 True False True", settings
        assert "libnvrtc.so.12" in loaded and "libnvrtc.so.13" not in loaded
