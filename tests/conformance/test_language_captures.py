"""The kernel language: what a kernel may capture from around it, and that its values are seen when they change."""

from __future__ import annotations

import math
import types
from typing import Any

import numpy as np
import pytest
from language import define, here, kernel, refused, values

import tack

KINDS: list[tuple[Any, Any]] = [
    (3, 3.0),
    (-0.25, -0.25),
    (True, 1.0),
    (np.int8(-5), -5.0),
    (np.uint64(2**63), float(2**63)),
    (np.float32(0.1), float(np.float32(0.1))),
    (np.bool_(True), 1.0),
    (tack.constant(7, tack.i16), 7.0),
    (tack.constant(0.1, tack.f32), float(np.float32(0.1))),
    (tack.i8(-3), -3.0),
    (float("-inf"), -math.inf),
    (2**62, float(2**62)),
]


@pytest.mark.parametrize(("value", "expected"), KINDS, ids=[repr(v) for v, _ in KINDS])
@pytest.mark.needs("f64")
def test_numbers_of_every_kind(device: tack.Device, value: Any, expected: float) -> None:
    module = types.ModuleType("captured_module")
    module.V = value  # type: ignore[attr-defined]
    assert list(values(["G", "H.V", "T[0]", "T[1][0]"], tack.f64, G=value, H=module, T=(value, (value,)))) == [expected] * 4


@pytest.mark.needs("f64")
def test_captured_types_are_weak_for_python_and_strong_for_numpy(device: tack.Device) -> None:
    expressions = ["(x[0] + G).dtype == tack.f32" for _ in range(1)]
    for value, is_f32 in ((0.5, True), (np.float32(0.5), True), (np.float64(0.5), False), (tack.constant(2, tack.i32), True)):
        assert bool(values(expressions, tack.i32, np.zeros(1, np.float32), params="x", G=value)[0]) is is_f32


@pytest.mark.needs("f64")
def test_constants_of_math_and_numpy(device: tack.Device) -> None:
    names = ["math.pi", "math.e", "math.tau", "math.inf", "-math.inf", "np.pi", "np.e", "np.inf", "np.euler_gamma"]
    got = values([*names, "math.nan", "np.nan"], tack.f64)
    assert list(got[:-2]) == [eval(n) for n in names] and np.isnan(got[-2:]).all()


def test_dtypes_of_tack_and_numpy(device: tack.Device) -> None:
    got = values(
        ["D(300)", "E(300)", "np.int8(300)", "np.uint16(-1)", "F(2.75)", "N(300)"],
        tack.i64,
        D=tack.i8,
        E=np.uint8,
        F=np.int32,
        N=np.dtype("int8"),
    )
    assert list(got) == [44, 44, 44, 65535, 2, 44]


@pytest.mark.needs("f64")
def test_bare_and_qualified_functions(device: tack.Device) -> None:
    from math import sqrt

    got = values(
        [
            "sqrt(x)",
            "math.sqrt(x)",
            "np.sqrt(x)",
            "tack.sqrt(x)",
            "root(x)",
            "M.sqrt(x)",
            "abs(-x)",
            "min(x, 3, 8)",
            "max(x, 3)",
            "round(x / 8)",
        ],
        tack.f64,
        16.0,
        params="x",
        sqrt=sqrt,
        root=np.sqrt,
        M=math,
    )
    assert list(got) == [4, 4, 4, 4, 4, 4, 16, 3, 16, 2]


def test_a_parameters_annotation_is_what_python_made_of_it(device: tack.Device) -> None:
    """A factory's argument is in no cell of the kernel where the body does not use it, and an expression is no name."""

    text = """
        def add_to(dtype):
            @tack.kernel
            def k(out, v: dtype, w: [tack.i32, dtype][1]):
                for i in range(len(out)):
                    out[i] = v + w

            return k
    """
    add_to = define(text)["add_to"]
    for dtype, expected in ((tack.u8, 44), (np.int16, 300), (tack.i64, 300), ("nothing of tack", 300)):
        out = tack.zeros(1, tack.i32 if dtype != tack.i64 else tack.i64)
        add_to(dtype)(out, 200, 100)
        assert out.tolist() == [expected]


