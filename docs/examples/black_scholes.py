"""Prices of options: math functions, a device function with several results, and NumPy arrays that are used in place."""

import math

import numpy as np

import tack


@tack.func
def normal_cdf(x):
    return 0.5 * tack.erfc(-x * math.sqrt(0.5))


@tack.func
def price(spot, strike, years, rate, volatility):
    spread = volatility * tack.sqrt(years)
    d1 = (tack.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    discounted = strike * tack.exp(-rate * years)
    call = spot * normal_cdf(d1) - discounted * normal_cdf(d2)
    return call, call - spot + discounted


@tack.kernel
def price_all(calls, puts, spots, strikes, years, rate, volatility):
    for i in range(spots.shape[0]):
        calls[i], puts[i] = price(spots[i], strikes[i], years[i], rate, volatility)


random = np.random.default_rng(7)
n = 1_000_000
spots, strikes, years = (random.uniform(low, high, n) for low, high in ((10, 50), (10, 50), (0.2, 2.0)))
calls, puts = np.empty(n), np.empty(n)
price_all(calls, puts, spots, strikes, years, 0.02, 0.3)
print(f"{n} options: the calls cost {calls.mean():.4f} on average, the puts {puts.mean():.4f}")

# The same functions as ordinary Python, on one option.
expected = price(np.float64(spots[0]), np.float64(strikes[0]), np.float64(years[0]), 0.02, 0.3)
np.testing.assert_allclose((calls[0], puts[0]), expected, rtol=1e-12)
