// core/unavailable.h -- the one form in which a device says that it cannot start.
#pragma once

#include <string>

#include "tack/error.hpp"

namespace tack {

/// "Cannot start the 'hip' device: missing dependency." + the loader's reason + `Requires ...` + the install line, as Error(unavailable).
/// `problem`: "missing dependency", "no GPU found", "driver too old", ...
Error device_unavailable(const std::string& type, const std::string& problem, const std::string& reason, const std::string& requires_text,
                         const std::string& install);

}  // namespace tack
