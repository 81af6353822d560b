"""Names in printed C: the user's own where they are legal and free, else the nearest that is."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Names", "legal"]

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def legal(text: str) -> str:
    """``text`` as a C identifier that no implementation has for itself: other characters become their code points."""
    name = "".join(c if c in _PLAIN else f"u{ord(c):x}_" for c in text).lstrip("_")
    while "__" in name:
        name = name.replace("__", "_")
    return name if name and not name[0].isdigit() else f"v{name}"


class Names:
    """Hands out names that are used once. ``reserved``: words of the language and what the printed code calls."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._taken = set(reserved)
        self._next: dict[str, int] = {}

    def new(self, hint: str) -> str:
        """``hint`` itself if it is free, else with a number behind it."""
        name = legal(hint)
        if name.startswith("tack_"):  # those are the printer's
            name = f"v_{name}"
        if name in self._taken:
            stem = name if name[-1] != "_" else name[:-1]
            k = self._next.get(stem, 1)
            while f"{stem}_{k}" in self._taken:
                k += 1
            self._next[stem] = k + 1
            name = f"{stem}_{k}"
        self._taken.add(name)
        return name
