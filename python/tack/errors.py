"""The exceptions that tack adds to Python's own, and how a message about the user's source is laid out."""

from __future__ import annotations

__all__ = ["CompileError", "CompileNameError", "CompileNotImplementedError", "CompileTypeError", "CompileValueError", "UnsupportedError"]


class CompileError(Exception):
    """A kernel cannot be compiled. ``str()`` has the file, the line, the source line, a caret and what to write instead.

    Attributes: ``message`` (without the place), ``file``, ``line``, ``column`` (0-based; None where there is no place), ``kernel``.
    """

    def __init__(
        self, text: str, *, message: str = "", file: str | None = None, line: int | None = None, column: int | None = None, kernel: str = ""
    ) -> None:
        super().__init__(text)
        self.message = message or text
        self.file = file
        self.line = line
        self.column = column
        self.kernel = kernel


class CompileTypeError(CompileError, TypeError):
    """Types that don't fit or don't join."""


class CompileNameError(CompileError, NameError):
    """An unknown name, or one that may be unbound."""


class CompileValueError(CompileError, ValueError):
    """A read-only array that the kernel writes, a layout that it cannot use."""


class CompileNotImplementedError(CompileError, NotImplementedError):
    """A construct outside the kernel language."""


class UnsupportedError(CompileError, NotImplementedError):
    """A capability that the backend lacks; names the kernel and the capability."""
