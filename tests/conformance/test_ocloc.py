"""Every kernel of this suite through Intel's real ocloc (Debian: intel-opencl-icd): no GPU and no driver is needed."""

from __future__ import annotations

import pytest
import recorder

from unit import ocloc

pytestmark = pytest.mark.skipif(ocloc.library() is None, reason="needs libocloc (Debian: intel-opencl-icd)")

WITHOUT_F64 = "dg1"


def has_doubles(text: str) -> bool:
    return "typedef double f64;" in text


@pytest.mark.parametrize("debug", [False, True], ids=["plain", "checked"])
def test_the_programs_compile(debug: bool) -> None:
    texts = recorder.of_programs("level_zero", debug=debug)
    assert ocloc.refused(texts, "skl") == []
    assert any(map(has_doubles, texts))


@pytest.mark.parametrize("gpu", ["skl", "pvc"])
def test_every_kernel_of_the_suite_compiles(gpu: str) -> None:
    assert ocloc.refused(recorder.texts("level_zero"), gpu) == []


def test_fast_math_compiles() -> None:
    from tack.codegen.dialects.opencl import OPENCL

    texts = recorder.of_programs("level_zero", debug=False)[:8]
    for fast in (False, True):
        assert ocloc.refused(texts, "skl", OPENCL.options(fast)) == []


def test_what_has_no_doubles_compiles_where_there_are_none() -> None:
    texts = recorder.of_programs("level_zero", debug=False)
    assert ocloc.refused([t for t in texts if not has_doubles(t)], WITHOUT_F64) == []
    code, log = ocloc.compile_text(next(t for t in texts if has_doubles(t)), WITHOUT_F64)
    assert code is None and "double" in log


def test_every_kernel_without_doubles_compiles_where_there_are_none() -> None:
    texts = [t for t in recorder.texts("level_zero") if not has_doubles(t)]
    assert len(texts) > 400
    assert ocloc.refused(texts, WITHOUT_F64) == []


def test_what_is_wrong_is_refused() -> None:
    """The address of an element of a group's memory is none of global memory, and one bad text of several is found."""
    wrong = "__kernel void tack_k(__global int* x) { __local int y[4]; __global int* z = y; x[0] = z[0]; }"
    (said,) = ocloc.refused(["__kernel void tack_k(__global int* x) { x[0] = 1; }", wrong], "skl")
    assert said.startswith("skl: ") and "address space" in said
