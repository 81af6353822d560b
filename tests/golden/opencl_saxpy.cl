// tack kernel saxpy for skl, OpenCL C
#pragma OPENCL FP_CONTRACT OFF
typedef long i64;
typedef float f32;

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tack_saxpy_0(__global f32* out, __global const f32* x, __global const f32* y, f32 a, i64 extent0) {
  const i64 i = (i64)get_group_id(0) * get_local_size(0) + get_local_id(0);
  if (i >= extent0) return;
#line 12 "kernels.py"
  out[i] = fma(a, x[i], y[i]);
}
