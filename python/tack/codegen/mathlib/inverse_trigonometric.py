"""Inverse trigonometric functions: asin acos atan atan2. Read as text by the compiler; see __init__."""
# ruff: noqa: F821, RET504
# mypy: ignore-errors


def asin_rest_f32(z):
    """q with asin(r) = r + r^3 q(r^2) for |r| <= 1/2."""
    q = fma(0.037516367, z, 0.01443865)
    q = fma(q, z, 0.03180771)
    q = fma(q, z, 0.044516955)
    q = fma(q, z, 0.07500504)
    q = fma(q, z, 0.1666666)
    return q


def asin_rest_f64(z):
    """q with asin(r) = r + r^3 q(r^2) for |r| <= 1/2."""
    q = fma(0.03262877518594234, z, -0.020999315273854336)
    q = fma(q, z, 0.021707635354533125)
    q = fma(q, z, 0.003706326148343539)
    q = fma(q, z, 0.010780276509386066)
    q = fma(q, z, 0.011398907538346088)
    q = fma(q, z, 0.013980821195539598)
    q = fma(q, z, 0.01735161195145437)
    q = fma(q, z, 0.022372214991661563)
    q = fma(q, z, 0.030381942707618244)
    q = fma(q, z, 0.04464285717461585)
    q = fma(q, z, 0.07499999999970795)
    q = fma(q, z, 0.1666666666666676)
    return q


def asin_f32(x):
    """Beyond 1/2: pi/2 - 2 asin(sqrt((1 - |x|) / 2)), with the rounding error of the root put back."""
    a = fabs(x)
    near = a < 0.5
    z = a * a if near else 0.5 * (1.0 - a)
    q = asin_rest_f32(z)
    s = sqrt(z)
    s_low = fma(-s, s, z) / (2.0 * s)
    small = fma(a * z, q, a)
    big = 1.5707964 - 2.0 * (s + (fma(s * z, q, s_low) - 0.5 * -4.371139e-8))
    big = 1.5707964 if a == 1.0 else big
    return x if a < 0.0001 else copysign(small if near else big, x)


def asin_f64(x):
    """Beyond 1/2: pi/2 - 2 asin(sqrt((1 - |x|) / 2)), with the rounding error of the root put back."""
    a = fabs(x)
    near = a < 0.5
    z = a * a if near else 0.5 * (1.0 - a)
    q = asin_rest_f64(z)
    s = sqrt(z)
    s_low = fma(-s, s, z) / (2.0 * s)
    small = fma(a * z, q, a)
    big = 1.5707963267948966 - 2.0 * (s + (fma(s * z, q, s_low) - 0.5 * 6.123233995736766e-17))
    big = 1.5707963267948966 if a == 1.0 else big
    return x if a < 5e-9 else copysign(small if near else big, x)


def acos_f32(x):
    """pi/2 - asin(x) up to 1/2; beyond, 2 asin(sqrt((1 - |x|) / 2)), or pi less that for negative x."""
    a = fabs(x)
    near = a < 0.5
    z = a * a if near else 0.5 * (1.0 - a)
    q = asin_rest_f32(z)
    s = sqrt(z)
    middle = 1.5707964 - (x - fma(-x * z, q, -4.371139e-8))
    rest = s * z * q
    right = 2.0 * (s + rest)
    left = 2.0 * (1.5707964 - (s + (rest - -4.371139e-8)))
    return middle if near else (left if x < 0.0 else right)


def acos_f64(x):
    """pi/2 - asin(x) up to 1/2; beyond, 2 asin(sqrt((1 - |x|) / 2)), or pi less that for negative x."""
    a = fabs(x)
    near = a < 0.5
    z = a * a if near else 0.5 * (1.0 - a)
    q = asin_rest_f64(z)
    s = sqrt(z)
    middle = 1.5707963267948966 - (x - fma(-x * z, q, 6.123233995736766e-17))
    rest = s * z * q
    right = 2.0 * (s + rest)
    left = 2.0 * (1.5707963267948966 - (s + (rest - 6.123233995736766e-17)))
    return middle if near else (left if x < 0.0 else right)


