// tack/log.hpp -- log levels and the sink that a host may replace.
#pragma once

#include <functional>
#include <string_view>

namespace tack {

enum class LogLevel : int { error = 0, warning = 1, info = 2, debug = 3 };

/// Receives each message once, formatted, from any thread, with no lock of tack's held. Must not throw.
using LogSink = std::function<void(LogLevel, std::string_view)>;

}  // namespace tack
