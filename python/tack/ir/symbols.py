"""How operations are written in Python: for the IR's text, schedules, and messages about the user's source."""

from __future__ import annotations

from typing import Final

__all__ = ["INFIX", "PREFIX"]

INFIX: Final = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "shl": "<<",
    "shr": ">>",
    "and": "&",
    "or": "|",
    "xor": "^",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
PREFIX: Final = {"neg": "-", "not": "~", "lnot": "not "}
