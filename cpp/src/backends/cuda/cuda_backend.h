// backends/cuda/cuda_backend.h -- the CUDA backend, for core/registry.cpp.
#pragma once

#include <memory>

#include "backend.h"

namespace tack {

std::unique_ptr<Backend> make_cuda_backend();

}  // namespace tack
