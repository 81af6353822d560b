"""The table of claims is complete in form: every row names a test that exists, or says `not yet`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| ([a-z0-9-]+) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def rows() -> list[tuple[str, str, str]]:
    found = [m.groups() for m in ROW.finditer((ROOT / "tests/conformance/claims.md").read_text())]
    return [(a, b, c) for a, b, c in found if a != "id"]


def test_every_claim_names_a_test_that_exists_or_says_not_yet() -> None:
    functions: dict[str, set[str]] = {}
    for name, _, shown in rows():
        if shown == "not yet":
            continue
        for reference in re.findall(r"`([^`]+)`", shown) or [shown]:
            file, _, function = reference.partition("::")
            path = ROOT / file
            assert path.exists(), f"{name}: {file} does not exist"
            if path.suffix == ".py":
                if file not in functions:
                    functions[file] = {n.name for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)}
                assert function in functions[file], f"{name}: {file} has no {function}"
            else:
                assert f'TEST_CASE("{function}' in path.read_text(), f"{name}: {file} has no test case that starts with {function!r}"


def test_no_claim_is_named_twice() -> None:
    names = [name for name, _, _ in rows()]
    assert len(names) == len(set(names)) and len(names) > 120
