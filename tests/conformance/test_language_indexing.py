"""The kernel language: indices, views of every layout, flat positions, sizes from none to huge, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from language import DTYPES, here, kernel, refused

import tack

COPY = {
    0: "@tack.kernel\ndef k(out, a):\n    out[()] = a[()] + 1\n",
    1: "@tack.kernel\ndef k(out, a):\n    for i in range(len(a)):\n        out[i] = a[i] + 1\n",
    2: "@tack.kernel\ndef k(out, a):\n    for i, j in tack.ndrange(a.shape):\n        out[i, j] = a[i, j] + 1\n",
    3: "@tack.kernel\ndef k(out, a):\n    for i, j, l in tack.ndrange(a.shape):\n        out[i, j, l] = a[i, j, l] + 1\n",
    4: "@tack.kernel\ndef k(out, a):\n    for i, j, l, m in tack.ndrange(a.shape):\n        out[i, j, l, m] = a[i, j, l, m] + 1\n",
}


@pytest.mark.parametrize("t", DTYPES, ids=str)
@pytest.mark.parametrize("rank", COPY)
def test_every_dtype_and_rank(device: tack.Device, t: Any, rank: int) -> None:
    shape = (3, 5, 2, 4)[:rank]
    a = tack.array(np.arange(np.prod(shape, dtype=int)).reshape(shape), dtype=t)
    out = tack.zeros(shape, t)
    kernel(COPY[rank])(out, here(a))
    assert np.array_equal(out.numpy(), a.numpy() + 1)


VIEWS = {
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, ::-1],
    "every second": lambda a: a[::2, 1::3],
    "a column": lambda a: a[:, 2:3],
    "a row": lambda a: a[1:2],
    "backwards in steps": lambda a: a[-2::-2, ::-3],
    "inner contiguous": lambda a: a[1:4, 2:7],
    "empty": lambda a: a[2:2],
    "empty inside": lambda a: a[:, 4:4],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", [pytest.param("numpy", marks=pytest.mark.needs("NumPy in place")), "tack"])
def test_views(device: tack.Device, view: str, kind: str) -> None:
    base = np.arange(6 * 9, dtype=np.int32).reshape(6, 9)
    a = VIEWS[view](base if kind == "numpy" else tack.array(base))
    out = tack.zeros(a.shape, tack.i32)
    k = kernel(COPY[2])
    k(out, a)
    expected = VIEWS[view](base)
    assert np.array_equal(out.numpy(), expected + 1)
    target = np.full((6, 9), -7, np.int32)  # and into a view, with nothing touched between
    whole = target.copy() if kind == "numpy" else tack.array(target)
    k(VIEWS[view](whole), tack.array(np.ascontiguousarray(expected)))
    VIEWS[view](target)[...] = expected + 1
    assert np.array_equal(whole if kind == "numpy" else whole.numpy(), target)


def test_broadcast_views(device: tack.Device) -> None:
    out = np.zeros((3, 4), np.int32)
    for row in (np.broadcast_to(np.arange(4, dtype=np.int32), (3, 4)), np.broadcast_to(np.arange(3, dtype=np.int32)[:, None], (3, 4))):
        kernel(COPY[2])(out, row)
        assert np.array_equal(out, row + 1)


def test_numpy_arrays_are_used_in_place(device: tack.Device) -> None:
    a = np.zeros((4, 6), np.float64)
    kernel("@tack.kernel\ndef k(a):\n    for i, j in tack.ndrange(a.shape):\n        a[i, j] += i * 10 + j\n")(a[1:3, ::2])
    expected = np.zeros((4, 6))
    expected[1:3, ::2] = [[0, 1, 2], [10, 11, 12]]
    assert np.array_equal(a, expected)


def test_overlapping_arrays(device: tack.Device) -> None:
    base = np.arange(10, dtype=np.int32)
    k = kernel("@tack.kernel\ndef k(a, b):\n    for _ in range(1):\n        for i in range(len(a)):\n            a[i] = b[i] * 2\n")
    expected = base.copy()
    for i in range(9):
        expected[i + 1] = expected[i] * 2
    k(base[1:], base[:-1])
    assert base.tolist() == expected.tolist()


def test_an_index_known_at_compile_time_counts_from_the_end_when_negative(device: tack.Device) -> None:
    k = kernel(
        """
        @tack.kernel
        def k(a, b):
            n = -1
            for i in range(1):
                a[-1] = b[-1, -2] + b[0, -1]
                a[LAST] = a[n] + 1
                a[-len(b.shape)] += 5
                t = tack.local_array(tack.i32, (2, 3))
                t[-1, -1] = 7
                a[0] = t[1, 2] + b.flat[-1] + t.flat[-1]
        """,
        LAST=-3,
    )
    a, b = tack.zeros(5, tack.i32), tack.array(np.arange(6, dtype=np.int32).reshape(2, 3))
    k(a, b)
    assert a.tolist() == [7 + 5 + 7, 0, 7, 5, 6]


@pytest.mark.parametrize("t", ["i8", "u8", "i16", "u32", "i64", "u64"])
def test_every_integer_type_is_an_index(device: tack.Device, t: str) -> None:
    index = np.array([3, 0, 2, 1], f"{'u' if t[0] == 'u' else ''}int{t[1:]}")
    k = kernel(
        f"@tack.kernel\ndef k(out, a, n):\n    for i in range(len(n)):\n        out[n[i]] = a[n[i] - n[3] + 1] * 10 + a[tack.{t}(2)]\n"
    )
    out = tack.zeros(4, tack.i32)
    with np.errstate(all="ignore"):
        expected = [0] * 4
        for v in index.tolist():
            expected[v] = v * 10 + 2
    k(out, tack.arange(8, dtype=tack.i32), here(index))
    assert out.tolist() == expected


def test_flat_positions(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(a):
        n = a.size
        for i in range(n):
            a.flat[i] = a.flat[i] + i * 100
        for i in range(1):
            a.flat[-1] += 1
            a.flat[0] += len(a)
    """)
    for shape in ((2, 3, 4), (5,), (1, 1)):
        base = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
        a = tack.array(base)
        k(a)
        expected = base.reshape(-1) * 101
        expected[-1] += 1
        expected[0] += shape[0]
        assert a.numpy().reshape(-1).tolist() == expected.tolist()
    for view in (base[:, ::-1], np.zeros((4, 4), np.int64).T[1:], tack.zeros((4, 4), tack.i64)[:, :2]):
        if not (isinstance(view, np.ndarray) and view.flags.c_contiguous):
            with pytest.raises(ValueError, match=r"Kernel 'k'.*flat.*contiguous"):
                k(view)


