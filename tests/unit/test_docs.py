"""Every Python block of README and docs runs, in the order of its page, and every link of theirs leads somewhere."""

from __future__ import annotations

import linecache
import os
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    text = page.read_text()
    return [(text.count("\n", 0, m.start(2)) + 1, m.group(2)) for m in BLOCK.finditer(text) if m.group(1) == language]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tack

    monkeypatch.chdir(tmp_path)
    before = tack.get_default_device()
    namespace: dict[str, object] = {"__name__": page.stem, "np": np}
    try:
        for line, source in blocks(page, "python"):
            padded = "\n" * (line - 1) + source  # tracebacks and kernels see the page's own line numbers
            name = f"<{page.name}:{line}>"
            linecache.cache[name] = (len(padded), None, padded.splitlines(keepends=True), name)
            exec(compile(padded, name, "exec"), namespace)
    finally:
        tack.set_default_device(before)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_page_is_listed_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    for page in PAGES[1:]:
        assert f"docs/{page.name}" in readme, page.name


def test_every_code_block_names_its_language() -> None:
    for page in PAGES:
        for match in BLOCK.finditer(page.read_text()):
            assert match.group(1) in {"python", "sh", "cpp", "cmake", "text", "ini"}, f"{page.name}: {match.group(0)[:60]!r}"


def test_readme_opens_with_two_command_lines() -> None:
    match = BLOCK.search((ROOT / "README.md").read_text())
    assert match is not None and match.group(2).splitlines() == [
        "pip install '.[demo]' && python -m tack demo",
        "pip install '.[test]' && pytest",
    ]
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_the_settings_page_is_the_runtimes_table(capsys: pytest.CaptureFixture[str]) -> None:
    from tack.__main__ import main

    assert main(["config", "--markdown"]) == 0
    assert capsys.readouterr().out in (ROOT / "docs/settings.md").read_text(), "run: python -m tack config --markdown"
