"""Rays through a tree of boxes: each walks its own way down, with a stack of its own, and skips what lies behind its nearest hit."""

import numpy as np

import tack

DEPTH = 10
LEAVES = 1 << DEPTH  # node k has the children 2k and 2k + 1; nodes from LEAVES on are single boxes


@tack.func
def entry(low, high, k, x, y, z, per_x, per_y, per_z):
    """How far along the ray box k begins, and where it ends."""
    near, far = 0.0, 1e30
    a, b = (low[k, 0] - x) * per_x, (high[k, 0] - x) * per_x
    near, far = max(near, min(a, b)), min(far, max(a, b))
    a, b = (low[k, 1] - y) * per_y, (high[k, 1] - y) * per_y
    near, far = max(near, min(a, b)), min(far, max(a, b))
    a, b = (low[k, 2] - z) * per_z, (high[k, 2] - z) * per_z
    return max(near, min(a, b)), min(far, max(a, b))


@tack.kernel
def cast(hit, distance, visited, low, high):
    h, w = hit.shape
    for row, column in tack.ndrange(h, w):
        x, y, z = 0.5, 0.5, -1.0
        dx, dy, dz = (column + 0.5) / w - 0.5, (row + 0.5) / h - 0.5, 1.0
        stack = tack.local_array(tack.i32, DEPTH + 2)
        stack[0] = 1
        top, nearest, which, count = 1, 1e30, -1, 0
        while top > 0:
            top -= 1
            k = stack[top]
            count += 1
            near, far = entry(low, high, k, x, y, z, 1.0 / dx, 1.0 / dy, 1.0 / dz)
            if near > far or near >= nearest:
                continue
            if k >= LEAVES:
                nearest, which = near, k - LEAVES
            else:
                stack[top] = 2 * k + 1
                stack[top + 1] = 2 * k
                top += 2
        hit[row, column], distance[row, column], visited[row, column] = which, nearest, count


# Boxes in the order of a curve through space (the bits of their coordinates in turns), so that neighbours share a branch of the tree.
rng = np.random.default_rng(4)
centres = rng.random((LEAVES, 3))
cells = (centres * 32).astype(int)
curve = sum(((cells[:, axis] >> bit) & 1) << (3 * bit + axis) for bit in range(5) for axis in range(3))
centres = centres[np.argsort(curve)]
low, high = np.zeros((2 * LEAVES, 3)), np.zeros((2 * LEAVES, 3))
low[LEAVES:], high[LEAVES:] = centres - 0.015, centres + 0.015
for k in range(LEAVES - 1, 0, -1):
    low[k], high[k] = np.minimum(low[2 * k], low[2 * k + 1]), np.maximum(high[2 * k], high[2 * k + 1])

shape = 24, 72
hit, visited, distance = tack.zeros(shape, tack.i32), tack.zeros(shape, tack.i32), tack.zeros(shape, tack.f64)
cast(hit, distance, visited, low, high)
found = distance.numpy()
for line in np.array(list("@%#*+=-:. "))[np.clip((found - 1.0) * 9.99, 0, 9).astype(int)]:
    print("".join(line))
print(f"a ray looks at {visited.numpy().mean():.0f} of {2 * LEAVES - 1} boxes")

# All rays against all boxes in NumPy.
d = np.ones((*shape, 1, 3))
d[..., 0] = ((np.arange(72) + 0.5) / 72 - 0.5)[:, None]
d[..., 1] = ((np.arange(24) + 0.5) / 24 - 0.5)[:, None, None]
a, b = ((side[LEAVES:] - [0.5, 0.5, -1.0]) / d for side in (low, high))
near, far = np.minimum(a, b).max(-1).clip(0.0), np.maximum(a, b).min(-1)
near[near > far] = 1e30
np.testing.assert_array_equal(found < 1e30, hit.numpy() >= 0)
np.testing.assert_allclose(found, near.min(-1), rtol=1e-12)
assert (near.argmin(-1) == hit.numpy())[found < 1e30].all()