def test_an_annotation_that_is_text_is_looked_up(device: tack.Device) -> None:
    text = "@tack.kernel\ndef k(out, v: 'Small', w: 'H.V'):\n    for i in range(len(out)):\n        t: Small = v\n        out[i] = t + w\n"
    module = types.ModuleType("captured_module")
    module.V = tack.u8  # type: ignore[attr-defined]
    names = define(text, Small=tack.u8, H=module)
    k = names["k"]
    out = tack.zeros(1, tack.i32)
    k(out, 200, 100)
    assert out.tolist() == [44]
    names["Small"] = module.V = tack.i16  # type: ignore[attr-defined]
    k(out, 200, 100)
    assert out.tolist() == [300]


def test_an_annotation_whose_name_is_lost_is_refused(device: tack.Device) -> None:
    text = """
        from __future__ import annotations
        def make(dtype):
            @tack.kernel
            def k(out, v: dtype, w: dtype = 1):
                for i in range(len(out)):
                    out[i] = v
            return k
        k = make(tack.u8)
    """
    message = refused(text, tack.CompileError, tack.zeros(1), 2)
    assert "nothing is known of the annotation 'dtype'" in message and "line 4" in message
    text = """
        from __future__ import annotations
        class Factory:
            def make(self, other):
                def inner(another):
                    @tack.kernel
                    def k(out, v: NAME):
                        for i in range(len(out)):
                            out[i] = v
                    return k
                return inner(1)
        k = Factory().make(2)
    """
    for name in ("other", "another"):
        with pytest.raises(tack.CompileError, match=f"nothing is known of the annotation '{name}'"):
            kernel(text.replace("NAME", name))(tack.zeros(1), 2)
    kernel(text.replace("NAME", "Gone"))(tack.zeros(1), 2)  # what no function around has is for type checkers
    k = kernel("@tack.kernel\ndef k(out: 'Gone'):\n    for i in range(len(out)):\n        out[i] = 1\n")
    k(tack.zeros(1))  # only numbers are converted


@pytest.mark.parametrize("size", [1, 2, 5, 64, 65, 1000])
@pytest.mark.parametrize("kind", ["ints", "floats", "mixed", "strong"])
@pytest.mark.needs("f64")
def test_tuples_are_indexed_at_run_time(device: tack.Device, size: int, kind: str) -> None:
    table: tuple[Any, ...] = {
        "ints": tuple(i * i - 7 for i in range(size)),
        "floats": tuple(i / 8 for i in range(size)),
        "mixed": tuple(i / 2 if i % 2 else i for i in range(size)),
        "strong": tuple(np.int16(i - 3) for i in range(size)),
    }[kind]
    k = kernel(
        """
        @tack.kernel
        def k(out, index):
            for i in range(len(out)):
                out[i] = TABLE[index[i]] + TABLE[0] + TABLE[-1] + len(TABLE)
        """,
        TABLE=table,
    )
    index = np.random.default_rng(0).integers(0, size, 203).astype(np.int32)
    out = tack.zeros(203, tack.f64)
    k(out, here(index))
    assert out.tolist() == [float(table[j]) + float(table[0]) + float(table[-1]) + size for j in index]


def test_tuples_of_tuples_are_indexed_at_run_time(device: tack.Device) -> None:
    k = kernel(
        """
        @tack.kernel
        def k(out):
            for i, j in tack.ndrange(3, 2):
                dx, dy = OFFSETS[i]
                out[i, j] = OFFSETS[i][j] * 100 + dx * 10 + dy
        """,
        OFFSETS=((1, 2), (3, 4), (5, 6)),
    )
    out = tack.zeros((3, 2), tack.i64)
    k(out)
    assert out.tolist() == [[o[j] * 100 + o[0] * 10 + o[1] for j in range(2)] for o in ((1, 2), (3, 4), (5, 6))]


