// core/config.h -- what config.cpp offers beside the public settings.
#pragma once

#include <string>

#include "tack/config.hpp"
#include "tack/log.hpp"

namespace tack {

/// The folder that the disk cache uses under `config`: its cache_dir, else the platform's cache folder + "/tack"; empty when it keeps
/// nothing on disk or no such folder is known.
std::string cache_folder(const Config& config);

/// The level that TACK_LOG names.
LogLevel log_level(const Config& config);

}  // namespace tack
