"""Exponential and hyperbolic functions: exp exp2 expm1 sinh cosh tanh. Read as text by the compiler; see __init__."""
# ruff: noqa: F821
# mypy: ignore-errors


def exp_parts_f32(x, low):
    """exp(x + low) as e, a, b with the value (1 + e) * a * b: |e| < 1/2, a and b powers of 2 whose product may be out of range.

    |low| must be small beside 1. x is cut off where the result is 0 or infinite. x = k ln 2 + r with |r| <= ln 2 / 2, k found by
    adding a number so large that the sum is rounded to an integer; ln 2 in two parts, the first product exact under fma.
    """
    x = -110.0 if x < -110.0 else (92.0 if x > 92.0 else x)
    t = fma(x, 1.442695, 12582912.0)
    k = t - 12582912.0
    r = fma(k, -0.6931472, x)
    r = fma(k, 1.9046542e-9, r) + low
    q = fma(0.0013814588, r, 0.008368716)
    q = fma(q, r, 0.04166839)
    q = fma(q, r, 0.16666521)
    q = fma(q, r, 0.49999994)
    e = fma(r * r, q, r)
    n = bitcast(t, i32) - 0x4B400000
    half = n >> 1
    a = bitcast((half + 127) << 23, f32)
    b = bitcast((n - half + 127) << 23, f32)
    return e, a, b


def exp_parts_f64(x, low):
    """exp(x + low) as e, a, b with the value (1 + e) * a * b: |e| < 1/2, a and b powers of 2 whose product may be out of range.

    |low| must be small beside 1. x is cut off where the result is 0 or infinite. x = k ln 2 + r with |r| <= ln 2 / 2, k found by
    adding a number so large that the sum is rounded to an integer; ln 2 in two parts, the first product exact under fma.
    """
    x = -760.0 if x < -760.0 else (720.0 if x > 720.0 else x)
    t = fma(x, 1.4426950408889634, 6755399441055744.0)
    k = t - 6755399441055744.0
    r = fma(k, -0.6931471805599453, x)
    r = fma(k, -2.3190468138462996e-17, r) + low
    q = fma(2.500005567101886e-08, r, 2.7630247536115133e-07)
    q = fma(q, r, 2.755758639539226e-06)
    q = fma(q, r, 2.4801493101244676e-05)
    q = fma(q, r, 0.00019841269506549685)
    q = fma(q, r, 0.0013888888943627828)
    q = fma(q, r, 0.008333333333494479)
    q = fma(q, r, 0.04166666666653017)
    q = fma(q, r, 0.16666666666666413)
    q = fma(q, r, 0.5000000000000011)
    e = fma(r * r, q, r)
    n = bitcast(t, i64) - 0x4338000000000000
    half = n >> 1
    a = bitcast((half + 1023) << 52, f64)
    b = bitcast((n - half + 1023) << 52, f64)
    return e, a, b


def exp_f32(x):
    """e^x."""
    e, a, b = exp_parts_f32(x, 0.0)
    return (1.0 + e) * a * b


def exp_f64(x):
    """e^x."""
    e, a, b = exp_parts_f64(x, 0.0)
    return (1.0 + e) * a * b


def exp2_f32(x):
    """2^x = 2^k 2^r with k the nearest integer and r exact; 2^r = 1 + r q(r)."""
    x = -151.0 if x < -151.0 else (129.0 if x > 129.0 else x)
    t = x + 12582912.0
    r = x - (t - 12582912.0)
    q = fma(1.3359942e-5, r, 1.5461363e-4)
    q = fma(q, r, 0.001334195)
    q = fma(q, r, 0.009618057)
    q = fma(q, r, 0.055504005)
    q = fma(q, r, 0.2402265)
    q = fma(q, r, 0.6931472)
    p = fma(r, q, 1.0)
    n = bitcast(t, i32) - 0x4B400000
    half = n >> 1
    a = bitcast((half + 127) << 23, f32)
    b = bitcast((n - half + 127) << 23, f32)
    return p * a * b


def exp2_f64(x):
    """2^x = 2^k 2^r with k the nearest integer and r exact; 2^r = 1 + r q(r)."""
    x = -1077.0 if x < -1077.0 else (1025.0 if x > 1025.0 else x)
    t = x + 6755399441055744.0
    r = x - (t - 6755399441055744.0)
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
    half = n >> 1
    a = bitcast((half + 1023) << 52, f64)
    b = bitcast((n - half + 1023) << 52, f64)
    return p * a * b


def expm1_f32(x):
    """e^x - 1 = 2^k (e^r - 1) + (2^k - 1), halved on the way so that 2^k cannot overflow before the result does."""
    y = -20.0 if x < -20.0 else (89.0 if x > 89.0 else x)
    t = fma(y, 1.442695, 12582912.0)
    k = t - 12582912.0
    r = fma(k, -0.6931472, y)
    r = fma(k, 1.9046542e-9, r)
    q = fma(1.9909561e-4, r, 0.0013933314)
    q = fma(q, r, 0.008333283)
    q = fma(q, r, 0.04166648)
    q = fma(q, r, 0.16666667)
    p = fma(r * r, fma(r, q, 0.5), r)
    n = bitcast(t, i32) - 0x4B400000
    s = bitcast((n + 126) << 23, f32)
    result = 2.0 * fma(s, p, s - 0.5)
    return x if fabs(x) < 5e-8 else result


