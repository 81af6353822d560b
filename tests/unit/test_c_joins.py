"""Variables that printed C makes one: chains of conditions do not nest, and what is read or left in between keeps its own variable."""

from __future__ import annotations

import re

import pytest
from codegen_harness import Build
from dialect_kernels import LEVEL_ZERO, printed
from frontend_env import INT
from group_programs import grouped, loop

from tack import types as T
from tack.frontend.meaning import ArrayArg
from tack.ir import nodes as ir

I64 = ArrayArg(T.i64, 1)


def lines_of(body: str, head: str = "out, x, n") -> list[str]:
    """The statements of a loop's body, without directives."""
    text = printed(grouped(loop(body, head), I64, I64, *([INT] if "n" in head else []), target=LEVEL_ZERO), LEVEL_ZERO).text
    lines = text[text.index("__kernel") :].splitlines()[1:-1]
    return [line.strip() for line in lines if not line.startswith("#")][2:]


def deepest(lines: list[str]) -> int:
    depth = most = 0
    for line in lines:
        depth += line.count("{") - line.count("}")
        most = max(most, depth)
    return most


@pytest.mark.parametrize("count", [40, 1000])
@pytest.mark.parametrize("form", ["elif", "conditional", "or", "compared"])
def test_chains_do_not_nest(form: str, count: int) -> None:
    """Short ones of plain conditions are chains in C too; each link of others ends what goes around them."""
    if form == "elif":
        chain = "".join(f"elif x[i] == {k}:\n    v = {k} * n\n" for k in range(count))
        body = f"v = 0\nif x[i] < 0:\n    v = n\n{chain}else:\n    v = 7\nout[i] = v"
    elif form == "conditional":
        body = "out[i] = " + " ".join(f"{k} if x[i] == {k} else" for k in range(count)) + " 7"
    elif form == "or":
        body = "out[i] = " + " or ".join(f"(x[i] == {k}) * {k}" for k in range(count)) + " or n"
    else:
        body = f"out[i] = x[i] if 0 <= x[i]{' <= x[i]' * count} < n else -1"
    lines = lines_of(body)
    if count == 40 and form in ("elif", "conditional"):
        assert sum(line.startswith("} else if (x[i] == ") for line in lines) >= 38
    else:
        assert deepest(lines) <= (2 if count == 1000 else 45)
        assert lines.count("break;") >= (990 if count == 1000 else 0)


def test_several_variables_of_a_chain() -> None:
    first, second, last = (f"a = {a}\n    b = {b}\n    out[i] = a" for a, b in (("1", "n"), ("n", "2"), ("3", "3")))
    lines = lines_of(f"if x[i] > 2:\n    {first}\nelif x[i] > 1:\n    {second}\nelse:\n    {last}\nx[i] = a + b * n")
    assert [line for line in lines if "else" in line] == ["} else if (x[i] > 1) {", "} else {"]
    assert len([line for line in lines if re.match(r"i64 \w+ = 0;", line)]) == 2


WAYS = {
    "": True,
    "the target is read inside": False,
    "the target is read between": False,
    "an arm leaves": False,
    "an arm does not set it": False,
    "it is read again": False,
    "it was set before": False,
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_one_variable(way: str) -> None:
    """An inner ``if`` sets w, and v is set to it where the outer one's other arm sets v."""
    build = Build("k")
    x, out = build.array("x", T.i64), build.array("out", T.i64, 2)
    v, w = ir.Var("v", T.i64), ir.Var("w", T.i64)

    def arm(var: ir.Var, value: ir.Instr) -> None:
        build.set(var, value)
        build.store(out, value, build.i(0), i)

    with build.parallel((x, 0)) as (i,):
        build.set(v, build.i(4))
        if way == "it was set before":
            build.set(w, build.load(x, i))
        with build.loop(build.load(x, i)) as (_, k):
            with build.when(build.compare("lt", k, build.i(3))) as outer:
                arm(v, build.i(1))
            with build.into(outer.orelse):
                with build.when(build.compare("lt", k, build.i(5))) as inner:
                    arm(w, build.same("add", build.get(v), k) if way == "the target is read inside" else build.i(2))
                    if way == "an arm leaves":
                        build.continue_()
                with build.into(inner.orelse):
                    if way == "an arm does not set it":
                        build.store(out, k, build.i(1), i)
                    else:
                        arm(w, build.i(3))
                copied, before = build.get(w), build.get(v)
                build.set(v, copied)
                if way == "the target is read between":
                    build.store(out, before, build.i(2), i)
            build.store(out, build.get(v), build.i(3), i)
            if way == "it is read again":
                build.store(out, build.get(w), build.i(4), i)
    text = printed(build, LEVEL_ZERO).text
    assert ("} else if (k < 5) {" in text) == WAYS[way]
    assert ("v = w;" in text) != WAYS[way]
