"""How an error about the user's source is written: what is wrong, the file and line, the line with carets, what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from ..errors import CompileError
from ..ir.nodes import Loc
from .meaning import FunctionSource

__all__ = ["did_you_mean", "error", "source_line"]

E = TypeVar("E", bound=CompileError)


def error(
    kind: type[E],
    message: str,
    *,
    kernel: str,
    source: FunctionSource | None = None,
    loc: Loc | None = None,
    hint: str = "",
    trail: Iterable[str] = (),
) -> E:
    """The exception to raise. ``hint`` says what to write instead; ``trail`` names the calls that led here, innermost first.

    ``loc`` is a place in ``source``; without it the message stands alone.
    """
    first = f"Kernel '{kernel}': {message}"
    lines = [first]
    if loc is not None:
        lines.append(f'  File "{loc.file}", line {loc.line}')
        text = source_line(source, loc.line) if source is not None else ""
        if text.strip():
            lines += _pointed_at(text, loc)
    lines += [f"  {step}" for step in trail]
    if hint:
        lines.append(f"  {hint}")
    return kind(
        "\n".join(lines),
        message=first,
        file=loc.file if loc else None,
        line=loc.line if loc else None,
        column=loc.column if loc else None,
        kernel=kernel,
    )


def source_line(source: FunctionSource, line: int) -> str:
    """The text of a 1-based line of the file, or "" if it is not the function's."""
    lines = source.text.split("\n")
    position = line - source.line
    return lines[position] if 0 <= position < len(lines) else ""


def _pointed_at(text: str, loc: Loc) -> list[str]:
    """The source line, shifted to the message's own indentation, and the carets under the construct."""
    indent = len(text) - len(text.lstrip())
    end = loc.end_column if loc.end_line == loc.line and loc.end_column > loc.column else len(text.rstrip())
    start = max(loc.column, indent)
    # A tab in front of the carets is kept, so that they stand under the text however wide a tab is shown.
    lead = "".join("\t" if c == "\t" else " " for c in text[indent:start])
    return ["    " + text.strip(), "    " + lead + "^" * max(1, end - start)]


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """ "Did you mean 'x'?", or "" where nothing is near."""
    from difflib import get_close_matches  # only where an error is written

    near = get_close_matches(name, [c for c in candidates if c != name], n=1, cutoff=0.7)
    return f"Did you mean '{near[0]}'?" if near else ""
