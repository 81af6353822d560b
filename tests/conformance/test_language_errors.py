"""The kernel language: constructs outside it, the class of each error, the place that it shows and the cure that it names."""

from __future__ import annotations

import linecache
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from language import define, kernel, refused

import tack

CONSTRUCTS = [
    ("y = [i for i in range(3)]", "a list comprehension", "local_array"),
    ("y = {i for i in range(3)}", "a set comprehension", "for loop"),
    ("y = {i: i for i in range(3)}", "a dict comprehension", "for loop"),
    ("y = sum(i for i in range(3))", "a generator expression", "s += x[i]"),
    ("y = [1, 2]", "a list", "tuple"),
    ("y = {1: 2}", "a dict", "if/elif"),
    ("y = {1, 2}", "a set", "x == a or x == b"),
    ("try:\n    pass\nexcept ValueError:\n    pass", "try", "if"),
    ("raise ValueError", "raise", "assert"),
    ("with n:\n    pass", "with", "around the call"),
    ("del n", "del", "Leave"),
    ("match n:\n    case 1:\n        pass", "match", "if/elif/else"),
    ("def f():\n    pass", "a nested function", "@tack.func"),
    ("f = lambda v: v", "a lambda", "tack.func(lambda"),
    ("class C:\n    pass", "a class", "outside the kernel"),
    ("import os", "import", "top of the file"),
    ("from os import path", "import", "top of the file"),
    ("global G", "global", "return the value"),
    ("y = 'text'", "a string", "print and in the message of an assert"),
    ("y = f'{n}'", "an f-string", "print and"),
    ("y = b'bytes'", "bytes", "tack.u8"),
    ("y = 1j", "complex", "two floats"),
    ("y = x[0:2]", "a slice", "view"),
    ("y = x[...]", "...", "one index per dimension"),
    ("a, *b = (1, 2, 3)", "a starred expression", "one by one"),
    ("y = max(*(1, 2))", "a starred expression", "one by one"),
    ("y = dict(**n)", "**", "one by one"),
    ("y = n @ n", "@", "loops"),
    ("y = n in (1, 2)", "'in'", "x == a or x == b"),
    ("y = n is n", "'is'", "=="),
    ("x.data = 1", "attribute", "a[i] = value"),
    ("x = n\nfor i in x:\n    pass", "a for loop runs over", "range(n)"),
    ("for v in x:\n    pass", "a for loop runs over", "range(len(x))"),
    ("for i, v in enumerate(x):\n    pass", "enumerate", "index with i"),
    ("for v, w in zip(x, x):\n    pass", "zip", "index both"),
    ("y = sum(x)", "sum", "s += a[i]"),
    ("y = np.where(n, 1, 2)", "np.where", "if condition else"),
    ("y = np.zeros(3)", "np.zeros", "local_array"),
    ("y = round(1.5 * n, 2)", "round", "/ 100"),
    ("y = sorted(x)", "sorted", ""),
    ("y = os.getpid()", "getpid() has no meaning in a kernel", "call this one outside"),
    ("y = str(n)", "str", ""),
    ("y = x.copy()", "'copy'", ""),
    ("tack.array(n)", "array", ""),
]


@pytest.mark.parametrize(("statements", "what", "cure"), CONSTRUCTS, ids=[c[0].split("\n")[0] for c in CONSTRUCTS])
def test_constructs_outside_the_language(device: tack.Device, statements: str, what: str, cure: str) -> None:
    body = "\n".join("        " + line for line in statements.splitlines())
    text = f"\n    @tack.kernel\n    def k(x, n):\n        x[0] = 1\n{body}\n"
    message = refused(text, tack.CompileError, tack.zeros(3), 1, os=os)
    first, place, line, caret, *rest = message.split("\n")
    assert what in first and re.fullmatch(r'  File "<language-\d+>", line \d+', place) and set(caret.strip()) == {"^"}, message
    assert line.strip() in text and cure in "\n".join(rest), message


@pytest.mark.parametrize("statements", ["y = [1, 2]", "try:\n    pass\nexcept ValueError:\n    pass", "yield n", "await n"])
def test_they_are_not_implemented_errors_in_dead_code_too(device: tack.Device, statements: str) -> None:
    body = "\n".join("            " + line for line in statements.splitlines())
    text = f"\n    @tack.kernel\n    def k(x, n):\n        if False:\n{body}\n"
    if "yield" in statements:
        with pytest.raises(NotImplementedError, match="Kernel 'k'"):
            kernel(text)
    elif "await" in statements:
        with pytest.raises(NotImplementedError, match="Kernel 'k'"):
            kernel(text.replace("def k", "async def k"))
    else:
        refused(text, NotImplementedError, tack.zeros(3), 1)


CLASSES = [
    ("x[i] = y", NameError, tack.CompileNameError),
    ("x[i] = sqrt(x[i])", NameError, tack.CompileNameError),
    ("x[i] = tack.sqrrt(x[i])", NameError, tack.CompileNameError),
    ("x[i] = x + 1", TypeError, tack.CompileTypeError),
    ("x[i, 0] = 1", TypeError, tack.CompileTypeError),
    ("x[i] = tack.u64(1) + tack.i8(1)", TypeError, tack.CompileTypeError),
    ("y = [1]", NotImplementedError, tack.CompileNotImplementedError),
    ("x[i] = 1 // 0", tack.CompileError, tack.CompileError),
]