def test_arrays_without_dimensions(device: tack.Device) -> None:
    k = kernel(
        """
        @tack.kernel
        def k(a, b):
            a[()] = a[()] + b[()] * 2
            for i in range(3):
                tack.atomic_add(b, (), 1)
            return a[()] + a.size + a.ndim
        """
    )
    a, b = here(np.array(3, np.int32)), tack.array(np.array(5, np.int32))
    assert k(a, b) == 14 and a[()] == 13 and b.item() == 8


def test_arrays_of_size_zero(device: tack.Device) -> None:
    k = kernel(
        """
        @tack.kernel
        def k(a, b):
            n = 0
            for i, j in tack.ndrange(a.shape):
                n += 1
                b[0] = 1
            return n + a.size + len(b)
        """
    )
    for shape in ((0, 5), (5, 0), (0, 0)):
        assert k(tack.zeros(shape), tack.zeros(0)) == 0


def test_a_tuple_is_an_index(device: tack.Device) -> None:
    k = kernel("""
    @tack.func
    def next_to(p):
        return p[1], p[0]
    @tack.kernel
    def k(out, a):
        for p in tack.ndrange(3, 3):
            q = next_to(p)
            out[p] = a[q]
            out[(p[0], p[1])] += 1
    """)
    a = np.arange(9, dtype=np.int32).reshape(3, 3)
    out = tack.zeros((3, 3), tack.i32)
    k(out, here(a))
    assert np.array_equal(out.numpy(), a.T + 1)


