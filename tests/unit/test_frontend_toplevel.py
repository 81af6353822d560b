"""The top level of kernels: segments, reductions, extents, sequences; indices, stores and atomics. Run by the IR's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from frontend_env import FLOAT, I32, INT, X32, X64, kernel

from tack import types
from tack.frontend.meaning import ArrayArg, ScalarArg
from tack.ir.interpret import run
from tack.ir.nodes import Instr, Kernel, Parallel, Segment, Sequence


def array(dtype: str, rank: int = 1) -> ArrayArg:
    return ArrayArg(types.by_name(dtype), rank)


def walk(k: Kernel) -> list[Any]:
    """All nodes of a kernel, in no order."""
    found: list[Any] = []
    work: list[Any] = list(k.items)
    while work:
        item = work.pop()
        found.append(item)
        for name in ("body", "then", "orelse", "test", "items"):
            inner = getattr(item, name, None)
            if inner is not None:
                work += inner if isinstance(inner, list) else inner.body
    return found


# --- the top level ----------------------------------------------------------------------------------------------------------------


def items(k: Kernel) -> str:
    return "".join({Segment: "S", Parallel: "P", Sequence: "Q"}[type(i)] for i in k.items)


@pytest.mark.parametrize(
    ("update", "start", "op", "expected"),
    [
        ("s += a[i]", "0", "add", 10),
        ("s -= a[i]", "1", "add", -9),
        ("s *= a[i]", "2", "mul", 48),
        ("s = min(s, a[i])", "100", "min", 1),
        ("s = max(a[i] * 2, s)", "-5", "max", 8),
        ("s ^= a[i]", "0", "xor", 4),
        ("s |= a[i]", "8", "or", 15),
        ("s &= a[i]", "-1", "and", 0),
        ("if a[i] > 2:\n            for j in range(2):\n                s += a[i]", "0", "add", 14),
    ],
)
def test_reductions(update: str, start: str, op: str, expected: int) -> None:
    text = f"def k(a, out):\n    s = {start}\n    for i in range(len(a)):\n        {update}\n    out[0] = s\n    return s\n"
    k = kernel(text, I32, I32)
    assert items(k) == "SPS"
    (reduction,) = k.items[1].reductions
    assert (reduction.op, reduction.var.type.name) == (op, "i32")
    out = np.zeros(1, np.int32)
    assert run(k, [np.array([1, 2, 3, 4], np.int32), out]) == expected == out[0]


def test_reductions_of_two_names_and_a_float_into_a_weak_integer() -> None:
    text = (
        "def k(a):\n"
        "    s = 0\n"
        "    m = 0\n"
        "    for i in range(len(a)):\n"
        "        s += a[i]\n"
        "        if a[i] > 1:\n"
        "            m += 1\n"
        "    for i in range(len(a)):\n"
        "        s += m\n"
        "    return s / m\n"
    )
    k = kernel(text, X64)
    assert items(k) == "SPSPS"
    assert {r.var.type.name for r in k.items[1].reductions} == {"f64", "i64"}
    assert run(k, [np.array([1.0, 2.0, 3.0])]) == (6 + 6) / 2


def test_values_of_statements_between_loops() -> None:
    text = """
def k(a, n, f):
    half = n // 2
    g = f * 0.5 + a.shape[0]
    first = a[0]
    m = half if n > 4 else n
    for i in range(m):
        a[i] = first + g + half
    last = a[m - 1]
    for i in range(1, n, 2):
        a[i] = last - first
"""
    k = kernel(text, X32, INT, FLOAT)
    assert items(k) == "SPSP"  # only what loads needs a segment
    sets = [n.attr.name for n in walk(k) if isinstance(n, Instr) and n.op == "set"]
    assert sorted(sets) == ["first", "last"]
    a = np.arange(1, 7, dtype=np.float32)
    run(k, [a, 6, 2.0])
    assert list(a) == [11, 10, 11, 10, 5, 10]


def test_an_iteration_starts_from_the_scalars_before_its_loop() -> None:
    text = "def k(a, t):\n    t = t + 1\n    for i in range(len(a)):\n        t = t * 2\n        a[i] = t\n"
    a = np.zeros(3, np.int32)
    k = kernel(text, I32, INT)
    assert items(k) == "P"
    run(k, [a, 4])
    assert list(a) == [10, 10, 10]


def test_extents() -> None:
    text = (
        "def k(a, n):\n"
        "    h, w = a.shape\n"
        "    for i, j in tack.ndrange((1, h - 1), min(w, n * 2)):\n"
        "        a[i, j] = 1\n"
        "    for i in range(n, -1, -3):\n"
        "        a[i, 0] = 2\n"
    )
    k = kernel(text, ArrayArg(types.i32, 2), ScalarArg("strong", types.u8))
    first, second = k.items
    assert isinstance(first, Parallel) and isinstance(second, Parallel)
    assert [e.terms for e in first.start] == [(("constant", 0, 0, 1),), (("constant", 0, 0, 0),)]
    assert first.stop[0].terms == (("shape", 0, 0, 0), ("constant", 0, 0, 1), ("sub", 0, 0, 0))
    a = np.zeros((5, 9), np.int32)
    run(k, [a, 4])
    expected = np.zeros_like(a)
    expected[1:4, : min(9, 8)] = 1
    expected[[4, 1], 0] = 2
    np.testing.assert_array_equal(a, expected)


def test_narrow_integers_wrap_in_extents_too() -> None:
    k = kernel("def k(a, n):\n    for i in range(n + n):\n        a[i] = 1\n", I32, ScalarArg("strong", types.u8))
    a = np.zeros(200, np.int32)
    run(k, [a, 130])
    assert a.sum() == 4


def test_a_kernel_without_a_loop_is_one_iteration() -> None:
    text = (
        "def k(a, n):\n"
        "    i = 0\n"
        "    while i < n:\n"
        "        a[i] = tack.atomic_add(a, 1, i)\n"
        "        i += 1\n"
        "    if n > 2:\n"
        "        a[0] = 9\n"
    )
    k = kernel(text, I32, INT)
    assert items(k) == "S"
    a = np.zeros(3, np.int32)
    run(k, [a, 3])
    assert list(a) == [9, 2, 0]


def test_sequences_nest_and_carry_tuples_of_types() -> None:
    text = """
