// device/cuda_math.h -- the math functions that CUDA C++ has without an include: those of C by the host's library, CUDA's own by their
// definition.
#pragma once
#pragma GCC system_header

// Functions of C, in double and (with an f) in float, and C++'s overloads of the plain name for float.
#define __SIM_C1(name)                      \
  extern "C" double name(double) noexcept;  \
  extern "C" float name##f(float) noexcept; \
  __sim_pure float name(float x) { return __builtin_##name##f(x); }
#define __SIM_C2(name)                             \
  extern "C" double name(double, double) noexcept; \
  extern "C" float name##f(float, float) noexcept; \
  __sim_pure float name(float x, float y) { return __builtin_##name##f(x, y); }
__SIM_C1(acos)
__SIM_C1(acosh)
__SIM_C1(asin)
__SIM_C1(asinh)
__SIM_C1(atan)
__SIM_C1(atanh)
__SIM_C1(cbrt)
__SIM_C1(ceil)
__SIM_C1(cos)
__SIM_C1(cosh)
__SIM_C1(erf)
__SIM_C1(erfc)
__SIM_C1(exp)
__SIM_C1(exp2)
__SIM_C1(expm1)
__SIM_C1(fabs)
__SIM_C1(floor)
__SIM_C1(lgamma)
__SIM_C1(log)
__SIM_C1(log10)
__SIM_C1(log1p)
__SIM_C1(log2)
__SIM_C1(logb)
__SIM_C1(nearbyint)
__SIM_C1(rint)
__SIM_C1(round)
__SIM_C1(sin)
__SIM_C1(sinh)
__SIM_C1(sqrt)
__SIM_C1(tan)
__SIM_C1(tanh)
__SIM_C1(tgamma)
__SIM_C1(trunc)
__SIM_C2(atan2)
__SIM_C2(copysign)
__SIM_C2(fdim)
__SIM_C2(fmax)
__SIM_C2(fmin)
__SIM_C2(fmod)
__SIM_C2(hypot)
__SIM_C2(nextafter)
__SIM_C2(pow)
__SIM_C2(remainder)
#undef __SIM_C1
#undef __SIM_C2
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
__sim_pure float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
__sim_pure float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
extern "C" double scalbn(double, int) noexcept;
extern "C" float scalbnf(float, int) noexcept;
extern "C" double frexp(double, int*) noexcept;
extern "C" float frexpf(float, int*) noexcept;
extern "C" double modf(double, double*) noexcept;
extern "C" float modff(float, float*) noexcept;
extern "C" int ilogb(double) noexcept;
extern "C" int ilogbf(float) noexcept;
extern "C" long lrint(double) noexcept;
extern "C" long lrintf(float) noexcept;
extern "C" long long llrint(double) noexcept;
extern "C" long long llrintf(float) noexcept;
extern "C" long long llround(double) noexcept;
extern "C" long long llroundf(float) noexcept;
extern "C" double nan(const char*) noexcept;
extern "C" float nanf(const char*) noexcept;
__sim_pure void sincosf(float x, float* s, float* c) {
  *s = __builtin_sinf(x);
  *c = __builtin_cosf(x);
}
__sim_pure void sincos(double x, double* s, double* c) {
  *s = __builtin_sin(x);
  *c = __builtin_cos(x);
}
extern "C" int abs(int) noexcept;
extern "C" long labs(long) noexcept;
extern "C" long long llabs(long long) noexcept;
__sim_pure long abs(long x) { return x < 0 ? -x : x; }
__sim_pure long long abs(long long x) { return x < 0 ? -x : x; }
__sim_pure float abs(float x) { return __builtin_fabsf(x); }
__sim_pure double abs(double x) { return __builtin_fabs(x); }
__sim_pure bool isnan(float x) { return __builtin_isnan(x); }
__sim_pure bool isnan(double x) { return __builtin_isnan(x); }
__sim_pure bool isinf(float x) { return __builtin_isinf(x); }
__sim_pure bool isinf(double x) { return __builtin_isinf(x); }
__sim_pure bool isfinite(float x) { return __builtin_isfinite(x); }
__sim_pure bool isfinite(double x) { return __builtin_isfinite(x); }
__sim_pure bool signbit(float x) { return __builtin_signbit(x); }
__sim_pure bool signbit(double x) { return __builtin_signbit(x); }

// CUDA's own.
__sim_pure float rsqrtf(float x) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x))); }
__sim_pure double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
__sim_pure float rsqrt(float x) { return rsqrtf(x); }
__sim_pure float rcbrtf(float x) { return static_cast<float>(1.0 / __builtin_cbrt(static_cast<double>(x))); }
__sim_pure double rcbrt(double x) { return 1.0 / __builtin_cbrt(x); }
__sim_pure float exp10f(float x) { return static_cast<float>(__builtin_pow(10.0, static_cast<double>(x))); }
__sim_pure double exp10(double x) { return __builtin_pow(10.0, x); }
__sim_pure float fdividef(float x, float y) { return x / y; }
__sim_pure float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
__sim_pure float sinpif(float x) {
  return static_cast<float>(__builtin_sin(3.14159265358979323846 * __builtin_remainder(static_cast<double>(x), 2.0)));
}
__sim_pure float cospif(float x) {
  return static_cast<float>(__builtin_cos(3.14159265358979323846 * __builtin_remainder(static_cast<double>(x), 2.0)));
}
__sim_pure double sinpi(double x) { return __builtin_sin(3.14159265358979323846 * __builtin_remainder(x, 2.0)); }
__sim_pure double cospi(double x) { return __builtin_cos(3.14159265358979323846 * __builtin_remainder(x, 2.0)); }
__sim_pure float __fdividef(float x, float y) { return x / y; }
__sim_pure float __expf(float x) { return __builtin_expf(x); }
__sim_pure float __exp10f(float x) { return exp10f(x); }
__sim_pure float __logf(float x) { return __builtin_logf(x); }
__sim_pure float __log2f(float x) { return __builtin_log2f(x); }
__sim_pure float __log10f(float x) { return __builtin_log10f(x); }
__sim_pure float __sinf(float x) { return __builtin_sinf(x); }
__sim_pure float __cosf(float x) { return __builtin_cosf(x); }
__sim_pure float __tanf(float x) { return __builtin_tanf(x); }
__sim_pure float __powf(float x, float y) { return __builtin_powf(x, y); }
__sim_pure float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
__sim_pure float __frsqrt_rn(float x) { return rsqrtf(x); }
__sim_pure float __frcp_rn(float x) { return 1.0f / x; }
__sim_pure double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
__sim_pure double __drcp_rn(double x) { return 1.0 / x; }
__sim_pure float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
__sim_pure double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }

