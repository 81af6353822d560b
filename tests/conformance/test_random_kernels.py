"""Random kernels with fixed seeds on devices other than the CPU: they store the bits that the interpreter and the CPU device store."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tack

FUZZ = Path(__file__).resolve().parents[1] / "fuzz"

# The CPU's own are in tests/unit/test_fuzz_quick.py.


def run(device: tack.Device, seed: int, count: int, timeout: int) -> None:
    """In a process of its own, so that a crash is a failure that names its seeds."""
    command = [sys.executable, "-X", "faulthandler", str(FUZZ / "kernels.py"), "--device", device.type]
    command += ["--seed", str(seed), "--count", str(count), "--batch", "24", "--progress"]
    done = subprocess.run(command, env={**os.environ, "TACK_CACHE": "0"}, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}\nAgain, made small: {' '.join(command[3:])} --shrink"
    assert f"{count} programs, 0 of them differ" in done.stdout


@pytest.mark.needs("queue")
@pytest.mark.parametrize("seed", [2_000_000, 2_000_100])
def test_random_kernels(device: tack.Device, seed: int) -> None:
    run(device, seed, 100, 1800)


@pytest.mark.needs("queue")
@pytest.mark.long
def test_many_random_kernels(device: tack.Device) -> None:
    run(device, 3_000_000, 2_000, 4 * 3600)
