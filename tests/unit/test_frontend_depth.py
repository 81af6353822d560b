"""No pass calls itself on the depth of statements: thousands of arms, with hardly any room on Python's stack."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from frontend_env import DictEnvironment, kernel, source

from tack import types
from tack.frontend.capabilities import scan
from tack.frontend.meaning import ArrayArg
from tack.frontend.parse import parse
from tack.ir import interpret
from tack.ir.fma import form_fma
from tack.ir.nodes import Kernel
from tack.ir.text import to_text

ARMS = 2000
ROOM = 60  # frames that a pass has beyond those of its test
FORMS = {
    "elif": "        if x[i] == 0:\n            y = 0\n{elifs}        else:\n            y = -1\n        x[i] = y\n",
    "conditional expressions": "        x[i] = {conditional}-1\n",
    "operands": "        x[i] = {operands} or -(x[i] != 0)\n",
    "early returns": "        x[i] = f(x[i])\n",
    "early returns of a loop": "        x[i] = g(x[i])\n",
}
PARTS = {
    "elifs": "".join(f"        elif x[i] == {n}:\n            y = {n}\n" for n in range(1, ARMS)),
    "conditional": "".join(f"{n} if x[i] == {n} else " for n in range(ARMS)),
    "operands": " or ".join(f"(x[i] == {n}) * {n}" for n in range(ARMS)),
}
RETURNS = "".join(f"    if v == {n}:\n        return {n}\n" for n in range(ARMS))
FUNCTIONS = {
    "f": f"def f(v):\n{RETURNS}    return -1\n",
    "g": "def g(v):\n    for j in range(1):\n"
    + RETURNS.replace("    if", "        if").replace("        return", "            return")
    + "    return -1\n",
}


@pytest.fixture
def little_room() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + ROOM)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.parametrize("form", FORMS)
def test_passes_do_not_recurse_on_depth(form: str, little_room: None) -> None:
    text = "def k(x):\n    for i in range(len(x)):\n" + FORMS[form].format(**PARTS)
    made: Kernel = kernel(text, ArrayArg(types.i32, 1), **FUNCTIONS)  # parsed, made live, inferred, verified
    assert scan(parse(source(text)), DictEnvironment(FUNCTIONS)) == frozenset()
    assert to_text(made).count("\n") > ARMS
    form_fma(made)
    x = np.array([0, 1, ARMS // 2, ARMS - 1, ARMS, -5], np.int32)
    wanted = [int(v) if 0 <= v < ARMS else -1 for v in x]
    interpret.run(made, [x])
    assert x.tolist() == wanted
