"""Types of values, weak numbers, joins, ranges of parameters, and what programs compute, by the IR's interpreter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from frontend_env import BOOL, CPU, FLOAT, I32, INT, NONE, UINT, X32, X64, DictEnvironment, kernel, source

from tack import types
from tack.frontend.infer import infer, infer_function
from tack.frontend.meaning import ArgType, ArrayArg, Constant, Opaque, ScalarArg
from tack.frontend.parse import parse
from tack.ir.fma import form_fma
from tack.ir.interpret import evaluate, run
from tack.ir.nodes import For, If, Instr, Kernel, ScalarParam
from tack.ir.text import to_text
from tack.ir.verify import verify, verify_function

NP = {
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "f32": np.float32,
    "f64": np.float64,
}


def array(dtype: str, rank: int = 1) -> ArrayArg:
    return ArrayArg(types.by_name(dtype), rank)


def value(expression: str, *args: Any, before: str = "", **names: Any) -> Any:
    """What a kernel returns for an expression of x, y, z: Python numbers, or NumPy scalars as strong ones."""
    kinds: list[ArgType] = []
    for a in args:
        if isinstance(a, np.generic):
            kinds.append(ScalarArg("strong", types.by_name({v: k for k, v in NP.items()}[type(a)])))
        else:
            kinds.append(ScalarArg("bool" if isinstance(a, bool) else "uint" if isinstance(a, int) and a >= 1 << 63 else type(a).__name__))
    lines = "".join(f"    {line}\n" for line in before.splitlines())
    k = kernel(f"def k({', '.join('xyz'[: len(args)])}):\n{lines}    return {expression}\n", *kinds, **names)
    assert k.result is not None
    return run(k, [a.item() if isinstance(a, np.generic) else a for a in args]), k.result.type.name


def result_type(expression: str, **dtypes: str) -> str:
    """The dtype of an expression of elements of arrays with the given dtypes."""
    parameters = ", ".join(dtypes)
    body = "".join(f"    {n}_ = {n}[0]\n" for n in dtypes)
    k = kernel(f"def k({parameters}):\n{body}    return {expression}\n", *[array(d) for d in dtypes.values()])
    assert k.result is not None
    return k.result.type.name


# --- types ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("i8", "i32", "i32"),
        ("u8", "i8", "i16"),
        ("u32", "i32", "i64"),
        ("u32", "i64", "i64"),
        ("u8", "u32", "u32"),
        ("i64", "f32", "f32"),
        ("u64", "f64", "f64"),
        ("f32", "f64", "f64"),
    ],
)
def test_promotion_of_two_strong_types(a: str, b: str, expected: str) -> None:
    assert result_type("p_ + q_", p=a, q=b) == expected
    assert result_type("q_ * p_", p=a, q=b) == expected
    assert result_type("p_ if p_ > 0 else q_", p=a, q=b) == expected


@pytest.mark.parametrize(
    ("expression", "dtypes", "expected"),
    [
        ("p_ * 0.5", {"p": "f32"}, "f32"),
        ("p_ * 2", {"p": "i8"}, "i8"),
        ("p_ * 0.5", {"p": "i32"}, "f32"),  # strong: the kernel's weak-float type
        ("p_ * 0.5", {"p": "i32", "q": "f64"}, "f64"),
        ("p_ / 2", {"p": "i32"}, "f32"),
        ("p_ / q_", {"p": "i32", "q": "f64"}, "f64"),
        ("tack.sqrt(2.0) * p_", {"p": "f32"}, "f32"),
        ("tack.sqrt(p_)", {"p": "i32"}, "f32"),
        ("1.5", {"p": "f64"}, "f64"),
        ("1.5", {"p": "f32"}, "f32"),
        ("float(1)", {"p": "f32"}, "f32"),
        ("tack.f64(1) * 0 + 1.5", {"p": "f32"}, "f64"),
        ("1", {"p": "f32"}, "i64"),
        ("len(p)", {"p": "f32"}, "i64"),
        ("len(p) + p_", {"p": "u64"}, "u64"),
        ("p.shape[0] * p_", {"p": "u64"}, "u64"),
        ("p_ > 1", {"p": "u64"}, "bool"),
        ("(p_ > 1) + (p_ > 2)", {"p": "f32"}, "i64"),
        ("(p_ > 1) & (p_ > 2)", {"p": "f32"}, "bool"),
        ("(p_ > 1) + p_", {"p": "i8"}, "i8"),
        ("p_ << q_", {"p": "u8", "q": "i64"}, "u8"),
        ("p_ ** q_", {"p": "i16", "q": "u64"}, "i16"),
        ("1 << p_", {"p": "u32"}, "u32"),
        ("-(p_ > 1)", {"p": "f32"}, "i64"),
        ("math.floor(p_)", {"p": "f32"}, "i64"),
        ("tack.floor(p_)", {"p": "f32"}, "f32"),
        ("round(p_)", {"p": "f64"}, "i64"),
        ("np.round(p_)", {"p": "f32"}, "f32"),
        ("min(p_, 3)", {"p": "u8"}, "u8"),
        ("max(p_, q_, 1.0)", {"p": "u8", "q": "i8"}, "f32"),
        ("tack.clz(p_)", {"p": "u16"}, "u16"),
        ("tack.bitcast(p_, tack.u32)", {"p": "f32"}, "u32"),
        ("tack.isnan(p_)", {"p": "f32"}, "bool"),
        ("p_ and q_", {"p": "i8", "q": "i16"}, "i16"),
        ("np.float64(p_)", {"p": "f32"}, "f64"),
        ("2 ** p_", {"p": "f32"}, "f32"),
    ],
)
def test_result_types(expression: str, dtypes: dict[str, str], expected: str) -> None:
    assert result_type(expression, **dtypes) == expected


def test_a_comparison_with_f64_alone_makes_no_weak_float_f64() -> None:
    assert result_type("1.5 if p.dtype == tack.f64 else 2.5", p="f32") == "f32"


def test_weak_floats_are_f64_where_a_function_that_is_never_run_casts_to_f64() -> None:
    k = kernel("def k(x, n):\n    if False:\n        n = f(n)\n    return 0.1\n", X32, INT, f="def f(v):\n    return tack.f64(v)\n")
    assert k.result is not None
    assert k.result.type is types.f64
    assert k.uses == {"f64"}


def test_a_strong_captured_constant_decides() -> None:
    k = kernel("def k(x):\n    return G\n", X32, G=Constant(3, types.u8))
    assert k.result is not None
    assert k.result.type is types.u8
    assert "f64" in kernel("def k(x):\n    return G\n", X32, G=Constant(0.1, types.f64)).uses


# --- numbers ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "args", "expected"),
    [
        ("x // y", (7, -2), (-4, "i64")),
        ("x % y", (7, -2), (-1, "i64")),
        ("x // 0 + x % 0", (7,), (0, "i64")),
        ("x << y", (np.uint8(255), 1), (254, "u8")),
        ("x << 300", (np.int32(1),), (0, "i32")),
        ("x >> 300", (np.int32(-1),), (-1, "i32")),
        ("x >> y", (np.int8(-8), np.int64(256)), (-1, "i8")),
        ("x << y", (np.int8(1), np.int64(-256)), (0, "i8")),
        ("x << y", (np.uint8(1), np.int64(3)), (8, "u8")),
        ("x ** y", (np.int8(3), np.int64(5)), (243 - 256, "i8")),
        ("x ** y", (np.uint8(3), np.int8(-1)), (0, "u8")),
        ("x ** y", (np.int32(2), np.uint32(3_000_000_000)), (0, "i32")),
        (
            "x ** y",
            (np.int32(3), np.uint64(2**64 - 1)),
            (pow(3, 2**64 - 1, 2**32) - (2**32 if pow(3, 2**64 - 1, 2**32) >> 31 else 0), "i32"),
        ),
        ("x ** 2 + x ** 3", (5,), (150, "i64")),
        ("x ** 2", (1.5,), (2.25, "f32")),
        ("x * y", (np.uint32(2**31), np.uint32(2)), (0, "u32")),
        ("x == -1", (np.uint64(2**64 - 1),), (False, "bool")),
        ("x > -1", (np.uint64(0),), (True, "bool")),
        ("x < 300", (np.uint8(255),), (True, "bool")),
        ("x < y", (np.int64(-1), np.uint64(0)), (True, "bool")),
        ("x >= y", (np.int64(-1), np.uint64(0)), (False, "bool")),
        ("x < y", (np.uint64(2**63), np.int64(5)), (False, "bool")),
        ("x != y", (np.uint64(2**64 - 1), np.int64(-1)), (True, "bool")),
        ("y > x", (np.uint64(2**64 - 1), np.int64(-1)), (False, "bool")),
        ("x + 1", (2**63,), (2**63 + 1, "u64")),
        ("x == 2**63", (2**63,), (True, "bool")),
        ("tack.i8(x)", (300,), (44, "i8")),
        ("tack.u32(-1)", (), (2**32 - 1, "u32")),
        ("tack.i8(x)", (3e9,), (127, "i8")),
        ("int(x)", (-2.7,), (-2, "i64")),
        ("int(2.7) + tack.i32(-2.7)", (), (0, "i64")),
        ("bool(x)", (0.5,), (True, "bool")),
        ("x == y", (True, False), (False, "bool")),
        ("x < y", (False, True), (True, "bool")),
        ("x + y", (True, True), (2, "i64")),
        ("abs(x)", (-3,), (3, "i64")),
        ("round(x)", (2.5,), (2, "i64")),
        ("math.trunc(x) + math.ceil(x) + math.floor(x)", (-2.5,), (-7, "i64")),
        ("min(x, 2, 7) + max(x, 2)", (5,), (7, "i64")),
        ("min(x, y)", (math.nan, 1.0), (1.0, "f32")),
        ("x or y", (0, 7), (7, "i64")),
        ("x and y", (3, 0), (0, "i64")),
        ("not x", (3,), (False, "bool")),
        ("1 < x < 5 <= y", (3, 5), (True, "bool")),
        ("divmod(x, y)[1]", (-7, 3), (2, "i64")),
        ("2 ** 70 // 2 ** 68", (), (4, "i64")),
        ("7 / 2", (), (3.5, "f32")),
        ("2 ** -1", (), (0.5, "f32")),
        ("tack.rotl(x, y)", (np.uint8(0x81), 9), (3, "u8")),
        ("tack.popcount(x)", (255,), (8, "i64")),
        ("tack.mulhi(x, x)", (np.uint32(2**31),), (2**30, "u32")),
        ("tack.add_sat(x, y)", (np.int8(100), np.int8(100)), (127, "i8")),
        ("math.log(x, 2)", (8.0,), (3.0, "f32")),
        ("tack.isnan(math.sqrt(-1.0))", (), (True, "bool")),
        ("np.minimum(x, y) != np.minimum(x, y)", (math.nan, 1.0), (True, "bool")),
        ("T[x] + T[-1]", (1,), (7, "i64")),
        ("len(T)", (), (3, "i64")),
        ("tack.i32.max", (), (2**31 - 1, "i64")),
        ("~x", (np.uint8(1),), (254, "u8")),
        ("x ^ y", (True, True), (False, "bool")),
        ("x | y", (6, True), (7, "i64")),
        ("(x := 3) + x", (5,), (6, "i64")),
    ],
)
def test_values(expression: str, args: tuple[Any, ...], expected: tuple[Any, str]) -> None:
    assert value(expression, *args, T=(1, 3, 4)) == expected


def test_integer_parameters_have_the_range_of_the_narrower_type_that_they_meet() -> None:
    def ranges(text: str, *args: ArgType) -> list[tuple[int | None, int | None]]:
        return [(p.low, p.high) for p in kernel(text, *args).params if isinstance(p, ScalarParam)]

    store = "def k(a, n):\n    for i in range(len(a)):\n        a[i] = {}\n"
    assert ranges(store.format("n"), array("i8"), INT) == [(-128, 127)]
    assert ranges(store.format("a[i] + n"), array("u8"), INT) == [(0, 255)]
    assert ranges(store.format("a[i] * (n + 1)"), array("i8"), INT) == [(None, None)]  # computed from it: wraps
    assert ranges(store.format("a[i] * tack.i8(n)"), array("i8"), INT) == [(None, None)]  # a cast wraps
    assert ranges(store.format("n"), array("i64"), INT) == [(None, None)]
    assert ranges(store.format("n"), array("u64"), INT) == [(0, 2**63 - 1)]
    assert ranges(store.format("n"), array("f32"), INT) == [(None, None)]
    assert ranges(store.format("1 if a[i] < n else 0"), array("i8"), INT) == [(None, None)]  # comparisons are exact
    assert ranges("def k(a, n: tack.i16):\n    return n\n", array("i8"), INT) == [(-(2**15), 2**15 - 1)]
    # The type that counts is the last one of the loop's passes: t is i32 at the loop's head, not i8.
    text = (
        "def k(a, b, n):\n"
        "    for i in range(2):\n"
        "        t = a[0]\n"
        "        for j in range(3):\n"
        "            b[j] = t + n\n"
        "            t = b[j]\n"
    )
    assert ranges(text, array("i8"), array("i32"), INT) == [(-(2**31), 2**31 - 1)]


def test_arguments_read_by_instructions_are_the_kernels_parameters() -> None:
    k = kernel("def k(a, n):\n    for i in range(n):\n        a[i] = n\n", array("i8"), INT)
    body = k.items[0].body.body
    (arg,) = [i for i in body if isinstance(i, Instr) and i.op == "arg"]
    assert arg.attr is k.params[1]


def test_annotations_convert_parameters_and_locals() -> None:
    assert value("x", 1.9, before="x: 'tack.i32' = x") == (1, "i32")
    assert value("y", 7, before="y: tack.u8 = x + 250") == (1, "u8")
    assert value("y", 7, before="y: list[int] = x\nz: int") == (7, "i64")
    k = kernel("def k(n: tack.f64):\n    return n\n", FLOAT)
    assert k.result is not None
    assert k.result.type is types.f64


# --- names and joins --------------------------------------------------------------------------------------------------------------


def test_a_name_has_the_type_of_its_latest_assignment() -> None:
    assert value("y", 3, before="y = x\ny = y * 0.5\ny = y > 1") == (True, "bool")


def test_weak_numbers_yield_where_paths_meet() -> None:
    text = (
        "def k(x):\n"
        "    t = 0\n"
        "    for i in range(3):\n"
        "        s = 0\n"
        "    u = 0\n"
        "    v = 1\n"
        "    if x[0] > 0:\n"
        "        u = x[0]\n"
        "        v = 2\n"
        "    return u\n"
    )
    with pytest.raises(NotImplementedError):
        kernel(
            text.replace("range(3)", "tack.sequential(3)").replace(
                "        s = 0", "        while t < 3:\n            for j in range(3):\n                t += 1"
            ),
            X32,
        )
    k = kernel(text, X32)
    assert k.result is not None
    assert k.result.type is types.f32


def test_loop_heads_reach_a_fixed_point() -> None:
    text = """
