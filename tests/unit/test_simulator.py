"""The CUDA driver stand-in against the driver's documented rules: devices, contexts, memory, modules, launches. No tack in it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "simulators"))

import standins
from cuda_client import Gpu, c_float, in_process

try:
    standins.compiler()
except standins.Unavailable as missing:
    pytest.skip(str(missing), allow_module_level=True)

ADD = """
extern "C" __global__ void __launch_bounds__(256) k(float* __restrict__ y, const float* __restrict__ x, long long n, float a) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = fmaf(a, x[i], y[i]);
}
"""


def program_a_kernel_runs() -> None:
    gpu = Gpu()
    k = gpu.kernel(ADD)
    x, y = gpu.upload(list(range(1000))), gpu.upload([1] * 1000)
    gpu.launch(k, 4, 256, y, x, 1000, c_float(2))
    assert gpu.download(y, 1000) == [1 + 2 * i for i in range(1000)]
    gpu.free(x)
    gpu.free(y)
    gpu.close()
    assert gpu.reports() == []


def test_a_kernel_runs_and_everything_is_counted() -> None:
    for order in ("lazy", "delayed"):
        ended = in_process(program_a_kernel_runs, order=order)
        driver, compiler = ended.counters["libcuda"], ended.counters["libnvrtc"]
        assert driver["calls"]["cuLaunchKernel"] == 1
        assert driver["tallies"]["launches"] == 1
        assert driver["counters"]["device memory"] == 0
        assert driver["counters"]["contexts"] == 0
        assert driver["counters"]["left to their context"] == 1  # the module
        assert compiler["calls"]["nvrtcCompileProgram"] == 1
        assert compiler["counters"]["programs"] == 0
