// loops.cpp -- the benchmark cases as plain C++ loops with OpenMP: what a compiler makes of `-O3 -march=native`.
#include <cmath>
#include <cstdint>

#define TACK_EXPORT extern "C" __attribute__((visibility("default")))
#define R __restrict__

TACK_EXPORT void triad(float* R o, const float* R x, const float* R y, float f, std::int64_t n) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; i++) o[i] = x[i] * f + y[i];
}

TACK_EXPORT void stencil(float* R o, const float* R a, int n, float c0, float c1) {
  const std::int64_t row = n, plane = row * n;
#pragma omp parallel for schedule(static)
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < n - 1; j++)
      for (int k = 1; k < n - 1; k++) {
        const std::int64_t p = i * plane + j * row + k;
        o[p] = c0 * a[p] + c1 * (a[p - 1] + a[p + 1] + a[p - row] + a[p + row] + a[p - plane] + a[p + plane]);
      }
}

TACK_EXPORT void mandelbrot(int* R o, int w, int h, int limit) {
#pragma omp parallel for schedule(dynamic, 4096)
  for (std::int64_t p = 0; p < static_cast<std::int64_t>(w) * h; p++) {
    const int i = static_cast<int>(p / w), j = static_cast<int>(p % w);
    const float cx = -2.0f + 3.0f * static_cast<float>(j) / static_cast<float>(w);
    const float cy = -1.5f + 3.0f * static_cast<float>(i) / static_cast<float>(h);
    float x = 0, y = 0;
    int k = 0;
    while (k < limit && x * x + y * y <= 4.0f) {
      const float t = x * x - y * y + cx;
      y = 2.0f * x * y + cy;
      x = t;
      k++;
    }
    o[p] = k;
  }
}

static float phi(float d) { return 0.5f * (1.0f + std::erf(d * 0.70710678f)); }

TACK_EXPORT void blackscholes(float* R call, float* R put, const float* R s, const float* R k, const float* R t, float r, float v,
                              std::int64_t n) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; i++) {
    const float root = std::sqrt(t[i]), d1 = (std::log(s[i] / k[i]) + (r + 0.5f * v * v) * t[i]) / (v * root), d2 = d1 - v * root;
    const float c1 = phi(d1), c2 = phi(d2), e = k[i] * std::exp(-r * t[i]);
    call[i] = s[i] * c1 - e * c2;
    put[i] = e * (1.0f - c2) - s[i] * (1.0f - c1);
  }
}

TACK_EXPORT void nbody(float* R ax, float* R ay, float* R az, const float* R x, const float* R y, const float* R z, const float* R m,
                       int n) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++) {
    float sx = 0, sy = 0, sz = 0;
    for (int j = 0; j < n; j++) {
      const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
      const float inverse = 1.0f / std::sqrt(dx * dx + dy * dy + dz * dz + 1e-4f), w = m[j] * inverse * inverse * inverse;
      sx += dx * w;
      sy += dy * w;
      sz += dz * w;
    }
    ax[i] = sx;
    ay[i] = sy;
    az[i] = sz;
  }
}

TACK_EXPORT void histogram(int* R h, const int* R v, std::int64_t n) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; i++) __atomic_fetch_add(&h[v[i]], 1, __ATOMIC_RELAXED);
}

TACK_EXPORT void gather(float* R o, const float* R x, const int* R index, std::int64_t n) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; i++) o[i] = x[index[i]];
}

TACK_EXPORT void spmv(float* R o, const int* R ptr, const int* R col, const float* R val, const float* R x, int rows) {
#pragma omp parallel for schedule(static)
  for (int r = 0; r < rows; r++) {
    float s = 0;
    for (int k = ptr[r]; k < ptr[r + 1]; k++) s += val[k] * x[col[k]];
    o[r] = s;
  }
}
