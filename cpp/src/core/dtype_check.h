// core/dtype_check.h -- whether an element type is one that tack knows; needed wherever a type comes from outside.
#pragma once

#include "tack/dtype.hpp"

namespace tack {

/// One of the ten, a bool, or a vector (up to 16 lanes) of the ten.
bool is_known(DType t) noexcept;

}  // namespace tack
