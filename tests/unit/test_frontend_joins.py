"""Where paths meet: the common type is that of the set of types, whatever the order; and what a pass over a loop refuses too early."""

from __future__ import annotations

import itertools
import textwrap
from typing import Any

import pytest
from frontend_env import FLOAT, INT, UINT, X32, X64, kernel

from tack import types
from tack.errors import CompileError
from tack.frontend.meaning import ArgType, ArrayArg, ScalarArg
from tack.frontend.promote import join_all, join_nums
from tack.frontend.values import W_FLOAT, W_INT, W_UINT, Num, Type
from tack.ir.nodes import Kernel
from tack.types import ARRAY_DTYPES, BOOL, f32, f64, i64, u64

ALL: tuple[Num, ...] = (*(Num(t) for t in (*ARRAY_DTYPES, BOOL, W_INT, W_UINT, W_FLOAT)), Num(i64, index=True))


def strong(t: types.DType) -> ArgType:
    return ScalarArg("strong", t)


def result(text: str, *args: ArgType) -> str:
    """The type of what the function ``k`` gives, whose loops are sequential."""
    made = called(text, *args)
    assert made.result is not None
    return made.result.type.name


def called(text: str, *args: ArgType, **names: Any) -> Kernel:
    """A kernel that calls the function ``k``."""
    text = textwrap.dedent(text).strip("\n")
    params = text[text.index("(") : text.index(")") + 1]
    return kernel(f"def k{params}:\n    return f{params}\n", *args, f=text.replace("def k(", "def f(", 1), **names)


@pytest.mark.parametrize("weak_float", [f32, f64])
def test_two_join_as_in_arithmetic(weak_float: types.DType) -> None:
    for a, b in itertools.product(ALL, ALL):
        pair = join_nums(a, b, weak_float)
        together = join_all([a, b], weak_float)
        assert (together[0] if together else None) is pair, (a.type, b.type)


@pytest.mark.parametrize("weak_float", [f32, f64])
def test_three_and_more_join_in_any_order(weak_float: types.DType) -> None:
    def written(nums: tuple[Num, ...]) -> tuple[Type, bool] | None:
        return join_all(list(nums), weak_float)

    for three in itertools.combinations(ALL, 3):
        assert len({written(order) for order in itertools.permutations(three)}) == 1, [n.type for n in three]
    for four in itertools.islice(itertools.combinations(ALL, 4), 0, None, 7):
        assert len({written(order) for order in itertools.permutations(four)}) == 1, [n.type for n in four]


def test_what_three_have_in_common() -> None:
    def name(*nums: Num | Type, weak_float: types.DType = f32) -> str:
        joined = join_all([n if isinstance(n, Num) else Num(n) for n in nums], weak_float)
        return "" if joined is None else joined[0].name

    index = Num(i64, index=True)
    assert name(i64, u64, f32) == "f32"  # a float holds what no integer type does
    assert name(i64, u64, W_FLOAT, weak_float=f64) == "f64"
    assert name(types.i32, W_FLOAT, f32, weak_float=f64) == "f32"  # weak ones yield to the strong float
    assert name(types.u8, types.i8, types.u16) == "i32"
    assert name(index, u64, W_INT) == "u64"
    assert name(index, u64, types.i32) == name(index, u64, i64) == ""
    assert name(index, index) == "i64"
    assert name(BOOL, W_INT, types.u8) == "u8"
    assert name(BOOL, BOOL) == "bool"
    assert name(W_INT, W_UINT, BOOL) == "uint"


