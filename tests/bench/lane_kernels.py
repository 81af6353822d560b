"""Kernels whose rounds end at different times, whose numbers have 64 bits, or whose elements lie anywhere: for lanes.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from data import f32

import tack

Make = Callable[[], tuple[Any, ...]]
MORE: dict[str, tuple[Callable[..., None], Make]] = {}


def case(make: Make) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A kernel's function, with what makes its arguments; outputs come first."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        MORE[function.__name__.replace("_", " ")] = (function, make)
        return function

    return add


def random(n: int, high: int, seed: int, dtype: str) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, n).astype(dtype)


def lists():
    n = 1 << 16
    order = np.random.default_rng(1).permutation(n)
    after = np.full(n, -1, "i4")
    after[order[:-1]] = order[1:]
    after[np.random.default_rng(2).random(n) < 0.1] = -1
    return np.zeros(1 << 15, "f4"), after, f32(n)


@case(lists)
def linked_lists(o, after, x):
    for i in range(o.shape[0]):
        s = 0.0
        p = i
        while p >= 0:
            s += x[p]
            p = after[p]
        o[i] = s


@case(lambda: (np.zeros(1 << 17, "i4"), random(1 << 17, 1 << 62, 5, "u8")))
def bits_set_64_by_loop(o, x):
    for i in range(o.shape[0]):
        v = x[i]
        k = 0
        while v != 0:
            v &= v - 1
            k += 1
        o[i] = k


@case(lambda: (np.zeros(1 << 18, "u8"), random(1 << 18, 1 << 62, 5, "u8")))
def splitmix(o, x):
    for i in range(o.shape[0]):
        z = x[i] + 0x9E3779B97F4A7C15
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB
        o[i] = z ^ (z >> 31)


@case(lambda: (np.zeros(1 << 17, "f8"), random(1 << 17, 1 << 62, 5, "u8")))
def xorshift_mean(o, x):
    for i in range(o.shape[0]):
        s = x[i] | 1
        t = 0.0
        for _ in range(16):
            s ^= s << 13
            s ^= s >> 7
            s ^= s << 17
            t += (s >> 11) * 1.1102230246251565e-16
        o[i] = t


@case(lambda: (np.zeros(1 << 18, "i8"), random(1 << 18, 1 << 16, 5, "i8")))
def fixed_point(o, x):
    for i in range(o.shape[0]):
        t = x[i]
        s = 1 << 16
        for k in range(8):
            s = ((s * t) >> 16) + (k << 12)
        o[i] = s


@case(lambda: (np.zeros(1 << 15, "i8"), random(1 << 15, 1 << 30, 5, "i8"), random(1 << 15, 1 << 30, 6, "i8")))
def inverse_by_euclid(o, x, m):
    for i in range(o.shape[0]):
        a, b = x[i] | 1, m[i] | 1
        u, v = 1, 0
        while b != 0:
            q = a // b
            a, b = b, a - q * b
            u, v = v, u - q * v
        o[i] = u


def texts():
    a = np.random.default_rng(3).integers(1, 255, (1 << 14, 64)).astype("u1")
    a[np.random.default_rng(4).random(a.shape) < 0.05] = 0
    a[:, -1] = 0
    return np.zeros(1 << 14, "i4"), a


@case(texts)
def lengths_of_strings(o, a):
    for i in range(o.shape[0]):
        k = 0
        while a[i, k] != 0:
            k += 1
        o[i] = k


def words():
    o, a = texts()
    b = a.copy()
    b[np.random.default_rng(5).random(a.shape) < 0.05] = 7
    return o, a, b


@case(words)
def strings_compared(o, a, b):
    for i in range(o.shape[0]):
        k = 0
        while a[i, k] == b[i, k] and a[i, k] != 0:
            k += 1
        o[i] = int(a[i, k]) - int(b[i, k])


@case(lambda: (np.zeros(1 << 13, "i4"), random(1 << 13, 1 << 31, 7, "u4")))
def random_walks(o, seed):
    for i in range(o.shape[0]):
        s = seed[i]
        x = 0
        y = 0
        k = 0
        while x * x + y * y < 100 and k < 1000:
            s = s * 1664525 + 1013904223
            d = s >> 30
            if d == 0:
                x += 1
            elif d == 1:
                x -= 1
            elif d == 2:
                y += 1
            else:
                y -= 1
            k += 1
        o[i] = k


@case(lambda: (np.zeros(1 << 15, "f8"), np.linspace(0.1, 3, 1 << 15)))
def bisection(o, x):
    for i in range(o.shape[0]):
        low = 0.0 * x[i]
        high = x[i] + 1.0
        while high - low > 1e-12:
            m = 0.5 * (low + high)
            if m * m * m < x[i]:
                low = m
            else:
                high = m
        o[i] = low


@case(lambda: (np.zeros(1 << 14, "f4"), f32(1 << 14, 0.0, 6.2), f32(1 << 14, 0.0, 0.9, seed=4)))
def kepler(o, mean, ecc):
    for i in range(o.shape[0]):
        e = mean[i]
        d = 1.0
        k = 0
        while tack.fabs(d) > 1e-5 and k < 30:
            d = (e - ecc[i] * tack.sin(e) - mean[i]) / (1.0 - ecc[i] * tack.cos(e))
            e -= d
            k += 1
        o[i] = e


@case(lambda: (np.zeros((1 << 15, 3), "f4"), f32(6 << 15).reshape(-1, 6)))
def eigenvalues(o, a):
    for i in range(o.shape[0]):
        p1 = a[i, 3] * a[i, 3] + a[i, 4] * a[i, 4] + a[i, 5] * a[i, 5]
        q = (a[i, 0] + a[i, 1] + a[i, 2]) / 3.0
        d0 = a[i, 0] - q
        d1 = a[i, 1] - q
        d2 = a[i, 2] - q
        p = tack.sqrt((d0 * d0 + d1 * d1 + d2 * d2 + 2.0 * p1) / 6.0)
        r = d0 * (d1 * d2 - a[i, 5] * a[i, 5]) - a[i, 3] * (a[i, 3] * d2 - a[i, 5] * a[i, 4])
        r += a[i, 4] * (a[i, 3] * a[i, 5] - d1 * a[i, 4])
        phi = tack.acos(min(1.0, max(-1.0, r / (2.0 * p * p * p)))) / 3.0
        o[i, 0] = q + 2.0 * p * tack.cos(phi)
        o[i, 2] = q + 2.0 * p * tack.cos(phi + 2.0943951)
        o[i, 1] = 3.0 * q - o[i, 0] - o[i, 2]


@case(lambda: (np.zeros((1 << 17, 4), "f4"), f32(4 << 17).reshape(-1, 4)))
def quaternions(o, q):
    for i in range(o.shape[0]):
        s = 1.0 / tack.sqrt(q[i, 0] * q[i, 0] + q[i, 1] * q[i, 1] + q[i, 2] * q[i, 2] + q[i, 3] * q[i, 3])
        for k in range(4):
            o[i, k] = q[i, k] * s


@case(lambda: (np.zeros(1 << 17, "i4"), random(1 << 17, 1 << 60, 7, "u8")))
def decimal_digits(o, x):
    for i in range(o.shape[0]):
        v = x[i]
        k = 0
        while v != 0:
            v //= 10
            k += 1
        o[i] = k


def crc():
    t = np.arange(256, dtype="u4")
    for _ in range(8):
        t = np.where(t & 1, (t >> 1) ^ np.uint32(0xEDB88320), t >> 1)
    return np.zeros(1 << 14, "u4"), t.astype("u4"), random(16 << 14, 256, 3, "u1").reshape(-1, 16)


@case(crc)
def checksums(o, table, a):
    for i in range(o.shape[0]):
        c = tack.u32(0xFFFFFFFF)
        for k in range(a.shape[1]):
            c = (c >> 8) ^ table[(c ^ a[i, k]) & 0xFF]
        o[i] = c


def probes():
    t = np.full(1 << 16, -1, "i4")
    for k in np.random.default_rng(6).integers(0, 1 << 30, 40000):
        h = (int(k) * 40503) & 0xFFFF
        while t[h] >= 0 and t[h] != k:
            h = (h + 1) & 0xFFFF
        t[h] = k
    rng = np.random.default_rng(7)
    keys = np.where(rng.random(1 << 16) < 0.5, rng.choice(t, 1 << 16), rng.integers(0, 1 << 30, 1 << 16))
    return np.zeros(1 << 16, "i4"), t, np.abs(keys).astype("i4")


@case(probes)
def hash_table(o, t, q):
    for i in range(o.shape[0]):
        h = (q[i] * 40503) & 0xFFFF
        while t[h] >= 0 and t[h] != q[i]:
            h = (h + 1) & 0xFFFF
        o[i] = h


@case(lambda: (np.zeros(1 << 15, "u4"), random(1 << 15, 1 << 62, 7, "u8")))
def integer_roots(o, x):
    for i in range(o.shape[0]):
        v = x[i]
        r = tack.u64(0)
        b = tack.u64(1 << 62)
        while b != 0:
            if v >= r + b:
                v -= r + b
                r = (r >> 1) + b
            else:
                r >>= 1
            b >>= 2
        o[i] = r


@case(lambda: (np.zeros(1 << 16, "u1"), f32(1 << 16), f32(1 << 16, seed=3), f32(32, seed=4), f32(32, seed=5)))
def inside_polygon(o, x, y, u, v):
    for i in range(o.shape[0]):
        inside = False
        j = u.shape[0] - 1
        for k in range(u.shape[0]):
            if (v[k] > y[i]) != (v[j] > y[i]) and x[i] < (u[j] - u[k]) * (y[i] - v[k]) / (v[j] - v[k]) + u[k]:
                inside = not inside
            j = k
        o[i] = inside


@case(lambda: (np.zeros(1 << 18, "u8"), random(1 << 18, 1 << 31, 7, "u4"), random(1 << 18, 1 << 31, 8, "u4")))
def morton(o, a, b):
    for i in range(o.shape[0]):
        x = tack.u64(a[i])
        y = tack.u64(b[i])
        x = (x | (x << 16)) & 0x0000FFFF0000FFFF
        x = (x | (x << 8)) & 0x00FF00FF00FF00FF
        x = (x | (x << 4)) & 0x0F0F0F0F0F0F0F0F
        x = (x | (x << 2)) & 0x3333333333333333
        x = (x | (x << 1)) & 0x5555555555555555
        y = (y | (y << 16)) & 0x0000FFFF0000FFFF
        y = (y | (y << 8)) & 0x00FF00FF00FF00FF
        y = (y | (y << 4)) & 0x0F0F0F0F0F0F0F0F
        y = (y | (y << 2)) & 0x3333333333333333
        y = (y | (y << 1)) & 0x5555555555555555
        o[i] = x | (y << 1)


@case(lambda: (np.zeros(1 << 17, "f8"), np.linspace(0.1, 3, 1 << 17)))
def f64_math(o, x):
    for i in range(o.shape[0]):
        o[i] = tack.exp(-x[i]) * tack.log(x[i]) + tack.sin(x[i])


@case(
    lambda: (
        np.zeros(1 << 18, "i8"),
        np.random.default_rng(3).integers(-1 << 60, 1 << 60, 1 << 18),
        np.random.default_rng(4).integers(0, 63, 1 << 18),
    )
)
def varying_shifts_64(o, x, k):
    for i in range(o.shape[0]):
        o[i] = (x[i] >> k[i]) ^ (x[i] << (k[i] // 2))


@case(lambda: (np.zeros(1 << 18, "f8"), np.random.default_rng(3).integers(-1 << 60, 1 << 60, 1 << 18)))
def floats_of_64(o, x):
    for i in range(o.shape[0]):
        o[i] = x[i] * 0.5


@case(lambda: (np.zeros(1 << 18, "i8"), np.random.default_rng(3).random(1 << 18) * 1e15))
def integers_of_f64(o, x):
    for i in range(o.shape[0]):
        o[i] = int(x[i] * 0.5)


@case(lambda: (np.zeros(1 << 18, "f4"), f32(1 << 18)))
def stores_of_few(o, x):
    for i in range(o.shape[0]):
        if x[i] > 0.9:
            o[i] = tack.sqrt(x[i])


@case(lambda: (np.zeros(1 << 18, "f4"), np.arange(1 << 18, dtype="i4"), f32(1 << 18)))
def scatter_of_few(o, at, x):
    for i in range(o.shape[0]):
        if x[i] > 0.9:
            o[at[i]] = x[i]


@case(lambda: (np.zeros(1 << 11, "i4"), random(32 << 11, 4, 3, "u1").reshape(-1, 32), random(32, 4, 4, "u1")))
def edit_distances(o, a, b):
    for i in range(o.shape[0]):
        row = tack.local_array(tack.i32, 33)
        for j in range(33):
            row[j] = j
        for k in range(32):
            before = row[0]
            row[0] = k + 1
            for j in range(32):
                t = min(min(row[j], row[j + 1]) + 1, before + (0 if a[i, k] == b[j] else 1))
                before = row[j + 1]
                row[j + 1] = t
        o[i] = row[32]


@case(lambda: (np.zeros(1 << 12, "u8"), random(1 << 12, 1 << 31, 4, "u8") | np.uint64(1)))
def fermat_tests(o, n):
    for i in range(o.shape[0]):
        m = n[i]
        e = m - 1
        b = tack.u64(2)
        r = tack.u64(1)
        while e != 0:
            if e & 1:
                r = r * b % m
            b = b * b % m
            e >>= 1
        o[i] = r
