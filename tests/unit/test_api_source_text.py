"""The text of a function is found without inspect, wherever Python keeps it, and is what inspect would have found."""

from __future__ import annotations

import importlib
import inspect
import linecache
import os
import subprocess
import sys
import textwrap
import types
import zipfile
from pathlib import Path

import pytest

from tack.source_text import find_source

BODIES = {
    "plain": """
        def f(a):
            a[0] = 1
        """,
    "one line": """
        def f(a): a[0] = 1
        x = 2
        """,
    "decorators": """
        @mark
        @mark
        def f(a):
            return a
        """,
    "decorator over lines": """
        @mark_with(
            1,
            2,
        )
        def f(
            a,
            b=(1,
        2),
        ):
            return a
        """,
    "dedented continuation": """
        def f(a):
            b = [a,
        1,
        2]
            return b
        after = 1
        """,
    "dedented string": '''
        def f(a):
            b = """x
        y
        """
            return b
        ''',
    "comments": """
        def f(a):
            b = a
        # not indented
            c = b  # the end

            # indented, after the last statement
        # before the next
        def g():
            pass
        """,
    "trailing pass": """
        def f(a):
            if a:
                return 1
            else:
                pass
        y = 3
        """,
    "nested": """
        def f(a):
            def g(b):
                return (b +
        1)
            return g
        """,
    "async": """
        async def f(a):
            return a
        """,
    "indented": """
        if True:
            class C:
                @mark
                def f(self, a):
                    if a:
                        return 1
                    return 2
            f = C.f
        """,
    "tabs": "\ndef f(a):\n\tif a:\n\t\treturn 1\n\treturn 2\nz = 1\n",
    "form feed and separators": '\ndef f(a):\n    b = "\u2028\x0c"\n    return b\nz = 1\n',
}

PRELUDE = "def mark(f): return f\ndef mark_with(*_): return mark\n"


def load(tmp_path: Path, body: str, name: str = "subject", encoding: str = "utf-8", newline: str = "\n") -> types.ModuleType:
    path = tmp_path / f"{name}.py"
    path.write_bytes((PRELUDE + textwrap.dedent(body)).replace("\n", newline).encode(encoding))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_text_is_the_definition(tmp_path: Path, body: str, newline: str) -> None:
    f = load(tmp_path, body, newline=newline).f
    linecache.clearcache()
    found = find_source(f)
    assert found.problem == ""
    assert found.line == f.__code__.co_firstlineno
    assert (found.name, found.qualname, found.file) == ("f", f.__qualname__, f.__code__.co_filename)
    # Compiled alone it is the same function.
    namespace: dict[str, object] = {"mark": lambda g: g, "mark_with": lambda *_: lambda g: g}
    text = found.text if not found.text[0].isspace() else "if True:\n" + found.text
    exec(compile(text, "alone", "exec"), namespace)
    again = namespace["f"]
    assert isinstance(again, types.FunctionType)
    assert again.__code__.co_code == f.__code__.co_code and again.__code__.co_varnames == f.__code__.co_varnames
    # And nothing of what follows is in it.
    assert "def g():" not in found.text and "after" not in found.text.split("#")[0] and "\nz = 1" not in found.text


def test_text_agrees_with_inspect(tmp_path: Path) -> None:
    for name in ("plain", "decorators", "nested", "trailing pass"):
        f = load(tmp_path, BODIES[name], name.replace(" ", "_")).f
        linecache.clearcache()
        assert find_source(f).text == inspect.getsource(f)


