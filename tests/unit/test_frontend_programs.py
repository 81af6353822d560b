"""The foundation's programs through parse and inference, verified, and run by the IR's interpreter against NumPy or Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from frontend_env import CPU, FLOAT, INT, DictEnvironment, kernel, source

from tack import types
from tack.frontend.infer import infer
from tack.frontend.meaning import ArgType, ArrayArg, ScalarArg
from tack.frontend.parse import captured_names, parse
from tack.ir.fma import form_fma
from tack.ir.interpret import run
from tack.ir.nodes import Kernel, Parallel, Segment
from tack.ir.verify import verify

RNG = np.random.default_rng(5)
DTYPES = {
    np.dtype(t): types.by_name(n)
    for t, n in ((np.float32, "f32"), (np.float64, "f64"), (np.int32, "i32"), (np.int64, "i64"), (np.uint8, "u8"))
}


def arg_type(value: Any) -> ArgType:
    if isinstance(value, np.ndarray):
        return ArrayArg(DTYPES[value.dtype], value.ndim)
    return ScalarArg("bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float")


def execute(text: str, *args: Any, fma: bool = False, **names: Any) -> Any:
    """Infers ``k`` for the arguments, verifies it, and interprets it on them."""
    k = infer(parse(source(text)), [arg_type(a) for a in args], DictEnvironment(names), CPU, {})
    if fma:
        form_fma(k)
    verify(k)
    return run(k, args)


def shape_of(k: Kernel) -> str:
    """S, P and Q(...) for segments, parallel loops and sequences."""
    return "".join("S" if isinstance(i, Segment) else "P" if isinstance(i, Parallel) else "Q" for i in k.items)


SAXPY = """
@tack.kernel
def k(x, y, out, a):
    for i in range(x.shape[0]):
        out[i] = a * x[i] + y[i]
"""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saxpy(dtype: type) -> None:
    x, y = RNG.random(7).astype(dtype), RNG.random(7).astype(dtype)
    out = np.zeros(7, dtype)
    execute(SAXPY, x, y, out, 2.5)
    np.testing.assert_array_equal(out, dtype(2.5) * x + y)
    execute(SAXPY, x, y, out, 2.5, fma=True)
    np.testing.assert_allclose(out, dtype(2.5) * x + y, rtol=1e-6)


def test_triad_is_one_loop_without_segments() -> None:
    k = kernel("def k(a, b, c, s):\n    for i in range(len(a)):\n        a[i] = b[i] + s * c[i]\n", *[ArrayArg(types.f32, 1)] * 3, FLOAT)
    assert shape_of(k) == "P"
    assert k.written == {0}
    assert [(i.op) for i in k.items[0].body.body if i.op in ("cast", "load", "mul", "add", "store")] == [
        "load",
        "load",
        "mul",
        "add",
        "store",
    ]


MANDELBROT = """
def k(out, x0, y0, scale, limit):
    h, w = out.shape
    for i, j in tack.ndrange(h, w):
        cx = x0 + j * scale
        cy = y0 + i * scale
        x = 0.0
        y = 0.0
        n = 0
        while x * x + y * y <= 4.0 and n < limit:
            x, y = x * x - y * y + cx, 2.0 * x * y + cy
            n += 1
        out[i, j] = n
"""


def test_mandelbrot() -> None:
    out = np.zeros((6, 8), np.int32)
    execute(MANDELBROT, out, -2.0, -1.0, 0.3, 20)
    f = np.float32
    for i in range(6):
        for j in range(8):
            cx, cy = f(-2.0) + f(j) * f(0.3), f(-1.0) + f(i) * f(0.3)
            x = y = f(0)
            n = 0
            while x * x + y * y <= 4 and n < 20:
                x, y = x * x - y * y + cx, f(2) * x * y + cy
                n += 1
            assert out[i, j] == n


CND = """
@tack.func
def cnd(d):
    return 0.5 * (1.0 + math.erf(d / math.sqrt(2.0)))
"""
BLACK_SCHOLES = """
def k(call, put, s, x, t, r, v):
    for i in range(len(call)):
        sq = tack.sqrt(t[i])
        d1 = (tack.log(s[i] / x[i]) + (r + 0.5 * v * v) * t[i]) / (v * sq)
        d2 = d1 - v * sq
        e = x[i] * np.exp(-r * t[i])
        call[i] = s[i] * cnd(d1) - e * cnd(d2)
        put[i] = e * cnd(-d2) - s[i] * cnd(-d1)
