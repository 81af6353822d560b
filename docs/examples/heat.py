"""Heat in a plate: a stencil that tack.sequential runs step after step without a Python call for each."""

import numpy as np

import tack


@tack.kernel
def diffuse(a, b, rate, steps):
    h, w = a.shape
    for t in tack.sequential(steps):
        for y, x in tack.ndrange((1, h - 1), (1, w - 1)):
            b[y, x] = a[y, x] + rate * (a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1] - 4.0 * a[y, x])
        for y, x in tack.ndrange((1, h - 1), (1, w - 1)):
            a[y, x] = b[y, x]


n = 65
plate = np.zeros((n, n), np.float32)
plate[0, :] = 100.0  # one hot edge, three cold ones
a = tack.array(plate)
diffuse(a, tack.empty_like(a), 0.24, 8000)
centre = a[n // 2, n // 2]
print(f"after 8000 steps the centre has {centre:.3f} degrees")
assert abs(centre - 25.0) < 0.1, "in the end it is the mean of the four edges"
