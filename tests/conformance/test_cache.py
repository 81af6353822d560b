"""The kernel cache: what a later process finds, what makes it compile anew, and what it does when the disk is no help."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tack

Run = Callable[..., dict[str, Any]]

# Every program ends with this: how many kernels its process compiled and loaded, and which modules it has imported.
REPORT = """
import json as _json, sys as _sys
_device = tack.get_default_device()
print(_json.dumps({"compiled": _device.compiled, "loaded": _device.loaded, "result": result, "modules": sorted(_sys.modules)}))
"""

SCALE = """
    import tack

    @tack.kernel
    def scale(x, factor):
        for i in range(x.shape[0]):
            x[i] = x[i] * factor + 1.0

    x = tack.ones(5)
    scale(x, 3.0)
    result = x[4]
"""


def text_of(program: str, device: tack.Device) -> str:
    """A program that works on the device and ends with its report."""
    program = textwrap.dedent(program).replace("import tack\n", f"import tack; tack.set_default_device('{device.type}')\n", 1)
    return program + REPORT


def environment_of(folder: Path, **settings: str) -> dict[str, str]:
    """This process's environment with no settings of tack but which drivers there are."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith("TACK_") or key.startswith(("TACK_LIB", "TACK_SIM_"))}
    return {**keep, "TACK_CACHE_DIR": str(folder), **settings}


@pytest.fixture
def run(tmp_path: Path, device: tack.Device) -> Run:
    """Runs a program in a process of its own, over a cache folder of the test's own, and answers its report."""

    def start(
        program: str = SCALE,
        *,
        name: str = "program.py",
        log: list[str] | None = None,
        preexec_fn: Callable[[], None] | None = None,
        **environment: str,
    ) -> dict[str, Any]:
        (tmp_path / name).write_text(text_of(program, device))
        # Python itself does not see that a module changed when its size and the second of its time stay the same.
        settings = {"PYTHONDONTWRITEBYTECODE": "1", **environment}
        done = subprocess.run(
            [sys.executable, name],
            cwd=tmp_path,
            env=environment_of(tmp_path / "cache", **settings),
            capture_output=True,
            text=True,
            timeout=300,
            preexec_fn=preexec_fn,
        )
        if log is not None:
            log.append(done.stderr)
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return report

    return start


def counts(report: dict[str, Any]) -> tuple[int, int]:
    return report["compiled"], report["loaded"]


def entries(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 0]


def test_a_second_process_compiles_nothing_and_loads_no_compiler(run: Run, device: tack.Device) -> None:
    first = run()
    assert counts(first) == (1, 0) and first["result"] == 4.0
    assert ("llvmlite" in first["modules"]) == (device.type == "cpu")
    second = run()
    assert counts(second) == (0, 1) and second["result"] == 4.0
    heavy = {
        "llvmlite",
        "inspect",
        "ast",
        "tokenize",
        "linecache",
        "dis",
        "dataclasses",
        "numpy",
        "tack.frontend",
        "tack.codegen",
        "tack.compiler",
        "tack.ir",
    }
    assert not heavy & set(second["modules"])


def test_lengths_and_values_are_no_part_of_the_key(run: Run) -> None:
    run()
    report = run(SCALE.replace("tack.ones(5)", "tack.ones(50)").replace("3.0)", "4.0)"))
    assert counts(report) == (0, 1) and report["result"] == 5.0


def test_where_the_function_stands_is_no_part_of_the_key(run: Run) -> None:
    run()
    assert counts(run("\n\n    # moved" + SCALE, name="elsewhere.py")) == (0, 1)


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        ("+ 1.0", "+ 2.0", 5.0),
        pytest.param("tack.ones(5)", "tack.ones(5, dtype=tack.f64)", 4.0, marks=pytest.mark.needs("f64")),
        ("scale(x, 3.0)", "scale(x, 3)", 4.0),
        ("@tack.kernel", "@tack.kernel(exact=True)", 4.0),
        ("scale(x, 3.0)", "scale(x[::2], 3.0)", 4.0),
    ],
    ids=["text", "dtype", "scalar kind", "option", "layout"],
)
def test_what_makes_another_kernel(run: Run, old: str, new: str, result: float) -> None:
    run()
    changed = run(SCALE.replace(old, new))
    assert counts(changed) == (1, 0) and changed["result"] == result
    assert counts(run()) == (0, 1), "the first one is still there"


HELPER = """
    import tack
    RATE = 2.0

    @tack.func
    def inner(v):
        return v * RATE
"""

MIDDLE = """
    import helper_module
    import tack

    @tack.func
    def outer(v):
        return helper_module.inner(v) + 1.0
"""

CALLER = """
    import tack
    import middle_module

    @tack.kernel
    def apply(x):
        for i in range(x.shape[0]):
            x[i] = middle_module.outer(x[i])

    x = tack.ones(3)
    apply(x)
    result = x.tolist()
"""


