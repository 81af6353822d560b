// backends/metal/metal_backend.h -- the Metal backend, for core/registry.cpp.
#pragma once

#include <memory>

#include "backend.h"

namespace tack {

std::unique_ptr<Backend> make_metal_backend();

}  // namespace tack
