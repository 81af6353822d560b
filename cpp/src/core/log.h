// core/log.h -- formats and delivers log messages; the level test is one relaxed load.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "tack/log.hpp"

namespace tack {

class Log {
 public:
  explicit Log(LogLevel level) : level_(static_cast<int>(level)) {}
  bool enabled(LogLevel level) const noexcept { return static_cast<int>(level) <= level_.load(std::memory_order_relaxed); }
  /// Delivers `message` to the sink (stderr by default). Call it with no lock held. Never throws.
  void write(LogLevel level, const std::string& message) noexcept;
  void set_sink(LogSink sink);

 private:
  std::atomic<int> level_;
  std::mutex mutex_;
  LogSink sink_;
};

}  // namespace tack
