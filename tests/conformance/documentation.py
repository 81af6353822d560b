"""The text of the backends documentation, where that lies beside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest


def page(first: str, before: str) -> str:
    """The part of the page from the text ``first`` to the text ``before``; the test is skipped where the page is not at hand."""
    for folder in Path(__file__).resolve().parents:
        file = folder / "shared" / "spec" / "backends-page.txt"
        if file.is_file():
            text = file.read_text()
            start = text.index(first)
            return text[start : text.index(before, start)]
    pytest.skip("the documentation is not at hand (shared/spec/backends-page.txt); other tests say the same in our words")
