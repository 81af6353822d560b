// tack kernel mean for apple7, Metal
#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
#pragma clang fp contract(off)
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef float f32;

static inline i64 tack_max_i64(i64 a, i64 b) {
  return b > a ? b : a;
}

static inline i64 tack_min_i64(i64 a, i64 b) {
  return b < a ? b : a;
}

[[max_total_threads_per_threadgroup(1)]] kernel void tack_mean_0(device u64* scratch [[buffer(0)]], uint tack_thread [[thread_position_in_threadgroup]], uint tack_group [[threadgroup_position_in_grid]], uint tack_group_size [[threads_per_threadgroup]]) {
  scratch[0] = (u64)as_type<uint>(0.0f);
}

[[max_total_threads_per_threadgroup(64)]] kernel void tack_mean_1(device const f32* x [[buffer(0)]], device u64* scratch [[buffer(1)]], constant ulong* tack_words [[buffer(2)]], uint tack_thread [[thread_position_in_threadgroup]], uint tack_group [[threadgroup_position_in_grid]], uint tack_group_size [[threads_per_threadgroup]]) {
  const i64 x_shape0 = (i64)tack_words[0];
  const i64 t = tack_max_i64(-(0 - x_shape0), 0);
  const i64 block = tack_max_i64((i64)((u64)t + 1023) >> 10, 1024);
  const u32 lane = tack_thread;
  const i64 block_index = tack_group;
  const i64 low = block_index * block;
  const i64 high = tack_min_i64(low + block, t);
  f32 total = -0.0f;
  for (i64 at = low + lane; at < high; at += 64) {
    const i64 i = at;
    total = total + x[i];
  }
  threadgroup f32 total_running[64];
  total_running[lane] = total;
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  for (u32 distance = 32; distance > 0; distance >>= 1) {
    if (lane < distance) {
      total_running[lane] = total_running[lane] + total_running[lane + distance];
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  }
  if (lane == 0) {
    scratch[1 + block_index] = (u64)as_type<uint>(total_running[0]);
  }
}

[[max_total_threads_per_threadgroup(256)]] kernel void tack_mean_2(device u64* scratch [[buffer(0)]], constant ulong* tack_words [[buffer(1)]], uint tack_thread [[thread_position_in_threadgroup]], uint tack_group [[threadgroup_position_in_grid]], uint tack_group_size [[threads_per_threadgroup]]) {
  const i64 x_shape0 = (i64)tack_words[0];
  const i64 t = tack_max_i64(-(0 - x_shape0), 0);
  const i64 t_1 = tack_max_i64((i64)((u64)t + 1023) >> 10, 1024);
  const i64 t_2 = (i64)((u64)t + t_1 - 1);
  const bool test = t_1 == 0;
  const bool test_1 = t_1 == -1;
  const i64 t_3 = test || test_1 ? 1 : t_1;
  const i64 t_4 = t_2 / t_3;
  const i64 t_5 = (i64)((u64)t_2 - (u64)t_4 * t_3);
  const i64 t_6 = test ? 0 : test_1 ? (i64)(0 - (u64)t_2) : (i64)((u64)t_4 - (t_5 != 0 && (t_5 ^ t_3) < 0));
  const u32 lane = tack_thread;
  threadgroup u64 partials[1024];
  for (i64 k = lane; k < t_6; k += 256) {
    partials[k] = scratch[1 + k];
  }
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  if (lane == 0) {
    f32 total = as_type<float>((u32)scratch[0]);
    for (i64 k = 0; k < t_6; ++k) {
      total = total + as_type<float>((u32)partials[k]);
    }
    scratch[0] = (u64)as_type<uint>(total);
  }
}

[[max_total_threads_per_threadgroup(1)]] kernel void tack_mean_3(device f32* out [[buffer(0)]], device u64* scratch [[buffer(1)]], constant ulong* tack_words [[buffer(2)]], uint tack_thread [[thread_position_in_threadgroup]], uint tack_group [[threadgroup_position_in_grid]], uint tack_group_size [[threads_per_threadgroup]]) {
  const i64 x_shape0 = (i64)tack_words[0];
  out[0] = as_type<float>((u32)scratch[0]) / (f32)x_shape0;
}