ARMS = {"s": i64, "u": u64, "h": f32, "b": types.i8}
FORMS = {
    "elif": """
        def k(x, p, {params}):
            if p == 0:
                v = {0}
            elif p == 1:
                v = {1}
            else:
                v = {2}
            return v
        """,
    "nested": """
        def k(x, p, {params}):
            if p > 0:
                if p == 1:
                    v = {0}
                else:
                    v = {1}
            else:
                v = {2}
            return v
        """,
    "returns": """
        def k(x, p, {params}):
            if p == 0:
                return {0}
            if p == 1:
                return {1}
            return {2}
        """,
    "early returns": """
        def k(x, p, {params}):
            j = 0
            while j < p:
                if p == j:
                    return {0}
                if p == 7:
                    return {1}
                j += 1
            return {2}
        """,
    "loop": """
        def k(x, p, {params}):
            v = {0}
            while p > 0:
                if p == 1:
                    v = {1}
                else:
                    v = {2}
            return v
        """,
    "continue": """
        def k(x, p, {params}):
            v = {0}
            while p > 0:
                if p == 1:
                    v = {1}
                    continue
                v = {2}
            return v
        """,
    "break": """
        def k(x, p, {params}):
            v = {0}
            while p > 0:
                if p == 1:
                    v = {1}
                    break
            else:
                if p < 0:
                    v = {2}
            return v
        """,
    "unrolled": """
        def k(x, p, {params}):
            v = {0}
            for c in (1, 2):
                if p == c:
                    v = {1}
                    continue
                if p == -c:
                    v = {2}
            return v
        """,
    "or": """
        def k(x, p, {params}):
            return {0} or {1} or {2}
        """,
}


@pytest.mark.parametrize("form", FORMS)
def test_paths_that_meet_in_one_place_join_in_any_order(form: str) -> None:
    expected = {("s", "u", "h"): "f32", ("b", "u", "h"): "f32", ("s", "b", "h"): "f32", ("s", "u", "b"): ""}
    for names, wanted in expected.items():
        for order in itertools.permutations(names):
            text = textwrap.dedent(FORMS[form]).format(*order, params=", ".join(names))
            args = [X32, INT, *(strong(ARMS[n]) for n in names)]
            if wanted:
                assert result(text, *args) == wanted, (form, order)
            else:
                with pytest.raises(CompileError, match="do not join"):
                    called(text, *args)


def test_tuples_join_item_by_item() -> None:
    text = """
    def k(x, p, s, u, h):
        if p == 0:
            t = s, 1
        elif p == 1:
            t = u, 2.5
        else:
            t = h, 3
        return t[0] + t[1]
    """
    assert result(text, X64, INT, strong(i64), strong(u64), strong(f32)) == "f32"


def test_a_conflict_names_the_two_lines() -> None:
    text = """
    def k(x, p, s, u, b):
        if p == 0:
            v = b
        elif p == 1:
            v = u
        else:
            v = s
        return v
    """
    with pytest.raises(CompileError) as info:
        kernel(text, X32, INT, strong(i64), strong(u64), strong(types.i8))
    assert "the result is a tack.i8 value from line 12 and a tack.u64 value from line 14, which do not join" in str(info.value) or (
        "'v' is a tack.i8 value from line 12 and a tack.u64 value from line 14, which do not join" in str(info.value)
    )


# What is refused with a type that the loop's head does not have in the end.
LATER = {
    "a constant that fits the joined type only": """
        def k(x, v, w, n):
            s = 0
            for j in range(n):
                s += v % -6
                v = v + w
            return s
        """,
    "the same, by the name's own assignment": """
        def k(x, v, w, n):
            for j in range(n):
                v = v % -6 + w
            return v
        """,
    "two that do not join until one is a float": """
        def k(x, v, w, n):
            s = v
            t = 1
            for j in range(n):
                t = s + tack.u64(3)
                s = s + 0.5 if n > 3 else s
            return t
        """,
    "in a condition": """
        def k(x, v, w, n):
            s = 0
            for j in range(n):
                if v > 2 and v % -6 == 0:
                    v = v + w
            return v
        """,
    "in the bounds of a loop": """
        def k(x, v, w, n):
            s = 0
            for j in range(n):
                for m in range(v % -6, 4):
                    s += v
                v = v + w
            return s
        """,
    "in a while": """
        def k(x, v, w, n):
            while v % -6 < n:
                v = v + w
            return v
        """,
    "in an inner loop": """
        def k(x, v, w, n):
            s = 0
            for j in range(n):
                for m in range(n):
                    s += v % -6
                    t = s
                    s = t
                v = v + w
            return s
        """,
    "in a loop over a tuple": """
        def k(x, v, w, n):
            s = 0
            for j in range(n):
                for c in (-6, 3):
                    s += v % c
                v = v + w
            return s
        """,
    "of a tuple": """
        def k(x, v, w, n):
            s = 0
            for j in range(n):
                a, b = divmod(v, -6)
                s += a + b
                v = v + w
            return s
        """,
    "in a step": """
        def k(x, v, w, n):
            s = 0
            for t in tack.sequential(n):
                for i in range(n):
                    x[i] = v % -6
                v = v + w
            return v
        """,
    "in a reduction": """
        def k(x, v, w, n):
            s = v
            for i in range(n):
                s += -6
                s += w
            return s
        """,
}


