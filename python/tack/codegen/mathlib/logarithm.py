"""Logarithms and what is made of them: log log2 log10 log1p asinh acosh atanh pow. Read as text by the compiler; see __init__."""
# ruff: noqa: F821
# mypy: ignore-errors


def log_parts_f32(x):
    """log(x) for x > 0 as k, high, low: x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), and high + low = log(1 + f).

    log(1 + f) = f - f^2/2 + the rest; the first two terms are kept in two parts, exactly.
    """
    tiny = x < 1.1754944e-38
    u = bitcast(x * 8388608.0 if tiny else x, i32) - 0x3F3504F3
    k = f32(u >> 23) - (23.0 if tiny else 0.0)
    f = bitcast((u & 0x007FFFFF) + 0x3F3504F3, f32) - 1.0
    half = 0.5 * f * f
    q = fma(0.06746588, f, -0.11675592)
    q = fma(q, f, 0.118881576)
    q = fma(q, f, -0.124056004)
    q = fma(q, f, 0.14219555)
    q = fma(q, f, -0.16667995)
    q = fma(q, f, 0.20002118)
    q = fma(q, f, -0.2500001)
    q = fma(q, f, 0.33333313)
    tail = (f * f) * f * q
    high = f - half
    low = (f - high) - half - fma(0.5 * f, f, -half) + tail
    return k, high, low


