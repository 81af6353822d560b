"""Mirrors in a terminal: rays that bounce between spheres, each its own number of times."""

import numpy as np

import tack


@tack.func
def hit(px, py, pz, dx, dy, dz, cx, cy, cz, radius):
    """How far along the ray the sphere is; negative if it is missed."""
    px, py, pz = px - cx, py - cy, pz - cz
    b = px * dx + py * dy + pz * dz
    inside = b * b - (px * px + py * py + pz * pz - radius * radius)
    if inside < 0.0:
        return -1.0
    return -b - tack.sqrt(inside)


@tack.kernel
def render(image, spheres, bounces):
    h, w = image.shape
    for row, column in tack.ndrange(h, w):
        dx, dy, dz = 2.0 * (column + 0.5) / w - 1.0, 1.0 - 2.0 * (row + 0.5) / h, 1.5
        scale = tack.rsqrt(dx * dx + dy * dy + dz * dz)
        dx, dy, dz = dx * scale, dy * scale, dz * scale
        px, py, pz = 0.0, 0.0, -3.0
        light = 1.0
        left = bounces
        while left > 0:
            nearest, which = 1e9, -1
            for s in range(spheres.shape[0]):
                t = hit(px, py, pz, dx, dy, dz, spheres[s, 0], spheres[s, 1], spheres[s, 2], spheres[s, 3])
                if 1e-6 < t < nearest:
                    nearest, which = t, s
            if which < 0:
                break
            px, py, pz = px + nearest * dx, py + nearest * dy, pz + nearest * dz
            r = spheres[which, 3]
            nx, ny, nz = (px - spheres[which, 0]) / r, (py - spheres[which, 1]) / r, (pz - spheres[which, 2]) / r
            k = 2.0 * (dx * nx + dy * ny + dz * nz)
            dx, dy, dz = dx - k * nx, dy - k * ny, dz - k * nz
            light *= 0.75
            left -= 1
        image[row, column] = light * (0.5 + 0.5 * dy)  # the sky is bright above


spheres = np.array([[-0.9, 0.0, 1.0, 0.9], [0.9, 0.2, 1.4, 0.9], [0.1, -0.9, 0.0, 0.4]])
image = tack.zeros((24, 72), dtype=tack.f64)
render(image, spheres, 6)
picture = image.numpy()
for line in np.array(list(" .:-=+*#%@"))[(picture * 9.99).astype(int)]:
    print("".join(line))

# The same of all pixels at once in NumPy; a ray that has left stays as it is.
x, y = 2.0 * (np.arange(72) + 0.5) / 72 - 1.0, 1.0 - 2.0 * (np.arange(24) + 0.5) / 24
d = np.stack(np.broadcast_arrays(x, y[:, None], 1.5), -1)
d /= np.linalg.norm(d, axis=-1, keepdims=True)
p, light = np.broadcast_to([0.0, 0.0, -3.0], d.shape), np.ones(d.shape[:2])
for _ in range(6):
    away = p[..., None, :] - spheres[:, :3]
    b = (away * d[..., None, :]).sum(-1)
    inside = b * b - (away * away).sum(-1) + spheres[:, 3] ** 2
    t = np.where(inside < 0.0, -1.0, -b - np.sqrt(np.maximum(inside, 0.0)))
    t = np.where(t > 1e-6, t, np.inf)
    which, met = t.argmin(-1), np.isfinite(t).any(-1)
    p = np.where(met[..., None], p + np.where(met, t.min(-1), 0.0)[..., None] * d, p)
    normal = (p - spheres[which, :3]) / spheres[which, 3:]
    d = np.where(met[..., None], d - 2.0 * (d * normal).sum(-1, keepdims=True) * normal, d)
    light = np.where(met, 0.75 * light, light)
np.testing.assert_allclose(picture, light * (0.5 + 0.5 * d[..., 1]), rtol=1e-6)
