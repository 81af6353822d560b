"""The step that runs everything on a real GPU, `tests/run gpu`, works: here on a simulated one and with tiny sizes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tack

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.needs("CUDA", "simulator")
def test_one_command_runs_the_suite_and_prints_the_table(device: tack.Device) -> None:
    command = [sys.executable, str(ROOT / "tests/run"), "gpu", "--require", "--gpu", "cuda-sim"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-3000:]
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE)
    rows = {cells[1].strip(): cells for line in done.stdout.splitlines() if len(cells := line.split("|")) > 3}
    for row in (
        "to queue a launch (3 arrays, a scalar)",
        "triad",
        "mandelbrot",
        "n-body",
        "reduction",
        "histogram",
        "copy within the device",
    ):
        assert float(rows[row][2]) > 0, row
    assert "of what a copy within the device moves" in done.stdout and "Tiny sizes" in done.stdout
