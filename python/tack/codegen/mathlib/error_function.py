"""The error function and its complement: erf erfc. Read as text by the compiler; see __init__."""
# ruff: noqa: F821
# mypy: ignore-errors


def erf_near_f32(x):
    """erf(x) = x + x q(x^2) for |x| <= 1."""
    z = x * x
    q = fma(-9.641518e-6, z, 1.12569476e-4)
    q = fma(q, z, -8.482829e-4)
    q = fma(q, z, 0.0052209455)
    q = fma(q, z, -0.0268654)
    q = fma(q, z, 0.11283782)
    q = fma(q, z, -0.37612638)
    q = fma(q, z, 0.12837917)
    return fma(x, q, x)


def erf_near_f64(x):
    """erf(x) = x + x q(x^2) for |x| <= 1."""
    z = x * x
    q = fma(-4.222900485351467e-12, z, 8.703792512960054e-11)
    q = fma(q, z, -1.2163042646280654e-09)
    q = fma(q, z, 1.479214586759436e-08)
    q = fma(q, z, -1.6364614433013276e-07)
    q = fma(q, z, 1.646204340855954e-06)
    q = fma(q, z, -1.492564746515142e-05)
    q = fma(q, z, 0.00012055332899358874)
    q = fma(q, z, -0.0008548327021853214)
    q = fma(q, z, 0.005223977625422086)
    q = fma(q, z, -0.026866170645129733)
    q = fma(q, z, 0.11283791670955119)
    q = fma(q, z, -0.37612638903183754)
    q = fma(q, z, 0.1283791670955126)
    return fma(x, q, x)


def erfc_far_f32(x):
    """erfc(x) for x >= 1/2: e^(-x^2) / (1 + 2 x) times a polynomial in t = (x - 3.0) / (x + 3.0).

    x^2 is taken exactly, in two parts; the quotient is corrected by its remainder.
    """
    x = 11.0 if x > 11.0 else x
    t = (x - 3.0) / (x + 3.0)
    q = fma(9.101373e-5, t, -1.035691e-4)
    q = fma(q, t, -7.5825216e-4)
    q = fma(q, t, 0.0018893369)
    q = fma(q, t, 0.0025231072)
    q = fma(q, t, -0.023770846)
    q = fma(q, t, 0.0683089)
    q = fma(q, t, -0.11927362)
    q = fma(q, t, 0.12964511)
    q = fma(q, t, -0.047562297)
    q = fma(q, t, -0.1356211)
    q = fma(q, t, 1.253008)
    square = x * x
    e, a, b = exp_parts_f32(-square, -fma(x, x, -square))
    n = fma(q, e, q)
    d = fma(2.0, x, 1.0)
    inverse = 1.0 / d
    y = n * inverse
    y = fma(fma(-y, d, n) - y * (2.0 * x - (d - 1.0)), inverse, y)
    return y * a * b


def erfc_far_f64(x):
    """erfc(x) for x >= 1/2: e^(-x^2) / (1 + 2 x) times a polynomial in t = (x - 4.0) / (x + 4.0).

    x^2 is taken exactly, in two parts; the quotient is corrected by its remainder.
    """
    x = 28.0 if x > 28.0 else x
    t = (x - 4.0) / (x + 4.0)
    q = fma(1.4491777074215412e-09, t, 2.3914098530197217e-09)
    q = fma(q, t, -1.4462304668445824e-08)
    q = fma(q, t, -1.9682395313331236e-08)
    q = fma(q, t, 1.1020769599053089e-07)
    q = fma(q, t, 7.707562651232281e-08)
    q = fma(q, t, -8.252421500910273e-07)
    q = fma(q, t, 2.918982032356252e-07)
    q = fma(q, t, 5.709468599971047e-06)
    q = fma(q, t, -1.1221105035115288e-05)
    q = fma(q, t, -2.4399064472723355e-05)
    q = fma(q, t, 0.00015062139087307282)
    q = fma(q, t, -0.00019925674162762116)
    q = fma(q, t, -0.0007577732326011614)
    q = fma(q, t, 0.005031969986544862)
    q = fma(q, t, -0.01619773406464896)
    q = fma(q, t, 0.03716751553659663)
    q = fma(q, t, -0.06633036581172591)
    q = fma(q, t, 0.09373283499839788)
    q = fma(q, t, -0.10103906603632262)
    q = fma(q, t, 0.06809705425469152)
    q = fma(q, t, 0.01537965210262001)
    q = fma(q, t, -0.1396211168405625)
    q = fma(q, t, 1.2329951186255526)
    square = x * x
    e, a, b = exp_parts_f64(-square, -fma(x, x, -square))
    n = fma(q, e, q)
    d = fma(2.0, x, 1.0)
    inverse = 1.0 / d
    y = n * inverse
    y = fma(fma(-y, d, n) - y * (2.0 * x - (d - 1.0)), inverse, y)
    return y * a * b


def erf_far_f32(x):
    """1 - erfc(x) for x >= 1, where erfc(x) = 2^q(x - 1) need not be exact to its own last bits; from 4 on, 1."""
    u = (4.0 if x > 4.0 else x) - 1.0
    q = fma(0.00026771158, u, -0.002634538)
    q = fma(q, u, 0.014269461)
    q = fma(q, u, -0.05987279)
    q = fma(q, u, -1.2163626)
    q = fma(q, u, -3.8072243)
    q = fma(q, u, -2.6684167)
    t = q + 12582912.0
    r = q - (t - 12582912.0)
    p = fma(0.0001534587, r, 0.0013399931)
    p = fma(p, r, 0.009618489)
    p = fma(p, r, 0.055503286)
    p = fma(p, r, 0.24022646)
    p = fma(p, r, 0.6931472)
    p = fma(p, r, 1.0)
    scale = bitcast((bitcast(t, i32) - (0x4B400000 - 127)) << 23, f32)
    return fma(-p, scale, 1.0)


def erf_f32(x):
    """Near 0 the odd polynomial; beyond 1, 1 - erfc(|x|). NaN takes the near way."""
    a = fabs(x)
    far = copysign(erf_far_f32(a), x)
    near = erf_near_f32(x)
    return far if a > 1.0 else near


def erf_f64(x):
    """Near 0 the odd polynomial; beyond 1, 1 - erfc(|x|)."""
    a = fabs(x)
    far = copysign(1.0 - erfc_far_f64(a if a > 1.0 else 1.0), x)
    near = erf_near_f64(x)
    return x if x != x else (far if a > 1.0 else near)


def erfc_f32(x):
    """Near 0, 1 - erf(x); beyond 1/2, the far form; for negative x, 2 - erfc(|x|)."""
    a = fabs(x)
    far = erfc_far_f32(a if a > 0.5 else 0.5)
    far = 2.0 - far if x < 0.0 else far
    near = 1.0 - erf_near_f32(x)
    return x if x != x else (near if a < 0.5 else far)


def erfc_f64(x):
    """Near 0, 1 - erf(x); beyond 1/2, the far form; for negative x, 2 - erfc(|x|)."""
    a = fabs(x)
    far = erfc_far_f64(a if a > 0.5 else 0.5)
    far = 2.0 - far if x < 0.0 else far
    near = 1.0 - erf_near_f64(x)
    return x if x != x else (near if a < 0.5 else far)