def test_a_changed_value_of_every_place_is_seen(device: tack.Device) -> None:
    names = define(
        """
    class C:
        RATE = 1
        class D:
            RATE = 2
    @tack.func
    def inner(x):
        return x + DEEP
    @tack.func
    def outer(x, f=inner):
        return f(x)
    DEEP, TOP, T = 3, 4, (5, 6)
    def make():
        cell = 7
        @tack.kernel
        def k(out):
            for i in range(1):
                out[0] = C.RATE
                out[1] = C.D.RATE
                out[2] = outer(0)
                out[3] = TOP
                out[4] = T[1]
                out[5] = cell
                out[6] = M.V
        def change():
            nonlocal cell
            cell = 70
        return k, change
    k, change = make()
    """,
        M=(module := types.ModuleType("m")),
    )
    module.V = 8  # type: ignore[attr-defined]
    out = tack.zeros(7, tack.i64)
    names["k"](out)
    assert out.tolist() == [1, 2, 3, 4, 6, 7, 8]
    names["C"].RATE = 10
    names["C"].D.RATE = 20
    names["DEEP"], names["TOP"], names["T"] = 30, 40, (50, 60)
    names["change"]()
    module.V = 80  # type: ignore[attr-defined]
    names["k"](out)
    assert out.tolist() == [10, 20, 30, 40, 60, 70, 80]
    names["C"].RATE = 1
    names["k"](out)
    assert out.tolist() == [1, 20, 30, 40, 60, 70, 80]


def test_a_deleted_or_new_global_is_seen(device: tack.Device) -> None:
    names = define("A = 1\n@tack.kernel\ndef k(out):\n    out[0] = A\n    out[1] = max(3, 4)\n")
    out = tack.zeros(2, tack.i64)
    names["k"](out)
    assert out.tolist() == [1, 4]
    names["max"] = min
    names["k"](out)
    assert out.tolist() == [1, 3]
    del names["A"]
    with pytest.raises(NameError, match="'A'"):
        names["k"](out)
    names["A"] = 5
    names["k"](out)
    assert out.tolist() == [5, 3]


@pytest.mark.needs("f64")
def test_a_value_that_changes_its_type_is_another_kernel(device: tack.Device) -> None:
    names = define("A = 1\n@tack.kernel\ndef k(out):\n    out[0] = A / 2\n    out[1] = A == True\n")
    out = tack.zeros(2, tack.f64)
    for value in (1, 1.0, True, np.int8(1), np.float64(1)):
        names["A"] = value
        names["k"](out)
        assert out.tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros(3, np.float32), ("cannot be captured", "argument")),
        ([1, 2], ("list",)),
        ({"a": 1}, ("dict",)),
        ("text", ("str",)),
        (1j, ("complex",)),
        (object(), ("object",)),
        (len, ("G",)),
        (np.linalg, ("G",)),
    ],
    ids=["array", "list", "dict", "str", "complex", "object", "builtin", "module"],
)
def test_what_cannot_be_captured_is_refused_by_name(device: tack.Device, value: Any, words: tuple[str, ...]) -> None:
    message = refused(
        "@tack.kernel\ndef k(x):\n    for i in range(len(x)):\n        x[i] = x[i] + G\n", tack.CompileError, tack.zeros(3), G=value
    )
    assert any(word in message for word in words) and "^" in message


@pytest.mark.needs("f64")
def test_a_captured_int_that_does_not_fit_is_refused(device: tack.Device) -> None:
    for value, dtype in ((2**64, tack.u64), (300, tack.i8), (-1, tack.u16)):
        text = "@tack.kernel\ndef k(x):\n    for i in range(len(x)):\n        x[i] = x[i] + G\n"
        assert "does not fit" in refused(text, tack.CompileError, tack.zeros(3, dtype), G=value)
    assert values(["G", "x[0] + G"], tack.f64, np.zeros(1), params="x", G=2**64).tolist() == [2.0**64] * 2


def test_a_captured_array_says_to_pass_it(device: tack.Device) -> None:
    message = refused(
        "@tack.kernel\ndef k(x):\n    for i in range(len(x)):\n        x[i] = G[i]\n", tack.CompileError, tack.zeros(3), G=tack.zeros(3)
    )
    assert "'G' cannot be captured" in message and "argument" in message


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("tack.sqr(1.0)", "sqrt"),
        ("math.cosine(1.0)", "cos"),
        ("sqrt(1.0)", "tack.sqrt"),
        ("np.arctn(1.0)", "arctan"),
        ("totl", "total"),
        ("tack.atomic_ad(x, 0, 1)", "atomic_add"),
    ],
)
def test_unknown_names_suggest_the_nearest(device: tack.Device, name: str, near: str) -> None:
    text = f"@tack.kernel\ndef k(x):\n    total = 1\n    for i in range(len(x)):\n        x[i] = {name} + total\n"
    assert near in refused(text, NameError, tack.zeros(3))
