"""The fast Fourier transform: log2(n) steps in one call, each of n / 2 butterflies that run in parallel."""

import math

import numpy as np

import tack


@tack.func
def reversed_bits(i, bits):
    r = 0
    for b in range(bits):
        r |= ((i >> b) & 1) << (bits - 1 - b)
    return r


@tack.func
def rotated(re, im, angle):
    c, s = tack.cos(angle), tack.sin(angle)
    return c * re - s * im, s * re + c * im


@tack.kernel
def fft(re, im, bits):
    for i in range(re.shape[0]):
        j = reversed_bits(i, bits)
        if j > i:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    for step in tack.sequential(bits):
        for t in range(re.shape[0] // 2):
            half = 1 << step
            k = t % half
            p = (t // half) * 2 * half + k
            q = p + half
            x, y = rotated(re[q], im[q], -math.pi * k / half)
            re[q], im[q] = re[p] - x, im[p] - y
            re[p], im[p] = re[p] + x, im[p] + y


n = 1 << 14
t = np.arange(n) / n
signal = np.sin(2 * np.pi * 440 * t) + 0.5 * np.cos(2 * np.pi * 1000 * t) + np.random.default_rng(1).normal(0.0, 0.3, n)
re, im = tack.array(signal), tack.zeros(n, dtype=tack.f64)
fft(re, im, n.bit_length() - 1)

spectrum = re.numpy() + 1j * im.numpy()
loudest = sorted(np.argsort(np.abs(spectrum[: n // 2]))[-2:].tolist())
print(f"the two loudest tones have {loudest[0]} and {loudest[1]} Hz")
np.testing.assert_allclose(spectrum, np.fft.fft(signal), atol=1e-9 * n)
assert loudest == [440, 1000]
