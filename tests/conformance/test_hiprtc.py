"""Every kernel of this suite through AMD's compilers: the real hipRTC, and clang for architectures that this one does not know yet."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import recorder

from unit import hiprtc

needs_hiprtc = pytest.mark.skipif(hiprtc.library() is None, reason="needs hipRTC (Debian 12: libamdhip64-5 libhiprtc-builtins5)")
needs_clang = pytest.mark.skipif(hiprtc.clang() is None, reason="needs clang++ 19 or newer and its lld (Debian: clang-19 lld-19)")


@pytest.mark.parametrize("debug", [False, True], ids=["plain", "checked"])
@needs_hiprtc
def test_the_programs_compile(debug: bool) -> None:
    assert hiprtc.refused(recorder.of_programs("hip", debug=debug), "gfx90a") == []


@needs_clang
def test_the_programs_compile_for_new_architectures() -> None:
    texts = recorder.of_programs("hip", debug=False)
    for arch in ("gfx942", "gfx1100"):
        assert hiprtc.refused_by_clang(texts, arch) == []


@pytest.mark.parametrize("arch", ["gfx90a", "gfx1030"])
@needs_hiprtc
def test_every_kernel_of_the_suite_compiles(arch: str) -> None:
    assert hiprtc.refused(hiprtc.taken_by(arch, recorder.texts("hip")), arch) == []


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
@needs_clang
def test_every_kernel_of_the_suite_compiles_for_new_architectures(arch: str) -> None:
    assert hiprtc.refused_by_clang(hiprtc.taken_by(arch, recorder.texts("hip")), arch) == []


@pytest.mark.parametrize("by", [pytest.param("hiprtc", marks=needs_hiprtc), pytest.param("clang", marks=needs_clang)])
def test_kernels_with_textures_compile_where_there_are_texture_units(by: str) -> None:
    text = 'extern "C" __global__ void k(float* out, hipTextureObject_t t) { out[0] = tex3D<float>(t, 1.0f, 2.0f, out[1]); }'
    compile = hiprtc.refused if by == "hiprtc" else hiprtc.refused_by_clang
    assert compile([text], "gfx1030") == []
    assert hiprtc.taken_by("gfx1030", [text]) == [text] and hiprtc.taken_by("gfx90a", [text]) == []


@needs_hiprtc
def test_what_is_wrong_is_refused() -> None:
    """One bad text of several is found: hipRTC has no minimum of long long, which is why the dialect makes one."""
    right = 'extern "C" __global__ void __launch_bounds__(256) k(long long* x) { x[0] = 1; }'
    (said,) = hiprtc.refused([right, right.replace("x[0] = 1", "atomicMin(x, nothing)")], "gfx90a")
    assert "nothing" in said


@needs_hiprtc
def test_products_and_sums_are_not_contracted() -> None:
    text = 'extern "C" __global__ void k(float* a, const float* b) { a[0] = b[0] * b[1] + b[2]; a[1] = b[3] * b[4] + b[5]; }'
    codes = []
    for contract in ("off", "fast"):
        options = [o.replace("contract=off", f"contract={contract}") for o in hiprtc.OPTIONS]
        ((result, log, code),) = hiprtc.compile_texts([text], "gfx90a", options)
        assert result == 0, log
        codes.append(code)
    assert codes[0] != codes[1]  # the one that may fuse does


COMPILE = """
import sys, tack
from tack import i64

@tack.kernel
def k(out):
    for i in range(out.shape[0]):
        out[i] = i

for arch in sys.argv[1:]:
    try:
        print(arch, len(tack.compile(k, tack.i64[:], target=f"hip:{arch}").binary) > 1000)
    except (RuntimeError, ValueError) as error:
        print(arch, "refused:", str(error).replace(chr(10), " "))
"""


@needs_hiprtc
def test_tack_compiles_with_the_real_compiler_and_keeps_from_it_what_it_does_not_know() -> None:
    """hipRTC 5.2 ends the process for an architecture that it does not know."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TACK_LIBHIP", "TACK_SIM_"))}
    environment |= {"TACK_LIBHIPRTC": str(hiprtc.library()), "TACK_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", COMPILE, "gfx90a", "gfx1030", "gfx9999"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert first == "gfx90a True" and second == "gfx1030 True"
    assert third.startswith("gfx9999 refused:") and "gfx942" in third