def k(a, b, out):
    for i in range(len(out)):
        t = 0
        u = 0
        for j in range(3):
            for l in range(2):
                out[i] += t
                t = u
                u = a[l]
            u += b[j] * 0.25
        out[i] += t
"""
    k = kernel(text, I32, X32, X64)
    variables = {node.attr.name: node.attr.type.name for node in walk(k) if isinstance(node, Instr) and node.op == "set"}
    assert variables["t"] == variables["u"] == "f32"
    a, b, out = np.array([2, 3], np.int32), np.array([1, 2, 3], np.float32), np.zeros(1)
    run(k, [a, b, out])
    t = u = expected = 0.0
    for j in range(3):
        for m in range(2):
            expected += t
            t, u = u, float(a[m])
        u += b[j] * 0.25
    assert out[0] == expected + t


def walk(k: Kernel) -> list[Any]:
    """All nodes of a kernel, in no order."""
    found: list[Any] = []
    work: list[Any] = list(k.items)
    while work:
        item = work.pop()
        found.append(item)
        for name in ("body", "then", "orelse", "test", "items"):
            inner = getattr(item, name, None)
            if inner is not None:
                work += inner if isinstance(inner, list) else inner.body
    return found


def test_after_a_loop_that_surely_runs_its_names_are_bound() -> None:
    assert value("y + i", 5, before="y = 0\nwhile True:\n    i = 3\n    y = i + x\n    break") == (11, "i64")
    text = "def k(a):\n    for i in range(len(a)):\n        for j in range(3):\n            t = j * 2\n        a[i] = t + j\n"
    out = np.zeros(2, np.float32)
    run(kernel(text, X32), [out])
    assert list(out) == [6, 6]


def test_what_is_dead_is_not_joined() -> None:
    """A name that no later statement reads may have types that do not join, and needs no variable."""
    text = (
        "def k(a, b):\n"
        "    for i in range(len(a)):\n"
        "        if a[i] > 3:\n"
        "            t = a[i]\n"
        "            a[i] = t + 1\n"
        "        else:\n"
        "            t = b[i]\n"
        "            b[i] = t + 1\n"
    )
    k = kernel(text, array("u64"), array("i64"))
    assert not [n for n in walk(k) if isinstance(n, Instr) and n.op in ("set", "select")]


def test_locals_are_values_and_not_variables() -> None:
    k = kernel(
        "def k(a, b):\n    for i in range(len(a)):\n        t = a[i] * 2\n        u = t + 1\n        t = u * u\n        b[i] = t\n",
        X32,
        X32,
    )
    assert {n.op for n in walk(k) if isinstance(n, Instr)} == {"shape", "get", "load", "const", "mul", "add", "store"} - {"shape"}


def test_cheap_arms_become_selects_and_loads_stay_where_they_are() -> None:
    k = kernel(
        (
            "def k(a, b):\n"
            "    for i in range(len(a)):\n"
            "        b[i] = a[i] * 2 if a[i] > 0 else -a[i]\n"
            "        t = b[i]\n"
            "        b[i] = t if t < 1 else 1\n"
        ),
        X32,
        X32,
    )
    assert len([n for n in walk(k) if isinstance(n, If)]) == 1  # the first one's arms load
    assert len([n for n in walk(k) if isinstance(n, Instr) and n.op == "select"]) == 1


def test_tuples_go_through_branches_and_loops() -> None:
    before = "p = (x, 1.5)\nif x > 3:\n    p = (7, x)\nwhile p[0] < 20:\n    p = (p[0] + 5, p[1] * 2)\na, (b, c) = p[0], p"
    assert value("a * 1000 + b * 10 + c", 2, before=before) == (22 * 1000 + 22 * 10 + 24.0, "f32")
    assert value("a * 1000 + b * 10 + c", 9, before=before) == (22 * 1000 + 22 * 10 + 72.0, "f32")


# --- None, captured values, functions ---------------------------------------------------------------------------------------------


def test_none_is_decided_at_compile_time() -> None:
    text = (
        "def k(a, w):\n"
        "    for i in range(len(a)):\n"
        "        v = a[i]\n"
        "        if w is not None:\n"
        "            v *= w[i]\n"
        "        a[i] = v if w is None else v + 1\n"
    )
    assert "w" not in to_text(kernel(text, X32, NONE)).split("\n", 1)[1]
    a = np.array([2.0, 3.0], np.float32)
    run(kernel(text, X32, X32), [a, np.array([5.0, 7.0], np.float32)])
    assert list(a) == [11, 22]
    assert kernel("def k(a, w):\n    if N is None:\n        a[0] = w\n", X32, FLOAT, N=Opaque("none", "None")).written == {0}


def test_captured_flags_choose_at_compile_time() -> None:
    text = "def k(a):\n    for i in range(len(a)):\n        a[i] = 1.0 if FAST and MODE == 2 else tack.exp(a[i])\n"
    assert "exp" not in to_text(kernel(text, X32, FAST=True, MODE=2))
    assert "exp" in to_text(kernel(text, X32, FAST=True, MODE=1))


FUNCTIONS = {
    "early": (
        "def early(v, limit):\n"
        "    for i in range(10):\n"
        "        if i * i >= v:\n"
        "            return i\n"
        "        if i > limit:\n"
        "            break\n"
        "    else:\n"
        "        return -1\n"
        "    return -2\n"
    ),
    "tail": (
        "def tail(v):\n"
        "    if v > 5:\n"
        "        return v * 2\n"
        "    elif v > 3:\n"
        "        w = v - 1\n"
        "        return w\n"
        "    v += 1\n"
        "    return v\n"
    ),
    "pair": "def pair(v, scale=2, *, add=0):\n    return v * scale + add, v\n",
    "twice": "def twice(f, v):\n    g = f\n    return g(g(v))\n",
    "cast": "def cast(t, v):\n    return t(v)\n",
    "total": "def total(a, n):\n    s = 0.0\n    for i in range(n):\n        s += a[i]\n    return s\n",
    "put": "def put(a, i, v):\n    a[i] = v\n",
}


@pytest.mark.parametrize(
    ("expression", "args", "expected"),
    [
        ("early(x, 8) * 100 + early(x + 30, 2)", (10,), 400 - 2),
        ("early(x, 100)", (1000,), -1),
        ("tail(x) + tail(4) + tail(x - 6)", (9,), 18 + 3 + 4 - 0),
        ("pair(x)[0] + pair(x, 3)[0] + pair(v=x, scale=5, add=1)[0]", (7,), 14 + 21 + 36),
        ("twice(tail, x)", (6,), 24),
        ("cast(tack.u8, x) + cast(v=300, t=tack.u8)", (257,), 45),
    ],
)
def test_device_functions(expression: str, args: tuple[Any, ...], expected: int) -> None:
    assert value(expression, *args, **FUNCTIONS)[0] == expected


def test_functions_take_arrays_and_local_arrays() -> None:
    text = """
