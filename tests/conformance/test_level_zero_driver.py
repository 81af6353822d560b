"""Level Zero on Intel's real driver without hardware: it checks and records every call, compiles the code, and runs nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from ctypes import CDLL
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
    import threading
    import tack
    from tack import _runtime

    gpu = tack.device("level_zero")
    known = _runtime.describe("level_zero", {name!r})
    assert (gpu.supports_f64, gpu.array_dtypes, gpu.atomic_dtypes) == (known.supports_f64, known.array_dtypes, known.atomic_dtypes)
    assert (gpu.supports_images, gpu.max_group, gpu.shared_bytes) == (known.supports_images, known.max_group, known.shared_bytes)
    assert gpu.max_image == known.max_image
    assert gpu.max_iterations == known.max_iterations and gpu.f32_denormals and gpu._backend.supports_f64 == {f64}

    @tack.kernel
    def mixed(x, y, n, f, flag):
        for i in range(x.shape[0]):
            if flag:
                x[i] = x[i] / f + tack.sqrt(tack.f32(y[i] + n))
            tack.atomic_add(y, 0, 1)

    @tack.kernel
    def total(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
        return s

    @tack.kernel
    def sampled(x, tex):
        for i in range(x.shape[0]):
            x[i] = tex.sample(x[i], 0.5, 0.25)

    with gpu:
        x, y = tack.zeros(300_000), tack.ones(300_000, dtype=tack.i32)
        for _ in range(3):
            mixed(x, y, 7, 0.3, True)
        tack.copyto(x[::2], x[1::2])
        y.fill(3)
        total(x)
        for interp, wrap in (("linear", "clamp"), ("linear", "repeat"), ("nearest", "mirror")):
            tex = tack.texture3d(tack.zeros((3, 4, 5)), interp, wrap)
            assert tex.hardware == {images}
            sampled(x, tex)
            tex.update()
        x.numpy()
        threads = [threading.Thread(target=mixed, args=(x, y, k, 1.5, False)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        tack.sync()
        if not {f64}:
            try:
                tack.zeros(3, dtype=tack.f64)
                raise AssertionError("an f64 array on a device without f64")
            except TypeError as error:
                print(error)
        try:
            tack.zeros(1 << 50, dtype=tack.u8)
            raise AssertionError("a petabyte was allocated")
        except MemoryError as error:
            assert "1.0 PiB" in str(error)
        del x, y, tex
        gpu.trim()
    print("done")
"""


def driver() -> Any:
    try:
        return CDLL("libze_loader.so.1"), CDLL("libze_intel_gpu.so.1"), CDLL("libocloc.so")
    except OSError as error:
        pytest.skip(f"needs Intel's driver, the loader and ocloc (apt-get install intel-opencl-icd libze1): {error}")


@pytest.mark.parametrize(
    ("name", "f64", "images"),
    [("skl", True, True), ("dg1", False, True), pytest.param("pvc", True, False, marks=pytest.mark.long)],
)
def test_every_call_passes_the_drivers_validation(name: str, f64: bool, images: bool, tmp_path: Path) -> None:
    driver()
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(PROGRAM.format(name=name, f64=f64, images=images)))
    without_hardware = {
        "NEOReadDebugKeys": "1",
        "SetCommandStreamReceiver": "1",
        "ProductFamilyOverride": name,
        "AUBDumpCaptureFileName": os.devnull,
        "ZE_ENABLE_VALIDATION_LAYER": "1",
        "ZE_ENABLE_PARAMETER_VALIDATION": "1",
        "TACK_CACHE": "0",
        "TACK_LIBZE": "",
        "TACK_LIBOCLOC": "",
    }
    done = subprocess.run([sys.executable, str(file)], env={**os.environ, **without_hardware}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("done")
    assert done.stderr == "", "the driver, the validation layer or tack's log says something"
