// tack kernel k for apple7, Metal
#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
#pragma clang fp contract(off)
typedef int i32;
typedef uint u32;
typedef long i64;
typedef float f32;

static inline uint tack_compare_exchange(device atomic_uint* at, uint seen, uint value) {
  uint old = seen;  // the one that there is may fail for no reason
  while (!atomic_compare_exchange_weak_explicit(at, &old, value, memory_order_relaxed, memory_order_relaxed) && old == seen) {
  }
  return old;
}
static inline uint tack_compare_exchange(threadgroup atomic_uint* at, uint seen, uint value) {
  uint old = seen;  // the one that there is may fail for no reason
  while (!atomic_compare_exchange_weak_explicit(at, &old, value, memory_order_relaxed, memory_order_relaxed) && old == seen) {
  }
  return old;
}

constant f32 tack_table_0[] = {0.0f, 0.25f, 0.5f, 0.75f, 1.0f, 1.25f, 1.5f, 1.75f, 2.0f, 2.25f, 2.5f, 2.75f, 3.0f, 3.25f, 3.5f, 3.75f, 4.0f, 4.25f, 4.5f, 4.75f, 5.0f, 5.25f, 5.5f, 5.75f, 6.0f, 6.25f, 6.5f, 6.75f, 7.0f, 7.25f, 7.5f, 7.75f, 8.0f, 8.25f, 8.5f, 8.75f, 9.0f, 9.25f, 9.5f, 9.75f, 10.0f, 10.25f, 10.5f, 10.75f, 11.0f, 11.25f, 11.5f, 11.75f, 12.0f, 12.25f, 12.5f, 12.75f, 13.0f, 13.25f, 13.5f, 13.75f, 14.0f, 14.25f, 14.5f, 14.75f, 15.0f, 15.25f, 15.5f, 15.75f, 16.0f, 16.25f, 16.5f, 16.75f, 17.0f, 17.25f, 17.5f, 17.75f, 18.0f, 18.25f, 18.5f, 18.75f, 19.0f, 19.25f, 19.5f, 19.75f, 20.0f, 20.25f, 20.5f, 20.75f, 21.0f, 21.25f, 21.5f, 21.75f, 22.0f, 22.25f, 22.5f, 22.75f, 23.0f, 23.25f, 23.5f, 23.75f, 24.0f, 24.25f, 24.5f, 24.75f};

static inline i64 tack_i64_of_f32(f32 x) {
  return x >= 0x1p+63f ? 9223372036854775807l : x > -0x1p+63f ? (i64)x : x == x ? (-9223372036854775807l - 1) : 0;
}

static inline i64 tack_max_i64(i64 a, i64 b) {
  return b > a ? b : a;
}

static inline i64 tack_min_i64(i64 a, i64 b) {
  return b < a ? b : a;
}

static inline f32 tack_max_f32(f32 a, f32 b) {
  return a != a || b > a ? b : a;
}

static inline f32 tack_atomic_max_f32_shared(threadgroup f32* at, f32 a) {
  threadgroup u32* word = (threadgroup u32*)at;
  u32 seen = *(volatile threadgroup u32*)word;
  while (true) {
    const f32 old = as_type<float>(seen);
    const u32 now = tack_compare_exchange((threadgroup atomic_uint*)(word), seen, as_type<uint>(tack_max_f32(old, a)));
    if (now == seen) return old;
    seen = now;
  }
}

static inline f32 tack_atomic_max_f32(device f32* at, f32 a) {
  device u32* word = (device u32*)at;
  u32 seen = *(volatile device u32*)word;
  while (true) {
    const f32 old = as_type<float>(seen);
    const u32 now = tack_compare_exchange((device atomic_uint*)(word), seen, as_type<uint>(tack_max_f32(old, a)));
    if (now == seen) return old;
    seen = now;
  }
}

[[max_total_threads_per_threadgroup(256)]] kernel void tack_k_0(device f32* peaks [[buffer(0)]], device i32* hits [[buffer(1)]], device const f32* x [[buffer(2)]], constant ulong* tack_words [[buffer(3)]], uint tack_thread [[thread_position_in_threadgroup]], uint tack_group [[threadgroup_position_in_grid]], uint tack_group_size [[threads_per_threadgroup]]) {
  const i64 extent0 = (i64)tack_words[0];
  const i32 thread_1 = (i32)tack_thread;
  const i64 i = (i64)tack_group * tack_group_size + tack_thread;
  const bool present = i < extent0;
  threadgroup f32 highest[4];
  threadgroup i32 counts[4];
  threadgroup f32 reduced_f32[256];
#line 15 "/x/kernels.py"
  const bool test = thread_1 < 4;
  if (present) {
    if (test) {
#line 16
      highest[thread_1] = -1.0f;
      counts[thread_1] = 0;
    }
  }
#line 18
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  if (present) {
    const i64 t = tack_i64_of_f32(x[i]) & 3;
#line 20
    const i64 t_1 = tack_i64_of_f32(x[i]) % 100;
    tack_atomic_max_f32_shared(&highest[t], x[i] * tack_table_0[tack_min_i64(tack_max_i64(t_1 < 0 ? t_1 + 100 : t_1, 0), 99)]);
#line 21
    atomic_fetch_sub_explicit((threadgroup atomic_int*)(&counts[t]), -1, memory_order_relaxed);
  }
#line 22
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  f32 kept = 0.0f;
  if (present) {
    kept = x[i];
  }
  reduced_f32[thread_1] = present ? kept : -0.0f;
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  for (i32 step = 0; step < 8; ++step) {
    const i32 t_2 = 128 >> step;
    const i64 t_3 = (i64)thread_1 + t_2;
    if (thread_1 < t_2) {
      reduced_f32[thread_1] = reduced_f32[thread_1] + reduced_f32[t_3];
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  }
  const f32 reduced_f32_value = reduced_f32[0];
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
#line 24
  const bool test_1 = thread_1 < 4;
  if (present) {
    if (test_1) {
#line 25
      tack_atomic_max_f32(&peaks[thread_1], highest[thread_1] + reduced_f32_value);
      atomic_fetch_add_explicit((device atomic_int*)(&hits[thread_1]), counts[thread_1], memory_order_relaxed);
    }
  }
}
