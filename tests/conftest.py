"""Options of the whole test suite: which devices, ``--require-packages`` and ``--long``; `pytest --help` says what they do."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Generator

import pytest

# How a skip begins whose cause is something that this machine could have.
MISSING = ("needs ", "could not import ")

DEVICES = ("cpu", "metal", "cuda", "hip", "level_zero")
# Devices over the stand-ins of tests/simulators for the driver and the compiler.
SIMULATED = ("cuda-sim", "hip-sim", "level_zero-sim", "metal-sim")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--devices",
        default="",
        metavar="A,B",
        help="the devices that conformance tests run on: device types, and simulated ones, which are built first: "
        f"{', '.join(SIMULATED)} (default: the devices that this machine has)",
    )
    parser.addoption(
        "--require-devices",
        default="",
        metavar="A,B",
        help="devices that must be present; a conformance test of an absent one fails (default: those of --devices, or cpu)",
    )
    parser.addoption("--require-packages", action="store_true", help="a test that skips for want of a package or program fails instead")
    parser.addoption("--long", action="store_true", help="run the tests marked long too")


def names_of(config: pytest.Config, option: str) -> list[str]:
    """The devices that an option names."""
    names = [name.strip() for name in config.getoption(option).split(",") if name.strip()]
    unknown = [name for name in names if name not in (*DEVICES, *SIMULATED)]
    if unknown:
        raise pytest.UsageError(f"{option}: unknown device types {unknown}; there are {', '.join((*DEVICES, *SIMULATED))}")
    return names


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes minutes; runs with --long (tests/run long)")
    config.addinivalue_line("markers", "needs(capability, ...): runs on devices that have all of them; conformance/conftest.py lists them")
    if importlib.util.find_spec("hypothesis") is not None:
        from hypothesis import settings

        # The same examples on every run, and none that fails because the machine was busy.
        settings.register_profile("tack", deadline=None, derandomize=True)
        settings.load_profile("tack")
    wanted = {*names_of(config, "--devices"), *names_of(config, "--require-devices")}
    for name in sorted(wanted.intersection(SIMULATED)):
        if name.removesuffix("-sim") in wanted:
            raise pytest.UsageError(f"{name} and {name.removesuffix('-sim')} cannot be tested by one process: run the suite twice")
        simulate(name.removesuffix("-sim"))


def simulate(kind: str) -> None:
    """Makes the stand-ins this process's driver and compiler, and those of the processes that it starts. Before tack is imported."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # inherited
    if "tack" in sys.modules:
        raise pytest.UsageError("tack was imported before the simulators could be chosen")
    from simulators import standins  # tests/ is on the path, as conftest.py lies there

    try:
        os.environ.update({**standins.environment(kind, devices=2), **{k: v for k, v in os.environ.items() if k.startswith("TACK_SIM_")}})
    except standins.Unavailable as error:
        raise pytest.UsageError(f"{kind}-sim: {error}") from None
    if "TACK_CACHE_DIR" not in os.environ:  # what a stand-in compiles is nothing for later processes on real devices
        os.environ["TACK_CACHE_DIR"] = folder = tempfile.mkdtemp(prefix="tack-cache-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--long"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="long: run it with --long"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and item.config.getoption("--require-packages") and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if reason.startswith(MISSING):
            report.outcome = "failed"
            report.longrepr = f"--require-packages: {reason}"
    return report
