// backends/level_zero/ze_backend.h -- the backend for Intel GPUs.
#pragma once

#include <memory>

#include "backend.h"

namespace tack {

std::unique_ptr<Backend> make_level_zero_backend();

}  // namespace tack
