// tack kernel checked for skl, OpenCL C
#pragma OPENCL FP_CONTRACT OFF
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef float f32;

static inline __global u64* tack_fail(__global u64* records, u64 site) {
  if (atomic_cmpxchg((__global u32*)records, (u32)0, (u32)1) != 0) return 0;
  records[16] = site;
  return records + 17;
}

static inline __global u64* tack_print(__global u64* records, u64 site, u64 words) {
  const u64 number = atomic_add((__global u32*)(records + 8), (u32)1);
  if (number >= records[9]) return 0;
  __global u64* at = records + 16 + (number + 1) * words;
  at[0] = site;
  return at + 1;
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tack_checked_0(__global const f32* x, i64 x_shape0, __global f32* y, i64 y_shape0, i64 extent0, __global u64* records) {
  const i64 i = (i64)get_group_id(0) * get_local_size(0) + get_local_id(0);
  if (i >= extent0) return;
  if (*(volatile __global u64*)records != 0) return;
  const i64 t = i + 1;
  if (t >= x_shape0) {
    __global u64* said = tack_fail(records, 0ul);
    if (said != 0) {
      said[0] = (u64)t;
      said[1] = (u64)x_shape0;
      said[2] = (u64)i;
    }
    return;
  }
  const f32 x_value = x[t];
  if (!(x_value < 1.5f)) {
    __global u64* said_1 = tack_fail(records, 1ul);
    if (said_1 != 0) {
      said_1[0] = (u64)as_uint(x_value);
      said_1[1] = (u64)i;
    }
    return;
  }
  {
    __global u64* said_2 = tack_print(records, 2ul, 4ul);
    if (said_2 != 0) {
      said_2[0] = (u64)i;
      said_2[1] = (u64)as_uint(x_value);
    }
  }
  if (i >= y_shape0) {
    __global u64* said_3 = tack_fail(records, 3ul);
    if (said_3 != 0) {
      said_3[0] = (u64)i;
      said_3[1] = (u64)y_shape0;
      said_3[2] = (u64)i;
    }
    return;
  }
  y[i] = x_value;
}
