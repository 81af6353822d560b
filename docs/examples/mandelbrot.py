"""The Mandelbrot set in a terminal: iterations that each run their own number of rounds."""

import numpy as np

import tack


@tack.kernel
def mandelbrot(rounds, left, top, step, limit):
    for y, x in tack.ndrange(rounds.shape[0], rounds.shape[1]):
        a, b = left + x * step, top + 2.0 * y * step  # a character is twice as high as wide
        p, q, n = 0.0, 0.0, 0
        while n < limit and p * p + q * q <= 4.0:
            p, q = p * p - q * q + a, 2.0 * p * q + b
            n += 1
        rounds[y, x] = n


rounds = tack.zeros((25, 79), dtype=tack.i32)
mandelbrot(rounds, -2.2, -1.25, 0.041, 200)
shades = np.array(list(" .:-=+*#%@"))
found = rounds.numpy()
for line in shades[np.minimum(found // 2, 9)]:
    print("".join(line))
assert found[12, 54] == 200, "the origin never escapes"
assert found[0, 0] < 5
