// tack kernel histogram for sm_90, CUDA C++
typedef unsigned char u8;
typedef long long i64;
typedef unsigned long long u64;

static __device__ inline i64 tack_atomic_add_i64(i64* at, i64 a) {
  return (i64)atomicAdd((u64*)at, (u64)a);
}

extern "C" __global__ void __launch_bounds__(256) tack_histogram_0(i64* counts, const u8* values, i64 extent0) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= extent0) return;
  tack_atomic_add_i64(&counts[values[i]], 1);
}
