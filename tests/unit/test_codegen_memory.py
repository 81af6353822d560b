"""Ranges, layouts, gathers and scatters, overlapping arrays, atomics, local arrays: against NumPy, with one lane and with many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from codegen_harness import NUMPY, Build, Program, host_arch

from tack import types as T
from tack.ir import nodes as ir
from tack.types import DType, Layout

LANES = (1, 2, 8, 16, 64)


def saxpy(t: DType = T.f32) -> ir.Kernel:
    build = Build("saxpy")
    o, x = build.array("o", t), build.array("x", t)
    with build.parallel((o, 0)) as (i,):
        build.store(o, build.same("add", build.load(x, i), build.const(t, 1)), i)
    return build.kernel


@pytest.mark.parametrize("simd", LANES)
def test_every_tail(simd: int) -> None:
    program = Program(saxpy(), simd)
    for n in range(3 * simd + 2):
        x = np.arange(n + 2, dtype="f")
        o = np.full(n + 2, -1, "f")
        program(o[1 : n + 1], x[1 : n + 1])
        assert np.array_equal(o, np.concatenate([[-1], x[1 : n + 1] + 1, [-1]]))


@pytest.mark.parametrize("simd", [1, 4, 16])
@pytest.mark.parametrize("shape", [(5, 7), (3, 1, 40), (2, 3, 4, 5), (1, 1), (7, 16), (3, 0, 4)])
def test_any_piece_of_a_range_runs_once(simd: int, shape: tuple[int, ...]) -> None:
    build = Build()
    o = build.array("o", T.i64, len(shape))
    with build.parallel(*((o, d) for d in range(len(shape)))) as index:
        code = build.i(0)
        for i in index:
            code = build.same("add", build.same("mul", code, build.i(100)), i)
        build.store(o, build.same("add", build.same("add", build.load(o, *index), code), build.i(1)), *index)
    program = Program(build.kernel, simd)
    expected = np.ones(shape, np.int64)
    for d, n in enumerate(shape):
        expected += np.arange(n).reshape([-1 if e == d else 1 for e in range(len(shape))]) * 100 ** (len(shape) - 1 - d)
    total = expected.size
    for low in range(0, total, 3):
        for high in range(low, total + 1, 5):
            got = np.zeros(shape, np.int64)
            program(got, cuts=(low, high))
            assert np.array_equal(got, expected), (low, high)


@pytest.mark.parametrize("simd", [1, 16])
@pytest.mark.parametrize("known", [True, False])
def test_start_and_step(simd: int, known: bool) -> None:
    build = Build()
    o = build.array("o", T.i64, 2)
    scalars = [build.scalar(n, T.i64, "int") for n in ("s0", "e0", "d0", "s1", "e1", "d1")]
    bounds = [(2, 11, 3), (40, 1, -2)]
    part = [[b[k] if known else scalars[3 * d + k] for d, b in enumerate(bounds)] for k in range(3)]
    with build.parallel(*part[1], start=part[0], step=part[2]) as (i, j):
        build.store(o, build.same("add", build.same("mul", i, build.i(1000)), j), i, j)
    got = np.zeros((12, 41), np.int64)
    Program(build.kernel, simd)(got, *bounds[0], *bounds[1], cuts=(0.3, 0.31))
    expected = np.zeros_like(got)
    for i in range(*bounds[0]):
        for j in range(*bounds[1]):
            expected[i, j] = i * 1000 + j
    assert np.array_equal(got, expected)


def views(a: Any) -> dict[str, Any]:
    return {
        "reversed": a[::-1, ::-1],
        "steps": a[::2, ::3],
        "transposed": a.T,
        "rows": a[1::2, :],
        "broadcast": np.broadcast_to(a[0], a.shape),
        "column": np.broadcast_to(a[:, :1], a.shape),
    }


@pytest.mark.parametrize("simd", [1, 8, 16])
def test_layouts(simd: int) -> None:
    base = np.arange(40 * 50, dtype="f").reshape(40, 50)
    for layout in (Layout.INNER, Layout.GENERAL):
        build = Build()
        o, x = build.array("o", T.f32, 2, layout), build.array("x", T.f32, 2, layout)
        with build.parallel((x, 0), (x, 1)) as (i, j):
            build.store(o, build.same("add", build.load(x, i, j), build.const(T.f32, 0.5)), i, j)
        program = Program(build.kernel, simd)
        for name, view in views(base).items():
            if layout == Layout.INNER and view.strides[1] != 4:
                continue
            rows, columns = view.shape
            out, whole = np.zeros((2, 120, 160), "f")
            target, expected = (
                m[1::2, 3 : 3 + columns][:rows] if layout == Layout.INNER else m[::2, ::3][:rows, :columns] for m in (out, whole)
            )
            program(target, view, cuts=(0.37,))
            expected[...] = view + np.float32(0.5)
            assert np.array_equal(out, whole), (layout, name)


@pytest.mark.parametrize("simd", [1, 16])
def test_index_forms(simd: int) -> None:
    """Contiguous, shifted, backwards, strided, transposed, row broadcast, gathered: of one array, from one kernel."""
    build = Build()
    outs = [build.array(f"o{k}", T.i32, 2) for k in range(8)]
    x, at = build.array("x", T.i32, 2), build.array("at", T.u8)
    with build.parallel(20, 20) as (i, j):
        one = build.i(1)
        last = build.same("sub", build.i(19), j)
        even = build.same("floordiv", build.same("mul", j, build.i(2)), build.i(2))
        twice = build.same("mul", build.same("shr", j, one), build.i(2))
        far = build.cast(build.load(at, j), T.i64)
        places = [(i, j), (i, build.same("add", j, one)), (i, last), (j, i), (i, build.i(3)), (i, even), (build.i(0), twice), (far, far)]
        for out, place in zip(outs, places, strict=True):
            build.store(out, build.load(x, *place), i, j)
    source = np.random.default_rng(0).integers(0, 1000, (21, 21)).astype(np.int32)
    far = np.random.default_rng(1).integers(0, 21, 20).astype(np.uint8)
    got = [np.zeros((20, 20), np.int32) for _ in outs]
    Program(build.kernel, simd)(*got, source, far, cuts=(0.5,))
    i, j = np.mgrid[:20, :20]
    for out, (a, b) in zip(
        got, [(i, j), (i, j + 1), (i, 19 - j), (j, i), (i, 3 + 0 * j), (i, j), (0 * i, j // 2 * 2), (far[j], far[j])], strict=True
    ):
        assert np.array_equal(out, source[a, b])


@pytest.mark.parametrize("simd", [1, 16])
def test_stores_of_all_forms(simd: int) -> None:
    build = Build()
    back, wide, moved, flat, single = (build.array(n, T.f64) for n in ("back", "wide", "moved", "flat", "single"))
    x, at = build.array("x", T.f64), build.array("at", T.i64)
    with build.parallel((x, 0)) as (i,):
        a = build.load(x, i)
        build.store(back, a, build.same("sub", build.same("sub", build.shape(x), i), build.i(1)))
        build.store(wide, a, build.same("mul", i, build.i(3)))
        build.store(moved, a, build.load(at, i))
        build.op("store_flat", None, build.op("load_flat", T.f64, i, attr=x), i, attr=flat)
        build.store(single, build.cast(i, T.f64), build.i(1))
    n = 77
    values, order = np.random.default_rng(0).normal(size=n), np.random.default_rng(0).permutation(n)
    got = [np.zeros(n), np.zeros(3 * n), np.zeros(n), np.zeros(n), np.zeros(3)]
    Program(build.kernel, simd)(*got, values, order)
    assert np.array_equal(got[0], values[::-1])
    assert np.array_equal(got[1][::3], values)
    assert not got[1][1::3].any()
    assert np.array_equal(got[2][order], values)
    assert np.array_equal(got[3], values)
    assert got[4].tolist() in ([0, float(k), 0] for k in range(n))  # one of the values written


@pytest.mark.parametrize("simd", [1, 16])
def test_masked_accesses_touch_nothing_else(simd: int) -> None:
    """Only some lanes load and store: the others' indices are wild, and their elements stay."""
    build = Build()
    o, x = build.array("o", T.f32), build.array("x", T.f32)
    with build.parallel((x, 0)) as (i,):
        far = build.same("sub", i, build.i(1 << 50))
        odd = build.compare("eq", build.same("mod", i, build.i(3)), build.i(1))
        at = build.op("select", T.i64, odd, i, far)
        with build.when(odd) as node:
            build.store(o, build.same("add", build.load(x, at), build.load(x, i)), at)
            build.store(o, build.load(o, at), i)
        with build.into(node.orelse), build.when(build.compare("gt", i, build.i(1 << 40))):
            build.store(o, build.load(x, build.i(1 << 55)), build.i(1 << 55))  # a uniform address, never reached
    x = np.arange(100, dtype="f")
    got = np.full(100, -1, "f")
    Program(build.kernel, simd)(got, x)
    assert np.array_equal(got, np.where(np.arange(100) % 3 == 1, 2 * x, -1))