def k(a, out):
    for i in range(len(out)):
        t = tack.local_array(tack.f32, 4)
        for j in range(4):
            put(t, j, a[i] + j)
        out[i] = total(t, len(t)) + total(a, i)
"""
    a, out = np.array([1.0, 2.0, 3.0], np.float32), np.zeros(3, np.float32)
    k = kernel(text, X32, X32, **FUNCTIONS)
    assert k.written == {1}
    run(k, [a, out])
    assert list(out) == [10, 15, 21]


def test_a_local_array_in_a_loop_starts_with_zeros_every_round() -> None:
    text = (
        "def k(out):\n"
        "    for i in range(len(out)):\n"
        "        for j in range(3):\n"
        "            t = tack.local_array(tack.i32, {})\n"
        "            t{} += j + 1\n"
        "            out[i] = t{}\n"
    )
    for shape, index in (("2", "[1]"), ("(5, 4)", "[4, 3]")):
        out = np.zeros(2, np.int32)
        run(kernel(text.format(shape, index, index), I32), [out])
        assert list(out) == [3, 3]


def test_infer_function_of_a_generic_function() -> None:
    for t in (types.f32, types.f64):
        text = "def f(x, y):\n    if x > y:\n        return x * 0.1, 1\n    return y, 2\n"
        fn = infer_function(parse(source(text, "f")), [t, t], DictEnvironment(), CPU)
        verify_function(fn)
        assert [v.type for v in fn.results] == [t, types.i64]
        assert evaluate(fn, [3.0, 1.0]) == (float(NP[t.name](3) * NP[t.name](0.1)), 1)
        assert evaluate(fn, [0.0, 1.0]) == (1.0, 2)
    fn = infer_function(parse(source(FUNCTIONS["early"], "early")), [types.i32, types.i32], DictEnvironment(), CPU)
    verify_function(fn)
    assert evaluate(fn, [10, 8]) == (4,)


def test_a_lambda_is_a_function() -> None:
    env = DictEnvironment({"sq": "unused"})
    text = "sq = tack.func(lambda v: v * v + 1)\n"
    env.names["sq"] = type(env.names["sq"])(source(text, "<lambda>"), env, "sq")  # type: ignore[call-arg, misc]
    k = infer(parse(source("def k(x):\n    return sq(x)\n")), [INT], env, CPU, {})
    assert run(k, [5]) == 26


def test_unrolled_loops_over_tuples() -> None:
    assert value("s", 2, before="s = 0\nfor v in (1, 2, 3.5):\n    s += v * x") == (13.0, "f32")
    text = (
        "def k(out):\n"
        "    for i in range(len(out)):\n"
        "        s = 0\n"
        "        for a, b in PAIRS:\n"
        "            if a == i:\n"
        "                continue\n"
        "            if b > 6:\n"
        "                break\n"
        "            s += a * b\n"
        "        else:\n"
        "            s = -s\n"
        "        out[i] = s\n"
    )
    out = np.zeros(4, np.int32)
    run(kernel(text, I32, PAIRS=((1, 2), (2, 5), (3, 7))), [out])
    assert list(out) == [12, 10, 2, -12]


# --- fma --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "ops"),
    [
        ("x * y + z", "fma"),
        ("z + x * y", "fma"),
        ("x * y - z", "neg fma"),
        ("z - x * y", "neg fma"),
        ("x * y + y * z", "mul fma"),
        ("x * y - y * z", "mul neg fma"),
        ("(x + y) * z", "add mul"),
    ],
)
def test_fma_rule(expression: str, ops: str) -> None:
    text = f"def k(x, y, z):\n    return {expression}\n"
    k = kernel(text, FLOAT, FLOAT, FLOAT)
    before = run(k, [1.5, 2.25, 3.0])
    form_fma(k)
    verify(k)
    assert " ".join(i.op for i in k.items[0].body.body if i.op in ("add", "sub", "mul", "neg", "fma")) == ops
    assert run(k, [1.5, 2.25, 3.0]) == before


def test_fma_takes_the_left_product_and_only_one_with_a_single_use() -> None:
    k = kernel("def k(x, y, z):\n    p = x * y\n    return p + z * z + p\n", FLOAT, FLOAT, FLOAT)
    form_fma(k)
    assert [i.op for i in k.items[0].body.body if i.op in ("add", "mul", "fma")] == ["mul", "fma", "add"]
    k = infer(
        parse(source("@tack.kernel(exact=True)\ndef k(x):\n    return x * x + 1.0\n")), [FLOAT], DictEnvironment(), CPU, {"exact": True}
    )
    form_fma(k)
    assert "fma" not in to_text(k)


def test_integers_form_no_fma() -> None:
    k = kernel("def k(x):\n    return x * x + 1\n", INT)
    form_fma(k)
    assert "fma" not in to_text(k)


def test_a_weak_bool_and_uint_argument() -> None:
    k = kernel("def k(b, u, a):\n    return u + 1 if b else 2\n", BOOL, UINT, I32)
    assert [p.kind for p in k.params[:2]] == ["bool", "uint"]
    assert run(k, [True, 2**63, np.zeros(1, np.int32)]) == 2**63 + 1
    assert not [n for n in walk(k) if isinstance(n, For)]