"""


def test_black_scholes() -> None:
    s, x, t = (RNG.random(5) * 20 + 5 for _ in range(3))
    call, put = np.zeros(5), np.zeros(5)
    execute(BLACK_SCHOLES, call, put, s, x, t, 0.02, 0.3, cnd=CND)

    def n(d: float) -> float:
        return 0.5 * (1 + math.erf(d / math.sqrt(2)))

    for i in range(5):
        d1 = (math.log(s[i] / x[i]) + (0.02 + 0.5 * 0.3 * 0.3) * t[i]) / (0.3 * math.sqrt(t[i]))
        d2 = d1 - 0.3 * math.sqrt(t[i])
        e = x[i] * math.exp(-0.02 * t[i])
        assert call[i] == pytest.approx(s[i] * n(d1) - e * n(d2), rel=1e-12)
        assert put[i] == pytest.approx(e * n(-d2) - s[i] * n(-d1), rel=1e-12)


N_BODY = """
def k(pos, vel, mass, dt, eps):
    n = pos.shape[0]
    for i in range(n):
        ax = ay = az = 0.0
        for j in range(n):
            dx = pos[j, 0] - pos[i, 0]
            dy = pos[j, 1] - pos[i, 1]
            dz = pos[j, 2] - pos[i, 2]
            r2 = dx * dx + dy * dy + dz * dz + eps
            inv = 1.0 / (r2 * tack.sqrt(r2))
            f = mass[j] * inv
            ax += f * dx
            ay += f * dy
            az += f * dz
        vel[i, 0] += dt * ax
        vel[i, 1] += dt * ay
        vel[i, 2] += dt * az
    for i, c in tack.ndrange(n, 3):
        pos[i, c] += dt * vel[i, c]
"""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_n_body(dtype: type) -> None:
    pos, vel, mass = RNG.random((6, 3)).astype(dtype), np.zeros((6, 3), dtype), RNG.random(6).astype(dtype)
    d = pos[None, :, :] - pos[:, None, :]
    r2 = (d * d).sum(2) + dtype(0.01)
    v = dtype(0.1) * ((mass[None, :] / (r2 * np.sqrt(r2)))[:, :, None] * d).sum(1)
    expected = pos + dtype(0.1) * v
    execute(N_BODY, pos, vel, mass, 0.1, 0.01)
    np.testing.assert_allclose(vel, v, rtol=1e-4)
    np.testing.assert_allclose(pos, expected, rtol=1e-5)


STENCIL = """
def k(a, b):
    nz, ny, nx = a.shape
    for z, y, x in tack.ndrange((1, nz - 1), (1, ny - 1), (1, nx - 1)):
        s = a[z - 1, y, x] + a[z + 1, y, x] + a[z, y - 1, x] + a[z, y + 1, x] + a[z, y, x - 1] + a[z, y, x + 1]
        b[z, y, x] = s - 6.0 * a[z, y, x]
"""


def test_stencil() -> None:
    a = RNG.random((4, 5, 6)).astype(np.float32)
    b = np.zeros_like(a)
    execute(STENCIL, a, b)
    c = a[1:-1, 1:-1, 1:-1]
    e = a[:-2, 1:-1, 1:-1] + a[2:, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1] + a[1:-1, 2:, 1:-1] + a[1:-1, 1:-1, :-2] + a[1:-1, 1:-1, 2:]
    np.testing.assert_array_equal(b[1:-1, 1:-1, 1:-1], e - np.float32(6) * c)
    assert not b[0].any()


HISTOGRAM = """
def k(x, bins):
    n = bins.shape[0]
    for i in range(x.shape[0]):
        b = min(max(int(x[i] * n), 0), n - 1)
        tack.atomic_add(bins, b, 1)
"""


def test_histogram() -> None:
    x, bins = RNG.random(100).astype(np.float32), np.zeros(8, np.int32)
    execute(HISTOGRAM, x, bins)
    np.testing.assert_array_equal(bins, np.bincount((x * np.float32(8)).astype(int), minlength=8))
    k = kernel(HISTOGRAM, ArrayArg(types.f32, 1), ArrayArg(types.i32, 1))
    assert k.uses == {"atomic:add:i32"}
    assert k.written == {1}


SPMV = """
def k(indptr, indices, data, x, y):
    for row in range(len(y)):
        acc = 0.0
        for p in range(indptr[row], indptr[row + 1]):
            acc += data[p] * x[indices[p]]
        y[row] = acc