@pytest.mark.parametrize("what", LATER)
def test_only_the_last_pass_over_a_loop_refuses(what: str) -> None:
    v, w = (types.u16, types.i32) if "float" not in what else (i64, i64)
    infer = kernel if what.startswith("in a step") or what.startswith("in a reduction") else called
    made = infer(LATER[what], X32, strong(v), strong(w), INT)
    assert made.result is not None
    assert made.result.type.name in ("i32", "i64", "f32")


STILL = {
    "v = v + tack.u8(1)\n                s += v % -6": "-6 does not fit tack.u16",
    "s += v % -6\n                v = w": "-6 does not fit tack.u16",
    "v = v + tack.i64(1)\n                s += v + tack.u64(2)": r"\+ of tack.u64 and tack.i64|\+ of tack.i64 and tack.u64",
    "v = nothing + v\n                s += v": "name 'nothing' is not defined",
    "v = v + v.shape": "has no attribute 'shape'",
    "if x:\n                    v += w": "has no truth value",
    "s, v = v": "cannot be unpacked",
    "x[j, j] = v % -6": "-6 does not fit tack.u16",
    "x[j] = s[0]\n                s = v": "cannot be indexed",
}


@pytest.mark.parametrize("lines", STILL)
@pytest.mark.parametrize("outer", ["for j in range(n)", "while n > 3", "for m in range(n):\n        for j in range(n)", "for j in (1, 2)"])
def test_what_the_last_pass_refuses_is_refused(lines: str, outer: str) -> None:
    """The first of the refusals is the error, as if there had been one pass."""
    inside = textwrap.indent(textwrap.dedent("                " + lines), " " * 12)
    text = f"def k(x, v, w, n):\n    s = 0\n    j = 0\n    {outer}:\n{inside}\n    return s\n"
    with pytest.raises(CompileError, match=STILL[lines]):
        called(text, X32, strong(types.u16), strong(types.u16), INT)


@pytest.mark.parametrize("lines", STILL)
def test_what_the_last_pass_over_steps_refuses_is_refused(lines: str) -> None:
    inside = textwrap.indent(textwrap.dedent("                " + lines), " " * 12)
    text = f"def k(x, v, w, n):\n    s = 0\n    j = 0\n    for t in tack.sequential(n):\n{inside}\n    return s\n"
    with pytest.raises(CompileError, match=STILL[lines]):
        kernel(text, X32, strong(types.u16), strong(types.u16), INT)


def test_types_that_travel_through_many_names_settle() -> None:
    names = [f"v{k}" for k in range(40)]
    lines = ["def k(x, n, w):", *(f"    {name} = 0" for name in names), "    for j in range(n):"]
    lines += [f"        {a} = {b}" for a, b in itertools.pairwise(names)]
    lines += ["        v39 = w", "    return v0"]
    assert result("\n".join(lines), X32, INT, strong(types.i16)) == "i16"


