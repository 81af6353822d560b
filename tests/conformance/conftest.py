"""Runs every conformance test on every device that is present: a test that takes ``device`` runs once for each."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch

import excuses
import pytest

import tack
from tack.errors import CompileError

DEVICE_TYPES = ("cpu", "metal", "cuda", "hip", "level_zero")
REFUSALS = (CompileError, TypeError, ValueError, NotImplementedError, RuntimeError)


def present() -> list[str]:
    """The device types that this machine can start."""
    found = []
    for kind in DEVICE_TYPES:
        try:
            tack.device(kind)
        except RuntimeError:
            continue
        found.append(kind)
    return found


def required(config: pytest.Config) -> list[str]:
    names = [name.strip() for name in config.getoption("--require-devices").split(",") if name.strip()]
    unknown = [name for name in names if name not in DEVICE_TYPES]
    if unknown:
        raise pytest.UsageError(f"--require-devices: unknown device types {unknown}; there are {', '.join(DEVICE_TYPES)}")
    return names


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        here = present()
        absent = [name for name in required(metafunc.config) if name not in here]
        metafunc.parametrize("device", [*here, *absent], indirect=True)


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[tack.Device]:
    """One of the present devices, the default device during the test. A required one that is absent fails here, with the reason."""
    chosen = tack.device(request.param)
    with chosen:
        yield chosen


def matching(item: pytest.Item, entries: tuple[excuses.Excuse, ...]) -> list[excuses.Excuse]:
    callspec = getattr(item, "callspec", None)
    kind = callspec.params.get("device") if callspec else None
    return [e for e in entries if e.device == kind and fnmatch(f"{item.path.name}::{item.name}", f"*{e.test}*")]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mine = [item for item in items if item.path.parent.name == "conformance"]
    used = set()
    for item in mine:
        unsupported = matching(item, excuses.UNSUPPORTED)
        failing = matching(item, excuses.EXPECTED_FAILURE)
        used.update(unsupported, failing)
        for excuse in unsupported:  # refused, not answered wrongly
            item.add_marker(pytest.mark.xfail(reason=f"unsupported: {excuse.reason}", raises=REFUSALS, strict=True))
        for excuse in failing:
            item.add_marker(pytest.mark.xfail(reason=excuse.reason, strict=True))
    whole = not config.option.keyword and all("::" not in str(a) for a in config.args)
    stale = [e for e in (*excuses.UNSUPPORTED, *excuses.EXPECTED_FAILURE) if e.device in present() and e not in used]
    if whole and mine and stale and {p.name for p in {i.path for i in mine}} >= set(_files(config)):
        raise pytest.UsageError(f"excuses that match no test: {stale}")


def _files(config: pytest.Config) -> list[str]:
    return [p.name for p in (config.rootpath / "tests" / "conformance").glob("test_*.py")]
