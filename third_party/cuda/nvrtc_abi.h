// cuda/nvrtc_abi.h -- the part of NVRTC's binary interface that tack uses, in tack's own words. Source: NVIDIA's "NVRTC" manual
// (docs.nvidia.com/cuda/nvrtc), release 13; tests/unit/test_abi.py compares all of it with the real nvrtc.h.
#pragma once

#include <cstddef>

namespace tack::cuda::abi {

struct ProgramObject;
using Program = ProgramObject*;

// X(name, the manual's name, value)
#define TACK_NVRTC_RESULTS(X)                      \
  X(success, NVRTC_SUCCESS, 0)                     \
  X(out_of_memory, NVRTC_ERROR_OUT_OF_MEMORY, 1)   \
  X(invalid_option, NVRTC_ERROR_INVALID_OPTION, 5) \
  X(compilation, NVRTC_ERROR_COMPILATION, 6)

#define TACK_NVRTC_ENUMERATOR(name, original, value) name = value,
enum class CompileResult : int { TACK_NVRTC_RESULTS(TACK_NVRTC_ENUMERATOR) };
#undef TACK_NVRTC_ENUMERATOR

}  // namespace tack::cuda::abi
