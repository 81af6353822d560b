"""@tack.func: a function that kernels may call, and that stays an ordinary Python function for ordinary Python."""

from __future__ import annotations

from .errors import CompileTypeError
from .source_text import SourceText, find_source, pickled_by_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType
    from typing import Any

__all__ = ["Func", "check_decorated", "func"]


class Func:
    """A device function: compiled into each kernel that calls it, for the argument types of the call.

    Called from ordinary Python it runs as ordinary Python, with tack's casts and functions working on NumPy scalars.
    """

    __slots__ = ("__dict__", "__weakref__", "function", "source")

    def __init__(self, function: FunctionType, source: SourceText | None = None) -> None:
        self.function = function
        self.source = find_source(function) if source is None else source
        describe(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tack.func {self.source.qualname}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        if pickled_by_value(self):
            return Func, (self.function, self.source)
        return self.source.qualname  # by reference: pickle looks the name up in __module__


def func(function: Callable[..., Any]) -> Func:
    """Decorator: makes a function callable in kernels. It may return several results and be generic in its argument types."""
    check_decorated("@tack.func", function)
    return Func(function)  # type: ignore[arg-type]  # checked just now


def describe(target: Any, function: FunctionType) -> None:
    """Gives ``target`` the attributes of the function that it stands for, as functools.update_wrapper does."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(target, name, getattr(function, name))
    target.__wrapped__ = function


_CURE = "make it the innermost decorator, just above 'def'"


def check_decorated(decorator: str, function: object) -> None:
    """Refuses what is no plain function: methods made static, other decorators' results, kernels, callable objects."""
    kind = type(function)
    if kind.__name__ != "function" or kind.__module__ != "builtins":
        named = getattr(function, "__name__", kind.__name__)
        raise CompileTypeError(
            f"{decorator} goes directly above a function, not on {_article(kind.__name__)} ({named!r}): {_CURE}", kernel=str(named)
        )
    if hasattr(function, "__wrapped__"):
        named = getattr(function, "__name__", "?")
        raise CompileTypeError(
            f"{decorator} stands above another decorator of {named!r}, whose changes a kernel would not have: {_CURE}", kernel=str(named)
        )


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
