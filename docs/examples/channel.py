"""Water between two plates: the lattice Boltzmann method (D2Q9), which streams and collides until the flow is a parabola."""

import numpy as np

import tack

DX = (0, 1, 0, -1, 0, 1, -1, -1, 1)
DY = (0, 0, 1, 0, -1, 1, 1, -1, -1)
BACK = (0, 3, 4, 1, 2, 7, 8, 5, 6)
WEIGHT = (4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36)


@tack.func
def step(new, old, wall, y, x, rate, push):
    """What arrives in a cell, and what of it goes on: walls send back what hits them."""
    _, h, w = old.shape
    f = tack.local_array_like(old, 9)
    density, u, v = 0.0, 0.0, 0.0
    for k in range(9):
        row, column = (y - DY[k]) % h, (x - DX[k]) % w
        f[k] = old[BACK[k], y, x] if wall[row, column] else old[k, row, column]
        density += f[k]
        u += f[k] * DX[k]
        v += f[k] * DY[k]
    u, v = u / density + push / rate, v / density
    for k in range(9):
        along = 3.0 * (DX[k] * u + DY[k] * v)
        balance = WEIGHT[k] * density * (1.0 + along + 0.5 * along * along - 1.5 * (u * u + v * v))
        new[k, y, x] = f[k] + rate * (balance - f[k])


@tack.kernel
def flow(f, g, wall, rate, push, steps):
    _, h, w = f.shape
    for _ in tack.sequential(steps):
        for y, x in tack.ndrange(h, w):
            if not wall[y, x]:
                step(g, f, wall, y, x, rate, push)
        for y, x in tack.ndrange(h, w):
            if not wall[y, x]:
                step(f, g, wall, y, x, rate, push)


@tack.kernel
def speeds(out, f):
    for y, x in tack.ndrange(out.shape[0], out.shape[1]):
        density, u = 0.0, 0.0
        for k in range(9):
            density += f[k, y, x]
            u += f[k, y, x] * DX[k]
        out[y, x] = u / density


height, width = 34, 64
wall = np.zeros((height, width), bool)
wall[[0, -1]] = True
f = np.repeat(np.array(WEIGHT), height * width).reshape(9, height, width)
g = f.copy()
rate, push = 1.0, 1e-5
flow(f, g, wall, rate, push, 4000)

u = np.zeros((height, width))
speeds(u, f)
print(f"in the middle it flows {u[height // 2, 0]:.5f} cells in a step")
y = np.arange(1, height - 1) - 0.5  # the walls are half way between cells
viscosity = (1.0 / rate - 0.5) / 3.0
parabola = push * y * (height - 2 - y) / (2.0 * viscosity)
np.testing.assert_allclose(u[1:-1], np.repeat(parabola, width).reshape(-1, width), rtol=0, atol=1e-5)
np.testing.assert_allclose(f[:, ~wall].sum(), width * (height - 2), rtol=1e-12, err_msg="water is neither made nor lost")
