"""The programs of docs/examples run, check themselves, and say what they found. Those of large neighbours run where these are installed."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "docs" / "examples").glob("*.py"))
# Two ranks on one core, and root in a container, are all right for a test.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda path: path.stem)
def test_example(program: Path, tmp_path: Path) -> None:
    needs = re.match(r"# needs: (.+)\n", program.read_text())
    for package in needs.group(1).split(", ") if needs else []:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: the example runs where it is, and in tests/run neighbours")
    command = [sys.executable, "-W", "error", str(program)]
    if needs and "mpi4py" in needs.group(1):
        mpiexec = shutil.which("mpiexec")
        if mpiexec is None:
            pytest.skip("no mpiexec on PATH (Debian: openmpi-bin): the example runs on two ranks where there is one")
        command = [mpiexec, "-n", "2", *command]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **OPEN_MPI}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and not done.stderr