@pytest.mark.parametrize(("statement", "kind", "own"), CLASSES, ids=[c[0] for c in CLASSES])
def test_classes_and_attributes_of_errors(device: tack.Device, statement: str, kind: type[Exception], own: type[Exception]) -> None:
    k = kernel(f"# a comment\n@tack.kernel\ndef k(x):\n    for i in range(len(x)):\n        {statement}\n")
    with pytest.raises(kind) as info:
        k(tack.zeros(3))
    error = info.value
    assert isinstance(error, own) and isinstance(error, tack.CompileError)
    assert error.kernel == "k" and error.line == 5 and error.file is not None and error.file.startswith("<language-")
    assert error.column is not None and linecache.getline(error.file, 5)[error.column] not in " \n"


def test_the_place_is_that_of_the_users_file(device: tack.Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import tack\n\n\n# größe\n@tack.kernel\ndef k(größe):\n\tfor i in range(3):\n\t\tgröße[i] = größe[i] + fehlt\n"
    path = tmp_path / "place_of_errors.py"
    path.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__("place_of_errors")
    with pytest.raises(NameError) as info:
        module.k(tack.zeros(3))
    lines = str(info.value).split("\n")
    assert lines[:3] == ["Kernel 'k': name 'fehlt' is not defined.", f'  File "{path}", line 8', "    größe[i] = größe[i] + fehlt"]
    assert lines[3] == "    " + " " * 22 + "^^^^^"
    del sys.modules["place_of_errors"]  # the next device makes a file of its own


def test_names_of_funcs_and_kernels_are_told_apart(device: tack.Device) -> None:
    text = "@tack.kernel\ndef other(x):\n    x[0] = 1\n@tack.kernel\ndef k(x):\n    other(x)\n"
    assert "@tack.func" in refused(text, TypeError, tack.zeros(3))


def test_argument_errors_name_the_parameter(device: tack.Device) -> None:
    k = kernel("@tack.kernel\ndef k(x, n):\n    x[0] = n\n")
    for value, words in (
        ("text", "str"),
        ([1], "tack.array"),
        (1j, "complex"),
        (np.zeros(3, np.complex64), "complex64"),
        (tack.f32, "dtype"),
    ):
        with pytest.raises(TypeError, match="Kernel 'k': parameter 'n'") as info:
            k(tack.zeros(1), value)
        assert words in str(info.value)
    with pytest.raises(ValueError, match="ascontiguousarray"):
        k(np.zeros(4, ">f4"), 1)


def test_a_failed_compile_leaves_everything_usable(device: tack.Device) -> None:
    names = define("A = 1\n@tack.kernel\ndef k(x):\n    for i in range(len(x)):\n        x[i] = A\n")
    x = tack.zeros(2)
    names["k"](x)
    names["A"] = [1]
    for _ in range(2):
        with pytest.raises(tack.CompileError):
            names["k"](x)
    names["A"] = 3
    names["k"](x)
    assert x.tolist() == [3, 3]


# -- where kernels stand


def test_python_c_and_stdin(device: tack.Device, tmp_path: Path) -> None:
    text = (
        "import tack\n@tack.kernel\ndef k(x):\n    for i in range(len(x)):\n        x[i] = 7\nx = tack.zeros(2)\nk(x)\nprint(x.tolist())\n"
    )
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False)
    assert run.stdout == "[7.0, 7.0]\n", run.stderr
    piped = subprocess.run([sys.executable], input=text, capture_output=True, text=True, timeout=120, check=False)
    assert piped.returncode == 1 and "its source text is not available" in piped.stderr and ".py file or a notebook cell" in piped.stderr


def test_exec_with_and_without_its_source(device: tack.Device) -> None:
    text = "import tack\n@tack.kernel\ndef k(x):\n    x[0] = 7\n"
    x = tack.zeros(1)
    namespace: dict[str, Any] = {}
    exec(compile(text, "<no source>", "exec"), namespace)
    with pytest.raises(tack.CompileError, match=r"(?s)Kernel 'k': its source text is not available.*linecache"):
        namespace["k"](x)
    linecache.cache["<with source>"] = (len(text), None, text.splitlines(True), "<with source>")
    exec(compile(text, "<with source>", "exec"), namespace)
    namespace["k"](x)
    assert x[0] == 7


def test_decorators(device: tack.Device) -> None:
    define("@tack.kernel\ndef k(x):\n    pass\n")
    for above in (
        "@tack.kernel\n@staticmethod\n",
        "@tack.kernel\n@tack.kernel\n",
        "@tack.func\n@tack.kernel\n",
        "import functools\n@tack.kernel\n@functools.cache\n",
    ):
        with pytest.raises(TypeError, match="innermost decorator"):
            define(above + "def k(x):\n    pass\n")
    names = define("import functools\ndef plain(f):\n    return f\n@plain\n@tack.kernel\ndef k(x):\n    x[0] = 2\n")
    x = tack.zeros(1)
    names["k"](x)
    assert x[0] == 2


def test_a_body_without_instructions_is_found_and_refused(device: tack.Device) -> None:
    for signature in ("def k(x):", "def k(\n    x,\n):"):
        assert "global is not part" in refused(f"@tack.kernel\n{signature}\n    global total\n", NotImplementedError, tack.zeros(1))