def expm1_f64(x):
    """e^x - 1 = 2^k (e^r - 1) + (2^k - 1), halved on the way so that 2^k cannot overflow before the result does."""
    y = -42.0 if x < -42.0 else (710.0 if x > 710.0 else x)
    t = fma(y, 1.4426950408889634, 6755399441055744.0)
    k = t - 6755399441055744.0
    r = fma(k, -0.6931471805599453, y)
    r = fma(k, -2.3190468138462996e-17, r)
    q = fma(2.0923682403964407e-09, r, 2.5108995697853123e-08)
    q = fma(q, r, 2.7557245832647254e-07)
    q = fma(q, r, 2.755724433699268e-06)
    q = fma(q, r, 2.480158735581585e-05)
    q = fma(q, r, 0.0001984126988598553)
    q = fma(q, r, 0.0013888888888870287)
    q = fma(q, r, 0.008333333333321695)
    q = fma(q, r, 0.04166666666666669)
    q = fma(q, r, 0.16666666666666677)
    p = fma(r * r, fma(r, q, 0.5), r)
    n = bitcast(t, i64) - 0x4338000000000000
    s = bitcast((n + 1022) << 52, f64)
    result = 2.0 * fma(s, p, s - 0.5)
    return x if fabs(x) < 1e-16 else result


def sinh_f32(x):
    """Odd polynomial up to 1; beyond, (e^|x| - e^-|x|) / 2 with the half in the power of 2."""
    ax = fabs(x)
    e, a, b = exp_parts_f32(ax, 0.0)
    h = (1.0 + e) * a * (b * 0.5)
    big = copysign(h - 0.25 / h, x)
    z = x * x
    q = fma(2.8169497e-6, z, 1.983616e-4)
    q = fma(q, z, 0.00833335)
    q = fma(q, z, 0.16666667)
    small = fma(x * z, q, x)
    return x if ax < 0.0002 else (small if ax < 1.0 else big)


def sinh_f64(x):
    """Odd polynomial up to 1; beyond, (e^|x| - e^-|x|) / 2 with the half in the power of 2."""
    ax = fabs(x)
    e, a, b = exp_parts_f64(ax, 0.0)
    h = (1.0 + e) * a * (b * 0.5)
    big = copysign(h - 0.25 / h, x)
    z = x * x
    q = fma(7.758748313048848e-13, z, 1.6057259786818723e-10)
    q = fma(q, z, 2.5052123136455206e-08)
    q = fma(q, z, 2.7557319157073873e-06)
    q = fma(q, z, 0.00019841269841431864)
    q = fma(q, z, 0.008333333333333148)
    q = fma(q, z, 0.16666666666666669)
    small = fma(x * z, q, x)
    return x if ax < 5e-9 else (small if ax < 1.0 else big)


def cosh_f32(x):
    """(e^|x| + e^-|x|) / 2 with the half in the power of 2."""
    e, a, b = exp_parts_f32(fabs(x), 0.0)
    h = (1.0 + e) * a * (b * 0.5)
    return h + 0.25 / h


def cosh_f64(x):
    """(e^|x| + e^-|x|) / 2 with the half in the power of 2."""
    e, a, b = exp_parts_f64(fabs(x), 0.0)
    h = (1.0 + e) * a * (b * 0.5)
    return h + 0.25 / h


def tanh_f32(x):
    """Odd polynomial up to 0.6; beyond, 1 - 2 / (e^(2|x|) + 1)."""
    ax = fabs(x)
    e, a, b = exp_parts_f32(2.0 * ax, 0.0)
    big = copysign(1.0 - 2.0 / ((1.0 + e) * a * b + 1.0), x)
    z = x * x
    q = fma(0.0021429744, z, -0.008177413)
    q = fma(q, z, 0.02170071)
    q = fma(q, z, -0.053946763)
    q = fma(q, z, 0.13333206)
    q = fma(q, z, -0.3333333)
    small = fma(x * z, q, x)
    return x if ax < 0.0002 else (big if ax > 0.6 else (small if x == x else x))


def tanh_f64(x):
    """Odd polynomial up to 0.6; beyond, 1 - 2 / (e^(2|x|) + 1)."""
    ax = fabs(x)
    e, a, b = exp_parts_f64(2.0 * ax, 0.0)
    big = copysign(1.0 - 2.0 / ((1.0 + e) * a * b + 1.0), x)
    z = x * x
    q = fma(-2.2717667993400964e-06, z, 1.1794586538571192e-05)
    q = fma(q, z, -3.662553321019805e-05)
    q = fma(q, z, 9.575109128221265e-05)
    q = fma(q, z, -0.00023877083186246413)
    q = fma(q, z, 0.0005899492278959203)
    q = fma(q, z, -0.0014558222924743918)
    q = fma(q, z, 0.0035921267306621004)
    q = fma(q, z, -0.008863235434313867)
    q = fma(q, z, 0.021869488531647156)
    q = fma(q, z, -0.0539682539681283)
    q = fma(q, z, 0.13333333333333156)
    q = fma(q, z, -0.3333333333333333)
    small = fma(x * z, q, x)
    return x if ax < 5e-9 else (big if ax > 0.6 else (small if x == x else x))
