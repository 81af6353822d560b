"""What a device may fail at, in two lists that are verified: an excuse that matches no test, or whose test passes, fails the suite.

Each entry: device type, a pattern for the test's id (fnmatch, e.g. "test_programs.py::test_program*f64*"), and the reason.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Excuse:
    device: str
    test: str
    reason: str


UNSUPPORTED: tuple[Excuse, ...] = (
    # The device lacks a capability, for ever: the test must be refused with an error that names it. The reason is the capability.
    Excuse("metal", "*f64*", "f64"),
)

EXPECTED_FAILURE: tuple[Excuse, ...] = (
    # Something of ours is wrong or missing for now: the test must fail. The reason says what.
)
