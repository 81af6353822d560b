"""TACK_CPU_TARGET: code for other levels of the instruction set, and a cache folder that machines of several levels share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tack

LEVELS = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]

# Every kind of code that lanes have: masks, loops that lanes leave one by one, gathers, bytes, 64-bit integers, divisions, mathematics, and
# multiply-adds, which are rounded once where no instruction does it too.
PROGRAM = """
import hashlib, json
import numpy as np
import tack

@tack.kernel(exact=True)  # levels below x86-64-v3 have no fma, so that only exact kernels give the same bits on all
def everything(out, counts, small, fused, x, y, z, index, limit, by):
    for i in range(out.shape[0]):
        v = x[i]
        k = 0
        while k < limit and abs(v) < 50.0:
            v = v * 1.25 + x[index[i]] * 0.5 if v > 0.0 else v * 1.5 - 0.75
            k += 1
        counts[i] = k * 3 - i % by + (i * 7) // by + index[i] // (k + 1)
        small[i] = small[i] + small[(i + k) % small.shape[0]]
        fused[i] = tack.fma(x[i], y[i], z[i])
        out[i] = min(max(v, x[index[i]]), 40.0) + tack.exp(-x[i] * x[i]) + tack.sin(x[i]) * tack.erf(x[i])

rng = np.random.default_rng(3)
n = 501
x = rng.normal(0, 2, n).astype("f4")
x[:5] = [np.nan, 0.0, -0.0, np.inf, 1e-40]
index = rng.integers(0, n, n).astype("i4")
y = rng.normal(0, 2, n).astype("f4") * np.float32(2.0) ** rng.integers(-126, 100, n).astype("f4")
with np.errstate(all="ignore"):  # sums near 0, near the middle between two numbers, and of very different sizes
    z = -(x * y) * (1 + rng.integers(-2, 3, n) * np.float32(2.0**-23)) + y * np.float32(2.0) ** rng.integers(-60, 20, n).astype("f4")
digest = hashlib.sha256()
for limit in (20, 1 << 40):
    out, counts, small = np.zeros(n, "f4"), np.zeros(n, "i8"), np.arange(n).astype("u1")
    fused = np.zeros(n, "f4")
    everything(out, counts, small.copy(), fused, x, y, z, index, limit, 13)
    fused[np.isnan(fused)] = np.nan
    out[np.isnan(out)] = np.nan  # of any sign
    for a in (out, counts, small, fused):
        digest.update(a.tobytes())
device = tack.get_default_device()
print(json.dumps({"arch": device.arch, "digest": digest.hexdigest(), "compiled": device.compiled, "loaded": device.loaded}))
"""

# Arrays over a mapping whose middle must not be touched, and is not by any iteration: one wild access ends the process. Their elements
# begin anywhere, so that groups of lanes lie across the borders.
HOLES = """
import ctypes, json, mmap
import numpy as np
import tack

@tack.kernel
def outside_range(out, a, low, high):
    for i in range(a.shape[0]):
        if i < low or i >= high:
            out[i] = a[i] + 1

@tack.kernel
def where_told(out, a, told):
    for i in range(a.shape[0]):
        x = out[i]
        if told[i] != 0:
            if told[i] != 2:
                x = x + a[i] * 2
            a[i] = x
        out[i] = x

@tack.kernel
def every_second(out, a, told):
    for i in range(told.shape[0]):
        if told[i] != 0:
            out[i] = a[2 * i]
            a[2 * i] = 7

@tack.kernel
def pixels(out, a, told):
    for i in range(told.shape[0]):
        if told[i] != 0:
            out[i] = a[i, 0] + a[i, 1] + a[i, 2]

libc = ctypes.CDLL(None)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
page = mmap.PAGESIZE
memory = mmap.mmap(-1, 3 * page)
hole = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + page
wrong = []

def check(got, told, expected):
    if not (got[told] == expected).all() or got[~told].any():
        wrong.append((a.dtype.name, first))

