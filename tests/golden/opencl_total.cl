// tack kernel total for skl, OpenCL C
#pragma OPENCL FP_CONTRACT OFF
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef double f64;

static inline i64 tack_max_i64(i64 a, i64 b) {
  return b > a ? b : a;
}

static inline i64 tack_min_i64(i64 a, i64 b) {
  return b < a ? b : a;
}

static inline f64 tack_min_f64(f64 a, f64 b) {
  return a != a || b < a ? b : a;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void tack_total_0(__global u64* scratch) {
  scratch[0] = as_ulong(0.0);
  scratch[1] = as_ulong(as_double(0x7ff0000000000000ul));
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void tack_total_1(__global const f64* x, i64 x_shape0, i64 x_shape1, __global u64* scratch) {
  const i64 t = tack_max_i64(-(0 - x_shape0), 0);
  const i64 t_1 = tack_max_i64(-(0 - x_shape1), 0);
  const i64 t_2 = (i64)((u64)t * t_1);
  const i64 block = tack_max_i64((i64)((u64)t_2 + 1023) >> 10, 1024);
  const u32 lane = get_local_id(0);
  const i64 block_index = get_group_id(0);
  const i64 low = block_index * block;
  const i64 high = tack_min_i64(low + block, t_2);
  f64 s = -0.0;
  f64 least = as_double(0x7ff8000000000000ul);
  i64 row = low;  // of the blocks' iterations, the first one of this row
  while (row < high) {
    const i64 column = row % t_1;
    const i64 end = tack_min_i64(row - column + t_1, high);
    i64 rest = row / t_1;
    const i64 i = rest;
    for (i64 at = row + lane; at < end; at += 64) {
      const i64 j = at - row + column;
      const f64 x_value = x[i * x_shape1 + j];
      s = s + x_value;
      least = tack_min_f64(least, x_value);
    }
    row = end;
  }
  __local f64 s_running[64];
  s_running[lane] = s;
  __local f64 least_running[64];
  least_running[lane] = least;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (u32 distance = 32; distance > 0; distance >>= 1) {
    if (lane < distance) {
      s_running[lane] = s_running[lane] + s_running[lane + distance];
      least_running[lane] = tack_min_f64(least_running[lane], least_running[lane + distance]);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
  if (lane == 0) {
    scratch[3 + block_index] = as_ulong(s_running[0]);
    scratch[1027 + block_index] = as_ulong(least_running[0]);
  }
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tack_total_2(i64 x_shape0, i64 x_shape1, __global u64* scratch) {
  const i64 t = (i64)((u64)tack_max_i64(-(0 - x_shape0), 0) * tack_max_i64(-(0 - x_shape1), 0));
  const i64 t_1 = tack_max_i64((i64)((u64)t + 1023) >> 10, 1024);
  const i64 t_2 = (i64)((u64)t + t_1 - 1);
  const bool test = t_1 == 0;
  const bool test_1 = t_1 == -1;
  const i64 t_3 = test || test_1 ? 1 : t_1;
  const i64 t_4 = t_2 / t_3;
  const i64 t_5 = (i64)((u64)t_2 - (u64)t_4 * t_3);
  const i64 t_6 = test ? 0 : test_1 ? (i64)(0 - (u64)t_2) : (i64)((u64)t_4 - (t_5 != 0 && (t_5 ^ t_3) < 0));
  const u32 lane = get_local_id(0);
  __local u64 partials[1024];
  for (i64 k = lane; k < t_6; k += 256) {
    partials[k] = scratch[3 + k];
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (lane == 0) {
    f64 total = as_double(scratch[0]);
    for (i64 k = 0; k < t_6; ++k) {
      total = total + as_double(partials[k]);
    }
    scratch[0] = as_ulong(total);
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (i64 k_1 = lane; k_1 < t_6; k_1 += 256) {
    partials[k_1] = scratch[1027 + k_1];
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (lane == 0) {
    f64 total_1 = as_double(scratch[1]);
    for (i64 k_1 = 0; k_1 < t_6; ++k_1) {
      total_1 = tack_min_f64(total_1, as_double(partials[k_1]));
    }
    scratch[1] = as_ulong(total_1);
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void tack_total_3(__global u64* scratch) {
  scratch[2] = as_ulong(as_double(scratch[0]) + as_double(scratch[1]));
}
