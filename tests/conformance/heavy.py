"""Packages that are too large for every machine: their tests run where they are installed, and in ``tests/run long``."""

from __future__ import annotations

import importlib.util

import pytest

__all__ = ["require"]


def require(*packages: str) -> None:
    """Skips the module that calls it where one of the packages is not installed. (``--require-packages`` leaves these alone.)"""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: its tests run where it is, and in tests/run neighbours", allow_module_level=True)
