"""Options of the whole test suite: ``--require-devices=cpu,cuda`` makes it a failure if one of these devices is absent."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-devices",
        default="cpu",
        metavar="A,B",
        help="device types that must be present; a conformance test of an absent one fails (default: cpu)",
    )