@pytest.mark.parametrize(
    ("old", "new", "result"), [("v * RATE", "v * RATE * 10.0", 21.0), ("RATE = 2.0", "RATE = 7.0", 8.0)], ids=["helper", "value"]
)
def test_a_changed_helper_or_value_in_another_file_is_seen_by_the_next_process(
    run: Run, tmp_path: Path, old: str, new: str, result: float
) -> None:
    (tmp_path / "helper_module.py").write_text(textwrap.dedent(HELPER))
    (tmp_path / "middle_module.py").write_text(textwrap.dedent(MIDDLE))
    assert run(CALLER)["result"] == [3.0] * 3
    assert counts(run(CALLER)) == (0, 1)
    (tmp_path / "helper_module.py").write_text(textwrap.dedent(HELPER).replace(old, new))
    changed = run(CALLER)
    assert counts(changed) == (1, 0) and changed["result"] == [result] * 3


def test_the_cache_can_be_off(run: Run, tmp_path: Path) -> None:
    for _ in range(2):
        assert counts(run(TACK_CACHE="0")) == (1, 0)
    assert not entries(tmp_path / "cache")


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "zeros", "foreign"])
def test_damaged_entries_are_built_anew(run: Run, tmp_path: Path, damage: str) -> None:
    run()
    found = entries(tmp_path / "cache")
    assert found
    for path in found:
        data = bytearray(path.read_bytes())
        if damage == "truncated":
            data = data[: len(data) // 2]
        elif damage == "flipped":
            data[len(data) * 2 // 3] ^= 0x10
        elif damage == "empty":
            data = bytearray()
        elif damage == "zeros":
            data = bytearray(len(data))
        else:
            data = bytearray(b"something else entirely\n" * 10)
        path.write_bytes(data)
    report = run()
    assert counts(report) == (1, 0) and report["result"] == 4.0
    assert counts(run()) == (0, 1), "and stored again"


def test_a_folder_that_cannot_be_made_costs_a_warning_only(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    log: list[str] = []
    report = run(TACK_CACHE_DIR=str(tmp_path / "file" / "cache"), log=log)
    assert counts(report) == (1, 0) and report["result"] == 4.0
    assert log[0].count("\n") <= 2 and "cache" in log[0]


def obey_permissions() -> None:
    """Root passes every permission check by two capabilities: this process and what it executes give them up (Linux)."""
    if os.getuid() == 0:
        libc = ctypes.CDLL(None)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs prctl where the user is root")
@pytest.mark.parametrize("mode", [0o500, 0o000], ids=["read-only", "closed"])
def test_a_folder_without_permissions_costs_a_warning_only(run: Run, tmp_path: Path, mode: int) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(mode)
    try:
        touch = [sys.executable, "-c", f"open({str(cache / 'probe')!r}, 'w')"]
        if subprocess.run(touch, preexec_fn=obey_permissions, capture_output=True).returncode == 0:
            pytest.skip("this user may write everywhere")
        log: list[str] = []
        report = run(log=log, preexec_fn=obey_permissions)
        assert counts(report) == (1, 0) and report["result"] == 4.0
        assert str(cache) in log[0] and log[0].count("warning") <= 2
    finally:
        cache.chmod(0o700)


def test_a_read_only_folder_still_gives_what_it_holds(run: Run, tmp_path: Path) -> None:
    run()
    folders = [path for path in (tmp_path / "cache", *(tmp_path / "cache").rglob("*")) if path.is_dir()]
    for folder in folders:
        folder.chmod(0o500)
    try:
        assert counts(run(preexec_fn=obey_permissions)) == (0, 1)
    finally:
        for folder in folders:
            folder.chmod(0o700)


def test_many_processes_at_once(run: Run, tmp_path: Path, device: tack.Device) -> None:
    program = tmp_path / "program.py"
    program.write_text(text_of(SCALE, device))
    started = [
        subprocess.Popen([sys.executable, str(program)], env=environment_of(tmp_path / "cache"), stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for process in started:
        out, _ = process.communicate(timeout=300)
        assert process.returncode == 0 and json.loads(out)["result"] == 4.0
    assert counts(run()) == (0, 1)


def test_the_command_line_shows_and_empties_it(run: Run, tmp_path: Path) -> None:
    run()
    (tmp_path / "cache" / "mine.txt").write_text("not tack's")

    def command(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "tack", "cache", *arguments],
            env=environment_of(tmp_path / "cache"),
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert str(tmp_path / "cache") in command() and " 0 files" not in command("info")
    assert "removed" in command("clear") and " 0 files" in command()
    assert (tmp_path / "cache" / "mine.txt").exists()
    assert counts(run()) == (1, 0)
