// loops.cpp -- the benchmark cases as plain C++ loops with OpenMP: what a compiler makes of `-O3 -march=native`.
#include <algorithm>
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

TACK_EXPORT void scatter(float* R o, const float* R x, const int* R index, std::int64_t n) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; i++) o[index[i]] = x[i];
}

TACK_EXPORT void julia(float* R o, int n, int limit) {
#pragma omp parallel for schedule(dynamic, 4)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      float x = -1.5f + 3.0f * static_cast<float>(j) / static_cast<float>(n),
            y = -1.5f + 3.0f * static_cast<float>(i) / static_cast<float>(n);
      int k = 0;
      while (k < limit && x * x + y * y <= 4.0f) {
        const float t = x * x - y * y - 0.4f;
        y = 2.0f * x * y;
        if (y < 0.0f)
          y += 0.6f;
        else
          y -= 0.55f;
        x = t;
        k++;
      }
      o[static_cast<std::int64_t>(i) * n + j] = k < limit ? static_cast<float>(k) - std::sqrt(x * x + y * y) : -1.0f;
    }
}

static float scene(float x, float y, float z) {
  const auto length = [](float a, float b, float c) { return std::sqrt(a * a + b * b + c * c); };
  const float a = length(x, y, z) - 1.0f, b = length(x - 1.2f, y, z - 0.8f) - 0.7f;
  const float c = length(x + 1.1f, y - 0.6f, z) - 0.6f, d = length(x, y + 1.3f, z - 0.3f) - 0.5f;
  return std::min(std::min(a, b), std::min(c, d));
}

TACK_EXPORT void spheres(float* R o, int n) {
  const auto size = static_cast<float>(n);
#pragma omp parallel for schedule(dynamic, 4)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      const float u = (2.0f * static_cast<float>(j) - size) / size, v = (2.0f * static_cast<float>(i) - size) / size;
      const float inverse = 1.0f / std::sqrt(u * u + v * v + 2.25f), dx = u * inverse, dy = v * inverse, dz = 1.5f * inverse;
      float t = 0.0f, shade = 0.0f;
      for (int step = 0; step < 80; step++) {
        const float x = dx * t, y = dy * t, z = dz * t - 3.0f, d = scene(x, y, z);
        if (d < 0.001f) {
          const float nx = scene(x + 0.001f, y, z) - d, ny = scene(x, y + 0.001f, z) - d, nz = scene(x, y, z + 0.001f) - d;
          shade = std::max(0.05f, (0.6f * nx - 0.5f * ny - 0.62f * nz) / std::sqrt(nx * nx + ny * ny + nz * nz));
          break;
        }
        t += d;
        if (t > 10.0f) break;
      }
      o[static_cast<std::int64_t>(i) * n + j] = shade;
    }
}

TACK_EXPORT void nearest(float* R o, const float* R x, const float* R y, const int* R start, int cells, std::int64_t n) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; i++) {
    const int column = std::min(static_cast<int>(x[i] * static_cast<float>(cells)), cells - 1);
    const int row = std::min(static_cast<int>(y[i] * static_cast<float>(cells)), cells - 1);
    float a = 4.0f, b = a, c = a, d = a;
    for (int r = std::max(row - 1, 0); r < std::min(row + 2, cells); r++)
      for (int k = start[r * cells + std::max(column - 1, 0)]; k < start[r * cells + std::min(column + 2, cells)]; k++) {
        if (k == i) continue;
        const float dx = x[k] - x[i], dy = y[k] - y[i], q = dx * dx + dy * dy;
        if (q < d) {
          d = std::max(c, q);
          c = std::min(c, std::max(b, q));
          b = std::min(b, std::max(a, q));
          a = std::min(a, q);
        }
      }
    o[i] = d;
  }
}

TACK_EXPORT void life(std::uint8_t* R o, const std::uint8_t* R a, int n, int m) {
#pragma omp parallel for schedule(static)
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < m - 1; j++) {
      const std::uint8_t* c = a + static_cast<std::int64_t>(i) * m + j;
      const auto s = static_cast<std::uint8_t>(c[-m - 1] + c[-m] + c[-m + 1] + c[-1] + c[1] + c[m - 1] + c[m] + c[m + 1]);
      o[static_cast<std::int64_t>(i) * m + j] = s == 3 || (s == 2 && *c == 1);
    }
}

TACK_EXPORT void hash(std::uint32_t* R o, const std::uint32_t* R x, std::int64_t n) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; i++) {
    std::uint32_t h = x[i];
    for (std::uint32_t k = 0; k < 64; k++) {
      h ^= h >> 16;
      h *= 0x85EBCA6Bu;
      h ^= h >> 13;
      h += k;
    }
    o[i] = h;
  }
}
