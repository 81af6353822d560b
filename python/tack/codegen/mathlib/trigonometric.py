"""Trigonometric functions: sin cos tan, for arguments of any size. Read as text by the compiler; see __init__."""
# ruff: noqa: F821, RET504
# mypy: ignore-errors


def two_over_pi_word_f32(i):
    """Word i of a string of bits: 32 zeros, then 2 / pi after its binary point."""
    word = u32(0)
    word = 0xA2F9836E if i == 1 else word
    word = 0x4E441529 if i == 2 else word
    word = 0xFC2757D1 if i == 3 else word
    word = 0xF534DDC0 if i == 4 else word
    word = 0xDB629599 if i == 5 else word
    word = 0x3C439041 if i == 6 else word
    word = 0xFE5163AB if i == 7 else word
    word = 0xDEBBC561 if i == 8 else word
    return word


def two_over_pi_word_f64(i):
    """Word i of a string of bits: 64 zeros, then 2 / pi after its binary point."""
    word = u64(0)
    word = 0xA2F9836E4E441529 if i == 1 else word
    word = 0xFC2757D1F534DDC0 if i == 2 else word
    word = 0xDB6295993C439041 if i == 3 else word
    word = 0xFE5163ABDEBBC561 if i == 4 else word
    word = 0xB7246E3A424DD2E0 if i == 5 else word
    word = 0x06492EEA09D1921C if i == 6 else word
    word = 0xFE1DEB1CB129A73E if i == 7 else word
    word = 0xE88235F52EBB4484 if i == 8 else word
    word = 0xE99C7026B45F7E41 if i == 9 else word
    word = 0x3991D639835339F4 if i == 10 else word
    word = 0x9C845F8BBDF9283B if i == 11 else word
    word = 0x1FF897FFDE05980F if i == 12 else word
    word = 0xEF2F118B5A0A6D1F if i == 13 else word
    word = 0x6D367ECF27CB09B7 if i == 14 else word
    word = 0x4F463F669E5FEA2D if i == 15 else word
    word = 0x7527BAC7EBE5F17B if i == 16 else word
    word = 0x3D0739F78A5292EA if i == 17 else word
    word = 0x6BFB5FB11F8D5D08 if i == 18 else word
    word = 0x56033046FC7B6BAB if i == 19 else word
    return word


def reduce_huge_f32(x):
    """x = q pi/2 + r for large |x|, by integers: q modulo 4 and r.

    |x| is an integer m of 24 bits times 2^e. Of 2 / pi only the bits matter that neither make multiples of 4 nor vanish: 96 of
    them, from the weight 2^(1 - e) on. m times these, modulo 2^96, has q in its two highest bits and the fraction below.
    """
    bits = bitcast(fabs(x), u32)
    e = i32(bits >> 23) - 150
    m = u64((bits & 0x007FFFFF) | 0x00800000)
    at = e + 30
    i = at >> 5
    shift = u32(at & 31)
    w0 = two_over_pi_word_f32(i)
    w1 = two_over_pi_word_f32(i + 1)
    w2 = two_over_pi_word_f32(i + 2)
    w3 = two_over_pi_word_f32(i + 3)
    back = 32 - shift
    w0 = (w0 << shift) | (w1 >> back)
    w1 = (w1 << shift) | (w2 >> back)
    w2 = (w2 << shift) | (w3 >> back)
    low = m * u64(w2)
    middle = m * u64(w1) + (low >> 32)
    high = m * u64(w0) + (middle >> 32)
    top = (high << 32) | (middle & 0xFFFFFFFF)
    q = (top + 0x2000000000000000) >> 62
    rest = i64(top - (q << 62))
    a = f32(rest)
    b = f32(rest - i64(a))
    r = fma(a, 3.4061217e-19, fma(a, -9.4783964e-27, b * 3.4061217e-19))
    q = i32(q)
    r = r if fabs(x) < inf else nan
    negative = x < 0.0
    return (-q if negative else q), (-r if negative else r)


