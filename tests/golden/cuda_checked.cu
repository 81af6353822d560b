// tack kernel checked for sm_90, CUDA C++
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;

static __device__ inline u64* tack_fail(u64* records, u64 site) {
  if (atomicCAS(records, (u64)0, (u64)1) != 0) return 0;
  records[16] = site;
  return records + 17;
}

static __device__ inline u64* tack_print(u64* records, u64 site, u64 words) {
  const u64 number = atomicAdd(records + 8, (u64)1);
  if (number >= records[9]) return 0;
  u64* at = records + 16 + (number + 1) * words;
  at[0] = site;
  return at + 1;
}

extern "C" __global__ void __launch_bounds__(256) tack_checked_0(const f32* x, i64 x_shape0, f32* y, i64 y_shape0, i64 extent0, u64* records) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= extent0) return;
  if (*(volatile u64*)records != 0) return;
  const i64 t = i + 1;
  if (t >= x_shape0) {
    u64* said = tack_fail(records, 0ull);
    if (said != 0) {
      said[0] = (u64)t;
      said[1] = (u64)x_shape0;
      said[2] = (u64)i;
    }
    return;
  }
  const f32 x_value = x[t];
  if (!(x_value < 1.5f)) {
    u64* said_1 = tack_fail(records, 1ull);
    if (said_1 != 0) {
      said_1[0] = (u64)__float_as_uint(x_value);
      said_1[1] = (u64)i;
    }
    return;
  }
  {
    u64* said_2 = tack_print(records, 2ull, 4ull);
    if (said_2 != 0) {
      said_2[0] = (u64)i;
      said_2[1] = (u64)__float_as_uint(x_value);
    }
  }
  if (i >= y_shape0) {
    u64* said_3 = tack_fail(records, 3ull);
    if (said_3 != 0) {
      said_3[0] = (u64)i;
      said_3[1] = (u64)y_shape0;
      said_3[2] = (u64)i;
    }
    return;
  }
  y[i] = x_value;
}
