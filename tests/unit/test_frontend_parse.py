"""Parsing: captured names, places, refusals of constructs, lambdas, deep nesting; and that a text is parsed once."""

from __future__ import annotations

import sys

import pytest
from frontend_env import source

from tack.errors import CompileError, CompileNotImplementedError
from tack.frontend.hir import ForNode, IfNode, Op
from tack.frontend.meaning import FunctionSource
from tack.frontend.parse import captured_names, parse


def ops(items: list) -> list[Op]:
    return [i for i in items if isinstance(i, Op)]


def test_a_text_is_parsed_once() -> None:
    a, b = source("def k(x):\n    x[0] = 1\n"), source("def k(x):\n    x[0] = 1\n")
    assert a is not b
    assert parse(a) is parse(b)
    assert parse(source("def k(x):\n    x[0] = 2\n")) is not parse(a)


def test_captured_names_are_free_names_with_their_attributes() -> None:
    text = """
    @tack.kernel(block=64)
    def k(x, n: "np.int32", m=DEFAULT) -> Result:
        '''Text with names: foo.bar'''
        g = G + math.pi * cfg.deep.RATE
        h: tack.f64 = x.shape[0]
        for i in range(n):
            (y := i)
            x[i] = helper(g, scale=K)[0].dtype + (lambda_free if x[i] > LIMIT else y.real)
        local.x = 3
    """.replace("        local.x = 3\n", "")
    assert captured_names(parse(source(text))) == (
        ":n:np:int32",
        "G",
        "K",
        "LIMIT",
        "cfg.deep.RATE",
        "helper",
        "lambda_free",
        "math.pi",
        "range",
        "tack.f64",
    )


def test_names_assigned_anywhere_are_local() -> None:
    fn = parse(source("def k(x):\n    x[0] = late\n    late = 1\n    for a, (b, c) in T:\n        pass\n    d += 1\n    e: int\n"))
    assert captured_names(fn) == ("T", "int")
    assert set(fn.names) == {"x", "late", "a", "b", "c", "d", "e"}


def test_places_are_those_of_the_file() -> None:
    text = "    @tack.kernel\n    def k(x):\n        x[0] = 'é' if ß else x[1]  # ü\n"
    with pytest.raises(CompileNotImplementedError) as caught:
        parse(FunctionSource("k", "k", "/y/z.py", 40, text))
    assert (caught.value.line, caught.value.column, caught.value.file, caught.value.kernel) == (42, 15, "/y/z.py", "k")
    fn = parse(FunctionSource("k", "k", "/y/z.py", 40, text.replace("'é'", "ä")))
    first = next(i for i in fn.body if isinstance(i, Op) and i.attr == ("ß",))
    assert (first.loc.line, first.loc.column, first.loc.end_column) == (42, 20, 21)


REFUSED = [
    ("y = [v for v in x]", "a list comprehension"),
    ("y = {v for v in x}", "a set comprehension"),
    ("y = {v: 1 for v in x}", "a dict comprehension"),
    ("y = max(v for v in x)", "a generator expression"),
    ("y = [1, 2]", "a list"),
    ("y = {1: 2}", "a dict"),
    ("y = {1, 2}", "a set"),
    ("try:\n        y = 1\n    except ValueError:\n        pass", "try"),
    ("raise ValueError", "raise"),
    ("with x:\n        pass", "with"),
    ("del x", "del"),
    ("match x:\n        case 1:\n            pass", "match"),
    ("def g():\n        pass", "a nested function"),
    ("y = lambda v: v", "a lambda"),
    ("class C:\n        pass", "a class"),
    ("import math", "import"),
    ("from math import sqrt", "import"),
    ("global g", "global"),
    ("nonlocal g", "nonlocal"),
    ("yield x", "yield"),
    ("yield from x", "yield from"),
    ("await x", "await"),
    ("y = x[1:]", "a slice"),
    ("y = x[1:, 0]", "a slice"),
    ("y = f'{x}'", "an f-string"),
    ("f(*x)", "a starred expression"),
    ("f(**x)", "** in a call"),
    ("a, *b = x", "a starred expression"),
    ("x.y = 1", "assignment to an attribute"),
    ("x.y += 1", "assignment to an attribute"),
    ("y = 'text'", "a string"),
    ("y = b'text'", "bytes"),
    ("y = 1j", "complex numbers"),
    ("y = x[...]", "..."),
    ("async with x:\n        pass", "async with"),
    ("async for i in x:\n        pass", "async for"),
    ("return\n    y = [1]", "a list"),  # what is never reached is looked at too
]


@pytest.mark.parametrize(("text", "what"), REFUSED, ids=[r[0].split("\n")[0] for r in REFUSED])
def test_refused_constructs(text: str, what: str) -> None:
    with pytest.raises(CompileNotImplementedError) as caught:
        parse(source(f"def k(x):\n    {text}\n"), kernel="outer")
    lines = str(caught.value).split("\n")
    assert lines[0].startswith(f"Kernel 'outer': {what} ")
    assert lines[0].endswith("not part of the kernel language.")
    assert lines[1].startswith('  File "/x/kernels.py", line 1')
    assert lines[2].strip() in text + " " + "\n".join(line.strip() for line in text.split("\n"))
    assert set(lines[3].strip()) == {"^"}
    assert lines[4].startswith("  ") and lines[4].endswith((".", ").", "]."))
    assert isinstance(caught.value, NotImplementedError)


