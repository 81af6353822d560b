"""Every kernel of this suite through the real NVRTC, from pip's nvidia-cuda-nvrtc: no GPU and no driver is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
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


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """All kernels that the suite compiles on the CPU, printed as CUDA C. A run that collected them already says where they are."""
    folder = Path(os.environ.get("TACK_TEST_COLLECT", ""))
    if not any(folder.glob("*.cu")):
        folder = tmp_path_factory.mktemp("kernels")
        here = Path(__file__).parent
        command = [sys.executable, "-m", "pytest", "-q", "-p", "collect_cuda", "--devices", "cpu", "--ignore", __file__, str(here)]
        path = os.pathsep.join([str(here), *filter(None, [os.environ.get("PYTHONPATH")])])
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment = {**inherited, "PYTHONPATH": path, "TACK_TEST_COLLECT": str(folder), "TACK_CACHE_DIR": str(folder / "cache")}
        done = subprocess.run(command, env=environment, cwd=here.parent.parent, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stdout[-4000:]  # tests that fail are reported by themselves
    return [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.cu"))]


@pytest.mark.parametrize("arch", [pytest.param(a, marks=() if a == "sm_90" else pytest.mark.long) for a in ARCHITECTURES])
def test_every_kernel_of_the_suite_compiles(arch: str, collected: list[str]) -> None:
    assert len(collected) > 500
    assert nvrtc.refused(collected, arch) == []
