// cuda/codes.h -- results of the CUDA driver: those that tack's own table has, and the others that the stand-in gives.
#pragma once

#include "cuda/driver_abi.h"

namespace sim::cuda {

namespace abi = tack::cuda::abi;
using Result = abi::Result;

// NAME(constant, the manual's name, value); source: CUDA Driver API, "Data types used by CUDA driver", CUresult.
#define SIM_CUDA_OTHER_RESULTS(X)                                                 \
  X(context_already_in_use, CUDA_ERROR_CONTEXT_ALREADY_IN_USE, 216)               \
  X(primary_context_active, CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, 708)               \
  X(invalid_handle, CUDA_ERROR_INVALID_HANDLE, 400)                               \
  X(not_ready, CUDA_ERROR_NOT_READY, 600)                                         \
  X(not_supported, CUDA_ERROR_NOT_SUPPORTED, 801)                                 \
  X(launch_incompatible_texturing, CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, 703) \
  X(unknown, CUDA_ERROR_UNKNOWN, 999)

#define SIM_CUDA_CONSTANT(name, original, value) inline constexpr Result name{value};
SIM_CUDA_OTHER_RESULTS(SIM_CUDA_CONSTANT)
#undef SIM_CUDA_CONSTANT

// The manual's name, or null.
const char* name_of(Result result);

}  // namespace sim::cuda