def k(a, n):
    s = 0
    c = 1
    for t in tack.sequential(1, n):
        for u in tack.sequential(t):
            for i in range(u, n):
                a[i] += t
            c = c + 1
        s = s + a[t] * 0.5
    a[0] = c
    return s
"""
    k = kernel(text, X32, INT)
    assert [type(i).__name__ for i in k.items][-1] == "Segment"
    a = np.zeros(4, np.float32)
    got = run(k, [a, 4])
    b, s, c = np.zeros(4, np.float32), 0.0, 1
    for t in range(1, 4):
        for u in range(t):
            b[u:4] += t
            c += 1
        s += b[t] * 0.5
    b[0] = c
    assert got == s
    np.testing.assert_array_equal(a, b)


# --- indices ----------------------------------------------------------------------------------------------------------------------


def test_indices() -> None:
    text = (
        "def k(a, b):\n"
        "    h, w = a.shape\n"
        "    b[0] = a[-1, 0] + a[h - 1, -2]\n"
        "    b[-1] = a.flat[5] + a.flat[-1]\n"
        "    p = (1, 2)\n"
        "    b.flat[1] = a[p]\n"
        "    b[2] = a.size + a.ndim + len(a)\n"
    )
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    b = np.zeros(4, np.float32)
    run(kernel(text, ArrayArg(types.f32, 2), X32), [a, b])
    assert list(b) == [a[-1, 0] + a[2, -2], a[1, 2], 12 + 2 + 3, 5 + 11]


def test_zero_dimensional_arrays_and_other_index_types() -> None:
    text = "def k(a, b, c):\n    a[()] = b[c[0]] + b[c[1] % 2]\n"
    a, b, c = np.zeros((), np.float32), np.array([1.0, 2.0], np.float32), np.array([1, 4], np.uint8)
    run(kernel(text, ArrayArg(types.f32, 0), X32, array("u8")), [a, b, c])
    assert a[()] == 3


def test_stores_convert() -> None:
    text = "def k(a, b, n):\n    a[0] = b[0] * 300\n    a[1] = b[0] > 1\n    b[1] = a[0]\n"
    a, b = np.zeros(2, np.uint8), np.array([5, 0], np.int32)
    run(kernel(text, array("u8"), I32, INT), [a, b, 0])
    assert (list(a), list(b)) == ([1500 % 256, 1], [5, 1500 % 256])


def test_augmented_assignment_evaluates_its_index_once() -> None:
    text = "def k(a, b):\n    a[tack.atomic_add(b, 0, 1)] += 5\n"
    a, b = np.zeros(3, np.int32), np.zeros(1, np.int32)
    run(kernel(text, I32, I32), [a, b])
    assert (list(a), list(b)) == ([5, 0, 0], [1])


@pytest.mark.parametrize("kind", ["add", "sub", "min", "max", "and_", "or_", "xor", "exchange"])
def test_atomics(kind: str) -> None:
    k = kernel(
        f"def k(a, b):\n    for i in range(len(b)):\n        b[i] = tack.atomic_{kind}(a, (0, 1), b[i] + 1)\n", ArrayArg(types.i32, 2), I32
    )
    assert k.uses == {f"atomic:{kind.rstrip('_')}:i32"}
    assert k.written == {0, 1}


def test_compare_and_swap() -> None:
    a, b = np.array([5], np.int32), np.zeros(2, np.int32)
    run(kernel("def k(a, b):\n    b[0] = tack.atomic_cas(a, 0, 5, 7)\n    b[1] = tack.atomic_cas(a, 0, 5, 9)\n", I32, I32), [a, b])
    assert (list(a), list(b)) == ([7], [5, 7])
