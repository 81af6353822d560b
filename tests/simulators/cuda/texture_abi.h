// cuda/texture_abi.h -- the structure of the CUDA driver's copies in two dimensions, which tack does not call, in our own words; source:
// CUDA Driver API, "Data types". tests/unit/test_simulator.py compares it with the real cuda.h. The others are in cuda/driver_abi.h.
#pragma once

#include <cstddef>

#include "cuda/driver_abi.h"

namespace sim::cuda {

namespace abi = tack::cuda::abi;

// CUDA_MEMCPY2D.
struct Side2D {
  std::size_t x, y;
  abi::MemoryKind kind;
  const void* host;
  abi::DevicePointer device;
  abi::Array array;
  std::size_t pitch;
};
struct Copy2D {
  Side2D from, to;
  std::size_t width, height;
};

}  // namespace sim::cuda