def multiply_high_f64(a, b):
    """The upper 64 bits of the 128-bit product of two u64."""
    a0 = a & 0xFFFFFFFF
    a1 = a >> 32
    b0 = b & 0xFFFFFFFF
    b1 = b >> 32
    middle = a1 * b0 + ((a0 * b0) >> 32)
    other = a0 * b1 + (middle & 0xFFFFFFFF)
    return a1 * b1 + (middle >> 32) + (other >> 32)


def reduce_huge_f64(x):
    """x = q pi/2 + r for large |x|, by integers: q modulo 4 and r. As for f32, with 192 bits of 2 / pi."""
    bits = bitcast(fabs(x), u64)
    e = i64(bits >> 52) - 1075
    m = (bits & 0x000FFFFFFFFFFFFF) | 0x0010000000000000
    at = e + 62
    i = at >> 6
    shift = u64(at & 63)
    w0 = two_over_pi_word_f64(i)
    w1 = two_over_pi_word_f64(i + 1)
    w2 = two_over_pi_word_f64(i + 2)
    w3 = two_over_pi_word_f64(i + 3)
    back = 64 - shift
    w0 = (w0 << shift) | (w1 >> back)
    w1 = (w1 << shift) | (w2 >> back)
    w2 = (w2 << shift) | (w3 >> back)
    product = m * w1
    low = product + multiply_high_f64(m, w2)
    carry = 1 if low < product else 0
    top = m * w0 + multiply_high_f64(m, w1) + u64(carry)
    q = (top + 0x2000000000000000) >> 62
    rest = i64(top - (q << 62))
    a = f64(rest)
    b = f64(rest - i64(a)) + f64(low) * 5.421010862427522e-20
    s = a + b
    b = b - (s - a)
    r = fma(s, 3.4061215800865545e-19, fma(s, 1.3277647201629795e-35, b * 3.4061215800865545e-19))
    q = i32(q)
    r = r if fabs(x) < inf else nan
    negative = x < 0.0
    return (-q if negative else q), (-r if negative else r)


def reduce_quarter_f32(x):
    """x = q pi/2 + r with |r| at most a little over pi/4: q (an i32 whose last two bits count) and r.

    Up to 200000.0, pi/2 in three parts: the first fma is exact, so what is left has one rounding.
    """
    t = fma(x, 0.63661975, 12582912.0)
    k = t - 12582912.0
    r = fma(k, 1.7151245e-15, fma(k, 4.371139e-8, fma(k, -1.5707964, x)))
    q = bitcast(t, i32)
    if not (fabs(x) < 200000.0):
        q, r = reduce_huge_f32(x)
    return q, r


def reduce_quarter_f64(x):
    """x = q pi/2 + r with |r| at most a little over pi/4: q (an i32 whose last two bits count) and r.

    Up to 2000000.0, pi/2 in three parts: the first fma is exact, so what is left has one rounding.
    """
    t = fma(x, 0.6366197723675814, 6755399441055744.0)
    k = t - 6755399441055744.0
    r = fma(k, 1.4973849048591698e-33, fma(k, -6.123233995736766e-17, fma(k, -1.5707963267948966, x)))
    q = i32(bitcast(t, i64) & 3)
    if not (fabs(x) < 2000000.0):
        q, r = reduce_huge_f64(x)
    return q, r


def sin_quarter_f32(r):
    """sin(r) = r + r^3 q(r^2) for |r| <= pi/4."""
    z = r * r
    q = fma(-1.9515224e-4, z, 0.00833216)
    q = fma(q, z, -0.16666655)
    return fma(r * z, q, r)


def sin_quarter_f64(r):
    """sin(r) = r + r^3 q(r^2) for |r| <= pi/4."""
    z = r * r
    q = fma(1.5896199279424318e-10, z, -2.5050747244455908e-08)
    q = fma(q, z, 2.7557313618164325e-06)
    q = fma(q, z, -0.000198412698295805)
    q = fma(q, z, 0.008333333333322108)
    q = fma(q, z, -0.1666666666666663)
    return fma(r * z, q, r)


