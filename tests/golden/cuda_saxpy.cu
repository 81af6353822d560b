// tack kernel saxpy for sm_90, CUDA C++
typedef long long i64;
typedef float f32;

extern "C" __global__ void __launch_bounds__(256) tack_saxpy_0(f32* out, const f32* x, const f32* y, f32 a, i64 extent0) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= extent0) return;
#line 12 "kernels.py"
  out[i] = fmaf(a, x[i], y[i]);
}
