// backends/hip/hip_backend.h -- the HIP backend, for the registry.
#pragma once

#include <memory>

#include "backend.h"

namespace tack {

std::unique_ptr<Backend> make_hip_backend();

}  // namespace tack