@pytest.mark.parametrize(
    ("cookie", "encoding"),
    [("# -*- coding: latin-1 -*-\n", "latin-1"), ("", "utf-8-sig"), ("#!x\n# vim: set fileencoding=cp1252 :\n", "cp1252")],
)
def test_encodings(tmp_path: Path, cookie: str, encoding: str) -> None:
    path = tmp_path / "coded.py"
    path.write_bytes((cookie + "def f(größe):\n    return größe\n").encode(encoding))
    spec = importlib.util.spec_from_file_location("coded", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert "größe" in find_source(module.f).text


def test_notebook_cells_come_from_linecache() -> None:
    def cell(text: str) -> types.FunctionType:
        name = "<ipython-input-7>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        namespace: dict[str, types.FunctionType] = {}
        exec(compile(text, name, "exec"), namespace)
        return namespace["f"]

    first = find_source(cell("x = 1\ndef f(a):\n    return a + 1\n"))
    assert first.text == "def f(a):\n    return a + 1\n" and first.line == 2
    assert find_source(cell("def f(a):\n    return a + 2\n")).text == "def f(a):\n    return a + 2\n"


def test_zip_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "lib.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("zipped_subject.py", "x = 1\ndef f(a):\n    return a\n")
    monkeypatch.syspath_prepend(archive)
    assert find_source(importlib.import_module("zipped_subject").f).text == "def f(a):\n    return a\n"


def test_lambdas_give_their_statement(tmp_path: Path) -> None:
    f = load(tmp_path, "f = (\n    lambda a:\n    a + 1\n)\n").f
    found = find_source(f)
    assert "lambda a:" in found.text and "a + 1" in found.text


COMMAND = """
import tack
from tack.source_text import find_source

@tack.kernel
def f(x):
    x[0] = 7.0

def make():
    def inner(a):
        return a
    return inner

x = tack.zeros(1)
f(x)
assert x[0] == 7.0
assert find_source(make()).text.strip().startswith("def inner(a)")
exec("def f(x):\\n    x[0] = 8.0\\n")
assert not find_source(f).text
"""


@pytest.mark.parametrize("form", [["-c"], ["-Bc"], ["-X", "dev", "-c"], ["-Wignore", "-W", "ignore", "-Xutf8", "-Ic"]], ids=" ".join)
def test_commands(form: list[str]) -> None:
    if "-Ic" in form:  # isolated: it does not see PYTHONPATH
        command = f"import sys; sys.path[:0] = {sys.path!r}\n" + COMMAND
    else:
        command = COMMAND
    subprocess.run([sys.executable, *form, command, "-c", "rest"], check=True)


def test_a_command_attached_to_its_flag() -> None:
    subprocess.run([sys.executable, "-c" + COMMAND], check=True)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="from 3.13 on, linecache has the text of exec and -c")
def test_no_source_says_what_to_do() -> None:
    namespace: dict[str, types.FunctionType] = {}
    exec("def f(a):\n    return a\n", namespace)
    found = find_source(namespace["f"])
    assert found.text == "" and ".py file or a notebook cell" in found.problem and "exec()" in found.problem


def test_deleted_and_changed_files_are_told(tmp_path: Path) -> None:
    f = load(tmp_path, BODIES["plain"]).f
    path = Path(f.__code__.co_filename)
    path.write_text("# other\n" * 20)
    changed = find_source(f)
    assert changed.text == "" and "has changed since it was imported" in changed.problem
    path.unlink()
    linecache.clearcache()
    gone = find_source(f)
    assert gone.text == "" and "cannot be read" in gone.problem


def test_an_edited_and_reloaded_module_gives_the_new_text(tmp_path: Path) -> None:
    assert "return 1" in find_source(load(tmp_path, "def f(a):\n    return 1\n").f).text
    module = load(tmp_path, "def f(a):\n    return 22\n")
    os.utime(module.__file__ or "", ns=(1, 1))
    assert "return 22" in find_source(module.f).text


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules); import tack.source_text; import colorsys\n"
        "assert tack.source_text.find_source(colorsys.rgb_to_yiq).text.startswith('def rgb_to_yiq(r, g, b):')\n"
        "bad = {'inspect', 'ast', 'tokenize', 'linecache', 'dis', 're', 'numpy', 'llvmlite'} & (set(sys.modules) - before)\n"
        "assert not bad, bad"
    )
    root = Path(sys.modules["tack"].__file__ or "").parents[1]
    subprocess.run([sys.executable, "-c", code, str(root)], check=True)
