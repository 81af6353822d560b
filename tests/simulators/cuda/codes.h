// cuda/codes.h -- results of the CUDA driver: those that tack's own table has, and the others that the stand-in gives.
#pragma once

#include "cuda/driver_abi.h"

namespace sim::cuda {

namespace abi = tack::cuda::abi;

// X(constant, the manual's name, value); source: CUDA Driver API, "Data types used by CUDA driver", CUresult. A result that tack's own
// table gets is taken out here.
#define SIM_CUDA_OTHER_RESULTS(X)                   \
  X(invalid_handle, CUDA_ERROR_INVALID_HANDLE, 400) \
  X(not_ready, CUDA_ERROR_NOT_READY, 600)           \
  X(not_supported, CUDA_ERROR_NOT_SUPPORTED, 801)

#define SIM_CUDA_ENUMERATOR(name, original, value) name = (value),
enum class Result : int { TACK_CUDA_RESULTS(SIM_CUDA_ENUMERATOR) SIM_CUDA_OTHER_RESULTS(SIM_CUDA_ENUMERATOR) };
#undef SIM_CUDA_ENUMERATOR

// The manual's name, or null.
const char* name_of(Result result);

}  // namespace sim::cuda