def cos_quarter_f32(r):
    """cos(r) = 1 - r^2/2 + r^4 q(r^2) for |r| <= pi/4; the rounding error of 1 - r^2/2 is put back."""
    z = r * r
    q = fma(2.4433091e-5, z, -0.0013887315)
    q = fma(q, z, 0.041666646)
    half = 0.5 * z
    w = 1.0 - half
    return w + (((1.0 - w) - half) + (z * z) * q)


def cos_quarter_f64(r):
    """cos(r) = 1 - r^2/2 + r^4 q(r^2) for |r| <= pi/4; the rounding error of 1 - r^2/2 is put back."""
    z = r * r
    q = fma(-1.1358514750884493e-11, z, 2.0875700431483816e-09)
    q = fma(q, z, -2.7557314176355344e-07)
    q = fma(q, z, 2.480158728884182e-05)
    q = fma(q, z, -0.001388888888887304)
    q = fma(q, z, 0.041666666666666595)
    half = 0.5 * z
    w = 1.0 - half
    return w + (((1.0 - w) - half) + (z * z) * q)


def sin_f32(x):
    """Sine or cosine of the rest, by the quadrant."""
    q, r = reduce_quarter_f32(x)
    y = cos_quarter_f32(r) if (q & 1) != 0 else sin_quarter_f32(r)
    return x if fabs(x) < 0.0001 else (-y if (q & 2) != 0 else y)


def sin_f64(x):
    """Sine or cosine of the rest, by the quadrant."""
    q, r = reduce_quarter_f64(x)
    y = cos_quarter_f64(r) if (q & 1) != 0 else sin_quarter_f64(r)
    return x if fabs(x) < 5e-9 else (-y if (q & 2) != 0 else y)


def cos_f32(x):
    """Sine or cosine of the rest, by the quadrant."""
    q, r = reduce_quarter_f32(x)
    y = sin_quarter_f32(r) if (q & 1) != 0 else cos_quarter_f32(r)
    return -y if ((q + 1) & 2) != 0 else y


def cos_f64(x):
    """Sine or cosine of the rest, by the quadrant."""
    q, r = reduce_quarter_f64(x)
    y = sin_quarter_f64(r) if (q & 1) != 0 else cos_quarter_f64(r)
    return -y if ((q + 1) & 2) != 0 else y


def tan_f32(x):
    """tan(r) = r + r^3 q(r^2) of the rest, or the negative inverse of that."""
    q, r = reduce_quarter_f32(x)
    z = r * r
    p = fma(0.0020403934, z, -5.9416535e-4)
    p = fma(p, z, 0.0049912822)
    p = fma(p, z, 0.0083320225)
    p = fma(p, z, 0.021984525)
    p = fma(p, z, 0.053954646)
    p = fma(p, z, 0.1333341)
    p = fma(p, z, 0.3333333)
    t = fma(r * z, p, r)
    y = -1.0 / t if (q & 1) != 0 else t
    return x if fabs(x) < 0.0001 else y


def tan_f64(x):
    """tan(r) = r + r^3 q(r^2) of the rest, or the negative inverse of that."""
    q, r = reduce_quarter_f64(x)
    z = r * r
    p = fma(4.524776919527193e-06, z, -1.2529797832617648e-05)
    p = fma(p, z, 2.563483276299777e-05)
    p = fma(p, z, -1.8184408657439825e-05)
    p = fma(p, z, 3.407967528763729e-05)
    p = fma(p, z, 2.965367418644772e-05)
    p = fma(p, z, 0.00010066176979756096)
    p = fma(p, z, 0.00023804935197436962)
    p = fma(p, z, 0.0005902573913629699)
    p = fma(p, z, 0.0014557986142516273)
    p = fma(p, z, 0.003592132013785825)
    p = fma(p, z, 0.00886323522487754)
    p = fma(p, z, 0.02186948855142009)
    p = fma(p, z, 0.05396825396779846)
    p = fma(p, z, 0.13333333333334021)
    p = fma(p, z, 0.3333333333333333)
    t = fma(r * z, p, r)
    y = -1.0 / t if (q & 1) != 0 else t
    return x if fabs(x) < 5e-9 else y
