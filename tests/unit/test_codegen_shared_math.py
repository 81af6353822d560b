"""Library functions that a kernel uses often are printed once and called; what the compiler does grows with the kernel, no faster."""

from __future__ import annotations

import numpy as np
import pytest
from codegen_harness import NUMPY, Build, Program, host_arch

from tack import mathlink
from tack import types as T
from tack.codegen import lower, uniform
from tack.ir import nodes as ir

WIDTHS = (0, 1, 4, 32)
FUNCTIONS = ("sin", "exp", "pow", "fmod")


def kernel(dtype: T.DType, copies: int) -> Build:
    """Under a condition that lanes differ in, and once outside it with a value that all lanes share."""
    build = Build("shared")
    o, x = build.array("o", dtype), build.array("x", dtype)
    f = build.scalar("f", dtype)
    with build.parallel((o, 0)) as (i,):
        a = build.load(x, i)
        total = build.var("total", build.op("math", dtype, build.arg(f), attr="sin"))
        with build.when(build.compare("lt", a, build.const(dtype, 1000.0))):
            for k in range(copies):
                scaled = build.same("mul", a, build.const(dtype, k + 0.5))
                for name in FUNCTIONS:
                    if name == "fmod":
                        value = build.same("mod", scaled, build.const(dtype, 3.0))
                    elif name == "pow":
                        value = build.same("pow", build.op("math", dtype, a, attr="fabs"), scaled)
                    else:
                        value = build.op("math", dtype, scaled, attr=name)
                    build.set(total, build.same("add", build.get(total), value))
        build.store(o, build.get(total), i)
    return build


@pytest.mark.parametrize("simd", WIDTHS)
@pytest.mark.parametrize("dtype", [T.f32, T.f64], ids=str)
@np.errstate(all="ignore")
def test_a_called_function_is_the_inlined_one(monkeypatch: pytest.MonkeyPatch, dtype: T.DType, simd: int) -> None:
    """Exactly, lanes that are off included: here they hold what takes the slowest paths."""
    values = np.random.default_rng(3).uniform(-20, 20, 203).astype(NUMPY[dtype.name])
    values[::7] = 1e30
    values[5], values[6], values[9] = np.nan, np.inf, -np.inf
    got = []
    for limit, calls in ((1 << 30, False), (0, True)):
        monkeypatch.setattr(lower, "_COPIES_SIZE", limit)
        program = Program(kernel(dtype, 3).kernel, simd, math=mathlink.math)
        for name in FUNCTIONS:
            assert (f"@tack_math_{name}_" in program.source.text) is calls
        out = np.zeros_like(values)
        program(out, values, 1.5, cuts=(0.3,))
        got.append(out)
    np.testing.assert_array_equal(*got)


def test_a_function_is_printed_once_for_each_number_of_lanes() -> None:
    program = Program(kernel(T.f32, 40).kernel, 8, math=mathlink.math)
    text = program.source.text
    for name in FUNCTIONS:
        assert text.count(f"define internal fastcc <8 x float> @tack_math_{name}_v8f32(") == 1
    assert text.count("define internal fastcc float @tack_math_sin_f32(") == 1  # of the scalar argument
    few = Program(kernel(T.f32, 2).kernel, 8, math=mathlink.math).source.text
    assert "@tack_math" not in few


def straight(lines: int) -> Build:
    build = Build("long")
    o, x = build.array("o", T.f32), build.array("x", T.f32)
    with build.parallel((o, 0)) as (i,):
        a = build.load(x, i)
        last = build.var("v0", a)
        for k in range(lines):
            now = build.var(f"v{k + 1}", build.get(last))
            with build.when(build.compare("gt", build.get(last), build.const(T.f32, float(k)))):
                for _ in range(10):  # too much to become a select
                    build.set(now, build.op("math", T.f32, build.same("mul", build.get(now), a), attr="sqrt"))
            last = now
        build.store(o, build.get(last), i)
    return build


def test_the_analysis_of_long_kernels_takes_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many variables differs between lanes because the one before it does: found in one round, not one for each."""
    rounds = 0
    original = uniform._Analysis.round

    def counted(self: uniform._Analysis, blocks: tuple[ir.Block, ...]) -> None:
        nonlocal rounds
        rounds += 1
        original(self, blocks)

    monkeypatch.setattr(uniform._Analysis, "round", counted)
    program = Program(straight(60).kernel, 8 if host_arch()[1] else 0)
    assert program.source.simd == 8
    assert rounds <= 6  # of two analyses: for the choice of lanes, and of the code
    values = np.linspace(0.5, 1.5, 21, dtype="f")
    out = np.zeros(21, "f")
    program(out, values)
    expected = values.copy()
    for k in range(60):
        now = expected.copy()
        for _ in range(10):
            now = np.where(expected > k, np.sqrt(now * values), now)
        expected = now
    np.testing.assert_allclose(out, expected, rtol=1e-5)
