"""Large bodies are divided among functions: their size has a bound, whatever the kernel's, and they compute what one function computes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import test_codegen_checks
import test_codegen_random
from codegen_harness import Build, Program, no_math, target

from tack import types as T
from tack.codegen import build_source, llvm_pieces, pieces
from tack.ir import nodes as ir


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nearly everything becomes a piece; answers what is called, as it is printed."""
    called: list[str] = []
    call = llvm_pieces.Pieces.call

    def noted(self: Any, *args: Any) -> None:
        call(self, *args)
        called.append(self.functions[-1])

    for name, value in (("_LARGE", 0), ("_PIECE", 25), ("_LEAST", 3)):
        monkeypatch.setattr(pieces, name, value)
    monkeypatch.setattr(llvm_pieces.Pieces, "call", noted)
    return called


@pytest.mark.parametrize("seed", range(60, 72))
def test_random_kernels_in_pieces(seed: int, tiny: list[str]) -> None:
    test_codegen_random.agree(seed)
    assert tiny


@pytest.mark.parametrize("seed", range(24, 30))
def test_random_kernels_in_pieces_that_fail(seed: int, tiny: list[str]) -> None:
    test_codegen_checks.fail_alike(seed)
    assert tiny


def test_the_pieces_use_all_that_they_can(tiny: list[str]) -> None:
    """Among these kernels are pieces that return early, that share variables and masks, that hand values on, and that hold others."""
    for seed in range(60, 75):
        for simd in (1, 8):
            build_source(test_codegen_random.Generator(seed, 1).b.kernel, target(simd), no_math)
    text = "".join(tiny)
    for what in (r"ret i32 ", r"switch i32 ", r"store <8 x i1> %shared", r"ptr %handed", r" call fastcc void @\w+\.piece"):
        assert re.search(what, text), what


def functions(kernel: ir.Kernel, simd: int) -> dict[str, int]:
    """The functions of the generated code and how many lines each has."""
    text = build_source(kernel, target(simd), no_math).text
    found = re.findall(r"^define [^@]*(@[\w.]+)\(.*?^}", text, re.MULTILINE | re.DOTALL)
    bodies = re.findall(r"^define .*?^}", text, re.MULTILINE | re.DOTALL)
    counts = {name: body.count("\n") for name, body in zip(found, bodies, strict=True)}
    return {name: n for name, n in counts.items() if not name.startswith(("@tack_quot_", "@tack_rem_"))}  # they divide lane by lane


def straight(build: Build, x: ir.ArrayParam, a: ir.Var, i: ir.Instr, count: int) -> None:
    for k in range(count):
        b = build.load(x, build.same("mod", build.same("add", i, build.i(k)), build.shape(x)))
        build.set(a, build.same("add", build.get(a), b))


def branches(build: Build, x: ir.ArrayParam, a: ir.Var, i: ir.Instr, count: int) -> None:
    for k in range(count):
        with build.when(build.compare("gt", build.get(a), build.i(k))):
            build.set(a, build.same("add", build.get(a), build.load(x, i)))


def loops(build: Build, x: ir.ArrayParam, a: ir.Var, i: ir.Instr, count: int) -> None:
    for _ in range(count):
        with build.loop(build.i(3)) as (_, k):
            build.set(a, build.same("add", build.get(a), build.load(x, k)))


def chain(build: Build, x: ir.ArrayParam, a: ir.Var, i: ir.Instr, count: int) -> None:
    """if, elif, elif, ..., which is a nest of blocks."""
    open_: list[ir.Block] = []
    for k in range(count):
        with build.when(build.compare("eq", build.get(a), build.i(k))) as node:
            build.set(a, build.same("mul", build.load(x, i), build.i(k)))
        build.stack.append(node.orelse)
        open_.append(node.orelse)
    for _ in open_:
        build.stack.pop()


def nest(build: Build, x: ir.ArrayParam, a: ir.Var, i: ir.Instr, count: int) -> None:
    """One loop around everything."""
    with build.loop(build.i(2)) as (_, k):
        straight(build, x, a, k, count)
        with build.when(build.compare("gt", build.get(a), build.i(1 << 40))):
            build.break_()
        branches(build, x, a, i, count)


BODIES = (straight, branches, loops, chain, nest)


def kernel_of(body: Callable[..., None], count: int) -> ir.Kernel:
    build = Build("long")
    out, x = build.array("out", T.i64), build.array("x", T.i64)
    build.kernel.written = frozenset({out.index})
    with build.parallel((out, 0)) as (i,):
        a = build.var("a", build.load(x, i))
        body(build, x, a, i, count)
        build.store(out, build.get(a), i)
    return build.kernel


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("simd", [1, 8])
def test_functions_stay_small(body: Callable[..., None], simd: int) -> None:
    small, large, huge = (functions(kernel_of(body, n), simd) for n in (20, 700, 2100))
    assert sum(not name.endswith(".wide") for name in small) == 1
    assert len(large) > 2
    assert len(huge) > 2 * len(large)
    # The entry's own function has the calls.
    assert max(huge.values()) < max(1.2 * max(large.values()), 15_000)
    assert max(huge.values()) < sum(huge.values()) / 3


@pytest.mark.parametrize("body", BODIES)
def test_the_same_answers(body: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = kernel_of(body, 60)
    answers = []
    x = np.arange(5, 45, dtype=np.int64)
    for simd in (1, 8):
        with monkeypatch.context() as patch:
            patch.setattr(pieces, "_PIECE", 200)
            for large in (1 << 60, 300):
                patch.setattr(pieces, "_LARGE", large)
                out = np.zeros_like(x)
                Program(kernel, simd, optimize=1)(out, x)
                answers.append(out)
    assert answers[0].any()
    for other in answers[1:]:
        assert np.array_equal(answers[0], other)


def test_a_long_prologue() -> None:
    """Scalars computed before a loop, by very many statements, are divided like the loop's own."""
    build = Build("early")
    out, n = build.array("out", T.i64), build.scalar("n", T.i64, "int")
    build.kernel.written = frozenset({out.index})
    with build.segment():
        a = build.var("a", build.arg(n))
        for k in range(4000):
            build.set(a, build.same("xor", build.same("mul", build.get(a), build.i(3)), build.i(k)))
    with build.parallel((out, 0)) as (i,):
        build.store(out, build.same("add", build.get(a), i), i)
    assert len(functions(build.kernel, 8)) > 2
    out_ = np.zeros(9, np.int64)
    Program(build.kernel, 8)(out_, 7)
    value = 7
    for k in range(4000):
        value = (value * 3 ^ k) & (1 << 64) - 1
    assert out_.view(np.uint64).tolist() == [(value + i) % (1 << 64) for i in range(9)]
