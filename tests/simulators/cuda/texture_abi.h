// cuda/texture_abi.h -- structures of the CUDA driver's array and texture functions, in our own words; source: CUDA Driver API, "Data
// types". tests/unit/test_simulator.py compares them with the real cuda.h.
#pragma once

#include <cstddef>

#include "cuda/driver_abi.h"

namespace sim::cuda {

namespace abi = tack::cuda::abi;

// CUDA_ARRAY3D_DESCRIPTOR.
struct ArrayDescription {
  std::size_t width, height, depth;
  int format;
  unsigned channels, flags;
};

// One side of CUDA_MEMCPY3D; kinds of memory: 1 host, 2 device, 3 array, 4 unified.
struct Side {
  std::size_t x, y, z, level;
  unsigned kind;
  void* host;
  abi::DevicePointer device;
  void* array;
  void* reserved;
  std::size_t pitch, height;
};

// CUDA_MEMCPY3D: the source has the field order above, and so has the destination.
struct Copy3D {
  Side from, to;
  std::size_t width, height, depth;
};

// CUDA_MEMCPY2D.
struct Side2D {
  std::size_t x, y;
  unsigned kind;
  void* host;
  abi::DevicePointer device;
  void* array;
  std::size_t pitch;
};
struct Copy2D {
  Side2D from, to;
  std::size_t width, height;
};

// CUDA_RESOURCE_DESC, of which only arrays are known here.
struct ResourceDescription {
  int kind;
  union {
    void* array;
    int reserved[32];
  } resource;
  unsigned flags;
};

// CUDA_TEXTURE_DESC.
struct TextureDescription {
  int address[3];
  int filter;
  unsigned flags, max_anisotropy;
  int mipmap_filter;
  float mipmap_bias, min_level, max_level, border[4];
  int reserved[12];
};

}  // namespace sim::cuda
