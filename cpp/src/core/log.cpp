// core/log.cpp -- formats and delivers log messages.
#include "core/log.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <string_view>
#include <utility>

namespace tack {

void Log::set_sink(LogSink sink) {
  const std::lock_guard lock(mutex_);
  std::swap(sink_, sink);  // the old sink dies after the lock is gone: it may hold objects whose destructors log
}

void Log::write(LogLevel level, const std::string& message) noexcept {
  if (!enabled(level)) return;
  constexpr std::array<std::string_view, 4> names{"error", "warning", "info", "debug"};
  try {
    LogSink sink;
    {
      const std::lock_guard lock(mutex_);
      sink = sink_;
    }
    if (sink) {
      sink(level, message);
      return;
    }
    std::string line("tack: ");
    line += names[static_cast<std::size_t>(level)];
    line += ": ";
    line += message;
    line += '\n';
    // One call, so that lines of several threads do not mix.
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (...) {
    // A log that cannot be delivered must not become the caller's error.
    return;
  }
}

}  // namespace tack
