"""Kernels with inner loops along rows: which loops lanes share, what is moved by tiles, and that the bits are those of plain code."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tack
from tack.codegen import build_source, cost
from tack.compiler import _infer, target_of
from tack.kernels import kernel_function
from tack.mathlink import math as math_library

FUZZ = Path(__file__).resolve().parents[1] / "fuzz"
if str(FUZZ) not in sys.path:
    sys.path.insert(0, str(FUZZ))

import nests  # noqa: E402

F = np.zeros((40, 50), np.float32)
I = np.zeros((40, 50), np.int32)
V = np.zeros(50, np.float32)


def printed(kernel: Any, *args: Any, bits: int = 512) -> str:
    """The LLVM IR for a machine of this vector width."""
    arch = {512: "x86-64-v4", 256: "x86-64-v3", 128: "x86-64-v2"}[bits]
    function = kernel_function(kernel)
    device = tack.device("cpu")
    ir = _infer(function, function.specialize(args, device))
    return build_source(ir, replace(target_of(device, False), arch=arch, vector_bits=bits, simd=0), math_library).text


def by_rounds(text: str) -> bool:
    return "rounds of inner loops at a time" in text


def moves_elements(text: str) -> bool:
    return ".gather." in text or ".scatter." in text


@tack.kernel
def bias(a, b, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] * 2.0 + b[j]


@tack.kernel
def row_sum(a, out):
    for i in range(a.shape[0]):
        s = tack.f32(0.0)
        for j in range(a.shape[1]):
            s += a[i, j]
        out[i] = s


@tack.kernel
def count(a, out):
    for i in range(a.shape[0]):
        n = 0
        for j in range(a.shape[1]):
            if a[i, j] > 0:
                n += a[i, j]
        out[i] = n


@tack.kernel(fast_math=True)
def fast_sum(a, out):
    for i in range(a.shape[0]):
        s = tack.f32(0.0)
        for j in range(a.shape[1]):
            s += a[i, j]
        out[i] = s


@tack.kernel
def prefix(a, out):
    for i in range(a.shape[0]):
        s = tack.f32(0.0)
        for j in range(a.shape[1]):
            s += a[i, j]
            out[i, j] = s


@tack.kernel
def multiply(a, b, c):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = tack.f32(0.0)
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s


@tack.kernel
def accumulate(a, b, c):
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@tack.kernel
def collect(a, b, c):
    for i in range(a.shape[0]):
        held = tack.local_array(tack.f32, (2, 64))
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                held[1, j] += a[i, k] * b[k, j]
        for j in range(b.shape[1]):
            c[i, j] = held[1, j] + held[0, j]


@tack.kernel
def smooth(a):
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = a[i, j] + a[i, j - 1]


@tack.kernel
def columns(a, out):
    for j in range(a.shape[1]):
        for i in range(a.shape[0]):
            out[i, j] = a[i, j] * 2.0


@tack.kernel
def last(a, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] < 0.0:
                break
            out[i, j] = a[i, j]


@tack.kernel
def relax(c, row, pivot, first):
    for i in range(c.shape[0]):
        for j in range(first, c.shape[1]):
            c[i, j] = min(c[i, j], c[i, pivot - 1] + row[j] * 0.5)


@tack.kernel
def sweep(a, out):
    error = tack.f32(0.0)
    count = 0
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            v = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
            error = max(error, abs(v - a[i, j]))
            if v > a[i, j]:
                count += 1
            out[i, j] = v
    return error * 1000.0 + count


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize(
    ("kernel", "args"),
    [
        (bias, (F, V, F.copy())),
        (relax, (F.copy(), V, 1, 0)),
        (sweep, (F, F.copy())),
        (multiply, (F, F.T.copy(), F.copy())),
        (accumulate, (F, F.T.copy(), F.copy())),
    ],
    ids=["bias", "relax", "sweep", "multiply", "accumulate"],
)
def test_independent_rounds_are_shared_by_lanes(kernel: Any, args: tuple[Any, ...], bits: int) -> None:
    text = printed(kernel, *args, bits=bits)
    assert by_rounds(text)
    assert bits == 128 or not moves_elements(text)  # without instructions for masked elements, what is left of a row goes lane by lane


def test_rounds_that_add_to_a_local_array_are_shared() -> None:
    """Where registers are shorter, iterations that have an array each are faster."""
    text = printed(collect, F, F.T.copy(), F.copy())
    assert by_rounds(text)
    assert not moves_elements(text)


@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize(("kernel", "args"), [(row_sum, (F, F[:, 0].copy())), (prefix, (F, F.copy()))], ids=["row_sum", "prefix"])
def test_sums_in_order_take_tiles(kernel: Any, args: tuple[Any, ...], bits: int) -> None:
    text = printed(kernel, *args, bits=bits)
    assert not by_rounds(text)
    assert "%tile0" in text
    assert not moves_elements(text)
    assert " fast " not in text and "reassoc" not in text


def test_without_loads_of_parts_of_a_register_there_are_no_tiles() -> None:
    assert "%tile0" not in printed(row_sum, F, F[:, 0].copy(), bits=128)


def test_sums_in_any_order_are_by_lanes() -> None:
    assert by_rounds(printed(fast_sum, F, F[:, 0].copy()))
    assert by_rounds(printed(count, I, I[:, 0].copy()))
    assert by_rounds(printed(count, I, I[:, 0].copy(), bits=256))


@pytest.mark.parametrize(
    ("kernel", "args"), [(smooth, (F,)), (columns, (F, F.copy())), (last, (F, F.copy()))], ids=["smooth", "columns", "last"]
)
def test_other_loops_are_left_as_they_are(kernel: Any, args: tuple[Any, ...]) -> None:
    """One whose rounds wait for each other, one that lanes already run along, one that ends early."""
    text = printed(kernel, *args)
    assert not by_rounds(text)
    assert "%tile" not in text


def test_a_kernel_without_such_loops_has_one_version() -> None:
    @tack.kernel
    def plain(a, out):
        for i in range(a.shape[0]):
            s = a[i] * 0.0
            for j in range(9):
                s = s * 0.5 + a[i]
            out[i] = s

    assert "along.rows" not in printed(plain, V, V.copy())


def test_the_version_is_chosen_by_what_a_launch_brings() -> None:
    text = printed(bias, F, V, F.copy())
    assert "%overlap" in text and "%short" in text and "%few" in text


def test_versions_are_functions_of_their_own() -> None:
    """Plain code is what it would be without the others."""
    alone = printed(tack.kernel(simd=1)(bias.__wrapped__), F, V, F.copy())
    body = printed(bias, F, V, F.copy()).split("define internal void @tack_bias_0.plain(")[1].split("\n}")[0]
    assert body.count("call float") == alone.count("call float") > 1


def rows(n: int, m: int) -> Any:
    return (np.random.default_rng(n * 100 + m).integers(-50, 50, (n, m)) / 8).astype(np.float32)


@pytest.mark.parametrize("shape", [(1, 40), (3, 8), (40, 3), (17, 33), (16, 16), (64, 7), (33, 100), (5, 0)])
def test_shapes(shape: tuple[int, int]) -> None:
    a = rows(*shape)
    out = np.zeros_like(a)
    prefix(a, out)
    expected = np.cumsum(a, axis=1, dtype=np.float32)
    assert np.array_equal(out, expected)
    sums = np.zeros(shape[0], np.float32)
    row_sum(a, sums)
    assert np.array_equal(sums, expected[:, -1] if shape[1] else sums * 0)
    b = np.arange(shape[1], dtype=np.float32)
    bias(a, b, out)
    assert np.array_equal(out, a * 2 + b)
    counts = np.zeros(shape[0], np.int32)
    whole = a.astype(np.int32)
    count(whole, counts)
    assert np.array_equal(counts, np.where(whole > 0, whole, 0).sum(axis=1))


@pytest.mark.parametrize("shape", [(3, 60), (5, 16), (4, 17), (20, 9)])
@pytest.mark.parametrize("first", [0, 4])
def test_what_all_rounds_read_one_of_them_may_store(shape: tuple[int, int], first: int) -> None:
    """The rounds after it see what it has stored."""
    for pivot in range(shape[1]):
        held = rows(*shape)
        expected = held.copy()
        for i in range(shape[0] - 1):
            for j in range(first, shape[1]):
                expected[i, j] = min(expected[i, j], expected[i, pivot] + expected[-1, j] * np.float32(0.5))
        relax(held[:-1], held[-1], pivot + 1, first)
        assert np.array_equal(held[:-1], expected[:-1]), pivot


@tack.kernel
def largest(a, out, where):
    for i in range(a.shape[0]):
        best = a[i, 0]
        place = 0
        for j in range(a.shape[1]):
            if a[i, j] > best:
                best = a[i, j]
                place = j
        out[i] = best
        where[i] = place


def test_an_element_is_loaded_once() -> None:
    """Else a tile would be filled for each load, and the branch would gather."""
    where = np.zeros(40, np.int32)
    text = printed(largest, F, V[:40].copy(), where)
    assert "%tile0" in text and "%tile1" not in text
    a = rows(40, 50)
    out = a[:, 0].copy()
    largest(a, out, where)
    assert np.array_equal(where, a.argmax(axis=1)) and np.array_equal(out, a.max(axis=1))


def test_what_may_have_changed_is_loaded_again() -> None:
    out = np.zeros(20, np.float32)
    held = np.zeros((20, 2), np.float32)
    held[:, 0] = 1.0

    @tack.kernel
    def again(x, out):
        for i in range(out.shape[0]):
            k = 0
            first = x[i, k]
            x[i, 0] = first + 1.0
            second = x[i, k]
            k += 1
            third = x[i, k]
            for _ in range(2):
                third += x[i, k]
                x[i, k] = 0.5
            out[i] = first * 1000.0 + second * 100.0 + third * 10.0 + x[i, k]

    again(held, out)
    assert (out == 1000 + 200 + 5 + 0.5).all()


@pytest.mark.parametrize("columns", [5, 16, 50, 64])
def test_local_arrays_belong_to_an_iteration(columns: int) -> None:
    a, b = rows(20, 30), rows(30, columns)
    c = np.zeros((20, columns), np.float32)
    collect(a, b, c)
    assert np.array_equal(c, a @ b)  # eighths, whose sums are exact


@pytest.mark.parametrize("shape", [(3, 60), (40, 5), (40, 50), (3, 3), (2, 9)])
def test_what_is_stored_in_one_place_is_chosen(shape: tuple[int, int]) -> None:
    @tack.kernel
    def clip(a, out):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                v = a[i, j]
                if v > 2.0:
                    out[i, j] = v * 3.0
                elif v < -1.0:
                    out[i, j] = -v
                else:
                    out[i, j] = 0.5

    a = rows(*shape)
    out = np.zeros_like(a)
    text = printed(clip, a, out)
    assert "if.then" not in text and text.count("llvm.masked.store") > 0
    clip(a, out)
    assert np.array_equal(out, np.where(a > 2, a * 3, np.where(a < -1, -a, np.float32(0.5))))


@pytest.mark.parametrize("shape", [(3, 60), (40, 5), (40, 50), (3, 3), (2, 9)])
def test_totals_of_loops_that_store(shape: tuple[int, int]) -> None:
    a = rows(*shape)
    out = a.copy()
    v = np.float32(0.25) * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    middle = a[1:-1, 1:-1]
    expected = np.abs(v - middle).max(initial=np.float32(0)) * 1000 + (v > middle).sum()
    assert sweep(a, out) == expected
    assert np.array_equal(out[1:-1, 1:-1], v)


def test_of_equal_zeros_the_first_counts() -> None:
    """Lanes find the others' zeros later than they are."""

    @tack.kernel
    def largest(a, out):
        for i in range(a.shape[0]):
            m = tack.f32(-1.0)
            for j in range(a.shape[1]):
                m = max(m, a[i, j])
                out[i, j] = a[i, j] * 2.0
            out[i, 0] = m

    a = np.full((3, 64), -3, np.float32)
    a[0, 40], a[0, 41] = -0.0, 0.0
    a[1, 33], a[1, 50] = 0.0, -0.0
    out = np.zeros_like(a)
    largest(a, out)
    assert np.signbit(out[:2, 0]).tolist() == [True, False]
    assert out[2, 0] == -1


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_overlapping_arrays(shift: int) -> None:
    """Each round sees what earlier ones stored, wherever that was."""
    held = rows(20, 60)
    expected = held.copy()
    for i in range(20):
        s = np.float32(0)
        for j in range(40):
            s += expected[i, j]
            expected[i, j + shift] = s
    prefix(held[:, :40], held[:, shift : 40 + shift])
    assert np.array_equal(held, expected)