def atan_ratio_f32(n, d):
    """atan(n / d) for n, d >= 0, not both 0 or infinite.

    By the size of n / d against tan(pi/8) and its inverse, it is atan(n/d), pi/4 + atan((n - d) / (n + d)) or pi/2 + atan(-d/n):
    the argument is at most tan(pi/8), and there is one division.
    """
    top = n > 2.4142135 * d
    middle = (not top) and (n > 0.41421357 * d)
    a = -d if top else (n - d if middle else n)
    b = n if top else (n + d if middle else d)
    r = a / b
    z = r * r
    q = fma(-0.060777865, z, 0.10593652)
    q = fma(q, z, -0.14243513)
    q = fma(q, z, 0.1999847)
    q = fma(q, z, -0.33333316)
    base = 1.5707964 if top else (0.7853982 if middle else 0.0)
    base_low = -4.371139e-8 if top else (-2.1855694e-8 if middle else 0.0)
    return base + (r + (fma(r * z, q, base_low)))


def atan_ratio_f64(n, d):
    """atan(n / d) for n, d >= 0, not both 0 or infinite.

    By the size of n / d against tan(pi/8) and its inverse, it is atan(n/d), pi/4 + atan((n - d) / (n + d)) or pi/2 + atan(-d/n):
    the argument is at most tan(pi/8), and there is one division.
    """
    top = n > 2.414213562373095 * d
    middle = (not top) and (n > 0.41421356237309503 * d)
    a = -d if top else (n - d if middle else n)
    b = n if top else (n + d if middle else d)
    r = a / b
    z = r * r
    q = fma(0.015191809099011855, z, -0.03347055976716581)
    q = fma(q, z, 0.04503353687733414)
    q = fma(q, z, -0.05218348609883705)
    q = fma(q, z, 0.058770118263117996)
    q = fma(q, z, -0.0666622559156946)
    q = fma(q, z, 0.0769228266863283)
    q = fma(q, z, -0.0909090814000123)
    q = fma(q, z, 0.11111111088035429)
    q = fma(q, z, -0.1428571428538542)
    q = fma(q, z, 0.19999999999997645)
    q = fma(q, z, -0.33333333333333326)
    base = 1.5707963267948966 if top else (0.7853981633974483 if middle else 0.0)
    base_low = 6.123233995736766e-17 if top else (3.061616997868383e-17 if middle else 0.0)
    return base + (r + (fma(r * z, q, base_low)))


def atan_f32(x):
    """The arc tangent of the ratio |x| / 1."""
    a = fabs(x)
    y = atan_ratio_f32(a, 1.0 + 0.0 * x)
    y = 1.5707964 if a == inf else y
    return x if a < 0.0001 else copysign(y, x)


def atan_f64(x):
    """The arc tangent of the ratio |x| / 1."""
    a = fabs(x)
    y = atan_ratio_f64(a, 1.0 + 0.0 * x)
    y = 1.5707963267948966 if a == inf else y
    return x if a < 5e-9 else copysign(y, x)


def atan2_f32(y, x):
    """The angle of |y| / |x|, reflected where x is negative, with the sign of y. Both are scaled by the same power of 2."""
    n = fabs(y)
    d = fabs(x)
    larger = n if n > d else d
    scale = 5.960464477539063e-08 if larger > 1e30 else (16777216.0 if larger < 1e-30 else 1.0)
    n_is_d = n == d
    a = atan_ratio_f32((1.0 if n_is_d else n) * scale, (1.0 if n_is_d else d) * scale)
    a = (0.0 if d == 0.0 and n == 0.0 else a) if n == 0.0 or n_is_d else a
    a = 1.5707964 if (n == inf) and (d < inf) else (0.0 if (d == inf) and (n < inf) else a)
    a = 3.1415927 - (a - -8.742278e-8) if copysign(1.0, x) < 0.0 else a
    a = 1.5707964 if (d == 0.0) and (n > 0.0) else a
    return x + y if (x != x) or (y != y) else copysign(a, y)


def atan2_f64(y, x):
    """The angle of |y| / |x|, reflected where x is negative, with the sign of y. Both are scaled by the same power of 2."""
    n = fabs(y)
    d = fabs(x)
    larger = n if n > d else d
    scale = 1.1102230246251565e-16 if larger > 1e300 else (9007199254740992.0 if larger < 1e-290 else 1.0)
    n_is_d = n == d
    a = atan_ratio_f64((1.0 if n_is_d else n) * scale, (1.0 if n_is_d else d) * scale)
    a = (0.0 if d == 0.0 and n == 0.0 else a) if n == 0.0 or n_is_d else a
    a = 1.5707963267948966 if (n == inf) and (d < inf) else (0.0 if (d == inf) and (n < inf) else a)
    a = 3.141592653589793 - (a - 1.2246467991473532e-16) if copysign(1.0, x) < 0.0 else a
    a = 1.5707963267948966 if (d == 0.0) and (n > 0.0) else a
    return x + y if (x != x) or (y != y) else copysign(a, y)
