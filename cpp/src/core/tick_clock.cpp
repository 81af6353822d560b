// core/tick_clock.cpp -- is the processor's counter steady, and how fast is it?
#include "core/tick_clock.h"

namespace tack {

TickClock::TickClock() {
  if (!processor::counter_is_steady()) return;
  using Clock = std::chrono::steady_clock;
  counter_ = true;
  const auto start = Clock::now();
  const std::uint64_t first = now();
  auto end = start;
  while (end - start < std::chrono::microseconds(100)) end = Clock::now();
  const std::uint64_t last = now();
  if (last > first) {
    ns_per_tick_ = std::chrono::duration<double, std::nano>(end - start).count() / static_cast<double>(last - first);
  } else {
    counter_ = false;
  }
}

}  // namespace tack
