"""Printed CUDA C: its form, names, parameters, constants and control flow; whole texts against golden files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from codegen_harness import ALL, Build, no_math

from tack import types as T
from tack.codegen import build_source
from tack.codegen.c_names import Names, legal
from tack.codegen.c_text import float_literal
from tack.errors import UnsupportedError
from tack.ir import nodes as ir
from tack.ir.source import KernelSource
from tack.ir.target import Target
from tack.types import Layout

ATOMICS = frozenset({T.i32, T.u32, T.i64, T.u64, T.f32, T.f64})
GOLDEN = Path(__file__).parent.parent / "golden"


def cuda(debug: bool = False, **changes: Any) -> Target:
    fields: dict[str, Any] = {"backend": "cuda", "title": "CUDA", "arch": "sm_90", "array_dtypes": ALL, "atomic_dtypes": ATOMICS}
    fields |= {"supports_f64": True, "supports_workgroups": True, "supports_images": True, "debug": debug}
    return Target(**(fields | changes))


def printed(build: Build, **changes: Any) -> KernelSource:
    return build_source(build.kernel, cuda(**changes), no_math)


def body_of(source: KernelSource) -> list[str]:
    """The statements of the last entry, without directives."""
    text = source.text[source.text.rindex("__global__") :]
    return [line.strip() for line in text.splitlines()[1:-1] if line.strip() and not line.startswith("#")]


# --- whole texts ------------------------------------------------------------------------------------------------------------------


def saxpy() -> Build:
    build = Build("saxpy")
    out, x, y = (build.array(name, T.f32) for name in ("out", "x", "y"))
    a = build.scalar("a", T.f32, "float")
    with build.parallel((out, 0)) as (i,):
        build.store(out, build.same("add", build.same("mul", build.arg(a), build.load(x, i)), build.load(y, i)), i)
    for node in build.last.body.body:
        node.loc = ir.Loc("kernels.py", 12)
    return build


def stencil() -> Build:
    build = Build("stencil")
    out, u = build.array("out", T.f32, 2), build.array("u", T.f32, 2, Layout.INNER)
    with build.parallel(ir.Extent((("shape", 0, 0, 0), ("constant", 0, 0, 1), ("sub", 0, 0, 0))), (out, 1), start=[1, 0], names="yx") as (
        y,
        x,
    ):
        above, below = (build.load(u, build.same(op, y, build.i(1)), x) for op in ("sub", "add"))
        build.store(out, build.same("mul", build.same("add", above, below), build.const(T.f32, 0.1)), y, x)
    return build


def total() -> Build:
    build = Build("total")
    x = build.array("x", T.f64, 2)
    sum_, least = ir.Var("s", T.f64), ir.Var("least", T.f64)
    with build.segment():
        build.set(sum_, build.const(T.f64, 0.0))
        build.set(least, build.const(T.f64, float("inf")))
    with build.parallel((x, 0), (x, 1)) as (i, j):
        value = build.load(x, i, j)
        build.set(sum_, build.same("add", build.get(sum_), value))
        build.set(least, build.same("min", build.get(least), value))
    build.last.reductions = [ir.Reduction(sum_, "add"), ir.Reduction(least, "min")]
    with build.segment():
        result = build.var("result", build.same("add", build.get(sum_), build.get(least)))
    build.kernel.result = result
    return build


def histogram() -> Build:
    build = Build("histogram")
    counts, values = build.array("counts", T.i64), build.array("values", T.u8)
    with build.parallel((values, 0)) as (i,):
        bin_ = build.cast(build.load(values, i), T.i64)
        build.op("atomic", T.i64, build.i(1), bin_, attr=("add", counts))
    return build


def checked() -> Build:
    build = Build("checked")
    x, y = build.array("x", T.f32), build.array("y", T.f32)
    with build.parallel((y, 0)) as (i,):
        value = build.load(x, build.same("add", i, build.i(1)))
        build.op("assert_", None, build.compare("lt", value, build.const(T.f32, 1.5)), value, attr="too much: {}")
        build.op("print", None, i, value, attr="{}: {}\n")
        build.store(y, value, i)
    return build


@pytest.mark.parametrize("make", [saxpy, stencil, total, histogram, checked], ids=lambda f: f.__name__)
def test_golden(make: Any) -> None:
    """Change the files by hand, and look."""
    source = printed(make(), debug=make is checked)
    path = GOLDEN / f"cuda_{make.__name__}.cu"
    assert source.text == path.read_text(encoding="utf-8"), source.text


# --- names and parameters ---------------------------------------------------------------------------------------------------------


def test_names_are_legal_and_used_once() -> None:
    names = Names({"int", "x"})
    assert [names.new(n) for n in ("i", "i", "int", "x", "größe", "__a__b", "2", "", "tack_min_f32", "i_1", "i")] == [
        *("i", "i_1", "int_1", "x_1", "gruf6_udf_e", "a_b", "v2", "v", "v_tack_min_f32", "i_1_1", "i_2"),
    ]
    assert legal("λ") == "u3bb_"


WORDS = (
    "float",
    "and",
    "asm",
    "threadIdx",
    "f32",
    "i64",
    "atomicAdd",
    "sqrtf",
    "main",
    "__global__",
    "µ",
    "scratch",
    "lane",
    "iteration",
    "new",
)


def test_any_name_can_be_a_parameter() -> None:
    build = Build("int")
    arrays = [build.array(name, T.f32) for name in WORDS]
    with build.parallel((arrays[0], 0), names=["extent0"]) as (i,):
        for array in arrays:
            build.store(array, build.op("math", T.f32, build.load(array, i), attr="sqrt"), i)
    text = printed(build).text
    (params,) = re.findall(r"tack_int_0\((.*)\) {", text)
    declared = [p.split("*")[-1].split()[-1] for p in params.split(", ")]
    assert len(set(declared)) == len(declared) == len(WORDS) + 1
    assert {"scratch", "lane", "ub5_"} <= set(declared) and not {"float", "and", "f32", "threadIdx", "sqrtf"} & set(declared)


def test_parameters_follow_the_arguments_and_the_words_follow_them() -> None:
    build = Build("k")
    a, n, b = build.array("a", T.i16, 2, Layout.GENERAL), build.scalar("n", T.u8), build.array("b", T.f64, 3)
    flag = build.scalar("flag", T.BOOL, "bool")
    with build.parallel((b, 0), (b, 1), start=[0, n]) as (i, j):
        picked = build.op("select", T.i16, build.arg(flag), build.load(a, i, j), build.cast(build.arg(n), T.i16))
        build.store(b, build.cast(picked, T.f64), i, j, build.i(0))
    source = printed(build)
    (params,) = re.findall(r"tack_k_0\((.*)\) {", source.text)
    assert params == (
        "const i16* a, i64 a_stride0, i64 a_stride1, u8 n, f64* b, i64 b_shape1, i64 b_shape2, u8 flag, "
        "i64 extent0, i64 extent1, i64 start1"
    )
    words = [(p.kind, p.arg, p.dim, p.dtype) for p in source.entries[0].params]
    assert words == [
        *(("pointer", 0, 0, "i64"), ("stride", 0, 0, "i64"), ("stride", 0, 1, "i64"), ("scalar", 1, 0, "u8"), ("pointer", 2, 0, "i64")),
        *(("shape", 2, 1, "i64"), ("shape", 2, 2, "i64"), ("scalar", 3, 0, "bool")),
        *(("extent", 0, 0, "i64"), ("extent", 0, 1, "i64"), ("start", 0, 1, "i64")),
    ]


def test_indices_of_the_layouts() -> None:
    for layout, place in (
        (Layout.CONTIGUOUS, "i * x_shape1 + j"),
        (Layout.INNER, "i * x_step0 + j"),
        (Layout.GENERAL, "i * x_step0 + j * x_step1"),
    ):
        build = Build("k")
        x = build.array("x", T.f64, 2, layout)
        with build.parallel((x, 0), (x, 1)) as (i, j):
            build.store(x, build.const(T.f64, 1.0), i, j)
        source = printed(build)
        assert body_of(source)[-1] == f"x[{place}] = 1.0;"
        assert ("const i64 x_step0 = x_stride0 >> 3;" in source.text) == (layout != Layout.CONTIGUOUS)


def test_groups_of_the_entries() -> None:
    source = printed(total())
    assert [(e.group, e.whole_groups, e.rank) for e in source.entries] == [(1, False, 1), (64, True, 1), (256, True, 1), (1, False, 1)]
    for options, bound in (({}, 256), ({"block": 64}, 64)):
        build = saxpy()
        build.kernel.options.update(options)
        source = printed(build)
        assert source.entries[0].group == (options.get("block", 0)) and f"__launch_bounds__({bound})" in source.text
    assert "__launch_bounds__(1024)" in printed(saxpy(), block=1024).text


def test_a_target_without_a_printer_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"Kernel 'saxpy': no code generator for Thing"):
        build_source(saxpy().kernel, cuda(backend="thing", title="Thing"), no_math)


# --- expressions ------------------------------------------------------------------------------------------------------------------


def test_float_constants_are_exact() -> None:
    for value, text in (
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-2.5, "-2.5"),
        (0.1, "0x1.999999999999ap-4"),
        (1e300, "0x1.7e43c8800759cp+996"),
    ):
        assert float_literal(T.f64, value) == text
    for value, text in (
        (0.1, "0x1.99999ap-4f"),
        (1e-45, "0x1p-149f"),
        (0.5, "0.5f"),
        (16777216.0, "16777216.0f"),
        (3e38, "0x1.c363ccp+127f"),
    ):
        assert float_literal(T.f32, value) == text
    build = Build("k")
    x, y = build.array("x", T.f32), build.array("y", T.f64)
    with build.parallel(1) as (i,):
        for k, value in enumerate((float("nan"), float("inf"), -float("inf"))):
            build.store(x, build.const(T.f32, value), build.i(k))
            build.store(y, build.const(T.f64, value), build.i(k))
    assert body_of(printed(build))[-6:] == [
        "x[0] = __uint_as_float(0x7fc00000u);",
        "y[0] = __longlong_as_double((long long)(0x7ff8000000000000ull));",
        "x[1] = __uint_as_float(0x7f800000u);",
        "y[1] = __longlong_as_double((long long)(0x7ff0000000000000ull));",
        "x[2] = __uint_as_float(0xff800000u);",
        "y[2] = __longlong_as_double((long long)(0xfff0000000000000ull));",
    ]


def expression(make: Any, dtype: T.DType = T.i64) -> str:
    """How the value is written that ``make(build, a, b)`` makes of two arguments."""
    build = Build("k")
    out = build.array("out", dtype)
    a, b = build.scalar("a", dtype), build.scalar("b", dtype)
    with build.parallel(1) as (i,):
        build.store(out, make(build, build.arg(a), build.arg(b)), build.i(0))
    (text,) = re.findall(r"out\[0\] = (.*);", printed(build).text)
    return text  # type: ignore[no-any-return]


def test_integers_wrap_without_signed_overflow() -> None:
    assert expression(lambda k, a, b: k.same("add", k.same("mul", a, b), b)) == "(i64)((u64)a * b + b)"
    assert expression(lambda k, a, b: k.same("sub", a, k.same("sub", b, a))) == "(i64)((u64)a - ((u64)b - a))"
    assert expression(lambda k, a, b: k.same("neg", a)) == "(i64)(0 - (u64)a)"
    assert expression(lambda k, a, b: k.same("mul", a, b), T.i32) == "(i32)((u32)a * b)"
    assert expression(lambda k, a, b: k.same("mul", a, b), T.u16) == "(u16)((u32)a * b)"
    assert expression(lambda k, a, b: k.same("add", a, b), T.i8) == "(i8)(a + b)"
    assert expression(lambda k, a, b: k.same("add", a, b), T.u32) == "a + b"
    assert expression(lambda k, a, b: k.same("shl", a, k.const(T.i32, 5)), T.i32) == "(i32)((u32)a << 5)"


def test_what_is_known_to_fit_is_written_plainly() -> None:
    assert expression(lambda k, a, b: k.same("add", k.same("and", a, k.i(255)), k.i(1))) == "(a & 255) + 1"
    assert expression(lambda k, a, b: k.same("sub", k.cast(k.cast(a, T.u8), T.i64), k.i(1))) == "(u8)a - 1"
    assert (
        expression(lambda k, a, b: k.same("mul", k.cast(k.cast(a, T.i32), T.i64), k.cast(k.cast(b, T.i32), T.i64)))
        == "(i64)(i32)a * (i32)b"
    )


def test_precedence_keeps_the_tree() -> None:
    assert expression(lambda k, a, b: k.same("sub", a, k.same("add", b, a)), T.f64) == "a - (b + a)"
    assert expression(lambda k, a, b: k.same("sub", k.same("sub", a, b), a), T.f64) == "a - b - a"
    assert expression(lambda k, a, b: k.same("neg", k.same("neg", a)), T.f64) == "-(-a)"
    assert expression(lambda k, a, b: k.same("sub", a, k.const(T.f64, -1.0)), T.f64) == "a - -1.0"
    assert expression(lambda k, a, b: k.same("and", a, k.same("or", b, a)), T.u32) == "a & (b | a)"


# --- statements -------------------------------------------------------------------------------------------------------------------


def test_long_and_deep_expressions_become_constants() -> None:
    build = Build("k")
    x = build.array("x", T.f32)
    with build.parallel((x, 0)) as (i,):
        value = build.load(x, i)
        right = value
        for k in range(5000):
            value = build.same("add", value, build.const(T.f32, float(k)))
        for k in range(180):
            right = build.same("add", build.const(T.f32, float(k)), right)
        build.store(x, build.same("mul", value, right), i)
    text = printed(build).text
    assert max(map(len, text.splitlines())) < 220
    assert max(line.count("(") for line in text.splitlines()) < 30
    assert text.count(" + ") >= 5000 + 180


def test_a_value_that_a_statement_changes_is_kept_first() -> None:
    build = Build("k")
    x, y = build.array("x", T.f32), build.array("y", T.f32)
    with build.parallel((x, 0)) as (i,):
        old = build.load(x, i)
        build.store(y, build.const(T.f32, 2.0), i)
        build.store(x, build.same("add", old, build.load(y, i)), i)
    assert body_of(printed(build))[-3:] == ["const f32 x_value = x[i];", "y[i] = 2.0f;", "x[i] = x_value + y[i];"]


def test_endless_loops_are_observable_and_tests_stand_in_their_heads() -> None:
    build = Build("k")
    x = build.array("x", T.i32)
    with build.parallel((x, 0)) as (i,):
        n = build.var("n", build.load(x, i))
        node = build.while_()
        with build.into(node.test):
            node.cond = build.compare("ne", build.get(n), build.const(T.i32, 1))
        with build.into(node.body):
            build.set(n, build.same("shr", build.get(n), build.const(T.i32, 1)))
        build.store(x, build.get(n), i)
    assert body_of(printed(build))[-6:] == ["i32 n = x[i];", "while (n != 1) {", 'asm volatile("");', "n = n >> 1;", "}", "x[i] = n;"]


def test_jumps_need_no_goto() -> None:
    build = Build("k")
    x = build.array("x", T.i64)
    with build.parallel((x, 0)) as (i,), build.loop(build.i(9)) as (outer, j):
        with build.scope() as far, build.scope() as near:
            with build.when(build.compare("lt", j, build.load(x, i))):
                build.leave(far)
            with build.when(build.compare("gt", j, build.i(5))):
                build.continue_()
            build.leave(near)
        build.store(x, j, i)
    source = printed(build)
    assert "goto" not in source.text
    lines = body_of(source)
    assert lines.count("do {") >= 1 and any(line.endswith("continue;") for line in lines)


def test_loops_with_else() -> None:
    build = Build("k")
    x = build.array("x", T.i64)
    with build.parallel((x, 0)) as (i,):
        stop = build.load(x, i)
        with build.loop(stop) as (node, k):
            with build.when(build.compare("eq", k, build.i(3))):
                build.break_()
            build.store(x, k, i)
        with build.into(node.orelse):
            build.store(x, build.i(-1), i)
    lines = body_of(printed(build))
    assert lines[2:] == [
        *(
            "const i64 x_value = x[i];",
            "bool broke = false;",
            "for (i64 k = 0; k < x_value; ++k) {",
            "if (k == 3) {",
            "broke = true;",
            "break;",
        ),
        *("}", "x[i] = k;", "}", "if (!broke) {", "x[i] = -1;", "}"),
    ]