// Never contracted with what is around them.
#define __SIM_RN(T, letter)                                                                 \
  __attribute__((unused, noinline)) static T __##letter##add_rn(T x, T y) { return x + y; } \
  __attribute__((unused, noinline)) static T __##letter##sub_rn(T x, T y) { return x - y; } \
  __attribute__((unused, noinline)) static T __##letter##mul_rn(T x, T y) { return x * y; } \
  __sim_pure T __##letter##div_rn(T x, T y) { return x / y; }
__SIM_RN(float, f)
__SIM_RN(double, d)
#undef __SIM_RN

// Conversions: out of range saturates, NaN gives 0 (of 64 bits: the smallest value), as the PTX cvt instruction does.
#define __SIM_CLAMPED(name, From, To, low, high, rounding, nan)     \
  __sim_pure To name(From x) {                                      \
    if (x != x) return static_cast<To>(nan);                        \
    const From r = rounding(x);                                     \
    if (r < static_cast<From>(low)) return static_cast<To>(low);    \
    if (r >= static_cast<From>(high)) return static_cast<To>(high); \
    return static_cast<To>(r);                                      \
  }
#define __SIM_LL_MIN (-9223372036854775807LL - 1)
#define __SIM_CLAMPED_ALL(from, From, suffix, rounding)                                                               \
  __SIM_CLAMPED(__##from##2int_##suffix, From, int, -2147483648LL, 2147483647LL, rounding, 0)                         \
  __SIM_CLAMPED(__##from##2uint_##suffix, From, unsigned, 0, 4294967295LL, rounding, 0)                               \
  __SIM_CLAMPED(__##from##2ll_##suffix, From, long long, __SIM_LL_MIN, 9223372036854775807LL, rounding, __SIM_LL_MIN) \
  __SIM_CLAMPED(__##from##2ull_##suffix, From, unsigned long long, 0, 18446744073709551615ULL, rounding, __SIM_LL_MIN)
__SIM_CLAMPED_ALL(float, float, rz, __builtin_truncf)
__SIM_CLAMPED_ALL(float, float, rn, __builtin_rintf)
__SIM_CLAMPED_ALL(float, float, rd, __builtin_floorf)
__SIM_CLAMPED_ALL(float, float, ru, __builtin_ceilf)
__SIM_CLAMPED_ALL(double, double, rz, __builtin_trunc)
__SIM_CLAMPED_ALL(double, double, rn, __builtin_rint)
__SIM_CLAMPED_ALL(double, double, rd, __builtin_floor)
__SIM_CLAMPED_ALL(double, double, ru, __builtin_ceil)
#undef __SIM_CLAMPED_ALL
#undef __SIM_CLAMPED
__sim_pure float __int2float_rn(int x) { return static_cast<float>(x); }
__sim_pure float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
__sim_pure float __ll2float_rn(long long x) { return static_cast<float>(x); }
__sim_pure float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
__sim_pure double __ll2double_rn(long long x) { return static_cast<double>(x); }
__sim_pure double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
__sim_pure double __int2double_rn(int x) { return x; }
__sim_pure double __uint2double_rn(unsigned x) { return x; }
__sim_pure float __double2float_rn(double x) { return static_cast<float>(x); }

// min and max: of integers by C++'s conversions, of floats those of fmin and fmax.
#define __SIM_MINMAX(T)                                \
  __sim_pure T min(T a, T b) { return a < b ? a : b; } \
  __sim_pure T max(T a, T b) { return a > b ? a : b; }
__SIM_MINMAX(int)
__SIM_MINMAX(unsigned)
__SIM_MINMAX(long)
__SIM_MINMAX(unsigned long)
__SIM_MINMAX(long long)
__SIM_MINMAX(unsigned long long)
#undef __SIM_MINMAX
__sim_pure float min(float a, float b) { return __builtin_fminf(a, b); }
__sim_pure float max(float a, float b) { return __builtin_fmaxf(a, b); }
__sim_pure double min(double a, double b) { return __builtin_fmin(a, b); }
__sim_pure double max(double a, double b) { return __builtin_fmax(a, b); }
#define __SIM_MIXED(A, B, T)                                                       \
  __sim_pure T min(A a, B b) { return min(static_cast<T>(a), static_cast<T>(b)); } \
  __sim_pure T min(B a, A b) { return min(static_cast<T>(a), static_cast<T>(b)); } \
  __sim_pure T max(A a, B b) { return max(static_cast<T>(a), static_cast<T>(b)); } \
  __sim_pure T max(B a, A b) { return max(static_cast<T>(a), static_cast<T>(b)); }
__SIM_MIXED(int, unsigned, unsigned)
__SIM_MIXED(long, unsigned long, unsigned long)
__SIM_MIXED(long long, unsigned long long, unsigned long long)
__SIM_MIXED(float, double, double)
#undef __SIM_MIXED