@pytest.mark.parametrize("signature", ["*args", "**kwargs", "x, *, y, **z"])
def test_refused_parameters(signature: str) -> None:
    with pytest.raises(CompileNotImplementedError, match=r"\* and \*\* parameters are not part"):
        parse(source(f"def k({signature}):\n    pass\n"))


def test_async_kernels_and_loop_targets() -> None:
    with pytest.raises(CompileNotImplementedError, match="async def is not part"):
        parse(source("async def k(x):\n    pass\n"))
    with pytest.raises(CompileNotImplementedError, match="a loop variable must be a name"):
        parse(source("def k(x):\n    for x[0] in range(3):\n        pass\n"))


def test_a_text_without_the_function() -> None:
    with pytest.raises(CompileError, match="its source text holds no 'def k'"):
        parse(source("x = 1\n"))
    with pytest.raises(CompileError, match=r"its source cannot be parsed \(.*\)"):
        parse(source("def k(x:\n"))


@pytest.mark.parametrize(
    "text",
    [
        "f = tack.func(lambda v: v + G)\n",
        "    f = tack.func(lambda v: v + G)\n",
        "    tack.func(lambda v: v + G), 3\n",
        "    table=tack.func(lambda v: v + G),\n",
        "        g = call(3, tack.func(lambda v: (v +\n             G)))[0]\n",
        "    'a': tack.func(lambda v: v + G)}\n",
    ],
)
def test_lambdas(text: str) -> None:
    fn = parse(FunctionSource("<lambda>", "<lambda>", "/f.py", 7, text))
    assert captured_names(fn) == ("G",)
    assert [p.name for p in fn.params] == ["v"]
    path = ops(fn.body)[0]
    assert (path.loc.line, path.loc.column) == (7, text.split("\n")[0].index("v + G" if "v + G" in text else "v +"))


def test_two_lambdas_on_a_line_cannot_be_told_apart() -> None:
    with pytest.raises(CompileError, match="2 lambdas stand on the line"):
        parse(FunctionSource("<lambda>", "<lambda>", "/f.py", 7, "f, g = tack.func(lambda v: v), tack.func(lambda v: -v)\n"))


def test_early_returns_become_the_other_arm() -> None:
    fn = parse(source("def k(x):\n    if x > 2:\n        return 1\n    y = x\n    if y:\n        y += 1\n    return y\n"))
    assert not fn.early_returns
    (node,) = [i for i in fn.body if isinstance(i, IfNode)]
    assert len(node.orelse) > 3
    assert parse(source("def k(x):\n    for i in range(3):\n        return 1\n")).early_returns
    assert parse(source("def k(x):\n    if x:\n        if x > 2:\n            return 1\n    return 2\n")).early_returns


def test_liveness() -> None:
    text = (
        "def k(x):\n"
        "    a = b = c = 0\n"
        "    for i in range(3):\n"
        "        if x:\n"
        "            a = b\n"
        "        else:\n"
        "            a = c\n"
        "            t = 1\n"
        "        c = a\n"
        "    return c\n"
    )
    fn = parse(source(text))
    (loop,) = [i for i in fn.body if isinstance(i, ForNode)]
    (node,) = [i for i in loop.body if isinstance(i, IfNode)]

    def names(mask: int) -> set[str]:
        return {n for n in fn.names if fn.bits[n] & mask}

    assert names(loop.live_head) == {"x", "b", "c"}
    assert names(loop.live_out) == {"c"}
    assert names(loop.bound) == {"i", "a", "t", "c"}
    assert names(node.live_out) == {"x", "b", "a"}
    assert names(node.bound) == {"a", "t"}


def test_depth_costs_no_recursion_and_the_limit_is_restored() -> None:
    limit = sys.getrecursionlimit()
    chain = parse(source("def k(x):\n    return " + " + ".join(["x"] * 5000) + "\n"))
    assert sum(op.kind == "binary" for op in ops(chain.body)) == 4999
    conditions = parse(source("def k(x):\n    if " + " and ".join(["x"] * 2000) + ":\n        x[0] = 1\n"))
    assert sum(isinstance(i, IfNode) for i in conditions.body) == 2000  # one after the other: only their truth counts
    level, depth = parse(source("def k(x):\n    return " + " or ".join(["x"] * 2000) + "\n")).body, 0
    while inner := [i for i in level if isinstance(i, IfNode)]:  # operands meet at the end of the last
        level, depth = inner[0].orelse, depth + 1
    assert depth == 1999
    nested = parse(source("def k(x):\n    return " + "-(" * 180 + "x" + ")" * 180 + "\n"))
    assert sum(op.kind == "unary" for op in ops(nested.body)) == 180
    branches = (
        "def k(x):\n    if x == 0:\n        y = 0\n"
        + "".join(f"    elif x == {i}:\n        y = {i}\n" for i in range(1, 200))
        + "    else:\n        y = -1\n    x[0] = y\n"
    )
    assert captured_names(parse(source(branches))) == ()
    assert sys.getrecursionlimit() == limit


def test_an_expression_too_deep_for_pythons_parser_is_an_error_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.12 has a limit that no setting raises."""

    def too_deep(*_: object, **__: object) -> None:
        raise RecursionError("maximum recursion depth exceeded during ast construction")

    monkeypatch.setattr("tack.frontend.parse.compile", too_deep, raising=False)
    with pytest.raises(CompileError, match="nests too deeply for Python's own parser.\n  Split it into several statements"):
        parse(source("def k(x):\n    return x + 1 + 2\n"))
