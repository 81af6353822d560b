// backends/absent.h -- stand-ins for the backends that this version of tack does not drive yet; they say what is missing.
#pragma once

#include <memory>

#include "backend.h"

namespace tack {

std::unique_ptr<Backend> make_absent_hip();
std::unique_ptr<Backend> make_absent_level_zero();

}  // namespace tack
