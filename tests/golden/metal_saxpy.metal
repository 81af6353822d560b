// tack kernel saxpy for apple7, Metal
#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
#pragma clang fp contract(off)
typedef long i64;
typedef float f32;

[[max_total_threads_per_threadgroup(256)]] kernel void tack_saxpy_0(device f32* out [[buffer(0)]], device const f32* x [[buffer(1)]], device const f32* y [[buffer(2)]], constant ulong* tack_words [[buffer(3)]], uint tack_thread [[thread_position_in_threadgroup]], uint tack_group [[threadgroup_position_in_grid]], uint tack_group_size [[threads_per_threadgroup]]) {
  const f32 a = as_type<float>((uint)tack_words[0]);
  const i64 extent0 = (i64)tack_words[1];
  const i64 i = (i64)tack_group * tack_group_size + tack_thread;
  if (i >= extent0) return;
#line 12 "kernels.py"
  out[i] = fma(a, x[i], y[i]);
}