@pytest.mark.parametrize("simd", [1, 16])
def test_overlapping_arrays_keep_program_order(simd: int) -> None:
    """Within an iteration a load sees the stores before it, through whichever array they went."""
    build = Build()
    a, b, o = build.array("a", T.i32), build.array("b", T.i32), build.array("o", T.i32)
    with build.parallel((a, 0)) as (i,):
        build.store(a, build.cast(i, T.i32), i)
        first = build.load(b, i)
        build.store(b, build.const(T.i32, 7), i)
        build.store(o, build.same("add", first, build.same("mul", build.load(a, i), build.const(T.i32, 100))), i)
    memory, got = np.zeros(50, np.int32), np.zeros(50, np.int32)
    Program(build.kernel, simd)(memory, memory, got)
    assert np.array_equal(got, np.arange(50) + 700)


@pytest.mark.parametrize("simd", [1, 4, 16])
@pytest.mark.parametrize("t", T.ARRAY_DTYPES, ids=str)
def test_atomics(t: DType, simd: int) -> None:
    """Conflicts inside a group of lanes: all take part, and the old values are those of some order."""
    build = Build()
    kinds = ["add", "sub", "min", "max", "exchange", *(("and", "or", "xor") if t.is_int else ())]
    cells = [build.array(f"c_{k}", t) for k in kinds]
    alone = [build.array(f"u_{k}", t) for k in kinds]
    ticket = build.array("ticket", t)
    x, at = build.array("x", t), build.array("at", T.i32)
    with build.parallel((x, 0)) as (i,):
        value, place = build.load(x, i), build.cast(build.load(at, i), T.i64)
        with build.when(build.compare("ne", build.load(at, i), build.const(T.i32, 2))):
            for kind, cell, one in zip(kinds, cells, alone, strict=True):
                build.op("atomic", t, value, place, attr=(kind, cell))
                build.op("atomic", t, value, build.i(0), attr=(kind, one))
        old = build.op("atomic", t, build.const(t, 1), build.i(0), attr=("add", build_counter(build, t)))
        build.store(ticket, old, i)
    r = np.random.default_rng(3)
    n, dtype = 101, NUMPY[t.name]
    values = r.integers(0, 100, n).astype(dtype)
    where = r.integers(0, 5, n).astype(np.int32)
    got = [np.full(5, 50, dtype) for _ in kinds] + [np.full(1, 50, dtype) for _ in kinds] + [np.zeros(n, dtype)]
    counter = np.zeros(1, dtype)
    Program(build.kernel, simd)(*got, values, where, counter, cuts=(0.3,))
    chosen = where != 2
    for k, kind in enumerate(kinds):
        for cell in range(6):
            mine = values[chosen & (where == cell)] if cell < 5 else values[chosen]
            result = got[k][cell] if cell < 5 else got[len(kinds) + k][0]
            with np.errstate(over="ignore"):
                start = np.array([50], dtype)
                if kind == "exchange":
                    assert result in (mine if len(mine) else start)
                else:
                    operation = {
                        "add": np.add,
                        "min": np.minimum,
                        "max": np.maximum,
                        "and": np.bitwise_and,
                        "or": np.bitwise_or,
                        "xor": np.bitwise_xor,
                    }
                    expected = (
                        start - mine.sum(dtype=dtype)
                        if kind == "sub"
                        else operation[kind].reduce(np.concatenate([start, mine]), dtype=dtype)
                    )
                    assert result == expected, (kind, cell)
    assert sorted(got[2 * len(kinds)].tolist()) == sorted(np.arange(n).astype(dtype).tolist())
    assert counter[0] == n


