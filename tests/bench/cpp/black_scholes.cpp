// black_scholes.cpp -- prices of options. Built twice: strictly, and with -ffast-math and 512-bit vectors, so that g++ takes logarithms and
// the like from glibc's vector library.
#include <cmath>
#include <cstdint>

#define R __restrict__

static float phi(float d) { return 0.5f * (1.0f + std::erf(d * 0.70710678f)); }

extern "C" __attribute__((visibility("default"))) void blackscholes(float* R call, float* R put, const float* R s, const float* R k,
                                                                    const float* R t, float r, float v, std::int64_t n) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; i++) {
    const float root = std::sqrt(t[i]), d1 = (std::log(s[i] / k[i]) + (r + 0.5f * v * v) * t[i]) / (v * root), d2 = d1 - v * root;
    const float c1 = phi(d1), c2 = phi(d2), e = k[i] * std::exp(-r * t[i]);
    call[i] = s[i] * c1 - e * c2;
    put[i] = e * (1.0f - c2) - s[i] * (1.0f - c1);
  }
}
