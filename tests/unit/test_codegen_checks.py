"""Checks of debug mode against the interpreter: random kernels that go wrong in some iterations, at every width; what checks look like."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from codegen_harness import NUMPY, Build, Program, no_math, target
from test_codegen_random import Generator, inputs

from tack import types as T
from tack.codegen import build_source
from tack.ir import interpret
from tack.ir import nodes as ir
from tack.ir.verify import verify


class Wild(Generator):
    """Kernels that sometimes index outside of their arrays and assert what is not so."""

    def __init__(self, seed: int, rank: int) -> None:
        self.rate = (0.0, 0.05, 0.3)[seed % 3]
        super().__init__(seed, rank)

    def value(self, t: T.DType, depth: int = 0) -> ir.Instr:
        b, r = self.b, self.r
        if r.random() < self.rate:
            if self.local is not None and r.random() < 0.3:
                return self.to(b.load(self.local, b.same("mod", self.small(), b.i(6))), t)
            array = r.choice(list(self.inputs.values()))
            at = super().value(T.i64, 2) if r.random() < 0.5 else self.flat
            beyond = b.same("add", b.shape(array), b.i(r.randrange(1, 3)))
            at = b.same("sub", b.same("mod", at, beyond), b.i(r.choice((0, 0, 1))))
            return self.to(b.load(array, at), t)
        return super().value(t, depth)

    def statement(self) -> None:
        b, r = self.b, self.r
        if r.random() < self.rate:
            tested = self.value(T.i64, 2)
            cond = b.compare("ne", b.same("mod", tested, b.i(r.choice((3, 17, 40)))), b.i(0))
            b.op("assert_", None, cond, tested, attr="value {} {{}}")
        super().statement()


def alone(kernel: ir.Kernel, index: tuple[int, ...]) -> ir.Kernel:
    """The kernel with that one iteration."""
    (loop,) = kernel.items
    assert isinstance(loop, ir.Parallel)
    bounds = [ir.Extent.constant(k) for k in index], [ir.Extent.constant(k + 1) for k in index]
    return replace(kernel, items=[replace(loop, start=bounds[0], stop=bounds[1])])


def outcomes(kernel: ir.Kernel, args: list[Any], shape: tuple[int, ...]) -> dict[tuple[int, ...], str]:
    """What the interpreter says of each iteration that fails."""
    failures = {}
    for index in np.ndindex(shape):
        try:
            interpret.run(alone(kernel, index), args)
        except IndexError as error:
            (found,) = re.findall(r"index (.*) is outside '(\w+)'", str(error))
            failures[index] = f"index {found[0].removeprefix('(').removesuffix(')').removesuffix(',')} of {found[1]}"
        except AssertionError as error:
            failures[index] = str(error).partition(": ")[2]
    return failures


def reported(program: Program) -> tuple[tuple[int, ...], str] | None:
    failure = program.failure()
    if failure is None:
        return None
    kind, text = failure
    said, _, where = text.partition("\n  in iteration ")
    if kind == "index":
        (found,) = re.findall(r"index (.*) is outside of '(\w+)'", said)
        said = f"index {found[0].removeprefix('(').removesuffix(')')} of {found[1]}"
    return tuple(map(int, re.findall(r"= (-?\d+)", where))), said


@pytest.mark.parametrize("seed", range(24))
def test_random_kernels_that_fail(seed: int) -> None:
    fail_alike(seed)


def fail_alike(seed: int) -> None:
    """Generated code reports an iteration that fails in the interpreter, with what it says there."""
    rank = 1 + seed % 4 % 3
    shape = {1: (37,), 2: (3, 21), 3: (2, 3, 7)}[rank]
    kernel = Wild(seed, rank).b.kernel
    verify(kernel)
    expected = inputs(seed, shape)
    failures = outcomes(kernel, expected, shape)
    if seed % 3 == 0:
        assert not failures
    for simd in ((1, 16), (4, 16), (2, 8))[seed % 7 % 3]:
        got = inputs(seed, shape)
        program = Program(kernel, simd, optimize=seed % 3, debug=True)
        with np.errstate(all="ignore"):
            program(*got, cuts=(0.4,))
        said = reported(program)
        if failures:
            assert said is not None
            assert failures[said[0]] == said[1], f"lanes {simd}"
            continue
        assert said is None, f"lanes {simd}"
        for k in (4, 5):
            nan = np.isnan(expected[k]) & np.isnan(got[k])
            bits = NUMPY[("i64", "i32")[k - 4]]
            assert np.array_equal(expected[k].view(bits)[~nan], got[k].view(bits)[~nan]), f"lanes {simd}"


def test_the_random_kernels_fail_and_pass() -> None:
    """The test above sees both."""
    some = {seed: bool(outcomes(Wild(seed, 1).b.kernel, inputs(seed, (37,)), (37,))) for seed in (0, 3, 1, 2, 4, 5, 7, 8)}
    assert not some[0] and not some[3] and sum(some.values()) >= 4


def source_of(debug: bool, *, accesses: int = 1, say: str = "") -> tuple[Any, str]:
    build = Build("kernel")
    x, o = build.array("x", T.f32), build.array("o", T.f32)
    build.kernel.written = frozenset({o.index})
    with build.parallel((o, 0)) as (i,):
        for _ in range(accesses):
            value = build.load(x, i)
        build.store(o, value, i)
        if say == "print":
            build.op("print", None, i, value, attr="{} {}\n")
        if say == "assert_":
            build.op("assert_", None, build.compare("lt", i, build.shape(x)), attr="inside")
    source = build_source(build.kernel, target(debug=debug), no_math)
    return source, source.text


def test_an_access_is_checked_once_where_it_is_repeated() -> None:
    source, _ = source_of(True, accesses=5)
    assert [(s.kind, s.text.split("'")[1]) for s in source.sites] == [("index", "x"), ("index", "o")]


def test_code_without_checks_has_nothing_of_them() -> None:
    for source, text in (source_of(False), source_of(False, say="assert_")):
        assert not source.sites
        assert "records" not in text and "tack_fail" not in text and "tack_print" not in text
        assert all(p.kind != "records" for e in source.entries for p in e.params)
    assert source_of(False)[1] == source_of(False, say="assert_")[1]


def test_prints_need_no_debug_mode_and_no_lanes() -> None:
    source, text = source_of(False, say="print")
    assert source.simd == 1 and [s.kind for s in source.sites] == ["print"]
    assert "tack_print" in text and "tack_fail" not in text
    assert source_of(True, say="print")[0].simd == 1 and source_of(True)[0].simd > 1


def test_what_is_printed() -> None:
    build = Build("kernel")
    x = build.array("x", T.f32)
    with build.parallel((x, 0)) as (i,), build.when(build.compare("gt", build.load(x, i), build.const(T.f32, 0.5))):
        flag = build.compare("lt", i, build.i(3))
        build.op("print", None, i, build.load(x, i), flag, build.cast(i, T.i8), build.cast(i, T.u16), attr="{}: {} {} {} {:03d}{{}}\n")
    program = Program(build.kernel, 16)
    data = np.array([0.0, 0.6, 0.1, 1.0, 2.5], np.float32)
    program(data)
    assert program.printed() == "1: 0.6 True 1 001{}\n3: 1.0 False 3 003{}\n4: 2.5 False 4 004{}\n"
    program(np.ones(3000, np.float32))
    assert program.printed().count("\n") == 1000 and program.records[8] == 3000  # what does not fit is counted


def test_a_failed_launch_stops_the_ones_after_it() -> None:
    build = Build("kernel")
    x = build.array("x", T.i64)
    build.kernel.written = frozenset({0})
    for _ in range(2):
        with build.parallel(10) as (i,):
            build.store(x, build.same("add", build.load(x, i), build.i(1)), i)
    program = Program(build.kernel, 4, debug=True)
    data = np.zeros(9, np.int64)
    program(data)
    assert program.failure() == ("index", "index 9 is outside of 'x' of shape (9,)\n  in iteration i = 9")
    assert data.max() == 1
    program(more := np.zeros(10, np.int64))
    assert program.failure() is None and (more == 2).all()


def test_names_of_iterations() -> None:
    for names, expected in (("ij", "in iteration i = 1, j = 4"), ("_i", "in iteration (1, 4)")):
        build = Build("kernel")
        x = build.array("x", T.i64, 2)
        with build.parallel(2, 5, names=names) as (i, j):
            build.op("assert_", None, build.compare("ne", build.same("add", i, j), build.i(5)), attr="sum")
        program = Program(build.kernel, 1, debug=True)
        program(np.zeros((2, 5), np.int64))
        assert program.failure() == ("assertion", f"sum\n  {expected}")
