"""Printed OpenCL C: whole texts against golden files, address spaces, and what ocloc makes of it where that is installed."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import ocloc
import pytest
from dialect_kernels import LEVEL_ZERO, everything, mean, peaks, printed, sampling
from test_c_printer import checked, saxpy, stencil, total

from tack import types as T
from tack.codegen.dialects.opencl import OPENCL

GOLDEN = Path(__file__).parent.parent / "golden"
MAKERS = {"saxpy": saxpy, "stencil": stencil, "total": total, "checked": checked, "peaks": lambda: peaks(LEVEL_ZERO)}
needs_ocloc = pytest.mark.skipif(ocloc.library() is None, reason="needs libocloc (Debian: intel-opencl-icd)")


def text_of(name: str) -> str:
    return printed(MAKERS[name](), LEVEL_ZERO, debug=name == "checked").text


@pytest.mark.parametrize("name", MAKERS)
def test_golden(name: str) -> None:
    """Change the files by hand, and look."""
    assert text_of(name) == (GOLDEN / f"opencl_{name}.cl").read_text(encoding="utf-8"), text_of(name)


@needs_ocloc
@pytest.mark.parametrize("t", T.ARRAY_DTYPES, ids=str)
def test_all_operations_compile(t: T.DType) -> None:
    assert ocloc.refused([printed(everything(t), LEVEL_ZERO).text], "skl") == []


@needs_ocloc
@pytest.mark.parametrize("fast", [False, True], ids=["exact", "fast"])
def test_every_golden_text_compiles(fast: bool) -> None:
    assert ocloc.refused([text_of(name) for name in MAKERS], "skl", OPENCL.options(fast)) == []


def contraction_is_off(text: str) -> bool:
    """Whether the SPIR-V of a kernel forbids to join products and sums (OpExecutionMode is 16, ContractionOff 31)."""
    code, log = ocloc.compile_text(text, "skl", OPENCL.options(False))
    assert code is not None, log
    words = struct.unpack(f"<{len(code) // 4}I", code)
    at, found = 5, False
    while at < len(words):
        found |= words[at] & 0xFFFF == 16 and words[at + 2] == 31
        at += words[at] >> 16
    return found


@needs_ocloc
def test_the_compiler_forms_no_fma() -> None:
    build = saxpy()
    build.kernel.options["exact"] = True
    text = printed(build, LEVEL_ZERO).text
    assert "a * x[i] + y[i]" in text and contraction_is_off(text)
    assert not contraction_is_off(text.replace("#pragma OPENCL FP_CONTRACT OFF", ""))


@needs_ocloc
def test_textures_are_read_with_samplers() -> None:
    text = printed(sampling(), LEVEL_ZERO).text
    assert ocloc.refused([text], "skl") == []
    assert "read_only image3d_t texels, sampler_t tack_sampler_texels" in text
    assert text.count("read_imagef(texels, tack_sampler_texels, (float4)(") == 3


def test_pointers_say_where_they_point() -> None:
    text = text_of("peaks")
    assert "tack_atomic_max_f32_shared(__local f32* at, f32 a)" in text and "tack_atomic_max_f32(__global f32* at, f32 a)" in text
    assert "static __constant f32 tack_table_0[]" in text
    for line in text.splitlines():
        for pointer in re.findall(r"([\w ]*)\b(?:[iuf]\d+)\*", line):
            assert re.search(r"__(global|local)\b", pointer), line


def test_options() -> None:
    assert OPENCL.options(False) == "-cl-fp32-correctly-rounded-divide-sqrt"
    assert OPENCL.options(True) == "-cl-fast-relaxed-math"
    source = printed(saxpy(), LEVEL_ZERO)
    assert source.options == OPENCL.options(False) and source.target == "level_zero"


def test_a_reduction_of_the_portable_subset() -> None:
    text = printed(mean(), LEVEL_ZERO).text
    assert "double" not in text and text.count("__kernel") == 4
