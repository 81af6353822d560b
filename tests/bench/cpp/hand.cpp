// hand.cpp -- the benchmark cases written by hand for AVX-512: what a programmer with intrinsics and patience reaches on one core, with
// OpenMP on more. Same arithmetic as the kernels of peers/tack_.py: no reassociation, contraction only where Tack's rule forms it as well.
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#define TACK_EXPORT extern "C" __attribute__((visibility("default")))
#define R __restrict__

namespace {

using F = __m512;
using I = __m512i;

F all(float v) { return _mm512_set1_ps(v); }
I all(int v) { return _mm512_set1_epi32(v); }
I lane_numbers() { return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0); }
F less(__mmask16 m, F a, F b) { return _mm512_mask_blend_ps(m, b, a); }  // m ? a : b

}  // namespace

// Stores that bypass the caches from 32 MiB on, else plain ones.
TACK_EXPORT void triad(float* R o, const float* R x, const float* R y, float f, std::int64_t n) {
  const F factor = all(f);
  const bool stream = n * 4 >= (32 << 20);
#pragma omp parallel for schedule(static) if (n > 50000)
  for (std::int64_t block = 0; block < n; block += 8192) {
    const std::int64_t end = std::min(block + 8192, n);
    std::int64_t i = block;
    if (stream) {
      for (; i < end && reinterpret_cast<std::uintptr_t>(o + i) % 64; i++) o[i] = std::fma(x[i], f, y[i]);
      for (; i + 16 <= end; i += 16) _mm512_stream_ps(o + i, _mm512_fmadd_ps(_mm512_loadu_ps(x + i), factor, _mm512_loadu_ps(y + i)));
    } else {
      for (; i + 16 <= end; i += 16) _mm512_storeu_ps(o + i, _mm512_fmadd_ps(_mm512_loadu_ps(x + i), factor, _mm512_loadu_ps(y + i)));
    }
    for (; i < end; i++) o[i] = std::fma(x[i], f, y[i]);
  }
  if (stream) _mm_sfence();
}

// Two registers take turns in the pipeline.
TACK_EXPORT void mandelbrot(int* R o, int w, int h, int limit) {
#pragma omp parallel for schedule(dynamic, 4)
  for (int i = 0; i < h; i++) {
    const F cy = all(-1.5f + 3.0f * static_cast<float>(i) / static_cast<float>(h)), four = all(4.0f), two = all(2.0f);
    for (int j = 0; j < w; j += 32) {
      F x[2], y[2], cx[2];
      I k[2];
      __mmask16 live[2] = {0xffff, 0xffff};
      for (int r = 0; r < 2; r++) {
        const F column = _mm512_cvtepi32_ps(_mm512_add_epi32(all(j + 16 * r), lane_numbers()));
        cx[r] = _mm512_add_ps(_mm512_div_ps(_mm512_mul_ps(all(3.0f), column), all(static_cast<float>(w))), all(-2.0f));
        x[r] = y[r] = _mm512_setzero_ps();
        k[r] = _mm512_setzero_si512();
      }
      for (int n = 0; n < limit && (live[0] | live[1]); n++)
        for (int r = 0; r < 2; r++) {
          const F yy = _mm512_mul_ps(y[r], y[r]);
          live[r] = _mm512_mask_cmp_ps_mask(live[r], _mm512_fmadd_ps(x[r], x[r], yy), four, _CMP_LE_OQ);
          const F t = _mm512_add_ps(_mm512_fmsub_ps(x[r], x[r], yy), cx[r]);
          y[r] = _mm512_fmadd_ps(_mm512_mul_ps(two, x[r]), y[r], cy);
          x[r] = t;
          k[r] = _mm512_mask_add_epi32(k[r], live[r], k[r], all(1));
        }
      for (int r = 0; r < 2; r++) _mm512_storeu_si512(o + static_cast<std::int64_t>(i) * w + j + 16 * r, k[r]);
    }
  }
}

