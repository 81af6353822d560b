// core/tick_clock.h -- a clock for measuring short runs: the processor's counter where it is steady (about 8 ns), else steady_clock (30 to
// 40 ns).
#pragma once

#include <chrono>
#include <cstdint>

#include "core/processor.h"

namespace tack {

/// Immutable once made, so it may be read from any thread. Good for decisions, not for time stamps: it may jump by a little between CPUs.
class TickClock {
 public:
  /// Compares the counter with steady_clock for about 100 us, once.
  TickClock();

  std::uint64_t now() const noexcept {
    if (counter_) return processor::counter();
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
  }
  /// Nanoseconds from `start` to `end`; 0 should the counter have gone backwards.
  double between(std::uint64_t start, std::uint64_t end) const noexcept { return end > start ? nanoseconds(end - start) : 0.0; }
  double nanoseconds(std::uint64_t ticks) const noexcept { return static_cast<double>(ticks) * ns_per_tick_; }

 private:
  bool counter_ = false;
  double ns_per_tick_ = 1.0;
};

}  // namespace tack
