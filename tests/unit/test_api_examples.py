"""The programs of docs/examples run, check themselves, and say what they found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "docs" / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda path: path.stem)
def test_example(program: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "error", str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and not done.stderr
