"""Every Python block of README and docs runs, in the order of its page, and every link of theirs leads somewhere.

A text block right after a Python block is what that one prints, or the message of the error that it ends with; the block counts as
a file of its own, example.py. ``python tests/unit/test_docs.py`` writes these text blocks anew.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/backends").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    text = page.read_text()
    return [(text.count("\n", 0, m.start(2)) + 1, m.group(2)) for m in BLOCK.finditer(text) if m.group(1) == language]


def shown(page: Path) -> dict[int, re.Match[str]]:
    """The text blocks that show what the Python block before them prints, by that one's line."""
    text = page.read_text()
    found = list(BLOCK.finditer(text))
    return {
        text.count("\n", 0, code.start(2)) + 1: output
        for code, output in zip(found, found[1:], strict=False)
        if (code.group(1), output.group(1)) == ("python", "text") and not text[code.end() : output.start()].strip()
    }


def outputs(page: Path) -> Iterator[tuple[int, str]]:
    """Runs the page; what each block with a text block prints, with its line."""
    import tack

    before = tack.get_default_device()
    namespace: dict[str, object] = {"__name__": page.stem, "np": np}
    with_text = shown(page)
    try:
        for line, source in blocks(page, "python"):
            name = f"<{page.name}:{line}>"
            if line not in with_text:
                source = "\n" * (line - 1) + source  # tracebacks see the page's own line numbers
            linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                try:
                    exec(compile(source, name, "exec"), namespace)
                except Exception as error:
                    if line not in with_text or isinstance(error, AssertionError):
                        raise
                    printed.write(f"{error}\n")
            if line in with_text:
                yield line, re.sub(r"<[\w.-]+:\d+>", "example.py", printed.getvalue())
    finally:
        tack.set_default_device(before)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_blocks_run_and_print_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = shown(page)
    for line, printed in outputs(page):
        assert printed == expected[line].group(2), f"{page.name}:{line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", BLOCK.sub("", page.read_text())):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_page_is_listed_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    for page in PAGES[1:]:
        assert str(page.relative_to(ROOT)) in readme, page.name


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


def messages() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every message that the front end has in its text, as a pattern, with its place."""
    for file in sorted((ROOT / "python/tack/frontend").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                position = {"fail": 0, "no_common_type": 0, "refuse": 1, "error": 1, "_lacking": 2, "Unusable": 2}.get(name)
                if position is not None and len(node.args) > position:
                    pattern = as_pattern(node.args[position])
                    if len(pattern.replace(".+", "")) > 8:  # more than what other functions hand on
                        yield f"{file.name}:{node.lineno}", re.compile(pattern, re.DOTALL)


def as_pattern(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(as_pattern(value) for value in node.values)
    return ".+"


# What a page cannot show: another device's lack, a limit of Python's parser, a changed file, tack's own library.
NOT_SHOWN = (
    *("are not supported on", "is not supported on", "nests too deeply", "source", "it takes .+ arguments"),
    *("not a number", "is not known", "outside a loop", "threads on"),
)


def test_the_page_of_errors_has_an_example_of_every_message() -> None:
    page = ROOT / "docs/errors.md"
    texts = [match.group(2) for match in shown(page).values()]
    missing = [
        f"{place}: {pattern.pattern}"
        for place, pattern in messages()
        if not any(word in pattern.pattern.replace("\\ ", " ") for word in NOT_SHOWN) and not any(pattern.search(t) for t in texts)
    ]
    assert not missing, "\n".join(missing)


def rewrite() -> None:
    """Writes what the Python blocks print into the text blocks that follow them."""
    for page in PAGES:
        expected = shown(page)
        text = page.read_text()
        for line, printed in reversed(list(outputs(page))):
            match = expected[line]
            text = text[: match.start(2)] + printed + text[match.end(2) :]
        page.write_text(text)


if __name__ == "__main__":
    rewrite()
