// core/tick_clock.cpp -- is the processor's counter steady, and how fast is it?
#include "core/tick_clock.h"

#if defined(__x86_64__)
#  include <cpuid.h>
#endif

namespace tack {
namespace {

/// Whether the counter runs at one speed in every power state, so that its differences are times.
bool steady_counter() noexcept {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1u << 8)) != 0;  // "invariant TSC"
#elif defined(_MSC_VER) && defined(_M_X64)
  int registers[4] = {};
  __cpuid(registers, static_cast<int>(0x80000000u));
  if (static_cast<unsigned>(registers[0]) < 0x80000007u) return false;
  __cpuid(registers, static_cast<int>(0x80000007u));
  return (static_cast<unsigned>(registers[3]) & (1u << 8)) != 0;
#elif defined(__aarch64__) && !defined(_MSC_VER)
  return true;  // the architecture promises it of cntvct_el0
#else
  return false;
#endif
}

}  // namespace

TickClock::TickClock() {
  if (!steady_counter()) return;
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
