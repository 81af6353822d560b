"""What lanes must not lose to: every kernel beside itself with ``simd=1``, in turns, on one thread. ``python tests/bench/lanes.py``.

The kernels of run.py, and more of the kind that lanes may lose on: branches that part, rounds of different length, gathers, chains of
loads, 64-bit arithmetic, bytes, records. ``TACK_CPU_TARGET`` compiles them for another processor level. A row loses when it takes more than
1.05 times as long and three quarters of its rounds say that it is slower. Fails when a row loses.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tack

sys.path.insert(0, str(Path(__file__).parent))
from data import CASES, f32, ints  # noqa: E402
from lane_kernels import MORE, case, random  # noqa: E402
from peers import tack_  # noqa: E402

BOUND = 1.05


@case(lambda: (np.zeros(1 << 18, "i4"), np.sort(f32(1 << 16)), f32(1 << 18, seed=1)))
def binary_search(o, table, x):
    for i in range(x.shape[0]):
        low = 0
        high = table.shape[0]
        while low < high:
            middle = (low + high) // 2
            if table[middle] < x[i]:
                low = middle + 1
            else:
                high = middle
        o[i] = low


@case(lambda: (np.zeros(1 << 17, "f4"), f32((1 << 17) + 8)))
def small_sorts(o, x):
    for i in range(o.shape[0]):
        t = tack.local_array_like(x, 8)
        for k in range(8):
            v = x[i + k]
            j = k
            while j > 0 and t[j - 1] > v:
                t[j] = t[j - 1]
                j -= 1
            t[j] = v
        o[i] = t[4]


@case(lambda: (np.zeros((256, 256), "f4"), f32(1 << 16).reshape(256, 256), f32(1 << 16, seed=1).reshape(256, 256)))
def matrix_product(o, a, b):
    for i, j in tack.ndrange(o.shape[0], o.shape[1]):
        s = 0.0
        for k in range(a.shape[1]):
            s += a[i, k] * b[k, j]
        o[i, j] = s


@case(lambda: (np.zeros((1000, 1000), "i4"), random(1 << 20, 256, 2, "u1").reshape(1024, 1024)))
def sums_of_bytes(o, a):
    for i, j in tack.ndrange(o.shape[0], o.shape[1]):
        s = 0
        for y in range(5):
            for x in range(5):
                s += a[i + y, j + x]
        o[i, j] = s


def divisors(o, x, y):
    for i in range(x.shape[0]):
        a = x[i]
        b = y[i]
        while b != 0:
            a, b = b, a % b
        o[i] = a


for bits in (32, 64):
    MORE[f"divisors of {bits} bits"] = (
        divisors,
        lambda n=1 << 17 if bits == 32 else 1 << 16, high=1 << (bits - 2), t=f"u{bits // 8}": (
            np.zeros(n, t),
            random(n, high, 3, t),
            random(n, high, 4, t),
        ),
    )


@case(lambda: (np.zeros(1 << 17, "i4"),))
def collatz(o):
    for i in range(o.shape[0]):
        n = i + 1
        k = 0
        while n != 1:
            if n % 2 == 0:
                n //= 2
            else:
                n = 3 * n + 1
            k += 1
        o[i] = k


@case(lambda: (np.zeros(1 << 18, "u8"), random(1 << 18, 1 << 62, 5, "u8")))
def hashes_of_64_bits(o, x):
    for i in range(x.shape[0]):
        h = x[i]
        for _ in range(16):
            h ^= h >> 33
            h *= 0xFF51AFD7ED558CCD
        o[i] = h


@case(lambda: (np.zeros((700, 700), "f4"), f32(1 << 20).reshape(1024, 1024)))
def bilinear_samples(o, a):
    for i, j in tack.ndrange(o.shape[0], o.shape[1]):
        x = 0.7 * j + 0.2 * i
        y = 0.6 * i + 0.1 * j
        c = int(x)
        r = int(y)
        u = x - c
        v = y - r
        o[i, j] = (1 - v) * ((1 - u) * a[r, c] + u * a[r, c + 1]) + v * ((1 - u) * a[r + 1, c] + u * a[r + 1, c + 1])


@case(lambda: (np.zeros(1 << 15, "u1"),))
def trial_division(o):
    for i in range(o.shape[0]):
        prime = i > 1
        d = 2
        while prime and d * d <= i:
            if i % d == 0:
                prime = False
            d += 1
        o[i] = prime


@case(lambda: (np.zeros(1 << 20, "f4"), f32(3 << 20).reshape(-1, 3)))
def rows_of_three_read(o, x):
    for i in range(o.shape[0]):
        o[i] = tack.sqrt(x[i, 0] * x[i, 0] + x[i, 1] * x[i, 1] + x[i, 2] * x[i, 2])


@case(lambda: (np.zeros((1 << 20, 3), "f4"), f32(1 << 20)))
def rows_of_three_written(o, x):
    for i in range(o.shape[0]):
        o[i, 0] = x[i]
        o[i, 1] = x[i] * 2.0
        o[i, 2] = x[i] + 1.0


@case(lambda: (np.zeros(1 << 15, "i4"), np.random.default_rng(6).permutation(1 << 18).astype("i4")))
def pointer_chasing(o, after):
    for i in range(o.shape[0]):
        p = i
        for _ in range(16):
            p = after[p]
        o[i] = p


@case(lambda: (np.zeros((1500, 1000), "f4"), f32(1_500_000).reshape(1000, 1500)))
def transposition(o, a):
    for i, j in tack.ndrange(o.shape[0], o.shape[1]):
        o[i, j] = a[j, i]


@case(lambda: (np.zeros(2000, "f4"), f32(1 << 21)[: 2000 * 1000].reshape(2000, 1000), f32(1000, seed=8)))
def products_of_rows(o, a, x):
    for i in range(o.shape[0]):
        s = 0.0
        for j in range(a.shape[1]):
            s += a[i, j] * x[j]
        o[i] = s


@case(lambda: (np.zeros(1 << 16, "f4"), random(1 << 19, 1 << 16, 7, "i4"), f32(1 << 19)))
def scattered_sums(o, at, x):
    for i in range(x.shape[0]):
        tack.atomic_add(o, at[i], x[i])


@case(lambda: (np.zeros(1, "f4"), f32(1 << 18)))
def one_sum_by_atomics(o, x):
    for i in range(x.shape[0]):
        tack.atomic_add(o, 0, x[i])


@case(lambda: (np.zeros(1 << 20, "f8"), np.linspace(-1, 1, 1 << 20)))
def polynomials_in_f64(o, x):
    for i in range(x.shape[0]):
        t = x[i]
        o[i] = ((((0.3 * t + 0.1) * t - 0.7) * t + 0.2) * t - 0.9) * t + 1.0


@case(lambda: (np.zeros(1 << 20, "u1"), random(1 << 20, 256, 9, "u1"), random(1 << 20, 256, 10, "u1")))
def bytes_blended(o, a, b):
    for i in range(o.shape[0]):
        o[i] = (3 * a[i] + b[i]) // 4


@case(lambda: (np.zeros(1 << 20, "i2"), random(1 << 20, 30000, 11, "i2")))
def classes_by_branches(o, x):
    for i in range(x.shape[0]):
        v = x[i]
        if v < 100:
            o[i] = 0
        elif v < 5000:
            o[i] = v % 7
        elif v < 20000:
            o[i] = v // 3 + 1
        else:
            o[i] = -v


@case(lambda: (np.zeros(1 << 16, "f4"), f32(1 << 16, 0.5, 4.0)))
def newton_until_it_stands(o, x):
    for i in range(x.shape[0]):
        r = x[i]
        before = 0.0
        while tack.fabs(r - before) > 1e-6 * r:
            before = r
            r = 0.5 * (r + x[i] / r)
        o[i] = r


@case(lambda: (np.zeros(1000, "f4"), f32(1 << 20)[:1_000_000].reshape(1000, 1000)))
def running_sums_of_columns(o, a):
    for j in range(a.shape[1]):
        s = 0.0
        for i in range(a.shape[0]):
            s += a[i, j]
        o[j] = s


@case(lambda: (np.zeros(1 << 14, "i4"), random((1 << 14) + 512, 512, 12, "i4")))
def first_match(o, x):
    for i in range(o.shape[0]):
        o[i] = -1
        for k in range(512):
            if x[i + k] == 300:
                o[i] = k
                break


@case(lambda: (np.zeros(1 << 18, "f4"), ints(1 << 18, 1 << 18, 13), f32(1 << 18)))
def gather_with_math(o, at, x):
    for i in range(o.shape[0]):
        v = x[at[i]]
        o[i] = tack.exp(-v * v) * tack.sqrt(v)


def image(*shape: int, seed: int = 20) -> np.ndarray:
    return random(int(np.prod(shape)), 256, seed, "u1").reshape(shape)


SHARPEN = (0, -1, 0, -1, 5, -1, 0, -1, 0)


@case(lambda: (np.zeros((478, 638), "u1"), image(480, 640)))
def convolution_of_bytes(o, a):
    for y, x in tack.ndrange(o.shape[0], o.shape[1]):
        s = 0
        for dy in range(3):
            for dx in range(3):
                s += int(a[y + dy, x + dx]) * SHARPEN[3 * dy + dx]
        o[y, x] = min(max(s, 0), 255)


@case(lambda: (np.zeros((478, 638), "u1"), image(480, 640)))
def box_blur_of_bytes(o, a):
    for y, x in tack.ndrange(o.shape[0], o.shape[1]):
        s = 0
        for dy in range(3):
            for dx in range(3):
                s += int(a[y + dy, x + dx])
        o[y, x] = s // 9


@case(lambda: (np.zeros((480, 640), "u1"), image(480, 640) // 180))
def life_by_remainders(o, a):
    h, w = a.shape
    for y, x in tack.ndrange(h, w):
        n = 0
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                n += a[(y + dy) % h, (x + dx) % w]
        o[y, x] = n == 3 or (n == 4 and a[y, x] == 1)


@case(lambda: (np.zeros((480, 640), "u1"), image(480, 640)))
def dilation_that_stops_at_borders(o, a):
    h, w = a.shape
    for y, x in tack.ndrange(h, w):
        m = tack.u8(0)
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                m = max(m, a[min(max(y + dy, 0), h - 1), min(max(x + dx, 0), w - 1)])
        o[y, x] = m


@case(lambda: (np.zeros((480, 640, 3), "u1"), image(480, 640, 4), image(480, 640, 3)))
def pixels_laid_over_others(o, a, b):
    for y, x in tack.ndrange(o.shape[0], o.shape[1]):
        t = int(a[y, x, 3])
        for c in range(3):
            o[y, x, c] = (a[y, x, c] * t + b[y, x, c] * (255 - t) + 127) // 255


@case(lambda: (np.zeros((480, 640, 3), "u1"), image(480, 640, 4)))
def channels_swapped(o, a):
    for y, x in tack.ndrange(o.shape[0], o.shape[1]):
        o[y, x, 0] = a[y, x, 2]
        o[y, x, 1] = a[y, x, 1]
        o[y, x, 2] = a[y, x, 0]


@case(lambda: (np.zeros((480, 640, 3), "u1"), image(480, 640), image(480, 640), image(480, 640)))
def colours_in_fixed_point(o, luma, blue, red):
    for y, x in tack.ndrange(o.shape[0], o.shape[1]):
        c = (int(luma[y, x]) - 16) * 298
        d = int(blue[y, x]) - 128
        e = int(red[y, x]) - 128
        o[y, x, 0] = min(max((c + 409 * e + 128) >> 8, 0), 255)
        o[y, x, 1] = min(max((c - 100 * d - 208 * e + 128) >> 8, 0), 255)
        o[y, x, 2] = min(max((c + 516 * d + 128) >> 8, 0), 255)


@case(lambda: (np.zeros((480, 640), "u1"), f32(480 * 640).reshape(480, 640)))
def floats_as_bytes(o, x):
    for i, j in tack.ndrange(o.shape[0], o.shape[1]):
        o[i, j] = int(min(max(x[i, j] * 255.0 + 0.5, 0.0), 255.0))


@case(lambda: (np.zeros((480, 640), "u1"), image(480, 640), 90))
def blend_by_an_argument(o, a, t):
    for y, x in tack.ndrange(o.shape[0], o.shape[1]):
        o[y, x] = (int(a[y, x]) * t + 77 * (255 - t)) // 255


@case(lambda: (np.zeros((960, 1280), "u1"), image(480, 640)))
def image_doubled(o, a):
    for y, x in tack.ndrange(o.shape[0], o.shape[1]):
        o[y, x] = a[y // 2, x // 2]


@case(lambda: (np.zeros((480, 640, 3), "u1"), image(480, 640, 3), image(32, 32, 32, 3)))
def cube_of_colours(o, a, t):
    for y, x in tack.ndrange(o.shape[0], o.shape[1]):
        for c in range(3):
            o[y, x, c] = t[a[y, x, 0] >> 3, a[y, x, 1] >> 3, a[y, x, 2] >> 3, c]


@case(lambda: (np.zeros(1 << 18, "i2"), random(1 << 18, 1 << 15, 21, "i2"), random(1 << 18, 1 << 15, 22, "i2"), 20000, 15000))
def sounds_mixed(o, a, b, g, h):
    for i in range(o.shape[0]):
        o[i] = min(max((int(a[i]) * g - int(b[i]) * h) >> 15, -32768), 32767)


@case(lambda: (np.zeros(1 << 20, "i4"), random(1 << 20, 9, 14, "i4"), np.zeros(1 << 10, "i4")))
def running_sums_of_blocks(o, x, totals):
    for b in range(totals.shape[0]):
        size = x.shape[0] // totals.shape[0]
        s = 0
        for k in range(size):
            s += x[b * size + k]
            o[b * size + k] = s
        totals[b] = s


def hash_table(size: int, keys: np.ndarray) -> np.ndarray:
    """With open addressing; -1 is free."""
    table = np.full(size, -1, keys.dtype)
    for key in keys:
        place = int(key) % size
        while table[place] != -1:
            place = (place + 1) % size
        table[place] = key
    return table


KEYS = np.random.default_rng(15).integers(0, 1 << 40, 23_000)


@case(lambda: (np.zeros(1 << 17, "i8"), hash_table(1 << 15, KEYS), np.random.default_rng(16).choice(np.append(KEYS, KEYS + 1), 1 << 17)))
def places_in_a_hash_table(o, table, keys):
    for i in range(keys.shape[0]):
        place = keys[i] % table.shape[0]
        while table[place] != keys[i] and table[place] != -1:
            place = (place + 1) % table.shape[0]
        o[i] = place


POINTS = np.sort(f32(20_000, seed=17))


@case(lambda: (np.zeros(20_000, "f4"), POINTS, f32(20_000, seed=18), np.searchsorted(POINTS, np.linspace(0, 1, 4001)).astype("i4")))
def sums_over_neighbouring_cells(o, x, y, first):
    cells = first.shape[0] - 1
    for i in range(x.shape[0]):
        s = 0.0
        mine = min(int(x[i] * cells), cells - 1)
        for cell in range(max(mine - 1, 0), min(mine + 2, cells)):
            for j in range(first[cell], first[cell + 1]):
                d = (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2
                if d < 0.01:
                    s += (0.01 - d) ** 3
        o[i] = s


@case(lambda: (np.zeros((128, 128), "f4"), f32(1 << 17, 1, 126), f32(1 << 17, 1, 126, seed=1), f32(1 << 17, seed=2)))
def particles_to_a_grid(o, x, y, mass):
    for p in range(x.shape[0]):
        c = int(x[p])
        r = int(y[p])
        u = x[p] - c
        v = y[p] - r
        tack.atomic_add(o, (r, c), (1 - v) * (1 - u) * mass[p])
        tack.atomic_add(o, (r, c + 1), (1 - v) * u * mass[p])
        tack.atomic_add(o, (r + 1, c), v * (1 - u) * mass[p])
        tack.atomic_add(o, (r + 1, c + 1), v * u * mass[p])


@case(lambda: (np.zeros((16, 4), "f4"), np.zeros(16, "i4"), random(1 << 17, 16, 19, "i4"), f32(1 << 19).reshape(-1, 4)))
def sums_of_classes(o, count, kind, x):
    for i in range(x.shape[0]):
        tack.atomic_add(count, kind[i], 1)
        for k in range(x.shape[1]):
            tack.atomic_add(o, (kind[i], k), x[i, k])


Run = Callable[[], object]


def of_this_file(name: str) -> tuple[Run, Run, Callable[[], bool]]:
    """The kernel as the model has it, the same with simd=1, and whether both have stored the same."""
    function, make = MORE[name]
    arrays = [[tack.array(a) if isinstance(a, np.ndarray) else a for a in make()] for _ in range(2)]
    kernels = tack.kernel(function), tack.kernel(simd=1)(function)
    usual, plain = (lambda k=k, a=a: k(*a) for k, a in zip(kernels, arrays, strict=True))
    return usual, plain, lambda: np.allclose(arrays[0][0].numpy(), arrays[1][0].numpy(), rtol=1e-3, atol=1e-4)


def of_run(name: str) -> tuple[Run, Run, Callable[[], bool]]:
    """A case of run.py."""
    data = [CASES[name].make() for _ in range(2)]
    usual, plain = (tack_.cases(1, simd)[name](d) for simd, d in enumerate(data))

    def same() -> bool:
        for run in (usual, plain):
            run.finish()  # type: ignore[attr-defined]
        return all(CASES[name].check(d) for d in data)

    return usual, plain, same


def seconds(run: Run, count: int) -> float:
    """Of this thread, which runs it all: what other programs take of the processor does not count."""
    start = time.thread_time()
    for _ in range(count):
        run()
    return (time.thread_time() - start) / count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("names", nargs="*", help="kernels (default: all)")
    args = parser.parse_args()
    tack.set_default_device(tack.device("cpu", num_threads=1))
    print(f"{args.rounds} rounds on one thread, {tack.device('cpu').name}, load {os.getloadavg()[0]:.1f}; above 1 lanes are faster\n")
    print("| kernel | time | simd=1 over it: median, quartiles |\n|---|---:|---:|")
    losers = []
    for name in args.names or [*MORE, *CASES]:
        usual, plain, same = of_this_file(name) if name in MORE else of_run(name)
        for run in (usual, plain):
            run()
        if not same():
            print(f"{name}: with simd=1 it stores something else", file=sys.stderr)
            return 1
        count = max(1, int(2e-3 / seconds(usual, 1)))
        times = [(seconds(usual, count), seconds(plain, count)) for _ in range(args.rounds)]
        low, middle, high = statistics.quantiles([b / a for a, b in times], n=4, method="inclusive")
        lost = middle < 1 / BOUND and high < 1
        print(
            f"| {name} | {statistics.median(a for a, _ in times) * 1e3:.3g} ms | {middle:.2f}: {low:.2f}..{high:.2f}{' **lost**' * lost} |",
            flush=True,
        )
        losers += [name] * lost
    print(f"\n{', '.join(losers) or 'none'} slower than with simd=1 by more than {BOUND - 1:.0%} beyond the spread")
    return 1 if losers else 0


if __name__ == "__main__":
    sys.exit(main())