// Lanes are bodies; their partners are broadcast.
TACK_EXPORT void nbody(float* R ax, float* R ay, float* R az, const float* R x, const float* R y, const float* R z, const float* R m,
                       int n) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i += 16) {
    const F px = _mm512_loadu_ps(x + i), py = _mm512_loadu_ps(y + i), pz = _mm512_loadu_ps(z + i);
    F sx = _mm512_setzero_ps(), sy = sx, sz = sx;
    for (int j = 0; j < n; j++) {
      const F dx = _mm512_sub_ps(all(x[j]), px), dy = _mm512_sub_ps(all(y[j]), py), dz = _mm512_sub_ps(all(z[j]), pz);
      const F square = _mm512_add_ps(_mm512_fmadd_ps(dz, dz, _mm512_fmadd_ps(dy, dy, _mm512_mul_ps(dx, dx))), all(1e-4f));
      const F inverse = _mm512_div_ps(all(1.0f), _mm512_sqrt_ps(square));
      const F w = _mm512_mul_ps(_mm512_mul_ps(_mm512_mul_ps(all(m[j]), inverse), inverse), inverse);
      sx = _mm512_fmadd_ps(dx, w, sx);
      sy = _mm512_fmadd_ps(dy, w, sy);
      sz = _mm512_fmadd_ps(dz, w, sz);
    }
    _mm512_storeu_ps(ax + i, sx);
    _mm512_storeu_ps(ay + i, sy);
    _mm512_storeu_ps(az + i, sz);
  }
}

TACK_EXPORT void gather(float* R o, const float* R x, const int* R index, std::int64_t n) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n - 15; i += 16) _mm512_storeu_ps(o + i, _mm512_i32gather_ps(_mm512_loadu_si512(index + i), x, 4));
  for (std::int64_t i = n / 16 * 16; i < n; i++) o[i] = x[index[i]];
}

TACK_EXPORT void scatter(float* R o, const float* R x, const int* R index, std::int64_t n) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n - 15; i += 16) _mm512_i32scatter_ps(o, _mm512_loadu_si512(index + i), _mm512_loadu_ps(x + i), 4);
  for (std::int64_t i = n / 16 * 16; i < n; i++) o[index[i]] = x[i];
}

TACK_EXPORT void julia(float* R o, int n, int limit) {
#pragma omp parallel for schedule(dynamic, 4)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j += 32) {
      F x[2], y[2];
      I k[2];
      __mmask16 live[2] = {0xffff, 0xffff};
      for (int r = 0; r < 2; r++) {
        const F column = _mm512_cvtepi32_ps(_mm512_add_epi32(all(j + 16 * r), lane_numbers()));
        x[r] = _mm512_add_ps(_mm512_div_ps(_mm512_mul_ps(all(3.0f), column), all(static_cast<float>(n))), all(-1.5f));
        y[r] = all(-1.5f + 3.0f * static_cast<float>(i) / static_cast<float>(n));
        k[r] = _mm512_setzero_si512();
      }
      for (int step = 0; step < limit && (live[0] | live[1]); step++)
        for (int r = 0; r < 2; r++) {
          const F yy = _mm512_mul_ps(y[r], y[r]);
          live[r] = _mm512_mask_cmp_ps_mask(live[r], _mm512_fmadd_ps(x[r], x[r], yy), all(4.0f), _CMP_LE_OQ);
          const F t = _mm512_add_ps(_mm512_fmsub_ps(x[r], x[r], yy), all(-0.4f));
          const F up = _mm512_mul_ps(_mm512_mul_ps(all(2.0f), x[r]), y[r]);
          const F add = less(_mm512_cmp_ps_mask(up, _mm512_setzero_ps(), _CMP_LT_OQ), all(0.6f), all(-0.55f));
          y[r] = _mm512_mask_add_ps(y[r], live[r], up, add);
          x[r] = _mm512_mask_mov_ps(x[r], live[r], t);
          k[r] = _mm512_mask_add_epi32(k[r], live[r], k[r], all(1));
        }
      for (int r = 0; r < 2; r++) {
        const F size = _mm512_sqrt_ps(_mm512_fmadd_ps(x[r], x[r], _mm512_mul_ps(y[r], y[r])));
        const F shade = _mm512_sub_ps(_mm512_cvtepi32_ps(k[r]), size);
        _mm512_storeu_ps(o + static_cast<std::int64_t>(i) * n + j + 16 * r,
                         less(_mm512_cmplt_epi32_mask(k[r], all(limit)), shade, all(-1.0f)));
      }
    }
}