def build_counter(build: Build, t: DType) -> ir.ArrayParam:
    known = [p for p in build.kernel.params if p.name == "counter"]
    return known[0] if known else build.array("counter", t)  # type: ignore[return-value]


@pytest.mark.parametrize("simd", [1, 16])
@pytest.mark.parametrize("t", [T.i32, T.u8, T.f32, T.f64], ids=str)
def test_compare_and_swap(t: DType, simd: int) -> None:
    """Bit patterns are compared: each cell is won once."""
    build = Build()
    cells, won = build.array("cells", t), build.array("won", T.u8)
    with build.parallel((won, 0)) as (i,):
        old = build.op(
            "atomic",
            t,
            build.const(t, 9),
            build.cast(build.same("mod", i, build.i(100)), t),
            build.same("mod", i, build.i(10)),
            attr=("cas", cells),
        )
        build.store(won, build.cast(build.compare("eq", old, build.const(t, 9)), T.u8), i)
    got, flags = np.full(10, 9, NUMPY[t.name]), np.zeros(64, np.uint8)
    Program(build.kernel, simd)(got, flags)
    winners = np.flatnonzero(flags)
    first = {int(w) % 10: int(w) for w in winners if int(w) != 9}
    assert all(got[c] == first.get(c, got[c]) for c in range(10))
    assert sorted({int(w) % 10 for w in winners}) == list(range(10))


