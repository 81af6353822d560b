// tack kernel stencil for skl, OpenCL C
#pragma OPENCL FP_CONTRACT OFF
typedef long i64;
typedef float f32;

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tack_stencil_0(__global f32* out, i64 out_shape1, __global const f32* u, i64 u_stride0, i64 extent0, i64 extent1) {
  const i64 u_step0 = u_stride0 >> 2;
  const i64 iteration = (i64)get_group_id(0) * get_local_size(0) + get_local_id(0);
  if (iteration >= extent0 * extent1) return;
  const i64 x = iteration % extent1;
  const i64 y = 1 + iteration / extent1;
  out[y * out_shape1 + x] = (u[(y - 1) * u_step0 + x] + u[(y + 1) * u_step0 + x]) * 0x1.99999ap-4f;
}
