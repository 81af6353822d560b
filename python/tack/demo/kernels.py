"""The demo's kernels. Pictures are (height, width, 3) arrays, which some take as (height, 3 * width) or flat; f32 ones hold 0 to 1."""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import tack

__all__ = ["WEIGHTS", "blur_columns", "blur_rows", "brightness", "escape_time", "glow", "histogram", "sharpen", "tone"]

# A Gaussian of 9 taps; the values are compiled in, and a change is seen at the next call.
WEIGHTS = (0.0179, 0.0544, 0.1209, 0.1942, 0.2252, 0.1942, 0.1209, 0.0544, 0.0179)
RADIUS = len(WEIGHTS) // 2


@tack.func
def clamp(i, low, high):
    return min(max(i, low), high)


@tack.func
def unit(v):
    return min(max(v, 0.0), 1.0)


@tack.kernel
def brightness(out, picture):
    """The luma of each pixel, in integers as video hardware does it."""
    for y, x in tack.ndrange(picture.shape[0], picture.shape[1]):
        r, g, b = tack.i32(picture[y, x, 0]), tack.i32(picture[y, x, 1]), tack.i32(picture[y, x, 2])
        out[y, x] = (77 * r + 150 * g + 29 * b) >> 8


@tack.kernel
def histogram(counts, gray):
    """Counts of each brightness: many iterations meet in few elements, hence the atomic."""
    for y, x in tack.ndrange(gray.shape[0], gray.shape[1]):
        tack.atomic_add(counts, gray[y, x], 1)


@tack.kernel
def blur_rows(out, a):
    """Along the rows; neighbours of one colour are 3 apart. The inner part needs no clamping; a second loop does the two edges."""
    h, w = a.shape
    edge = 3 * RADIUS
    for y, x in tack.ndrange(h, (edge, w - edge)):
        s = 0.0
        for k in range(2 * RADIUS + 1):
            s += WEIGHTS[k] * a[y, x + 3 * (k - RADIUS)]
        out[y, x] = s
    for y, e in tack.ndrange(h, min(w, 2 * edge)):
        x = e if e < edge else w - 2 * edge + e
        s = 0.0
        for k in range(2 * RADIUS + 1):
            s += WEIGHTS[k] * a[y, clamp(x + 3 * (k - RADIUS), x % 3, w - 3 + x % 3)]
        out[y, x] = s


@tack.kernel
def blur_columns(out, a):
    h, w = a.shape
    for y, x in tack.ndrange(h, w):
        s = 0.0
        for k in range(2 * RADIUS + 1):
            s += WEIGHTS[k] * a[clamp(y + k - RADIUS, 0, h - 1), x]
        out[y, x] = s


@tack.kernel
def sharpen(out, a, blurred, amount):
    """Unsharp mask: what the blur took away is added."""
    for i in range(a.shape[0]):
        out[i] = unit(a[i] + amount * (a[i] - blurred[i]))


@tack.kernel
def tone(out, a, exposure, gamma):
    """A filmic curve: exponential shoulder, then a power."""
    white = 1.0 - tack.exp(-exposure)
    for i in range(a.shape[0]):
        out[i] = tack.pow((1.0 - tack.exp(-exposure * a[i])) / white, gamma)


@tack.kernel(exact=True)
def escape_time(steps, cx, cy, span, limit):
    """Rounds until z*z + c leaves the circle of radius 2, with the real axis pointing down. exact=True: NumPy's very bits."""
    h, w = steps.shape
    scale = span / tack.f32(h)
    for y, x in tack.ndrange(h, w):
        a = cx + (tack.f32(y) - tack.f32(h) * 0.5) * scale
        b = cy + (tack.f32(x) - tack.f32(w) * 0.5) * scale
        p, q, n = a * 0.0, b * 0.0, 0
        while n < limit and p * p + q * q <= 4.0:
            p, q = p * p - q * q + a, 2.0 * p * q + b
            n += 1
        steps[y, x] = n


@tack.kernel
def glow(out, picture, steps, limit, strength):
    """The picture shines inside the fractal, whose outline glows; outside it is dim."""
    for y, x in tack.ndrange(out.shape[0], out.shape[1]):
        n = steps[y, x]
        t = tack.log2(1.0 + n) / tack.log2(1.0 + limit)
        light = strength * t * t * t if n < limit else 0.0
        shade = 0.3 + 0.4 * t if n < limit else 1.0
        r = 1.0 - (1.0 - shade * picture[y, x, 0]) * (1.0 - unit(1.0 * light))
        g = 1.0 - (1.0 - shade * picture[y, x, 1]) * (1.0 - unit(0.55 * light))
        b = 1.0 - (1.0 - shade * picture[y, x, 2]) * (1.0 - unit(0.2 * light))
        out[y, x, 0] = int(unit(r) * 255.0 + 0.5)
        out[y, x, 1] = int(unit(g) * 255.0 + 0.5)
        out[y, x, 2] = int(unit(b) * 255.0 + 0.5)