@pytest.mark.parametrize("simd", [1, 16])
def test_float_atomics_prefer_numbers(simd: int) -> None:
    build = Build()
    low, high, x = build.array("low", T.f32), build.array("high", T.f32), build.array("x", T.f32)
    with build.parallel((x, 0)) as (i,):
        build.op("atomic", T.f32, build.load(x, i), build.i(0), attr=("min", low))
        build.op("atomic", T.f32, build.load(x, i), build.i(0), attr=("max", high))
    x = np.array([np.nan, 3, -2, np.nan, 8, np.inf, 1] * 5, "f")
    got = [np.array([np.nan], "f"), np.array([np.nan], "f")]
    Program(build.kernel, simd)(*got, x)
    assert got[0][0] == -2
    assert got[1][0] == np.inf


@pytest.mark.parametrize("simd", [1, 4, 16])
@pytest.mark.parametrize("size", [(6,), (3, 5), (50,)])
def test_local_arrays(simd: int, size: tuple[int, ...]) -> None:
    """Zeros at first in every iteration; uniform and per-lane indices; masked stores."""
    build = Build()
    o, x = build.array("o", T.i32), build.array("x", T.i32)
    local = ir.LocalArray("scratch", T.i32, size)
    count = int(np.prod(size))

    def place(k: ir.Instr) -> list[ir.Instr]:
        return [k] if len(size) == 1 else [build.same("floordiv", k, build.i(size[1])), build.same("mod", k, build.i(size[1]))]

    with build.parallel((o, 0)) as (i,):
        value = build.load(x, i)
        mine = build.same("mod", build.cast(value, T.i64), build.i(count))
        with build.when(build.compare("gt", value, build.const(T.i32, 20))):
            build.store(local, build.same("add", build.load(local, *place(mine)), value), *place(mine))
            build.store(local, build.const(T.i32, 1000), *place(build.i(2)))
        total = build.var("total", build.const(T.i32, 0))
        with build.loop(build.i(count)) as (_, k):
            weight = build.cast(build.same("add", k, build.i(1)), T.i32)
            build.set(total, build.same("add", build.get(total), build.same("mul", build.load(local, *place(k)), weight)))
        build.store(o, build.get(total), i)
    values = np.random.default_rng(0).integers(0, 60, 90).astype(np.int32)
    got = np.zeros(90, np.int32)
    Program(build.kernel, simd)(got, values)
    expected = [0 if v <= 20 else 3000 + (0 if v % count == 2 else v * (v % count + 1)) for v in values]
    assert np.array_equal(got, expected)


@pytest.mark.skipif(not host_arch()[0].startswith("x86-64"), reason="non-temporal stores are x86's here")
@pytest.mark.parametrize("simd", [0, 8])
def test_streaming_stores(monkeypatch: pytest.MonkeyPatch, simd: int) -> None:
    """Large launches store past the caches: any alignment, any piece, nothing but the elements asked for."""
    monkeypatch.setattr("tack.codegen.llvm_printer._STREAM_BYTES", 400)
    build = Build()
    o, x = build.array("o", T.f32, 2), build.array("x", T.f32, 2)
    with build.parallel((x, 0), (x, 1)) as (i, j):
        build.store(o, build.same("mul", build.load(x, i, j), build.const(T.f32, 2.0)), i, build.same("add", j, build.i(1)))
    program = Program(build.kernel, simd)
    assert "!nontemporal" in program.source.text
    assert "sfence" in program.source.text
    for rows, columns, offset in ((3, 70, 0), (2, 100, 5), (40, 3, 1), (5, 33, 3)):
        memory = np.full(rows * (columns + 2) + 64, -1, "f")
        got = memory[offset : offset + rows * (columns + 2)].reshape(rows, columns + 2)
        values = np.arange(rows * columns, dtype="f").reshape(rows, columns)
        program(got, values, cuts=(0.1, 0.5, 0.77))
        expected = np.full_like(memory, -1)
        expected[offset : offset + rows * (columns + 2)].reshape(rows, columns + 2)[:, 1:-1] = 2 * values
        assert np.array_equal(memory, expected)


@pytest.mark.skipif(not host_arch()[0].startswith("x86-64"), reason="non-temporal stores are x86's here")
def test_streaming_is_for_few_streams_and_a_store_that_nothing_reads() -> None:
    def streams(loads: int, same: bool = False) -> bool:
        build = Build()
        o, x = build.array("o", T.f32), build.array("x", T.f32)
        with build.parallel((o, 0)) as (i,):
            total = build.const(T.f32, 0.0)
            for k in range(loads):
                total = build.same("add", total, build.load(o if same else x, build.same("add", i, build.i(k))))
            build.store(o, total, i)
        return "!nontemporal" in Program(build.kernel).source.text

    assert streams(2)
    assert not streams(7)
    assert not streams(1, same=True)
