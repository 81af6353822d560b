"""tack.debug: calls of kernels that check every index and every assert."""

from __future__ import annotations

from . import _runtime

__all__ = ["debug"]


class debug:
    """Switches debug mode on (or off, ``tack.debug(False)``) for the whole process; as a ``with`` block, until its end.

    In debug mode calls run kernels of their own, compiled when first needed, that check every index and every ``assert``. The first
    failure that an iteration reports is raised when the call ends, on a queued device at the wait: IndexError or AssertionError, naming
    kernel, file and line, array, index, shape and iteration. The failing access is not made, its iteration ends, the others stop soon:
    arrays may be partly written. ``TACK_DEBUG=1`` switches it on from the start.
    """

    __slots__ = ("_before", "_on")

    def __init__(self, on: bool = True) -> None:
        if not isinstance(on, bool):
            raise TypeError(f"tack.debug(): expected a bool, got {on!r}")
        self._on = on
        self._before = _runtime.set_debugging(on)

    def __enter__(self) -> debug:
        before = _runtime.set_debugging(self._on)
        if before != self._on:  # used again, or switched meanwhile
            self._before = before
        return self

    def __exit__(self, *exc: object) -> None:
        _runtime.set_debugging(self._before)

    def __repr__(self) -> str:
        return f"tack.debug({self._on})"
