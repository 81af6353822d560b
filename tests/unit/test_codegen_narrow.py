"""64-bit integers in 32: which are, what is assumed of a launch, and that launches of all sizes get the same answers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from codegen_harness import Build, Program, target

import tack
from tack import types as T
from tack.codegen import build_source
from tack.ir import nodes as ir

WIDE = re.compile(r"br i1 %[\w.]+, label %narrow, label %wide")


def escape() -> ir.Kernel:
    """out[i] = rounds until x[i] + rounds * 0.5 is above 10, at most ``limit``; as a float, so that all bits of the count matter."""
    build = Build("escape")
    out, x = build.array("out", T.f32), build.array("x", T.f32)
    limit = build.scalar("limit", T.i64, "int")
    build.kernel.written = frozenset({out.index})
    with build.parallel((out, 0)) as (i,):
        most = build.arg(limit)
        v, k = build.var("v", build.load(x, i)), build.var("k", build.i(0))
        loop = build.while_()
        with build.into(loop.test):
            below = build.compare("lt", build.get(v), build.const(T.f32, 10.0))
            loop.cond = build.op("and", T.BOOL, build.compare("lt", build.get(k), most), below)
        with build.into(loop.body):
            build.set(v, build.same("add", build.get(v), build.const(T.f32, 0.5)))
            build.set(k, build.same("add", build.get(k), build.i(1)))
        build.store(out, build.cast(build.get(k), T.f32), i)
    return build.kernel


@pytest.mark.parametrize("simd", [2, 8, 16, 32])
@pytest.mark.parametrize("limit", [7, -3, 1 << 31, (1 << 40) + 5, -(1 << 40)])
def test_large_arguments_take_the_other_way(simd: int, limit: int) -> None:
    program = Program(escape(), simd)
    assert WIDE.search(program.source.text)
    x = np.linspace(-20, 12, 77, dtype=np.float32)
    out = np.full(77, -1, np.float32)
    program(out, x, limit, cuts=(0.3, 0.31))
    rounds = np.ceil((10 - x.astype(np.float64)) / 0.5).clip(0)
    np.testing.assert_array_equal(out, np.minimum(rounds, max(limit, 0)).astype(np.float32))


def test_plain_code_has_one_way() -> None:
    assert not WIDE.search(build_source(escape(), target(1), lambda *_: 1 / 0).text)


def test_a_counter_that_only_bytes_are_kept_of_needs_no_assumption() -> None:
    build = Build("count")
    out, x = build.array("out", T.u8), build.array("x", T.i32)
    build.kernel.written = frozenset({out.index})
    with build.parallel((out, 0)) as (i,):
        k = build.var("k", build.i(0))
        with build.loop(build.i(9)) as (_, j):
            with build.when(build.compare("gt", build.load(x, i), build.cast(j, T.i32))):
                build.set(k, build.same("add", build.same("mul", build.get(k), build.i(3)), build.i(1)))
        build.store(out, build.cast(build.get(k), T.u8), i)
    program = Program(build.kernel, 8)
    assert not WIDE.search(program.source.text)
    assert "mul <8 x i16>" in program.source.text
    x_ = np.arange(-2, 12, dtype=np.int32).repeat(3)
    out_ = np.zeros(x_.size, np.uint8)
    program(out_, x_)
    expected = []
    for v in x_.tolist():
        count = 0
        for j in range(9):
            count = count * 3 + 1 if v > j else count
        expected.append(count % 256)
    assert out_.tolist() == expected


@tack.kernel
def spread(out, x, index, n, shift):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        s = 0
        for k in range(n):
            j = index[i] + k * shift
            if j < x.shape[0]:
                s += x[j] * (k - 3)
        out[i] = s


@pytest.mark.parametrize("simd", [1, 4, 8, 16, 32])
@pytest.mark.parametrize(("n", "shift"), [(5, 3), (1, 1 << 40), (3, 1 << 31), (0, -(1 << 35))])
def test_sums_that_need_64_bits_keep_them(simd: int, n: int, shift: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-(1 << 31), 1 << 31, 100).astype(np.int32)
    index = rng.integers(0, 90, 53).astype(np.int32)
    out = np.zeros(53, np.int64)
    tack.kernel(simd=simd)(spread.__wrapped__)(out, x, index, n, shift)
    expected = [sum(int(x[j + k * shift]) * (k - 3) for k in range(n) if j + k * shift < 100) for j in index.tolist()]
    assert out.tolist() == expected


OPERATIONS: list[Any] = [T.i8, T.u8, T.i16, T.u16, T.i32, T.u32, T.i64, T.u64]


@pytest.mark.parametrize("dtype", OPERATIONS, ids=lambda t: t.name)
@pytest.mark.parametrize("simd", [4, 16, 32])
@pytest.mark.parametrize("op", ["floordiv", "mod"])
def test_division_by_lanes(dtype: T.DType, simd: int, op: str) -> None:
    build = Build("divide")
    out, x, y = (build.array(n, dtype) for n in ("out", "x", "y"))
    build.kernel.written = frozenset({out.index})
    with build.parallel((out, 0)) as (i,):
        build.store(out, build.same(op, build.load(x, i), build.load(y, i)), i)
    program = Program(build.kernel, simd)
    low, high = dtype.min, dtype.max
    edges = sorted({v for b in (low, high, 0, high // 2, high // 3) for v in (b - 2, b - 1, b, b + 1, b + 2) if low <= v <= high})
    rng = np.random.default_rng(7)
    more = [int(v) for v in rng.integers(low, high, 60, dtype=f"{'i' if low else 'u'}8", endpoint=True)]
    more += [low + (int(v) - low >> int(s)) for v, s in zip(more, rng.integers(0, dtype.bits, 60), strict=True)]
    pairs = [(a, b) for a in [*edges, *more] for b in [*edges, *more[::5]]]
    kind = f"{'i' if low else 'u'}{dtype.itemsize}"
    xs, ys = (np.array(v, kind) for v in zip(*pairs, strict=True))
    got = np.zeros(len(pairs), kind)
    program(got, xs, ys)
    wrap = 1 << dtype.bits
    for a, b, g in zip(xs.tolist(), ys.tolist(), got.tolist(), strict=True):
        exact = 0 if b == 0 else a // b if op == "floordiv" else a % b
        assert (exact - g) % wrap == 0, (a, b)


@pytest.mark.parametrize("simd", [4, 8, 32])
@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 30, 31, 32, 33, 63, 64, 1000, -1, -5, 0, 1 << 40, -(1 << 63), (1 << 63) - 1])
@pytest.mark.parametrize("start", [0, -50, (1 << 31) - 20, (1 << 62) + 5, (1 << 63) - 90, -(1 << 63)])
def test_indices_by_one_divisor(simd: int, divisor: int, start: int) -> None:
    build = Build("divide")
    quotients, rests = build.array("q", T.i64), build.array("r", T.i64)
    by, first = build.scalar("by", T.i64, "int"), build.scalar("first", T.i64, "int")
    build.kernel.written = frozenset({quotients.index, rests.index})
    with build.parallel((quotients, 0)) as (i,):
        at = build.same("add", build.same("mul", i, build.i(1)), build.arg(first))
        build.store(quotients, build.same("floordiv", at, build.arg(by)), i)
        build.store(rests, build.same("mod", at, build.arg(by)), i)
    program = Program(build.kernel, simd)
    q, r = np.zeros(71, np.int64), np.zeros(71, np.int64)
    program(q, r, divisor, start, cuts=(0.4,))
    for k in range(71):
        value = start + k
        exact = (0, 0) if divisor == 0 else divmod(value, divisor)
        if (value, divisor) == (-(1 << 63), -1):
            exact = (-(1 << 63), 0)
        assert (int(q[k]), int(r[k])) == exact, k


@tack.kernel
def across(out, shade, lo, hi, step):  # type: ignore[no-untyped-def]
    for i in range(lo, hi, step):
        at = (i - lo) // step
        out[at] = i * 3 - i % 5 + i // 7
        shade[at] = 0.5 * i


@pytest.mark.parametrize("simd", [1, 4, 16])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("lo", [0, -9, (1 << 31) - 20, (1 << 31) - (1 << 17) - 8, 715_827_880, 1 << 40, -(1 << 31) - 8])
def test_indices_on_both_sides_of_the_border(simd: int, step: int, lo: int) -> None:
    """``i * 3`` leaves 32 bits long before ``i`` does, and so does the last index of a launch that begins below the border."""
    values = range(lo, lo + 50 * step, step)
    out, shade = np.zeros(50, np.int64), np.zeros(50, np.float32)
    tack.kernel(simd=simd)(across.__wrapped__)(out, shade, lo, lo + 50 * step, step)
    assert out.tolist() == [i * 3 - i % 5 + i // 7 for i in values]
    np.testing.assert_array_equal(shade, np.array([np.float32(i) * np.float32(0.5) for i in values], np.float32))