# A condition is known at compile time if it is made of constants, types and None; not because a type's range decides it.
@pytest.mark.parametrize(
    "condition",
    ["v < 300", "v >= 0", "-1 < v", "300 != v", "v == -1", "len(x) > -(2**64)", "b < 2**70", "not v < 300", "v < 300 and v >= 0"],
)
def test_a_comparison_that_a_range_decides_joins_both_arms(condition: str) -> None:
    text = f"""
    def k(x, v, b, h):
        if {condition}:
            r = v
        else:
            r = h
        return r
    """
    assert result(text, X64, strong(types.u8), INT, strong(f64)) == "f64"
    with pytest.raises(CompileError, match="may be unbound"):
        kernel(f"def k(x, v, b):\n    if {condition}:\n        r = v\n    return r\n", X32, strong(types.u8), INT)


@pytest.mark.parametrize(
    "condition",
    [
        "SMALL < 300",
        "SMALL * 2 == SMALL + SMALL",
        "SHORT < 0 and SMALL > 0",
        "tack.i8(200) < 0",
        "abs(SHORT) == 300",
        "max(SMALL, 3) == 200",
        "SMALL << 1 == 144",
        "SHORT // 0 == 0",
        "SMALL ** 2 == 64",
        "~SHORT == 299",
        "HALF + HALF == 1.0",
        "HALF * 0.25 < 1",
        "HALF ** 2 == 0.25",
        "-HALF < 0 and 1 / HALF == 2",
        "v.dtype == tack.u8",
        "x.ndim == 1",
        "len((1, 2)) == 2",
        "b is not None",
    ],
)
def test_what_is_made_of_constants_is_known(condition: str) -> None:
    from tack.frontend.meaning import Constant

    text = f"def k(x, v, b, h):\n    if {condition}:\n        r = v\n    else:\n        r = h.nothing\n    return r\n"
    names = {"SMALL": Constant(200, types.u8), "SHORT": Constant(-300, types.i16), "HALF": Constant(0.5, f32)}
    made = kernel(text, X32, strong(types.u8), INT, FLOAT, **names)
    assert made.result is not None
    assert made.result.type.name == "u8"


def test_a_weak_uint_meets_what_is_weak() -> None:
    text = "def k(x, p, u):\n    if p:\n        r = u\n    elif p > 1:\n        r = True\n    else:\n        r = 3\n    return r\n"
    assert result(text, X32, INT, UINT) == "u64"


def test_types_of_an_earlier_pass_are_forgotten() -> None:
    """In the first pass ``s`` is a weak int and ``j + s`` an i64; with the u64 that ``s`` turns out to be, ``v`` is a u64 in all loops."""
    text = """
    def k(n, u):
        s = 1
        for j in range(n):
            v = j % (j + s)
            w = 0
            while w < 2:
                w += 1
                v += 1
            s = s + (u ^ tack.u64(v))
        return s
    """
    assert result(text, INT, UINT) == "u64"


@pytest.mark.parametrize("width", ["tack.i8", "tack.u8"])
@pytest.mark.parametrize(
    "line",
    [
        "x |= abs(tack.bitcast(s, WIDTH))",
        "x = tack.i64(tack.bitcast(s, WIDTH))",
        "x += (s >> 1) * (tack.bitcast(s, WIDTH) > 2)",
    ],
)
def test_what_a_refused_operation_gives_has_a_type_in_passes_that_are_not_the_last(line: str, width: str) -> None:
    """s is an i64 in the first pass, whose bits no 8 hold, and a u8 from then on: only what the loop does later says so (seed 9000882)."""
    text = f"""
        def k(out, y):
            for i in range(len(out)):
                x = y[i]
                s = (x < 3) + 10
                for j in range(x % 5):
                    {line}
                    s = s * tack.u8(tack.u8(1) - (x < 2))
                out[i] = x
    """.replace("WIDTH", width)
    wide = ArrayArg(i64, 1)
    kernel(textwrap.dedent(text).strip("\n"), wide, wide)
