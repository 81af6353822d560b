"""What the capability table promises of a device: its array types, its atomic types, local arrays; and that nothing is run past it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import tack
from tack.runtime.dispatch import get_backend
from tack.types import ARRAY_DTYPES


@tack.kernel
def copy_of(out, x):
    for i in range(x.shape[0]):
        out[i] = x[i]


@tack.kernel
def tally(total, x):
    for i in range(x.shape[0]):
        tack.atomic_add(total, 0, x[i])


@tack.kernel
def moving_extremes(out, x):
    for i in range(2, x.shape[0] - 2):
        window = tack.local_array(tack.f32, 5)
        for k in range(5):
            window[k] = x[i + k - 2]
        low = window[0]
        high = window[0]
        for k in range(1, 5):
            low = min(low, window[k])
            high = max(high, window[k])
        out[i] = high - low


@tack.kernel
def reversed_pairs(out, x):
    for i in range(x.shape[0] // 2):
        pair = tack.local_array_like(x, 2)
        pair[0] = x[2 * i]
        pair[1] = x[2 * i + 1]
        out[2 * i] = pair[1]
        out[2 * i + 1] = pair[0]


@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=lambda t: t.name)
def test_arrays_of_every_supported_type(device: tack.Device, dtype: tack.DType) -> None:
    a = tack.array((np.arange(1000) % 120).tolist(), dtype=dtype)
    x = a.numpy()
    out = tack.zeros_like(a)
    assert a.dtype == dtype == out.dtype
    if dtype not in get_backend(device).supported_dtypes:
        with pytest.raises(TypeError, match=f"parameter '(out|x)' has dtype {dtype}, which is not supported on"):
            copy_of(out, a)
        return
    copy_of(out, a)
    np.testing.assert_array_equal(out.numpy(), x)


@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=lambda t: t.name)
def test_atomics_of_every_supported_type(device: tack.Device, dtype: tack.DType) -> None:
    n = 100_000
    a, total = tack.ones(n, dtype=dtype), tack.zeros(1, dtype=dtype)
    if dtype not in get_backend(device).supported_atomic_dtypes:
        with pytest.raises(NotImplementedError, match=f"tack.atomic_add of {dtype} arrays is not supported"):
            tally(total, a)
        assert total.tolist() == [0]
        return
    tally(total, a)
    assert total.item() == (
        n if dtype.is_float else n & dtype.max if not dtype.is_signed else (n + dtype.max + 1) % (1 << dtype.bits) - dtype.max - 1
    )


def test_local_arrays(device: tack.Device) -> None:
    x = np.random.default_rng(1).random(1001, dtype=np.float32)
    out = tack.zeros(1001)
    moving_extremes(out, tack.array(x))
    windows = np.lib.stride_tricks.sliding_window_view(x, 5)
    np.testing.assert_array_equal(out.numpy()[2:-2], windows.max(1) - windows.min(1))
    pairs = tack.zeros(1000)
    reversed_pairs(pairs, tack.array(x[:1000]))
    np.testing.assert_array_equal(pairs.numpy(), x[:1000].reshape(-1, 2)[:, ::-1].ravel())


def test_types_that_no_array_has_are_refused_before_anything_is_compiled(device: tack.Device) -> None:
    compiled = device.compiled
    for dtype in (np.float16, np.complex64):
        half = np.zeros(4, dtype)
        with pytest.raises(TypeError, match=r"Kernel 'copy_of': parameter 'x'.*" + np.dtype(dtype).name):
            copy_of(tack.zeros(4), half)
        with pytest.raises(TypeError, match=r"Kernel 'copy_of': parameter 'x'.*" + np.dtype(dtype).name):
            tack.inspect(copy_of, tack.zeros(4), half)
    assert device.compiled == compiled


def test_there_is_no_limit_of_iterations_on_the_cpu() -> None:
    cpu = tack.device("cpu")
    assert cpu.max_iterations == 0

    @tack.kernel
    def nothing(out, n):
        for i, _j in tack.ndrange(n, n):
            if i < 0:
                out[0] = 1.0

    nothing(tack.zeros(1), 0)


def test_dumping_msl_is_for_metal_alone(tmp_path) -> None:
    script = tmp_path / "k.py"
    script.write_text(
        "import tack, tempfile, os\n"
        "@tack.kernel\n"
        "def only_here_for_the_dump(x):\n"
        "    for i in range(x.shape[0]):\n"
        "        x[i] = 1.0\n"
        "only_here_for_the_dump(tack.zeros(4, device='cpu'))\n"
        "print([n for n in os.listdir('/tmp') if 'only_here_for_the_dump' in n])\n"
    )
    env = {**os.environ, "TACK_DUMP_MSL": "1", "TACK_CACHE": "0"}
    assert subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, check=True).stdout == "[]\n"