def test_attributes_of_arrays(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(out, a):
        h, w, d = a.shape
        n, = out.shape
        for i in range(1):
            out[0] = h * 100 + w * 10 + d
            out[1] = a.shape[0] + a.shape[-1] * 10
            out[2] = a.ndim + a.size * 10 + len(a) * 1000
            out[3] = 1 if a.dtype == tack.f32 and a.dtype == np.float32 else 0
            out[4] = len(a.shape) + n
    """)
    out = tack.zeros(5, tack.i64)
    k(out, tack.zeros((2, 3, 4)))
    assert out.tolist() == [234, 42, 3 + 240 + 2000, 1, 8]


def test_local_arrays_are_zeros_at_first_and_private(device: tack.Device) -> None:
    k = kernel("""
    @tack.kernel
    def k(out, x):
        for i in range(len(out)):
            t = tack.local_array(tack.i32, 40)
            u = tack.local_array(x.dtype, (3, 2))
            w = tack.local_array_like(x, 2)
            for j in range(40):
                t[j] += i + j
            for j in range(2):
                v = tack.local_array(tack.i32, 4)
                v[j] += 1
                u[j, 1] = v[0] + v[1]
            w[1] = u[0, 1] + u[1, 1] + u[2, 0]
            out[i] = t[i % 40] + w[1] * 1000 + len(t) * 10_000 + u.ndim
    """)
    out = tack.zeros(100, tack.i64)
    k(out, tack.zeros(1, tack.i16))
    assert out.tolist() == [i + i % 40 + 2000 + 400_000 + 2 for i in range(100)]


@pytest.mark.parametrize(
    ("use", "words"),
    [
        ("a[0] = 1", ("'a' has 2 dimensions", "a[i, j]", "a.flat[i]")),
        ("a[0, 1, 2] = 1", ("indexed with 3", "a[i, j]")),
        ("b[0, 1] = 1", ("'b' has 1 dimension", "b[i]")),
        ("b[0.5] = 1", ("integer", "int(")),
        ("b[True] = 1", ("integer",)),
        ("b[1:2] = 1", ("slice",)),
        ("b[...] = 1", ("...",)),
        ("b[0][1] = 1", ("a[i, j]",)),
        ("x = b[0][1]", ("a[i, j]",)),
        ("b.shape = 1", ("attribute",)),
        ("b.flat[0, 1] = 1", ("one index",)),
        ("x = b.shape[n]", ("compile time", "n0, = b.shape")),
        ("x = b.shape[3]", ("outside",)),
        ("x = b.T", ("view",)),
        ("x = b.sum()", ("s += a[i]",)),
        ("x = b.nbytes", ("'nbytes'",)),
        ("h, w = b.shape", ("1 item ",)),
        ("h, w = b", ("unpacked", "h, w = a.shape")),
        ("t = tack.local_array(tack.f32, n)", ("compile time",)),
        ("t = tack.local_array(tack.f32, 3)\nt[3] = 1", ("outside",)),
        ("t = tack.local_array(tack.f32, 10 ** 7)", ("limit",)),
        ("x = b + 1", ("index",)),
        ("if b:\n    pass", ("truth",)),
        ("x = 1\nx[0] = 2", ("cannot be stored to",)),
        ("x = (1, 2)\nx[0] = 2", ("local_array",)),
        ("tack.atomic_add(b, (0, 1), 1)", ("1 dimension",)),
        ("tack.atomic_add(1, 0, 1)", ("array first",)),
        ("tack.atomic_add(b, 0)", ("3 arguments",)),
        ("tack.atomic_xor(b, 0, 1)", ("integers",)),
    ],
)
def test_what_is_refused(device: tack.Device, use: str, words: tuple[str, ...]) -> None:
    body = "\n".join("        " + line for line in use.splitlines())
    message = refused(f"\n    @tack.kernel\n    def k(a, b, n):\n{body}\n", tack.CompileError, tack.zeros((2, 2)), tack.zeros(3), 1)
    assert all(word in message for word in words), message


@pytest.mark.parametrize("use", ["a[i] = 1", "a[i] += 1", "tack.atomic_add(a, i, 1)", "a.flat[i] = 1", "put(a, i)"])
def test_read_only_arrays_are_refused_where_the_kernel_writes(device: tack.Device, use: str) -> None:
    k = kernel(f"""
    @tack.func
    def put(a, i):
        a[i] = 5
    @tack.kernel
    def k(a):
        for i in range(len(a)):
            {use}
    """)
    frozen = np.ones(3, np.int32)
    frozen.flags.writeable = False
    for array in (frozen, tack.asarray(frozen), np.broadcast_to(np.ones(1, np.int32), (3,))):
        with pytest.raises(ValueError, match="Kernel 'k'.*'a' is read-only"):
            k(array)
    assert frozen.tolist() == [1, 1, 1]
    read = kernel("@tack.kernel\ndef k(out, a):\n    for i in range(len(a)):\n        out[i] = a[i]\n")
    out = tack.zeros(3, tack.i32)
    read(out, here(frozen))
    assert out.tolist() == [1, 1, 1]


@pytest.mark.parametrize("shape", [(2**16, 2**15 + 3)])
def test_more_than_two_to_the_31_elements(device: tack.Device, shape: tuple[int, int]) -> None:
    """Behind the marker of long tests; a broadcast view has as many elements and no memory."""
    row = np.arange(shape[1], dtype=np.int32)
    big = np.broadcast_to(row, shape)
    k = kernel("""
    @tack.kernel
    def k(a, step):
        s = 0
        for i in range(0, a.shape[0], step):
            s += a[i, a.shape[1] - 1] + a[i, i % 7]
        return s + a.size
    """)
    steps = range(0, shape[0], 1000)
    assert k(big, 1000) == sum(int(row[-1]) + i % 7 for i in steps) + shape[0] * shape[1]


@pytest.mark.long
def test_a_contiguous_array_of_more_than_two_to_the_31_elements(device: tack.Device) -> None:
    n = 2**31 + 9
    a = tack.zeros(n, tack.u8)
    kernel("@tack.kernel\ndef k(a):\n    for i in range(len(a)):\n        a[i] = i % 251\n")(a)
    for i in (0, 1, 2**31 - 1, 2**31, n - 1):
        assert a[i] == i % 251