for dtype in (np.uint8, np.int16, np.int32, np.float32, np.int64, np.float64):
    for first in (0, 1, 3, 13):
        whole = np.frombuffer(memory, dtype)
        low, high, a = len(whole) // 3 - first, len(whole) // 3 * 2 - first, whole[first:]
        a[:] = 1
        told = np.ones(len(a), bool)
        told[low:high] = False
        half = np.ones((len(a) + 1) // 2, bool)
        half[low // 2 : (high + 1) // 2] = False
        rgb = a[: len(a) // 3 * 3].reshape(-1, 3)
        bright = np.ones(len(rgb), bool)
        bright[low // 3 : (high + 2) // 3] = False
        out, other, third, sums = np.zeros_like(a), np.zeros_like(a), np.zeros(len(half), dtype), np.zeros(len(rgb), dtype)
        assert libc.mprotect(hole, page, 0) == 0
        outside_range(out, a, low, high)
        pixels(sums, rgb, bright.astype(np.uint8))
        where_told(other, a, told.astype(np.uint8))
        every_second(third, a, half.astype(np.uint8))
        assert libc.mprotect(hole, page, mmap.PROT_READ | mmap.PROT_WRITE) == 0
        check(out, told, 2)
        check(sums, bright, 3)
        check(other, told, 2)
        check(third, half, 2)
        if not (a[::2][half] == 7).all() or not (a[low:high] == 1).all():
            wrong.append((a.dtype.name, first))
print(json.dumps({"wrong": wrong}))
"""


def run(folder: Path, program: str = PROGRAM, **settings: str) -> dict[str, Any]:
    (folder / "program.py").write_text(program)
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACK_")} | {"TACK_CACHE_DIR": str(folder / "cache"), **settings}
    done = subprocess.run([sys.executable, str(folder / "program.py")], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def levels() -> list[str]:
    """Those that this machine runs."""
    own = tack.device("cpu").arch
    if own not in LEVELS:
        pytest.skip("levels are those of x86-64")
    return LEVELS[: LEVELS.index(own) + 1]


def test_all_levels_store_the_same_in_all_widths(tmp_path: Path, levels: list[str]) -> None:
    expected = run(tmp_path, TACK_CPU_SIMD="1")["digest"]
    for level in levels:
        for width in ("0", "4", "16"):
            got = run(tmp_path, TACK_CPU_TARGET=level, TACK_CPU_SIMD=width)
            assert (got["arch"], got["digest"]) == (level, expected), (level, width)


def test_lanes_that_are_off_touch_no_memory(tmp_path: Path, levels: list[str]) -> None:
    for level in levels:
        for width in ("0", "1", "4", "16", "32"):
            assert run(tmp_path, HOLES, TACK_CPU_TARGET=level, TACK_CPU_SIMD=width) == {"wrong": []}, (level, width)


def test_a_weaker_machine_does_not_load_what_a_stronger_one_compiled(tmp_path: Path, levels: list[str]) -> None:
    strong = run(tmp_path)
    assert (strong["compiled"], strong["loaded"]) == (1, 0)
    again = run(tmp_path)
    assert (again["compiled"], again["loaded"]) == (0, 1)
    for level in levels[:-1]:
        weak = run(tmp_path, TACK_CPU_TARGET=level)
        assert (weak["compiled"], weak["loaded"]) == (1, 0), level
    assert run(tmp_path)["loaded"] == 1


def test_a_level_that_the_processor_lacks_is_refused(tmp_path: Path) -> None:
    foreign = "aarch64" if tack.device("cpu").arch in LEVELS else "x86-64"
    runtime_error = f"TACK_CPU_TARGET is '{foreign}', which this processor cannot run; it runs native"
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACK_")} | {"TACK_CPU_TARGET": foreign}
    done = subprocess.run([sys.executable, "-c", "import tack; tack.device('cpu')"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert runtime_error in done.stderr
