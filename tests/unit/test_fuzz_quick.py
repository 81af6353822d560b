"""Random kernels with fixed seeds: the CPU device in several ways, the interpreter and plain Python store the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).resolve().parents[1] / "fuzz"


def run(seed: int, count: int, timeout: int) -> None:
    """In a process of its own, so that a crash is a failure that names its seeds."""
    command = [sys.executable, "-X", "faulthandler", str(FUZZ / "kernels.py"), "--seed", str(seed), "--count", str(count), "--progress"]
    done = subprocess.run(command, env={**os.environ, "TACK_CACHE": "0"}, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}\nAgain, made small: {' '.join(command[3:])} --shrink"
    assert f"{count} programs, 0 of them differ" in done.stdout


def test_random_kernels() -> None:
    run(0, 300, 600)


@pytest.mark.long
def test_many_random_kernels() -> None:
    run(1_000_000, 20_000, 4 * 3600)


@pytest.mark.long
def test_many_random_nests() -> None:
    command = [sys.executable, "-X", "faulthandler", str(FUZZ / "nests.py"), "10000", "3000"]
    done = subprocess.run(command, env={**os.environ, "TACK_CACHE": "0"}, capture_output=True, text=True, timeout=4 * 3600, check=False)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    assert "3000 kernels, 0 differences" in done.stdout


def test_a_wrong_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracles are independent: a result that is off by one in any of them is a difference."""
    monkeypatch.syspath_prepend(str(FUZZ))
    import check
    import host
    import statements
    from check import Way

    from tack.ir import arith

    programs = [statements.generate(s, k * statements.ROWS, wide=True) for k, s in enumerate((2, 4, 7, 8))]
    ways = [Way(1, 1, 1), Way(0, 1, 1)]
    assert check.check(programs, ways) is None
    with monkeypatch.context() as patch:
        patch.setitem(arith.BINARY, "mul", lambda a, b, t: arith.cast(a * b + 1, t))
        found = check.check(programs, ways)
        assert found is not None and found.kind == "interpreter"
    right = host.arithmetic
    wrong = host._both(lambda op, a, b: right(op, a, b) + 1 if op == "sub" else right(op, a, b), "sub")
    with monkeypatch.context() as patch:
        patch.setattr(host.Number, "__sub__", wrong[0])
        found = check.check(programs, ways)
        assert found is not None and found.kind == "host"
