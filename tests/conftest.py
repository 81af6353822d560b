"""Options of the whole test suite: ``--require-devices``, ``--require-packages`` and ``--long``; `pytest --help` says what they do."""

from __future__ import annotations

from collections.abc import Generator

import pytest

# How a skip begins whose cause is something that this machine could have.
MISSING = ("needs ", "could not import ")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-devices",
        default="cpu",
        metavar="A,B",
        help="device types that must be present; a conformance test of an absent one fails (default: cpu)",
    )
    parser.addoption("--require-packages", action="store_true", help="a test that skips for want of a package or program fails instead")
    parser.addoption("--long", action="store_true", help="run the tests marked long too")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes minutes; runs with --long (tests/run long)")


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
