// core/processor.h -- what is one instruction, and what each compiler calls it: spin hint, cycle counter, cpuid.
#pragma once

#include <array>
#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#  define TACK_X86_64 1
#elif defined(__aarch64__) || defined(_M_ARM64)
#  define TACK_AARCH64 1
#endif

#if defined(TACK_X86_64)
#  if defined(_MSC_VER)
#    include <intrin.h>
#  else
#    include <cpuid.h>
#    include <x86intrin.h>
#  endif
#elif defined(TACK_AARCH64) && defined(_MSC_VER)
#  include <intrin.h>
#endif

namespace tack::processor {

/// A hint for the body of a spin loop.
inline void pause() noexcept {
#if defined(TACK_X86_64)
  _mm_pause();
#elif defined(TACK_AARCH64) && defined(_MSC_VER)
  __isb(_ARM64_BARRIER_SY);
#elif defined(TACK_AARCH64)
  asm volatile("isb" ::: "memory");  // about as long as x86's pause; "yield" does nothing on most cores
#endif
}

/// The counter that the processor always runs; 0 where there is none that a program may read.
inline std::uint64_t counter() noexcept {
#if defined(TACK_X86_64)
  return __rdtsc();
#elif defined(TACK_AARCH64) && !defined(_MSC_VER)
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}

#if defined(TACK_X86_64)

struct Cpuid {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// Zeros for a leaf that the processor doesn't have.
inline Cpuid cpuid(std::uint32_t leaf, std::uint32_t subleaf = 0) noexcept {
#  if defined(_MSC_VER)
  std::array<int, 4> words{};
  __cpuid(words.data(), static_cast<int>(leaf & 0x80000000u));
  if (static_cast<std::uint32_t>(words[0]) < leaf) return {};
  __cpuidex(words.data(), static_cast<int>(leaf), static_cast<int>(subleaf));
  return {static_cast<std::uint32_t>(words[0]), static_cast<std::uint32_t>(words[1]), static_cast<std::uint32_t>(words[2]),
          static_cast<std::uint32_t>(words[3])};
#  else
  Cpuid r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
#  endif
}

/// Which register files the operating system saves: XCR0. Ask only where cpuid has OSXSAVE.
inline std::uint64_t saved_registers() noexcept {
#  if defined(_MSC_VER)
  return _xgetbv(0);
#  else
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32u | low;
#  endif
}

#endif

/// Whether the counter runs at one speed in every power state, so that its differences are times.
inline bool counter_is_steady() noexcept {
#if defined(TACK_X86_64)
  return (cpuid(0x80000007u).edx & (1u << 8u)) != 0;  // "invariant TSC"
#elif defined(TACK_AARCH64) && !defined(_MSC_VER)
  return true;  // the architecture promises it of cntvct_el0
#else
  return false;
#endif
}

}  // namespace tack::processor
