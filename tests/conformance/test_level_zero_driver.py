"""Level Zero on Intel's real driver without hardware: it checks and records every call, compiles the code, and runs nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from ctypes import CDLL
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

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


ROUNDS = """
    import ctypes, gc, os
    import tack

    KINDS = ("contexts", "command lists", "event pools", "events", "memory", "modules", "build logs", "kernels", "images", "samplers")
    counted = ctypes.CDLL(os.environ["TACK_LIBZE"]).tack_counted
    counted.restype = ctypes.c_long
    gpu = tack.device("level_zero")

    def work(n):
        @tack.kernel
        def scaled(x, tex):
            for i in range(x.shape[0]):
                x[i] = tex.sample(x[i], 0.5, 0.25) * n

        with gpu:
            x = tack.zeros(300_000 * n)
            scaled(x, tack.texture3d(tack.zeros((3, 4, 5))))
            x.numpy()
            x.sum()

    def left():
        gc.collect()
        gpu.trim()
        return {kind: counted(kind.encode(), 1) for kind in KINDS}

    work(4)  # as much as the blocks that copies go through hold: these stay
    before, made = left(), {kind: counted(kind.encode(), 0) for kind in KINDS}
    work(1)
    print(left() == before, before, left())
    print(*(kind for kind in KINDS if counted(kind.encode(), 0) > made[kind]), sep=", ")
"""


def driver() -> Any:
    try:
        return CDLL("libze_loader.so.1"), CDLL("libze_intel_gpu.so.1"), CDLL("libocloc.so")
    except OSError as error:
        pytest.skip(f"needs Intel's driver, the loader and ocloc (apt-get install intel-opencl-icd libze1): {error}")


@pytest.mark.parametrize(
    ("name", "f64", "images"),
    [("skl", True, True), ("dg1", False, True), ("pvc", True, False)],
)
def test_every_call_passes_the_drivers_validation(name: str, f64: bool, images: bool, tmp_path: Path) -> None:
    driver()
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(PROGRAM.format(name=name, f64=f64, images=images)))
    assert said_on(name, file).endswith("done")


def said_on(name: str, file: Path, loader: str = "", hardware: str = "") -> str:
    """What a program prints on the driver that believes to have this GPU. Nothing else may say anything, and least of all a complaint."""
    without_hardware = {
        "NEOReadDebugKeys": "1",
        "SetCommandStreamReceiver": "1",
        "ProductFamilyOverride": name,
        # Slices, sub-slices and units of a PVC: without hardware the driver takes it to have none, and groups of no threads.
        "HardwareInfoOverride": hardware or ("8x8x8" if name == "pvc" else "default"),
        "AUBDumpCaptureFileName": os.devnull,
        "ZE_ENABLE_VALIDATION_LAYER": "1",
        "ZE_ENABLE_PARAMETER_VALIDATION": "1",
        "TACK_CACHE": "0",
        "TACK_LIBZE": loader,
        "TACK_LIBOCLOC": "",
    }
    done = subprocess.run([sys.executable, str(file)], env={**os.environ, **without_hardware}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "", "the driver, the validation layer or tack's log says something"
    return done.stdout.rstrip()


def test_a_gpu_whose_groups_have_no_threads_is_none(tmp_path: Path) -> None:
    """As the driver says of a PVC where it has no hardware to look at."""
    driver()
    file = tmp_path / "program.py"
    file.write_text('import tack\ntry:\n    tack.device("level_zero")\nexcept RuntimeError as error:\n    print(error)\n')
    said = said_on("pvc", file, hardware="default")
    assert said.startswith("Cannot start the 'level_zero' device: missing dependency.") and "has a thread." in said


def test_the_driver_gets_back_what_it_made(tmp_path: Path) -> None:
    """Kernels, arrays and textures that come and go leave the driver with as many objects as before. All calls that make and free
    objects go through a library of our own, which counts them and hands them on."""
    driver()
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("needs a C++ compiler (g++)")
    counted = tmp_path / "libze_counted.so"
    flags = [f"-I{ROOT}/third_party", "-std=c++20", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
    source = ROOT / "tests" / "simulators" / "level_zero" / "counted.cpp"
    command = [compiler, *flags, str(source), "-o", str(counted), "-Wl,--no-as-needed", "-l:libze_loader.so.1"]
    subprocess.run(command, check=True)
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(ROUNDS))
    same, again = said_on("skl", file, str(counted)).splitlines()
    assert same.startswith("True "), same
    assert again == "memory, modules, build logs, kernels, images, samplers"
