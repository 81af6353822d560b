"""Launches and scalars between them: segments, scratch cells, tack.sequential, reductions, results; and the size of what is printed."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from codegen_harness import NUMPY, Build, Program, no_math, target

from tack import types as T
from tack.codegen import build_source
from tack.errors import CompileError, CompileNotImplementedError, UnsupportedError
from tack.ir import nodes as ir
from tack.runtime.llvm_compiler import compile_ir


def test_pure_segments_are_recomputed_not_launched() -> None:
    build = Build()
    o, s = build.array("o", T.f32), build.scalar("s", T.f32, "float")
    scale = ir.Var("scale", T.f32)
    with build.segment():
        build.set(scale, build.same("mul", build.arg(s), build.const(T.f32, 3.0)))
        with build.when(build.compare("gt", build.arg(s), build.const(T.f32, 10.0))):
            build.set(scale, build.const(T.f32, 1.0))
    with build.parallel((o, 0)) as (i,):
        build.store(o, build.same("add", build.load(o, i), build.get(scale)), i)
    program = Program(build.kernel)
    assert len(program.source.entries) == 1
    assert program.source.scratch_bytes == 0
    for value, expected in ((2.0, 6.0), (20.0, 1.0)):
        got = np.zeros(40, "f")
        program(got, value)
        assert np.array_equal(got, np.full(40, expected, "f"))


def test_segments_that_read_memory_hand_on_through_scratch() -> None:
    build = Build()
    o, x = build.array("o", T.f64), build.array("x", T.f64)
    first, big, twice = ir.Var("first", T.f64), ir.Var("big", T.BOOL), ir.Var("twice", T.f64)
    with build.segment():
        build.set(first, build.load(x, build.i(0)))
        build.set(big, build.compare("gt", build.get(first), build.const(T.f64, 1.0)))
    with build.segment():
        build.set(twice, build.same("add", build.get(first), build.get(first)))
    with build.parallel((x, 0)) as (i,):  # overwrites x: the scalars are from before
        build.store(x, build.op("select", T.f64, build.get(big), build.get(twice), build.get(first)), i)
    with build.segment():
        build.store(o, build.load(x, build.i(3)), build.i(0))
        build.store(o, build.get(twice), build.i(1))
    program = Program(build.kernel)
    assert [e.rank for e in program.source.entries] == [1, 1, 1]
    for value in (5.0, 0.5):
        got, values = np.zeros(2), np.full(30, value)
        program(got, values)
        assert np.array_equal(values, np.full(30, 2 * value if value > 1 else value))
        assert got.tolist() == [values[0], 2 * value]


@pytest.mark.parametrize("t", [T.i64, T.u8, T.f32, T.f64, T.BOOL], ids=str)
def test_results(t: T.DType) -> None:
    build = Build()
    x = build.array("x", T.i32)
    answer = ir.Var("answer", t)
    with build.segment():
        build.set(answer, build.cast(build.load(x, build.i(1)), t))
    build.kernel.result = answer
    program = Program(build.kernel)
    assert program.source.result_type == t
    for value in (0, 1, 77):
        assert program(np.array([9, value], np.int32)) == np.array(value).astype(NUMPY[t.name])


def test_pure_result_is_computed_on_the_device() -> None:
    build = Build()
    s = build.scalar("s", T.i64, "int")
    answer = ir.Var("answer", T.i64)
    with build.segment():
        build.set(answer, build.same("mul", build.arg(s), build.arg(s)))
    build.kernel.result = answer
    program = Program(build.kernel)
    assert program(-12) == 144


def test_sequence() -> None:
    """Time steps with a scalar carried from step to step, bounds that use the step, and a scalar read after the loop."""
    build = Build()
    o, log = build.array("o", T.i64), build.array("log", T.i64)
    t, clock, square, after = ir.Var("t", T.i64), ir.Var("clock", T.i64), ir.Var("square", T.i64), ir.Var("after", T.i64)
    with build.segment():
        build.set(clock, build.i(100))
    sequence = ir.Sequence(t, ir.Extent.constant(1), ir.Extent.constant(9), ir.Extent.constant(2), [])
    build.kernel.items.append(sequence)
    with build.segment(sequence.items):
        build.set(clock, build.same("add", build.get(clock), build.get(t)))
        build.set(square, build.same("mul", build.get(t), build.get(t)))
    bound = ir.Extent((("sequence", 0, 0, 0), ("constant", 0, 0, 2), ("add", 0, 0, 0)))
    with build.parallel(bound, start=[1], items=sequence.items) as (i,):
        value = build.same("add", build.get(clock), build.same("mul", build.get(t), build.i(1000)))
        build.store(o, build.same("add", build.load(o, i), value), i)
    with build.segment(sequence.items):
        build.store(log, build.get(square), build.get(t))
    with build.segment():
        build.set(after, build.get(clock))
        build.store(log, build.get(after), build.i(0))
    program = Program(build.kernel)
    o_got, log_got = np.zeros(12, np.int64), np.zeros(12, np.int64)
    program(o_got, log_got)
    expected, marks, c = np.zeros(12, np.int64), np.zeros(12, np.int64), 100
    for step in range(1, 9, 2):
        c += step
        expected[1 : step + 2] += c + 1000 * step
        marks[step] = step * step
    marks[0] = c
    assert np.array_equal(o_got, expected)
    assert np.array_equal(log_got, marks)


def test_a_sequence_variable_is_not_read_after_its_loop() -> None:
    build = Build()
    o, t = build.array("o", T.i64), ir.Var("t", T.i64)
    sequence = ir.Sequence(t, ir.Extent.constant(0), ir.Extent.constant(3), ir.Extent.constant(1), [])
    build.kernel.items.append(sequence)
    with build.segment(sequence.items):
        build.store(o, build.get(t), build.i(0))
    with build.segment():
        build.store(o, build.get(t), build.i(1))
    with pytest.raises(CompileNotImplementedError, match=r"'kernel'.*'t' is read after its tack\.sequential loop"):
        Program(build.kernel)


def test_iterations_start_from_the_scalar_bound_before() -> None:
    """A name bound before the loop and changed inside is private to an iteration."""
    build = Build()
    o, total = build.array("o", T.i32), ir.Var("total", T.i32)
    with build.segment():
        build.set(total, build.const(T.i32, 5))
    with build.parallel((o, 0)) as (i,):
        with build.loop(build.same("mod", i, build.i(4))):
            build.set(total, build.same("add", build.get(total), build.const(T.i32, 1)))
        build.store(o, build.get(total), i)
    for simd in (1, 8):
        got = np.zeros(50, np.int32)
        Program(build.kernel, simd)(got)
        assert np.array_equal(got, 5 + np.arange(50) % 4)


def reduction(op: str, t: T.DType, rank: int = 1, odd: bool = False) -> ir.Kernel:
    build = Build(exact=True)
    x = build.array("x", t, rank)
    s = ir.Var("s", t)
    with build.segment():
        build.set(s, build.const(t, 1))
    with build.parallel(*((x, d) for d in range(rank))) as index:
        value = build.load(x, *index)
        if odd:
            with build.when(build.compare("ne", build.same("mod", index[-1], build.i(3)), build.i(0))):
                build.set(s, build.op(op, t, build.get(s), value))
        else:
            build.set(s, build.op(op, t, build.get(s), value))
    build.last.reductions.append(ir.Reduction(s, op))
    build.kernel.result = s
    return build.kernel


@pytest.mark.parametrize("op", ["add", "mul", "min", "max", "and", "or", "xor"])
@pytest.mark.parametrize("t", [T.i64, T.u8, T.i32], ids=str)
def test_integer_reductions(op: str, t: T.DType) -> None:
    table = {
        "add": np.add,
        "mul": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    program = Program(reduction(op, t, odd=True))
    for n in (0, 1, 5, 1023, 5000):
        x = np.random.default_rng(n).integers(1, 100, n).astype(NUMPY[t.name])
        with np.errstate(over="ignore"):
            used = x[np.arange(n) % 3 != 0]
            expected = table[op].reduce(np.concatenate([np.ones(1, x.dtype), used]), dtype=x.dtype)
        assert program(x) == expected


@pytest.mark.parametrize("t", [T.f32, T.f64], ids=str)
@pytest.mark.parametrize("shape", [(0,), (1,), (100,), (70_000,), (1_200_000,), (30, 300), (3, 0), (40, 40, 50)])
def test_float_sums_have_the_same_bits_whatever_runs_them(t: T.DType, shape: tuple[int, ...]) -> None:
    kernel = reduction("add", t, len(shape))
    x = np.random.default_rng(1).normal(size=shape).astype(NUMPY[t.name])
    results = {Program(kernel, simd)(x, cuts=cuts).tobytes() for simd in (1, 4, 16, 64) for cuts in ((), (0.2, 0.7))}
    assert len(results) == 1
    got = np.frombuffer(results.pop(), x.dtype)[0]
    np.testing.assert_allclose(got, 1 + x.sum(dtype=np.float64), rtol=1e-5, atol=1e-3)


def test_float_min_and_max_prefer_numbers() -> None:
    x = np.array([np.nan, 4, -3, np.nan, 0.5] * 9, "f")
    assert Program(reduction("min", T.f32))(x) == -3
    assert Program(reduction("max", T.f32))(x) == 4


def test_two_reductions_with_steps_and_a_later_use() -> None:
    build = Build()
    x, o = build.array("x", T.i64), build.array("o", T.i64)
    a, b = ir.Var("a", T.i64), ir.Var("b", T.i64)
    with build.segment():
        build.set(a, build.i(0))
        build.set(b, build.i(-5))
    stop = ir.Extent((("shape", 0, 0, 0),))
    with build.parallel(stop, start=[3], step=[7]) as (i,):
        build.set(a, build.same("add", build.get(a), build.load(x, i)))
        build.set(b, build.same("max", build.get(b), i))
    build.last.reductions += [ir.Reduction(a, "add"), ir.Reduction(b, "max")]
    with build.parallel((o, 0)) as (i,):
        build.store(o, build.same("add", build.get(a), build.same("mul", build.get(b), i)), i)
    program = Program(build.kernel)
    x_in, got = np.arange(5000, dtype=np.int64), np.zeros(20, np.int64)
    program(x_in, got)
    used = np.arange(3, 5000, 7)
    assert np.array_equal(got, used.sum() + used[-1] * np.arange(20))


def chain(terms: int) -> ir.Kernel:
    build = Build("chain")
    o, x = build.array("o", T.f32), build.array("x", T.f32)
    with build.parallel((o, 0)) as (i,):
        a = build.load(x, i)
        total = a
        for k in range(terms):
            total = build.same("add" if k % 2 else "sub", build.same("mul", total, build.const(T.f32, 0.5)), a)
        build.store(o, total, i)
    return build.kernel


def test_long_bodies_print_in_linear_time_and_once() -> None:
    times = []
    for terms in (5000, 20_000):
        kernel = chain(terms)
        begin = time.process_time()
        source = build_source(kernel, target(), no_math)
        times.append(time.process_time() - begin)
        assert source.text.count("llvm.fma") <= terms + 2
    assert times[1] < 12 * times[0]
    got, x = np.zeros(21, "f"), np.linspace(0, 1, 21, dtype="f")
    Program(chain(5000), optimize=1)(got, x)
    expected = x.astype("d")
    for k in range(5000):
        expected = expected * 0.5 + x * (1 if k % 2 else -1)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


def test_deep_nesting_needs_no_python_recursion() -> None:
    build = Build("deep")
    o = build.array("o", T.i64)
    with build.parallel((o, 0)) as (i,):
        v = build.var("v", i)
        outer = build.stack[-1]
        for k in range(1500):  # like a very long elif chain
            node = ir.If(build.compare("eq", i, build.i(k)), ir.Block(), ir.Block())
            build.stack[-1].body.append(node)
            with build.into(node.then):
                build.set(v, build.same("floordiv", build.get(v), build.same("sub", i, build.i(7))))
            build.stack[-1] = node.orelse
        build.stack[-1] = outer
        build.store(o, build.get(v), i)
    source = build_source(build.kernel, target(), no_math)
    assert source.text.count("if.then") > 1000


def test_names_are_the_users_and_legal() -> None:
    build = Build("größe")
    o = build.array("über_x", T.f32)
    with build.parallel((o, 0)) as (i,):
        v = build.var("label", build.load(o, i))
        with build.when(build.compare("gt", build.get(v), build.const(T.f32, 1.0))):
            build.store(o, build.get(v), build.i(0))
            build.set(v, build.op("div", T.f32, build.get(v), build.const(T.f32, 3.0)))
        build.store(o, build.get(v), i)
    program = Program(build.kernel)
    text = program.source.text
    assert "%label" in text
    assert "if.then" in text
    assert "words[0]: " in text
    assert all(line.isascii() for line in text.splitlines() if not line.startswith(";"))
    got = np.array([1.5, 0.5], "f")
    program(got)


def test_arguments_and_steps_describe_the_kernel() -> None:
    build = Build()
    o, x = build.array("o", T.f32), build.array("x", T.f32, 2)
    build.scalar("n", T.i64, "int")
    build.kernel.params[2] = ir.ScalarParam(2, "n", "int", T.i64, -128, 127)
    build.kernel.params.append(ir.NoneParam(3, "p"))
    build.kernel.written = frozenset({0})
    with build.parallel((o, 0)) as (i,):
        build.store(o, build.load(x, i, build.i(1)), i)
    source = build_source(build.kernel, target(), no_math)
    kinds = [(a.kind, a.written, a.read_only) for a in source.arguments]
    assert kinds == [("array", True, False), ("array", False, True), ("integer", False, False), ("none", False, False)]
    assert (source.arguments[2].min, source.arguments[2].max) == (-128, 127)
    assert [s.kind for s in source.steps] == ["launch"]
    assert {p.kind for p in source.entries[0].params} <= {"pointer", "shape", "extent"}
    assert source.entries[0].cost_hint > 0


def test_cost_hint_is_unknown_for_run_time_loops() -> None:
    build = Build()
    o = build.array("o", T.f32)
    with build.parallel((o, 0)) as (i,), build.loop(i):
        build.store(o, build.const(T.f32, 1.0), i)
    assert build_source(build.kernel, target(), no_math).entries[0].cost_hint == -1.0


def test_lanes_are_chosen_by_width_and_asked_for() -> None:
    def lanes(t: T.DType, **changes: Any) -> int:
        build = Build()
        o, x = build.array("o", t), build.array("x", t)
        with build.parallel((o, 0)) as (i,):
            build.store(o, build.same("add", build.load(x, i), build.const(t, 1)), i)
        return build_source(build.kernel, target(**changes), no_math).simd

    assert [lanes(t, vector_bits=512) for t in (T.f32, T.f64, T.u8, T.i16)] == [16, 8, 64, 32]
    assert [lanes(t, vector_bits=256) for t in (T.f32, T.f64)] == [8, 4]
    assert lanes(T.f32, vector_bits=0) == 1
    assert lanes(T.f32, simd=4) == 4
    assert lanes(T.f32, simd=1) == 1


@pytest.mark.parametrize("t", [T.u32, T.i32, T.u64], ids=str)
def test_divisions_run_in_lanes_where_vectors_have_them(t: T.DType) -> None:
    """Euclid's algorithm: of 32 bits through f64 everywhere; of 64 bits lane by lane without AVX-512, where two values of a
    register are no gain."""
    build = Build()
    o, x, y = build.array("o", t), build.array("x", t), build.array("y", t)
    with build.parallel((o, 0)) as (i,):
        a, b = build.var("a", build.load(x, i)), build.var("b", build.load(y, i))
        loop = build.while_()
        with build.into(loop.test):
            loop.cond = build.compare("ne", build.get(b), build.const(t, 0))
        with build.into(loop.body):
            rest = build.same("mod", build.get(a), build.get(b))
            build.set(a, build.get(b))
            build.set(b, rest)
        build.store(o, build.get(a), i)
    lanes = {bits: build_source(build.kernel, target(vector_bits=bits), no_math).simd for bits in (512, 256, 128)}
    assert lanes[512] >= 8
    assert lanes[256] > 1
    assert (lanes[128] > 1) == (t.bits == 32)


def test_masked_stores_run_in_lanes() -> None:
    """Where no instruction has a mask, what lanes that are off store goes elsewhere; plain code would mispredict its branches."""

    def lanes(t: T.DType, bits: int) -> int:
        build = Build()
        o, x = build.array("o", t), build.array("x", t)
        with build.parallel((o, 0)) as (i,):
            v = build.load(x, i)
            for low in (100, 50, 20):
                with build.when(build.compare("gt", v, build.const(t, low))):
                    build.store(o, v, i)
        return build_source(build.kernel, target(vector_bits=bits), no_math).simd

    assert all(lanes(T.i16, bits) > 1 for bits in (512, 256, 128))
    assert all(lanes(T.i32, bits) > 1 for bits in (512, 256))


def test_scattered_row_sums_stay_scalar() -> None:
    """Compressed rows: each lane would gather from a row of its own, which loses to plain code."""
    build = Build()
    y, rows, columns, values, x = (
        build.array(n, t) for n, t in (("y", T.f32), ("rows", T.i32), ("columns", T.i32), ("values", T.f32), ("x", T.f32))
    )
    with build.parallel((y, 0)) as (i,):
        total = build.var("total", build.const(T.f32, 0.0))
        start, stop = (build.cast(build.load(rows, j), T.i64) for j in (i, build.same("add", i, build.i(1))))
        with build.loop(stop, start) as (_, k):
            product = build.same("mul", build.load(values, k), build.load(x, build.cast(build.load(columns, k), T.i64)))
            build.set(total, build.same("add", build.get(total), product))
        build.store(y, build.get(total), i)
    r = np.random.default_rng(0)
    counts = r.integers(0, 9, 50)
    rows_in = np.concatenate([[0], counts.cumsum()]).astype(np.int32)
    columns_in, values_in, x_in = (
        r.integers(0, 50, rows_in[-1]).astype(np.int32),
        r.normal(size=rows_in[-1]).astype("f"),
        r.normal(size=50).astype("f"),
    )
    expected = [(values_in[a:b].astype("d") * x_in[columns_in[a:b]]).sum() for a, b in zip(rows_in[:-1], rows_in[1:], strict=True)]
    for simd in (0, 16):
        program = Program(build.kernel, simd)
        assert program.source.simd == (simd or 1)
        got = np.zeros(50, "f")
        program(got, rows_in, columns_in, values_in, x_in)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_the_kernel_is_left_as_it_was_and_the_text_is_stable() -> None:
    kernel = reduction("add", T.f32, 2, odd=True)
    before = [(type(n).__name__, id(n)) for item in kernel.items for n in item.body.body]  # type: ignore[union-attr]
    texts = {build_source(kernel, target(), no_math).text for _ in range(2)}
    assert len(texts) == 1
    assert before == [(type(n).__name__, id(n)) for item in kernel.items for n in item.body.body]  # type: ignore[union-attr]


def test_bad_ir_and_unknown_outputs_are_refused() -> None:
    with pytest.raises(CompileError, match="Kernel 'k': LLVM does not take the generated code"):
        compile_ir("k", "define void @f( {", target().arch, 2, "object")
    with pytest.raises(ValueError, match="'object', 'assembly' or 'ir'"):
        compile_ir("k", "", target().arch, 2, "bitcode")


def test_outputs() -> None:
    text = build_source(chain(3), target(), no_math).text
    assert compile_ir("k", text, target().arch, 2, "object")[:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\x64\x86\x00\x00")
    assert b"tack_chain_0" in compile_ir("k", text, target().arch, 2, "assembly")
    assert b"define void @tack_chain_0" in compile_ir("k", text, target().arch, 2, "ir")


def test_text_is_the_same_in_every_process() -> None:
    """No order of a set, no address may show: the text is part of the cache's key."""
    import tack

    program = (
        "import sys, types; sys.path[:0] = %r\n"
        "m = types.ModuleType('tack'); m.__path__ = [%r]; sys.modules['tack'] = m\n"  # the compiler alone, without the runtime
        "import hashlib, test_codegen_random as r\n"
        "from codegen_harness import target, no_math, build_source\n"
        "texts = [build_source(r.Generator(s, 2).b.kernel, target(16), no_math).text for s in range(6)]\n"
        "print(hashlib.sha256(''.join(texts).encode()).hexdigest())"
    ) % ([p for p in sys.path if p], str(next(iter(tack.__path__))))
    runs = {
        subprocess.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_what_is_not_there_is_refused_with_its_place() -> None:
    loc = ir.Loc("user.py", 12, 4)
    for what, match in (
        ("local", "local arrays of 400000 bytes"),
        ("atomic", "'scratch' is a local array"),
    ):
        build = Build()
        o = build.array("o", T.f32)
        local = ir.LocalArray("scratch", T.f32, (100_000 if what == "local" else 4,))
        with build.parallel((o, 0)) as (i,):
            if what == "local":
                build.store(o, build.load(local, i), i)
                build.stack[-1].body[-2].loc = loc
            else:
                build.op("atomic", T.f32, build.const(T.f32, 1.0), build.i(0), attr=("add", local)).loc = loc
        with pytest.raises(CompileNotImplementedError, match=f"user.py:12: Kernel 'kernel': .*{match}") as caught:
            build_source(build.kernel, target(), no_math)
        assert (caught.value.line, caught.value.kernel) == (12, "kernel")
    with pytest.raises(UnsupportedError, match="Kernel 'chain': no code generator for Thing"):
        build_source(chain(1), target(backend="thing", title="Thing"), no_math)


def test_a_short_known_row_takes_no_more_lanes_than_it_has() -> None:
    build = Build()
    o = build.array("o", T.f32, 2, T.Layout.INNER)  # rows need not follow one another, so that lanes cannot run on into the next
    with build.parallel((o, 0), 3) as (i, j):
        build.store(o, build.cast(build.same("add", i, j), T.f32), i, j)
    program = Program(build.kernel)
    assert program.source.simd == 4
    got = np.zeros((5, 3), "f")
    program(got)
    assert np.array_equal(got, np.add.outer(np.arange(5), np.arange(3)))