namespace {

// The distance to the nearest of four spheres.
F scene(F x, F y, F z) {
  const auto length = [](F a, F b, F c) { return _mm512_sqrt_ps(_mm512_fmadd_ps(c, c, _mm512_fmadd_ps(b, b, _mm512_mul_ps(a, a)))); };
  const F a = _mm512_sub_ps(length(x, y, z), all(1.0f));
  const F b = _mm512_sub_ps(length(_mm512_sub_ps(x, all(1.2f)), y, _mm512_sub_ps(z, all(0.8f))), all(0.7f));
  const F c = _mm512_sub_ps(length(_mm512_add_ps(x, all(1.1f)), _mm512_sub_ps(y, all(0.6f)), z), all(0.6f));
  const F d = _mm512_sub_ps(length(x, _mm512_add_ps(y, all(1.3f)), _mm512_sub_ps(z, all(0.3f))), all(0.5f));
  return _mm512_min_ps(_mm512_min_ps(a, b), _mm512_min_ps(c, d));
}

}  // namespace

TACK_EXPORT void spheres(float* R o, int n) {
  const auto size = static_cast<float>(n);
#pragma omp parallel for schedule(dynamic, 4)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j += 16) {
      const F column = _mm512_cvtepi32_ps(_mm512_add_epi32(all(j), lane_numbers()));
      const F u = _mm512_div_ps(_mm512_sub_ps(_mm512_mul_ps(all(2.0f), column), all(size)), all(size));
      const F v = all((2.0f * static_cast<float>(i) - size) / size);
      const F inverse = _mm512_div_ps(all(1.0f), _mm512_sqrt_ps(_mm512_add_ps(_mm512_fmadd_ps(v, v, _mm512_mul_ps(u, u)), all(2.25f))));
      const F dx = _mm512_mul_ps(u, inverse), dy = _mm512_mul_ps(v, inverse), dz = _mm512_mul_ps(all(1.5f), inverse);
      F t = _mm512_setzero_ps(), shade = t;
      __mmask16 live = 0xffff;
      for (int step = 0; step < 80 && live; step++) {
        const F x = _mm512_mul_ps(dx, t), y = _mm512_mul_ps(dy, t), z = _mm512_sub_ps(_mm512_mul_ps(dz, t), all(3.0f));
        const F d = scene(x, y, z);
        const __mmask16 hit = _mm512_mask_cmp_ps_mask(live, d, all(0.001f), _CMP_LT_OQ);
        if (hit) {
          const F nx = _mm512_sub_ps(scene(_mm512_add_ps(x, all(0.001f)), y, z), d);
          const F ny = _mm512_sub_ps(scene(x, _mm512_add_ps(y, all(0.001f)), z), d);
          const F nz = _mm512_sub_ps(scene(x, y, _mm512_add_ps(z, all(0.001f))), d);
          const F length = _mm512_sqrt_ps(_mm512_fmadd_ps(nz, nz, _mm512_fmadd_ps(ny, ny, _mm512_mul_ps(nx, nx))));
          const F light =
              _mm512_sub_ps(_mm512_sub_ps(_mm512_mul_ps(all(0.6f), nx), _mm512_mul_ps(all(0.5f), ny)), _mm512_mul_ps(all(0.62f), nz));
          shade = _mm512_mask_max_ps(shade, hit, all(0.05f), _mm512_div_ps(light, length));
          live = static_cast<__mmask16>(live & ~hit);
        }
        t = _mm512_mask_add_ps(t, live, t, d);
        live = _mm512_mask_cmp_ps_mask(live, t, all(10.0f), _CMP_LE_OQ);
      }
      _mm512_storeu_ps(o + static_cast<std::int64_t>(i) * n + j, shade);
    }
}

