// tack kernel checked for apple7, Metal
#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
#pragma clang fp contract(off)
typedef uint u32;
typedef long i64;
typedef ulong u64;
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

static inline device u64* tack_fail(device u64* records, u64 site) {
  if (tack_compare_exchange((device atomic_uint*)((device u32*)records), (u32)0, (u32)1) != 0) return 0;
  records[16] = site;
  return records + 17;
}

static inline device u64* tack_print(device u64* records, u64 site, u64 words) {
  const u64 number = atomic_fetch_add_explicit((device atomic_uint*)((device u32*)(records + 8)), (u32)1, memory_order_relaxed);
  if (number >= records[9]) return 0;
  device u64* at = records + 16 + (number + 1) * words;
  at[0] = site;
  return at + 1;
}

[[max_total_threads_per_threadgroup(256)]] kernel void tack_checked_0(device const f32* x [[buffer(0)]], device f32* y [[buffer(1)]], device u64* records [[buffer(2)]], constant ulong* tack_words [[buffer(3)]], uint tack_thread [[thread_position_in_threadgroup]], uint tack_group [[threadgroup_position_in_grid]], uint tack_group_size [[threads_per_threadgroup]]) {
  const i64 x_shape0 = (i64)tack_words[0];
  const i64 y_shape0 = (i64)tack_words[1];
  const i64 extent0 = (i64)tack_words[2];
  const i64 i = (i64)tack_group * tack_group_size + tack_thread;
  if (i >= extent0) return;
  if (*(volatile device u64*)records != 0) return;
  const i64 t = i + 1;
  if (t >= x_shape0) {
    device u64* said = tack_fail(records, 0ul);
    if (said != 0) {
      said[0] = (u64)t;
      said[1] = (u64)x_shape0;
      said[2] = (u64)i;
    }
    return;
  }
  const f32 x_value = x[t];
  if (!(x_value < 1.5f)) {
    device u64* said_1 = tack_fail(records, 1ul);
    if (said_1 != 0) {
      said_1[0] = (u64)as_type<uint>(x_value);
      said_1[1] = (u64)i;
    }
    return;
  }
  {
    device u64* said_2 = tack_print(records, 2ul, 4ul);
    if (said_2 != 0) {
      said_2[0] = (u64)i;
      said_2[1] = (u64)as_type<uint>(x_value);
    }
  }
  if (i >= y_shape0) {
    device u64* said_3 = tack_fail(records, 3ul);
    if (said_3 != 0) {
      said_3[0] = (u64)i;
      said_3[1] = (u64)y_shape0;
      said_3[2] = (u64)i;
    }
    return;
  }
  y[i] = x_value;
}
