"""Clusters by k-means: every point finds its nearest centre, and atomics add it to what the next centre is made of."""

import numpy as np

import tack


@tack.func
def distance2(points, i, centres, k):
    d = 0.0
    for j in range(points.shape[1]):
        d += (points[i, j] - centres[k, j]) ** 2
    return d


@tack.kernel
def assign(labels, sums, counts, points, centres):
    moved = 0
    for i in range(points.shape[0]):
        nearest, best = 0, distance2(points, i, centres, 0)
        for k in range(1, centres.shape[0]):
            d = distance2(points, i, centres, k)
            if d < best:
                nearest, best = k, d
        if labels[i] != nearest:
            moved += 1
        labels[i] = nearest
        tack.atomic_add(counts, nearest, 1)
        for j in range(points.shape[1]):
            tack.atomic_add(sums, (nearest, j), points[i, j])
    return moved


@tack.kernel
def average(centres, sums, counts):
    for k, j in tack.ndrange(centres.shape[0], centres.shape[1]):
        if counts[k] > 0:
            centres[k, j] = sums[k, j] / counts[k]
        sums[k, j] = 0.0
    for k in range(counts.shape[0]):
        counts[k] = 0


rng = np.random.default_rng(3)
truth = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0], [6.0, 6.0]])
points = truth[rng.integers(0, 4, 20_000)] + rng.normal(0.0, 0.6, (20_000, 2))
centres = truth + rng.normal(0.0, 1.0, truth.shape)
labels = np.full(len(points), -1, np.int32)
sums, counts = tack.zeros(centres.shape, dtype=tack.f64), tack.zeros(4, dtype=tack.i32)

rounds = 1
while assign(labels, sums, counts, points, centres):  # NumPy arrays and tack arrays may be mixed
    average(centres, sums, counts)
    rounds += 1

found = ", ".join(f"({x:.2f}, {y:.2f})" for x, y in centres)
print(f"after {rounds} rounds the centres are {found}")
squares = ((points[:, None, :] - centres) ** 2).sum(2)
assert (labels == squares.argmin(1)).all(), "NumPy finds other centres nearer"
np.testing.assert_allclose(centres, [points[labels == k].mean(0) for k in range(4)], rtol=1e-9)
assert np.abs(centres - truth).max() < 0.1
