"""Roots, lengths and remainders: rsqrt cbrt hypot fmod. Read as text by the compiler; see __init__."""
# ruff: noqa: F821
# mypy: ignore-errors


def rsqrt_f32(x):
    """1 / sqrt(x), two roundings."""
    return 1.0 / sqrt(x)


def rsqrt_f64(x):
    """1 / sqrt(x), two roundings."""
    return 1.0 / sqrt(x)


def cbrt_f32(x):
    """A third of the exponent and a line for the significand (error 4 %), steps of Halley's, and one of Newton's with x - t^3 exact."""
    a = fabs(x)
    tiny = a < 1.1754944e-38
    huge = a > 1.2676506002282294e30
    a = a * (16777216.0 if tiny else (5.960464477539063e-08 if huge else 1.0))
    a = a if (a > 0.0) and (a < inf) else 1.0
    t = bitcast(bitcast(a, u32) // 3 + 0x2A5118B6, f32)
    c = t * t * t
    t = t * ((c + 2.0 * a) / (2.0 * c + a))
    square = t * t
    square_low = fma(t, t, -square)
    error = fma(square, t, -a) + square_low * t
    t = t - error / (3.0 * square)
    t = t * (0.00390625 if tiny else (256.0 if huge else 1.0))
    return copysign(t, x) if (x != 0.0) and (fabs(x) < inf) else x


def cbrt_f64(x):
    """A third of the exponent and a line for the significand (error 4 %), steps of Halley's, and one of Newton's with x - t^3 exact."""
    a = fabs(x)
    tiny = a < 2.2250738585072014e-308
    huge = a > 9.7453140114e288
    a = a * (1.8014398509481984e16 if tiny else (5.551115123125783e-17 if huge else 1.0))
    a = a if (a > 0.0) and (a < inf) else 1.0
    t = bitcast(bitcast(a, u64) // 3 + 0x2A9F786C226809D4, f64)
    c = t * t * t
    t = t * ((c + 2.0 * a) / (2.0 * c + a))
    c = t * t * t
    t = t * ((c + 2.0 * a) / (2.0 * c + a))
    square = t * t
    square_low = fma(t, t, -square)
    error = fma(square, t, -a) + square_low * t
    t = t - error / (3.0 * square)
    t = t * (3.814697265625e-06 if tiny else (262144.0 if huge else 1.0))
    return copysign(t, x) if (x != 0.0) and (fabs(x) < inf) else x


def hypot_f32(x, y):
    """sqrt(a^2 + b^2), a the larger, scaled by a power of 2 so that the squares stay in range."""
    x = fabs(x)
    y = fabs(y)
    a = x if x > y else y
    b = y if x > y else x
    big = a > 1.152921504606847e18
    small = a < 9.094947017729282e-13
    scale = 8.271806125530277e-25 if big else (1.2089258196146292e24 if small else 1.0)
    back = 1.2089258196146292e24 if big else (8.271806125530277e-25 if small else 1.0)
    a = a * scale
    b = b * scale
    result = sqrt(fma(a, a, b * b)) * back
    result = x + y if (x != x) or (y != y) else result
    return inf if (x == inf) or (y == inf) else result


def hypot_f64(x, y):
    """sqrt(a^2 + b^2), a the larger, scaled by a power of 2 so that the squares stay in range."""
    x = fabs(x)
    y = fabs(y)
    a = x if x > y else y
    b = y if x > y else x
    big = a > 3.273390607896142e150
    small = a < 3.8725919148493183e-121
    scale = 2.409919865102884e-181 if big else (4.149515568880993e180 if small else 1.0)
    back = 4.149515568880993e180 if big else (2.409919865102884e-181 if small else 1.0)
    a = a * scale
    b = b * scale
    result = sqrt(fma(a, a, b * b)) * back
    result = x + y if (x != x) or (y != y) else result
    return inf if (x == inf) or (y == inf) else result


def fmod_f32(x, y):
    """The exact remainder of the truncated quotient.

    A quotient below 2^23 is at most one too large after rounding, and the remainder by fma is exact. Beyond, long division of the
    significands, some bits of the quotient a step.
    """
    a = fabs(x)
    b = fabs(y)
    r = fma(-trunc(a / b), b, a)
    r = r + b if r < 0.0 else r
    if (a >= b * 4194304.0) and (a < inf):
        a_bits = bitcast(a, u32)
        b_bits = bitcast(b, u32)
        a_raw = i32(a_bits >> 23)
        b_raw = i32(b_bits >> 23)
        m = u64(a_bits & 0x007FFFFF) + (u64(0) if a_raw == 0 else u64(0x00800000))
        d = u64(b_bits & 0x007FFFFF) + (u64(0) if b_raw == 0 else u64(0x00800000))
        a_exponent = 1 if a_raw == 0 else a_raw
        b_exponent = 1 if b_raw == 0 else b_raw
        left = a_exponent - b_exponent
        m = m % d
        while left > 0:
            step = left if left < 32 else 32
            m = (m << u64(step)) % d
            left = left - step
        e = b_exponent - 150
        e_half = e >> 1
        r = f32(m) * bitcast((e_half + 127) << 23, f32) * bitcast((e - e_half + 127) << 23, f32)
    r = x if b == inf else r
    r = nan if (b == 0.0) or (a == inf) else r
    return x + y if (x != x) or (y != y) else copysign(r, x)


def fmod_f64(x, y):
    """The exact remainder of the truncated quotient.

    A quotient below 2^52 is at most one too large after rounding, and the remainder by fma is exact. Beyond, long division of the
    significands, some bits of the quotient a step.
    """
    a = fabs(x)
    b = fabs(y)
    r = fma(-trunc(a / b), b, a)
    r = r + b if r < 0.0 else r
    if (a >= b * 2251799813685248.0) and (a < inf):
        a_bits = bitcast(a, u64)
        b_bits = bitcast(b, u64)
        a_raw = i64(a_bits >> 52)
        b_raw = i64(b_bits >> 52)
        m = u64(a_bits & 0x000FFFFFFFFFFFFF) + (u64(0) if a_raw == 0 else u64(0x0010000000000000))
        d = u64(b_bits & 0x000FFFFFFFFFFFFF) + (u64(0) if b_raw == 0 else u64(0x0010000000000000))
        a_exponent = 1 if a_raw == 0 else a_raw
        b_exponent = 1 if b_raw == 0 else b_raw
        left = a_exponent - b_exponent
        m = m % d
        while left > 0:
            step = left if left < 11 else 11
            m = (m << u64(step)) % d
            left = left - step
        e = b_exponent - 1075
        e_half = e >> 1
        r = f64(m) * bitcast((e_half + 1023) << 52, f64) * bitcast((e - e_half + 1023) << 52, f64)
    r = x if b == inf else r
    r = nan if (b == 0.0) or (a == inf) else r
    return x + y if (x != x) or (y != y) else copysign(r, x)