def log_parts_f64(x):
    """log(x) for x > 0 as k, high, low: x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), and high + low = log(1 + f).

    log(1 + f) = f - f^2/2 + the rest; the first two terms are kept in two parts, exactly.
    """
    tiny = x < 2.2250738585072014e-308
    u = bitcast(x * 4503599627370496.0 if tiny else x, i64) - 0x3FE6A09E667F3BCD
    k = f64(u >> 52) - (52.0 if tiny else 0.0)
    f = bitcast((u & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD, f64) - 1.0
    half = 0.5 * f * f
    s = f / (2.0 + f)
    z = s * s
    q = fma(0.14795936525305173, z, 0.1531405180871061)
    q = fma(q, z, 0.18183564279449035)
    q = fma(q, z, 0.22222198574033158)
    q = fma(q, z, 0.28571428742379895)
    q = fma(q, z, 0.3999999999941471)
    q = fma(q, z, 0.6666666666666734)
    tail = s * fma(z, q, half)
    high = f - half
    low = (f - high) - half - fma(0.5 * f, f, -half) + tail
    return k, high, low


def log_f32(x):
    """Natural logarithm; ln 2 in two parts, the first so short that k times it is exact."""
    tiny = x < 1.1754944e-38
    u = bitcast(x * 8388608.0 if tiny else x, i32) - 0x3F3504F3
    k = f32(u >> 23) - (23.0 if tiny else 0.0)
    f = bitcast((u & 0x007FFFFF) + 0x3F3504F3, f32) - 1.0
    half = 0.5 * f * f
    q = fma(0.06746588, f, -0.11675592)
    q = fma(q, f, 0.118881576)
    q = fma(q, f, -0.124056004)
    q = fma(q, f, 0.14219555)
    q = fma(q, f, -0.16667995)
    q = fma(q, f, 0.20002118)
    q = fma(q, f, -0.2500001)
    q = fma(q, f, 0.33333313)
    tail = (f * f) * f * q
    result = fma(k, 0.69314575, f + (fma(k, 1.4286068e-6, tail) - half))
    return result if (x > 0.0) and (x < inf) else (-inf if x == 0.0 else (x if x > 0.0 else nan))


def log_f64(x):
    """Natural logarithm; ln 2 in two parts, the first so short that k times it is exact."""
    tiny = x < 2.2250738585072014e-308
    u = bitcast(x * 4503599627370496.0 if tiny else x, i64) - 0x3FE6A09E667F3BCD
    k = f64(u >> 52) - (52.0 if tiny else 0.0)
    f = bitcast((u & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD, f64) - 1.0
    half = 0.5 * f * f
    s = f / (2.0 + f)
    z = s * s
    q = fma(0.14795936525305173, z, 0.1531405180871061)
    q = fma(q, z, 0.18183564279449035)
    q = fma(q, z, 0.22222198574033158)
    q = fma(q, z, 0.28571428742379895)
    q = fma(q, z, 0.3999999999941471)
    q = fma(q, z, 0.6666666666666734)
    tail = s * fma(z, q, half)
    result = fma(k, 0.693147180559663, f + (fma(k, 2.8235290563031577e-13, tail) - half))
    return result if (x > 0.0) and (x < inf) else (-inf if x == 0.0 else (x if x > 0.0 else nan))


def log2_f32(x):
    """log(1 + f) times log2(e), both in two parts, plus k."""
    k, high, low = log_parts_f32(x)
    p = high * 1.442695
    rest = fma(high, 1.442695, -p) + fma(high, 1.925963e-8, low * 1.442695)
    s = k + p
    result = s + ((p - (s - k)) + rest)
    return result if (x > 0.0) and (x < inf) else (-inf if x == 0.0 else (x if x > 0.0 else nan))


def log2_f64(x):
    """log(1 + f) times log2(e), both in two parts, plus k."""
    k, high, low = log_parts_f64(x)
    p = high * 1.4426950408889634
    rest = fma(high, 1.4426950408889634, -p) + fma(high, 2.0355273740931033e-17, low * 1.4426950408889634)
    s = k + p
    result = s + ((p - (s - k)) + rest)
    return result if (x > 0.0) and (x < inf) else (-inf if x == 0.0 else (x if x > 0.0 else nan))


def log10_f32(x):
    """log(1 + f) times log10(e), both in two parts, plus k log10(2), whose first part times k is exact."""
    k, high, low = log_parts_f32(x)
    p = high * 0.4342945
    rest = fma(high, 0.4342945, -p) + fma(high, -1.010305e-8, low * 0.4342945)
    e = k * 0.3010254
    s = e + p
    result = s + ((p - (s - e)) + fma(k, 4.605039e-6, rest))
    return result if (x > 0.0) and (x < inf) else (-inf if x == 0.0 else (x if x > 0.0 else nan))


def log10_f64(x):
    """log(1 + f) times log10(e), both in two parts, plus k log10(2), whose first part times k is exact."""
    k, high, low = log_parts_f64(x)
    p = high * 0.4342944819032518
    rest = fma(high, 0.4342944819032518, -p) + fma(high, 1.098319650216765e-17, low * 0.4342944819032518)
    e = k * 0.30102999566383914
    s = e + p
    result = s + ((p - (s - e)) + fma(k, 1.42050232272661e-13, rest))
    return result if (x > 0.0) and (x < inf) else (-inf if x == 0.0 else (x if x > 0.0 else nan))


def log1p_f32(x):
    """log(1 + x): the rounding error of 1 + x, found exactly, over 1 + x is added to log(1 + x)."""
    u = 1.0 + x
    t = u - 1.0
    error = (1.0 - (u - t)) + (x - t)
    k, high, low = log_parts_f32(u)
    e = k * 0.69314575
    s = e + high
    result = s + ((high - (s - e)) + fma(k, 1.4286068e-6, low + error / u))
    return x if (fabs(x) < 2e-8) or (x == inf) else (result if x > -1.0 else (-inf if x == -1.0 else nan))


def log1p_f64(x):
    """log(1 + x): the rounding error of 1 + x, found exactly, over 1 + x is added to log(1 + x)."""
    u = 1.0 + x
    t = u - 1.0
    error = (1.0 - (u - t)) + (x - t)
    k, high, low = log_parts_f64(u)
    e = k * 0.693147180559663
    s = e + high
    result = s + ((high - (s - e)) + fma(k, 2.8235290563031577e-13, low + error / u))
    return x if (fabs(x) < 5e-17) or (x == inf) else (result if x > -1.0 else (-inf if x == -1.0 else nan))


def asinh_f32(x):
    """log1p(a + a^2 / (1 + sqrt(a^2 + 1))) with a = |x|; log(a) + ln 2 where a^2 + 1 is a^2."""
    a = fabs(x)
    big = a > 1e5
    b = 1.0 if big else a
    z = b * b
    near = log1p_f32(b + z / (1.0 + sqrt(z + 1.0)))
    far = log_f32(a) + 0.6931472
    return x if a < 0.0002 else copysign(far if big else near, x)


def asinh_f64(x):
    """log1p(a + a^2 / (1 + sqrt(a^2 + 1))) with a = |x|; log(a) + ln 2 where a^2 + 1 is a^2."""
    a = fabs(x)
    big = a > 1e9
    b = 1.0 if big else a
    z = b * b
    near = log1p_f64(b + z / (1.0 + sqrt(z + 1.0)))
    far = log_f64(a) + 0.6931471805599453
    return x if a < 5e-9 else copysign(far if big else near, x)


def acosh_f32(x):
    """log1p(t + sqrt(2 t + t^2)) with t = x - 1; log(x) + ln 2 where x^2 - 1 is x^2."""
    big = x > 1e5
    t = (2.0 if big else x) - 1.0
    near = log1p_f32(t + sqrt(fma(t, t, 2.0 * t)))
    result = (log_f32(x) + 0.6931472) if big else near
    return nan if x < 1.0 else result


def acosh_f64(x):
    """log1p(t + sqrt(2 t + t^2)) with t = x - 1; log(x) + ln 2 where x^2 - 1 is x^2."""
    big = x > 1e9
    t = (2.0 if big else x) - 1.0
    near = log1p_f64(t + sqrt(fma(t, t, 2.0 * t)))
    result = (log_f64(x) + 0.6931471805599453) if big else near
    return nan if x < 1.0 else result


def atanh_f32(x):
    """log1p(2 a / (1 - a)) / 2 with a = |x|."""
    a = fabs(x)
    result = copysign(0.5 * log1p_f32(2.0 * a / (1.0 - a)), x)
    return x if a < 0.0002 else result


def atanh_f64(x):
    """log1p(2 a / (1 - a)) / 2 with a = |x|."""
    a = fabs(x)
    result = copysign(0.5 * log1p_f64(2.0 * a / (1.0 - a)), x)
    return x if a < 5e-9 else result


def log2_long_f32(x):
    """log2(x) for finite x > 0 as high + low, with about twice the precision of the type.

    s = f / (2 + f) in two parts; log2(1 + f) = s (2/ln2 + s^2 (2/(3 ln2) + s^2 q)), the last two steps in two parts.
    """
    tiny = x < 1.1754944e-38
    u = bitcast(x * 8388608.0 if tiny else x, i32) - 0x3F3504F3
    k = f32(u >> 23) - (23.0 if tiny else 0.0)
    f = bitcast((u & 0x007FFFFF) + 0x3F3504F3, f32) - 1.0
    d = 2.0 + f
    d_low = f - (d - 2.0)
    s = f / d
    s_low = (fma(-s, d, f) - s * d_low) / d
    z = s * s
    z_low = fma(2.0 * s, s_low, fma(s, s, -z))
    q = fma(0.33785826, z, 0.4118481)
    q = fma(q, z, 0.5770802)
    inner = z * q
    a = 0.9617967 + inner
    a_low = (inner - (a - 0.9617967)) + -7.028462e-9
    b = z * a
    b_low = fma(z, a, -b) + fma(z, a_low, z_low * a)
    c = 2.88539 + b
    c_low = (b - (c - 2.88539)) + (b_low + 3.851926e-8)
    p = s * c
    p_low = fma(s, c, -p) + fma(s, c_low, s_low * c)
    high = k + p
    low = (p - (high - k)) + p_low
    return high, low


def log2_long_f64(x):
    """log2(x) for finite x > 0 as high + low, with about twice the precision of the type.

    s = f / (2 + f) in two parts; log2(1 + f) = s (2/ln2 + s^2 (2/(3 ln2) + s^2 q)), the last two steps in two parts.
    """
    tiny = x < 2.2250738585072014e-308
    u = bitcast(x * 4503599627370496.0 if tiny else x, i64) - 0x3FE6A09E667F3BCD
    k = f64(u >> 52) - (52.0 if tiny else 0.0)
    f = bitcast((u & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD, f64) - 1.0
    d = 2.0 + f
    d_low = f - (d - 2.0)
    s = f / d
    s_low = (fma(-s, d, f) - s * d_low) / d
    z = s * s
    z_low = fma(2.0 * s, s_low, fma(s, s, -z))
    q = fma(0.17296239089067056, z, 0.16843233087576515)
    q = fma(q, z, 0.19240237497960241)
    q = fma(q, z, 0.22195223943579173)
    q = fma(q, z, 0.26230819917959125)
    q = fma(q, z, 0.32059889790777224)
    q = fma(q, z, 0.4121985831113708)
    q = fma(q, z, 0.5770780163555851)
    inner = z * q
    a = 0.9617966939259756 + inner
    a_low = (inner - (a - 0.9617966939259756)) + 5.0577616648125907e-17
    b = z * a
    b_low = fma(z, a, -b) + fma(z, a_low, z_low * a)
    c = 2.8853900817779268 + b
    c_low = (b - (c - 2.8853900817779268)) + (b_low + 4.0710547481862066e-17)
    p = s * c
    p_low = fma(s, c, -p) + fma(s, c_low, s_low * c)
    high = k + p
    low = (p - (high - k)) + p_low
    return high, low


def pow_f32(x, y):
    """|x|^y = 2^(y log2|x|), the exponent in two parts; then C's rules for signs, zeros, infinities and NaN."""
    a = fabs(x)
    ordinary = (a > 0.0) and (a < inf)
    high, low = log2_long_f32(a if ordinary else 1.0)
    e = y * high
    e_low = fma(y, high, -e) + y * low
    inside = fabs(e) < 200.0
    e_low = e_low if inside else 0.0
    e = e if inside else (200.0 if e > 0.0 else -200.0)
    t = e + 12582912.0
    r = (e - (t - 12582912.0)) + e_low
    q = fma(1.3359942e-5, r, 1.5461363e-4)
    q = fma(q, r, 0.001334195)
    q = fma(q, r, 0.009618057)
    q = fma(q, r, 0.055504005)
    q = fma(q, r, 0.2402265)
    q = fma(q, r, 0.6931472)
    p = fma(r, q, 1.0)
    n = bitcast(t, i32) - 0x4B400000
    n_half = n >> 1
    result = p * bitcast((n_half + 127) << 23, f32) * bitcast((n - n_half + 127) << 23, f32)
    result = result if ordinary else (0.0 if (a == 0.0) == (y > 0.0) else inf)
    result = 1.0 if a == 1.0 else result
    whole = floor(y) == y
    odd = whole and (floor(y * 0.5) * 2.0 != y)
    negative = copysign(1.0, x) < 0.0
    result = -result if negative and odd else result
    result = nan if (x < 0.0) and (x > -inf) and not whole else result
    result = x + y if (x != x) or (y != y) else result
    return 1.0 if (y == 0.0) or (x == 1.0) else result


def pow_f64(x, y):
    """|x|^y = 2^(y log2|x|), the exponent in two parts; then C's rules for signs, zeros, infinities and NaN."""
    a = fabs(x)
    ordinary = (a > 0.0) and (a < inf)
    high, low = log2_long_f64(a if ordinary else 1.0)
    e = y * high
    e_low = fma(y, high, -e) + y * low
    inside = fabs(e) < 1500.0
    e_low = e_low if inside else 0.0
    e = e if inside else (1500.0 if e > 0.0 else -1500.0)
    t = e + 6755399441055744.0
    r = (e - (t - 6755399441055744.0)) + e_low
    q = fma(1.272166728075141e-12, r, 2.5733526118065005e-11)
    q = fma(q, r, 4.446337384253392e-10)
    q = fma(q, r, 7.054894415309502e-09)
    q = fma(q, r, 1.0178083505069644e-07)
    q = fma(q, r, 1.3215486815927702e-06)
    q = fma(q, r, 1.5252733807814343e-05)
    q = fma(q, r, 0.00015403530393362833)
    q = fma(q, r, 0.0013333558146425711)
    q = fma(q, r, 0.009618129107628484)
    q = fma(q, r, 0.05550410866482159)
    q = fma(q, r, 0.24022650695910072)
    q = fma(q, r, 0.6931471805599453)
    p = fma(r, q, 1.0)
    n = bitcast(t, i64) - 0x4338000000000000
    n_half = n >> 1
    result = p * bitcast((n_half + 1023) << 52, f64) * bitcast((n - n_half + 1023) << 52, f64)
    result = result if ordinary else (0.0 if (a == 0.0) == (y > 0.0) else inf)
    result = 1.0 if a == 1.0 else result
    whole = floor(y) == y
    odd = whole and (floor(y * 0.5) * 2.0 != y)
    negative = copysign(1.0, x) < 0.0
    result = -result if negative and odd else result
    result = nan if (x < 0.0) and (x > -inf) and not whole else result
    result = x + y if (x != x) or (y != y) else result
    return 1.0 if (y == 0.0) or (x == 1.0) else result