"""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_csr_matrix_vector_product(dtype: type) -> None:
    dense = RNG.random((6, 6)).astype(dtype) * (RNG.random((6, 6)) < 0.4)
    rows, cols = np.nonzero(dense)
    indptr = np.searchsorted(rows, np.arange(7)).astype(np.int32)
    x, y = RNG.random(6).astype(dtype), np.zeros(6, dtype)
    execute(SPMV, indptr, cols.astype(np.int32), dense[rows, cols], x, y)
    np.testing.assert_allclose(y, dense @ x, rtol=1e-5)


def test_gather_and_scatter() -> None:
    x, index = RNG.random(9).astype(np.float32), RNG.permutation(9).astype(np.int32)
    out, back = np.zeros(9, np.float32), np.zeros(9, np.float32)
    text = (
        "def k(x, index, out, back):\n"
        "    for i in range(len(x)):\n"
        "        out[i] = x[index[i]]\n"
        "    for i in range(len(x)):\n"
        "        back[index[i]] = out[i]\n"
    )
    execute(text, x, index, out, back)
    np.testing.assert_array_equal(out, x[index])
    np.testing.assert_array_equal(back, x)


LIFE = """
def k(a, b):
    h, w = a.shape
    for i, j in tack.ndrange(h, w):
        n = 0
        for di in range(-1, 2):
            for dj in range(-1, 2):
                if di != 0 or dj != 0:
                    n += a[(i + di) % h, (j + dj) % w]
        b[i, j] = 1 if n == 3 or (n == 2 and a[i, j] == 1) else 0
"""


def test_game_of_life() -> None:
    a = (RNG.random((7, 9)) < 0.4).astype(np.uint8)
    b = np.zeros_like(a)
    execute(LIFE, a, b)
    n = sum(np.roll(a, (di, dj), (0, 1)) for di in (-1, 0, 1) for dj in (-1, 0, 1) if di or dj)
    np.testing.assert_array_equal(b, ((n == 3) | ((n == 2) & (a == 1))).astype(np.uint8))


PREFIX = """
def k(x, out, sums, size):
    n = x.shape[0]
    blocks = (n + size - 1) // size
    for b in range(blocks):
        s = 0.0
        for i in range(b * size, min((b + 1) * size, n)):
            s += x[i]
            out[i] = s
        sums[b] = s
    total = 0.0
    b = 0
    while b < blocks:
        s = sums[b]
        sums[b] = total
        total += s
        b += 1
    for i in range(n):
        out[i] += sums[i // size]
    return total
"""


def test_prefix_by_blocks() -> None:
    x = RNG.integers(0, 9, 23).astype(np.float64)
    out, sums = np.zeros(23), np.zeros(8)
    assert execute(PREFIX, x, out, sums, 5) == x.sum()
    np.testing.assert_array_equal(out, np.cumsum(x))
    k = kernel(PREFIX, *[ArrayArg(types.f64, 1)] * 3, INT)
    assert shape_of(k) == "PSPS"


def test_time_steps_inside_the_runtime() -> None:
    text = """
def k(a, b, steps):
    for t in tack.sequential(steps):
        for i in range(1, len(a) - 1):
            b[i] = (a[i - 1] + a[i + 1]) * 0.5
        for i in range(1, len(a) - 1):
            a[i] = b[i] + t
"""
    a = RNG.random(6)
    e = a.copy()
    execute(text, a, np.zeros(6), 4)
    for t in range(4):
        e[1:-1] = (e[:-2] + e[2:]) * 0.5 + t
    np.testing.assert_allclose(a, e, rtol=1e-14)
    assert shape_of(kernel(text, *[ArrayArg(types.f64, 1)] * 2, INT)) == "Q"


def test_bounds_of_a_sequence_and_a_scalar_carried_from_step_to_step() -> None:
    text = """
def k(a, n):
    s = 0
    for t in tack.sequential(n):
        for i in range(t, n):
            a[i] += 1
        s = s + a[t] * 0.5
    return s
"""
    a = np.zeros(5, np.float32)
    assert execute(text, a, 5) == 0.5 * (1 + 2 + 3 + 4 + 5)
    np.testing.assert_array_equal(a, [1, 2, 3, 4, 5])


def test_captured_names_of_the_programs() -> None:
    assert captured_names(parse(source(BLACK_SCHOLES))) == ("cnd", "len", "np.exp", "range", "tack.log", "tack.sqrt")
    assert captured_names(parse(source(STENCIL))) == ("tack.ndrange",)
    assert captured_names(parse(source(SAXPY))) == ("range",)


def test_a_chain_of_five_thousand_terms() -> None:
    chain = " + ".join(["x[i]"] * 5000)
    x, out = np.ones(2, np.float64), np.zeros(2, np.float64)
    execute(f"def k(x, out):\n    for i in range(len(x)):\n        out[i] = {chain}\n", x, out)
    np.testing.assert_array_equal(out, 5000.0)


@pytest.mark.parametrize("form", ["({} + 1.0)", "(1.0 - {})", "(-{})", "({} if x[i] < 2.0 else 0.0)", "({} or 1.0)"])
def test_parentheses_of_180_levels(form: str) -> None:
    text = "x[i]"
    for _ in range(180):
        text = form.format(text)
    x, out = np.full(2, 0.5), np.zeros(2)
    execute(f"def k(x, out):\n    for i in range(len(x)):\n        out[i] = {text}\n", x, out)
    assert out[0] == eval(text, {"x": x, "i": 0})  # what Python computes of the same text
