// tack kernel stencil for apple7, Metal
#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
#pragma clang fp contract(off)
typedef long i64;
typedef float f32;

[[max_total_threads_per_threadgroup(256)]] kernel void tack_stencil_0(device f32* out [[buffer(0)]], device const f32* u [[buffer(1)]], constant ulong* tack_words [[buffer(2)]], uint tack_thread [[thread_position_in_threadgroup]], uint tack_group [[threadgroup_position_in_grid]], uint tack_group_size [[threads_per_threadgroup]]) {
  const i64 out_shape1 = (i64)tack_words[0];
  const i64 u_stride0 = (i64)tack_words[1];
  const i64 extent0 = (i64)tack_words[2];
  const i64 extent1 = (i64)tack_words[3];
  const i64 u_step0 = u_stride0 >> 2;
  const i64 iteration = (i64)tack_group * tack_group_size + tack_thread;
  if (iteration >= extent0 * extent1) return;
  const i64 x = iteration % extent1;
  const i64 y = 1 + iteration / extent1;
  out[y * out_shape1 + x] = (u[(y - 1) * u_step0 + x] + u[(y + 1) * u_step0 + x]) * 0x1.99999ap-4f;
}
