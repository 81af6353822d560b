// backends/gpu/device.cpp -- what all GPUs behind drivers of this kind can do.
#include "backends/gpu/device.h"

#include <initializer_list>

namespace tack::gpu {

namespace {

constexpr DTypeSet set_of(std::initializer_list<DType> types) noexcept {
  DTypeSet set = 0;
  for (std::size_t i = 0; i < array_dtypes.size(); ++i)
    if (std::find(types.begin(), types.end(), array_dtypes[i]) != types.end()) set = static_cast<DTypeSet>(set | 1u << i);
  return set;
}

}  // namespace

Capabilities usual_capabilities() {
  Capabilities can;
  can.array_dtypes = set_of({i8, u8, i16, u16, i32, u32, i64, u64, f32, f64});
  can.atomic_dtypes = set_of({i32, u32, i64, u64, f32, f64});
  can.supports_f64 = true;
  can.supports_workgroups = true;
  can.queued = true;
  can.block = 256;
  can.max_group = 1024;
  return can;
}

}  // namespace tack::gpu
