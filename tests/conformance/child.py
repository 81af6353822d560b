"""Programs in processes of their own, on this process's devices: over other settings of the simulators, and with what these counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# A program of three kernels for a device type: one of its own, and those of two reductions.
CACHED = """
    import tack
    tack.set_default_device("{}")

    @tack.kernel
    def scale(x, factor):
        for i in range(x.shape[0]):
            x[i] = x[i] * factor

    x = tack.ones(1000)
    scale(x, 3.0)
    print(x.sum(), x.min())
"""


@dataclass
class Ended:
    """How a program ended: exit status, what it printed, and what each stand-in counted ("libcuda", "libnvrtc")."""

    status: int
    out: str
    err: str
    counted: dict[str, dict[str, Any]]

    def calls(self, library: str, function: str) -> int:
        return int(self.counted[library]["calls"].get(function, 0)) if library in self.counted else 0

    @property
    def complaints(self) -> list[str]:
        """What the stand-ins found against the driver's rules."""
        return [text for counted in self.counted.values() for text in counted["reports"]]

    @property
    def alive(self) -> dict[str, int]:
        """The objects of the driver that were alive when the process ended."""
        return {name: count for name, count in self.counted.get("libcuda", {}).get("counters", {}).items() if count}


def run(program: str, folder: Path, *, ok: bool = True, environment: dict[str, str] | None = None, **sim: object) -> Ended:
    """Runs a program. ``sim``: settings of the simulators (order="delayed"); ``ok``: it must end with status 0 and no complaints."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "program.py"
    file.write_text(textwrap.dedent(program))
    report = folder / "report"
    report.mkdir(exist_ok=True)
    for old in report.glob("*.json"):
        old.unlink()
    settings = {f"TACK_SIM_{name.upper()}": str(value) for name, value in sim.items()}
    env = {**os.environ, "TACK_CACHE_DIR": str(folder / "cache"), "TACK_SIM_REPORT": str(report), **settings, **(environment or {})}
    done = subprocess.run([sys.executable, str(file)], env=env, capture_output=True, text=True, timeout=300)
    counted = {path.stem.rsplit("-", 1)[0]: json.loads(path.read_text()) for path in report.glob("*.json")}
    ended = Ended(done.returncode, done.stdout, done.stderr, counted)
    if ok:
        assert done.returncode == 0, f"status {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        assert not ended.complaints, ended.complaints
    return ended
