// backends/null/null_backend.h -- the null backend, for core/registry.cpp.
#pragma once

#include <memory>

#include "backend.h"

namespace tack {

std::unique_ptr<Backend> make_null_backend();

}  // namespace tack