@pytest.mark.parametrize("step", [0, 4, 8])
def test_views_whose_elements_overlap(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``step``: bytes from round to round: the same elements, windows that slide, and elements of its own."""
    monkeypatch.setattr(cost, "_CLEARLY", 100.0)  # for elements so far apart, lanes would rather take rows

    @tack.kernel
    def add(x, out):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                v = tack.sqrt(abs(x[i, j]))
                for _ in (1, 2, 3, 4, 5, 6, 7, 8):  # enough for lanes to pay in spite of scattered elements
                    v = tack.sqrt(v + 1.0)
                out[i, j, 0] += v
                out[i, j, 1] += v

    x = rows(20, 40)
    held = np.zeros((20, 100), np.float32)
    expected = held.copy()
    windows = [np.lib.stride_tricks.as_strided(a, (20, 40, 2), (400, step, 4)) for a in (held, expected)]
    assert by_rounds(printed(add, x, windows[0]))
    v = np.sqrt(np.abs(x))
    for _ in range(8):
        v = np.sqrt(v + np.float32(1))
    for i in range(20):
        for j in range(40):
            windows[1][i, j, 0] += v[i, j]
            windows[1][i, j, 1] += v[i, j]
    add(x, windows[0])
    assert np.array_equal(held, expected)


def test_what_no_round_stores_stays() -> None:
    held = np.full((20, 64), 7, np.float32)
    prefix(rows(20, 37), held[:, 3:40])
    bias(rows(20, 5), np.zeros(5, np.float32), held[:, 50:55])
    assert (held[:, :3] == 7).all() and (held[:, 40:50] == 7).all() and (held[:, 55:] == 7).all()


@pytest.mark.parametrize("first", range(0, 60, 12))
def test_random_nests(first: int) -> None:
    found = next(nests.run(first, 12), None)
    assert found is None, str(found)
