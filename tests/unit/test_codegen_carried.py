"""What loops hand from round to round in lanes: variables of their own, joins in place, and what is seen of them after the loop."""

from __future__ import annotations

import numpy as np
import pytest
from codegen_harness import Build, Program

from tack import types as T
from tack.ir import nodes as ir

SIMD = [1, 2, 8, 16, 32]


def run(kernel: ir.Kernel, simd: int, x: np.ndarray) -> tuple[Program, np.ndarray]:
    program = Program(kernel, simd)
    out = np.full((2, x.size), -99, x.dtype)
    program(out, x, cuts=(0.37,))
    return program, out


def escape(inner_break: bool) -> ir.Kernel:
    """out[0, i] = k and out[1, i] = v after v has been doubled and k counted until v > 1000, or (before both) until v is 96."""
    build = Build("escape")
    out, x = build.array("out", T.i32, 2), build.array("x", T.i32)
    build.kernel.written = frozenset({out.index})
    with build.parallel((x, 0)) as (i,):
        k, v = build.var("k", build.const(T.i32, 0)), build.var("v", build.load(x, i))
        loop = build.while_()
        with build.into(loop.test):
            loop.cond = build.compare("le", build.get(v), build.const(T.i32, 1000))
        with build.into(loop.body):
            if inner_break:
                with build.when(build.compare("eq", build.get(v), build.const(T.i32, 96))):
                    build.break_()
            build.set(v, build.same("mul", build.get(v), build.const(T.i32, 2)))
            build.set(k, build.same("add", build.get(k), build.const(T.i32, 1)))
        build.store(out, build.get(k), build.i(0), i)
        build.store(out, build.get(v), build.i(1), i)
    return build.kernel


@pytest.mark.parametrize("inner_break", [False, True])
@pytest.mark.parametrize("simd", SIMD)
def test_after_the_loop_each_lane_has_its_last_round(simd: int, inner_break: bool) -> None:
    x = np.array([3, 1, 1001, 96, 7, 12, 500, 999, 2, 48] * 9, np.int32)
    program, out = run(escape(inner_break), simd, x)
    for value, k, v in zip(x.tolist(), *out.tolist(), strict=True):
        rounds = 0
        while value <= 1000 and not (inner_break and value == 96):
            value, rounds = value * 2, rounds + 1
        assert (k, v) == (rounds, value)
    if simd > 1:  # the count is one for all lanes
        assert "alloca i32, align 8" in program.source.text


@pytest.mark.parametrize("simd", SIMD)
def test_nested_loops_begin_anew(simd: int) -> None:
    """The inner loop's variables live on in lanes that have left it, into the next round of the outer one."""
    build = Build("nested")
    out, x = build.array("out", T.i32, 2), build.array("x", T.i32)
    build.kernel.written = frozenset({out.index})
    with build.parallel((x, 0)) as (i,):
        total, k = build.var("total", build.const(T.i32, 0)), build.var("k", build.const(T.i32, 0))
        with build.loop(build.i(4)) as (_, j):
            stop = build.same("add", build.load(x, i), build.cast(j, T.i32))
            with build.when(build.compare("gt", stop, build.const(T.i32, 3))):
                build.set(k, build.const(T.i32, 0))  # else it goes on from where it was
            loop = build.while_()
            with build.into(loop.test):
                loop.cond = build.compare("lt", build.get(k), stop)
            with build.into(loop.body):
                build.set(k, build.same("add", build.get(k), build.const(T.i32, 1)))
                build.set(total, build.same("add", build.get(total), build.get(k)))
        build.store(out, build.get(total), build.i(0), i)
        build.store(out, build.get(k), build.i(1), i)
    x = np.arange(-3, 9, dtype=np.int32).repeat(5)
    _, out_ = run(build.kernel, simd, x)
    for value, total_, k_ in zip(x.tolist(), *out_.tolist(), strict=True):
        t = n = 0
        for j_ in range(4):
            if value + j_ > 3:
                n = 0
            while n < value + j_:
                n += 1
                t += n
        assert (total_, k_) == (t, n)


def joined(leaves: bool) -> ir.Kernel:
    """v grows by 3 while it is odd or small, else stays; with ``leaves``, the arm that changes it may leave the loop before that counts."""
    build = Build("joined")
    out, x = build.array("out", T.i32, 2), build.array("x", T.i32)
    build.kernel.written = frozenset({out.index})
    with build.parallel((x, 0)) as (i,):
        v, n = build.var("v", build.load(x, i)), build.var("n", build.const(T.i32, 0))
        with build.loop(build.i(6)) as (_, _j):
            join, now = ir.Var("join", T.i32), build.get(v)
            odd = build.compare("ne", build.same("and", now, build.const(T.i32, 1)), build.const(T.i32, 0))
            with build.when(odd) as node:
                grown = build.same("add", now, build.const(T.i32, 3))
                build.set(join, grown)
                if leaves:
                    with build.when(build.compare("gt", grown, build.const(T.i32, 9))):
                        build.break_()
                build.set(n, build.same("add", build.get(n), build.load(x, i)))
            with build.into(node.orelse):
                build.set(join, now)
            build.set(v, build.get(join))
        build.store(out, build.get(n), build.i(0), i)
        build.store(out, build.get(v), build.i(1), i)
    return build.kernel


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("simd", SIMD)
def test_an_arm_that_only_copies(simd: int, leaves: bool) -> None:
    x = np.arange(-5, 15, dtype=np.int32).repeat(3)
    program, out = run(joined(leaves), simd, x)
    for value, n, v in zip(x.tolist(), *out.tolist(), strict=True):
        count, now = 0, value
        for _ in range(6):
            if now % 2:
                if leaves and now + 3 > 9:
                    break
                count, now = count + value, now + 3
        assert (n, v) == (count, now)
    if simd > 1:
        assert ("if.else" in program.source.text) == leaves
