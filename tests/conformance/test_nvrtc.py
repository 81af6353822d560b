"""Every kernel of this suite through the real NVRTC, from pip's nvidia-cuda-nvrtc: no GPU and no driver is needed."""

from __future__ import annotations

import numpy as np
import pytest
import recorder
from programs import PROGRAMS

import tack
from unit import nvrtc

NUMPY = {"u8": np.uint8, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
ARCHITECTURES = ("sm_75", "sm_90", "sm_120")
pytestmark = pytest.mark.skipif(nvrtc.library() is None, reason="needs nvidia-cuda-nvrtc")


def texts_of_programs(*, debug: bool) -> list[str]:
    with tack.debug(debug):
        return [
            tack.compile(program.kernel, *program.make(20, NUMPY[name], np.random.default_rng(1)), target="cuda:sm_90").source
            for program in PROGRAMS
            for name in program.dtypes
        ]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("debug", [False, True], ids=["plain", "checked"])
def test_the_programs_compile(arch: str, debug: bool) -> None:
    assert nvrtc.refused(texts_of_programs(debug=debug), arch) == []


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_kernel_of_the_suite_compiles(arch: str) -> None:
    assert nvrtc.refused(recorder.texts("cuda"), arch) == []


def test_what_is_wrong_is_refused() -> None:
    """One bad text of several is found, and named alone."""
    right = 'extern "C" __global__ void k(long long* x) { x[0] = 1; }'
    wrong = right.replace("= 1", "= nothing")
    (said,) = nvrtc.refused([right, wrong], "sm_90")
    assert said.startswith("sm_90: ") and 'identifier "nothing" is undefined' in said and said.endswith(wrong)
