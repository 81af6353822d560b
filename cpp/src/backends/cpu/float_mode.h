// backends/cpu/float_mode.h -- runs a scope in the processor's default floating-point mode.
#pragma once

#include <cstdint>

#include "core/processor.h"

namespace tack::cpu {

/// Round to nearest, subnormals kept, no traps, whatever the caller has set; the caller's mode is back at the end of the scope.
/// The register is written only where it differs, so the usual case costs one read.
class DefaultFloatMode {
 public:
#if defined(TACK_X86_64)
  DefaultFloatMode() noexcept : callers_(_mm_getcsr()) {
    if ((callers_ & mode_bits) != default_mode) _mm_setcsr(default_mode);
  }
  ~DefaultFloatMode() {
    if ((callers_ & mode_bits) != default_mode) _mm_setcsr(callers_);
  }

 private:
  static constexpr std::uint32_t mode_bits = 0xffc0;     // all but the six sticky exception flags
  static constexpr std::uint32_t default_mode = 0x1f80;  // all exceptions masked
  const std::uint32_t callers_;

#elif defined(TACK_AARCH64) && !defined(_MSC_VER)
  DefaultFloatMode() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(callers_)::"memory");
    if (callers_ != 0) set(0);
  }
  ~DefaultFloatMode() {
    if (callers_ != 0) set(callers_);
  }

 private:
  static void set(std::uint64_t mode) noexcept { asm volatile("msr fpcr, %0" ::"r"(mode) : "memory"); }
  std::uint64_t callers_ = 0;

#else
  DefaultFloatMode() noexcept {}
  ~DefaultFloatMode() {}
#endif

 public:
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;
};

}  // namespace tack::cpu
