"""Refuses to be imported in a sub-interpreter, before the runtime is: one process has one runtime, whose objects are the main one's."""

from __future__ import annotations

import _thread

__all__: list[str] = []


def is_main() -> bool:
    """Whether this is the interpreter that the process began with."""
    if hasattr(_thread, "_is_main_interpreter"):  # from Python 3.12
        return bool(_thread._is_main_interpreter())
    import _xxsubinterpreters as interpreters  # type: ignore[import-not-found]

    return bool(interpreters.get_current() == interpreters.get_main())


if not is_main():
    raise ImportError(
        "tack works in the main interpreter of a process alone, and this is a sub-interpreter: "
        "use threads, or processes (multiprocessing with the start method 'spawn')"
    )