// Lanes are points, each with its own range of candidates.
TACK_EXPORT void nearest(float* R o, const float* R xs, const float* R ys, const int* R start, int cells, std::int64_t n) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; i += 16) {
    const auto on = static_cast<__mmask16>(n - i < 16 ? (1u << (n - i)) - 1 : 0xffffu);
    const F x = _mm512_maskz_loadu_ps(on, xs + i), y = _mm512_maskz_loadu_ps(on, ys + i);
    const I self = _mm512_add_epi32(all(static_cast<int>(i)), lane_numbers()), last = all(cells - 1);
    const I column = _mm512_min_epi32(_mm512_cvttps_epi32(_mm512_mul_ps(x, all(static_cast<float>(cells)))), last);
    const I row = _mm512_min_epi32(_mm512_cvttps_epi32(_mm512_mul_ps(y, all(static_cast<float>(cells)))), last);
    const I left = _mm512_max_epi32(_mm512_sub_epi32(column, all(1)), all(0));
    const I right = _mm512_min_epi32(_mm512_add_epi32(column, all(2)), all(cells));
    F a = all(4.0f), b = a, c = a, d = a;
    for (int up = -1; up <= 1; up++) {
      const I r = _mm512_add_epi32(row, all(up));
      const __mmask16 inside = on & _mm512_cmpge_epi32_mask(r, all(0)) & _mm512_cmplt_epi32_mask(r, all(cells));
      const I base = _mm512_mullo_epi32(r, all(cells)), zero = _mm512_setzero_si512();
      I k = _mm512_mask_i32gather_epi32(zero, inside, _mm512_add_epi32(base, left), start, 4);
      const I end = _mm512_mask_i32gather_epi32(zero, inside, _mm512_add_epi32(base, right), start, 4);
      for (__mmask16 live = _mm512_mask_cmplt_epi32_mask(inside, k, end); live; live = _mm512_mask_cmplt_epi32_mask(live, k, end)) {
        const F dx = _mm512_sub_ps(_mm512_mask_i32gather_ps(x, live, k, xs, 4), x);
        const F dy = _mm512_sub_ps(_mm512_mask_i32gather_ps(y, live, k, ys, 4), y);
        const F q = _mm512_fmadd_ps(dy, dy, _mm512_mul_ps(dx, dx));
        const __mmask16 take = _mm512_mask_cmpneq_epi32_mask(live, k, self);
        d = _mm512_mask_min_ps(d, take, d, _mm512_max_ps(c, q));
        c = _mm512_mask_min_ps(c, take, c, _mm512_max_ps(b, q));
        b = _mm512_mask_min_ps(b, take, b, _mm512_max_ps(a, q));
        a = _mm512_mask_min_ps(a, take, a, q);
        k = _mm512_add_epi32(k, all(1));
      }
    }
    _mm512_mask_storeu_ps(o + i, on, d);
  }
}

TACK_EXPORT void life(std::uint8_t* R o, const std::uint8_t* R a, int n, int m) {
#pragma omp parallel for schedule(static)
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < m - 1; j += 64) {
      const std::uint8_t* c = a + static_cast<std::int64_t>(i) * m + j;
      const int count = std::min(64, m - 1 - j);
      const __mmask64 on = count == 64 ? ~0ull : (1ull << count) - 1;
      const auto at = [&](int by) { return _mm512_maskz_loadu_epi8(on, c + by); };
      I s = _mm512_add_epi8(at(-m - 1), at(-m));
      for (const int by : {-m + 1, -1, 1, m - 1, m, m + 1}) s = _mm512_add_epi8(s, at(by));
      // three neighbours, or two and the cell itself: with the cell's bit added, 2 + 1 becomes 3
      const __mmask64 live = _mm512_cmpeq_epi8_mask(_mm512_or_si512(s, at(0)), _mm512_set1_epi8(3));
      _mm512_mask_storeu_epi8(o + static_cast<std::int64_t>(i) * m + j, on, _mm512_maskz_set1_epi8(live, 1));
    }
}

TACK_EXPORT void hash(std::uint32_t* R o, const std::uint32_t* R x, std::int64_t n) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; i += 64) {
    I h[4];
    for (int r = 0; r < 4; r++) h[r] = _mm512_loadu_si512(x + i + 16 * r);
    for (int k = 0; k < 64; k++)
      for (auto& v : h) {
        v = _mm512_xor_si512(v, _mm512_srli_epi32(v, 16));
        v = _mm512_mullo_epi32(v, all(static_cast<int>(0x85EBCA6Bu)));
        v = _mm512_xor_si512(v, _mm512_srli_epi32(v, 13));
        v = _mm512_add_epi32(v, all(k));
      }
    for (int r = 0; r < 4; r++) _mm512_storeu_si512(o + i + 16 * r, h[r]);
  }
}
