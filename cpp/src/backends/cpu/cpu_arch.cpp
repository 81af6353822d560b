// backends/cpu/cpu_arch.cpp -- the x86-64 level and the processor's name, by cpuid; aarch64 has one level.
#include "backends/cpu/cpu_arch.h"

#include <array>
#include <cstring>

#include "core/cpu_topology.h"
#include "core/processor.h"
#include "core/text.h"
#include "tack/error.hpp"

namespace tack::cpu {
namespace {

#if defined(TACK_X86_64)

using processor::cpuid;
using processor::Cpuid;

constexpr bool has(std::uint32_t word, std::initializer_list<unsigned> bits) noexcept {
  for (const unsigned bit : bits) {
    if ((word >> bit & 1u) == 0) return false;
  }
  return true;
}

/// 1 to 4: the highest level all of whose features are there (x86-64 psABI, "Micro-architecture levels").
int x86_level() noexcept {
  const Cpuid basic = cpuid(1), features = cpuid(7), extended = cpuid(0x80000001u);
  // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
  if (!has(basic.ecx, {0, 9, 13, 19, 20, 23}) || !has(extended.ecx, {0})) return 1;
  // FMA, MOVBE, OSXSAVE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT
  if (!has(basic.ecx, {12, 22, 27, 28, 29}) || !has(features.ebx, {3, 5, 8}) || !has(extended.ecx, {5})) return 2;
  constexpr std::uint64_t ymm = 0x6, zmm = 0xe6;
  const std::uint64_t saved = processor::saved_registers();
  if ((saved & ymm) != ymm) return 2;
  // AVX512 F, DQ, CD, BW, VL
  if (!has(features.ebx, {16, 17, 28, 30, 31}) || (saved & zmm) != zmm) return 3;
  return 4;
}

std::string brand() {
  std::array<char, 49> text{};
  for (std::size_t i = 0; i < 3; ++i) {
    const Cpuid r = cpuid(0x80000002u + static_cast<std::uint32_t>(i));
    std::memcpy(text.data() + 16 * i, &r, sizeof r);
  }
  const std::string name(text.data());
  const std::size_t first = name.find_first_not_of(' ');
  return first == std::string::npos ? "x86-64 processor" : name.substr(first, name.find_last_not_of(' ') - first + 1);
}

#elif defined(TACK_AARCH64)

std::string brand() {
  const std::string name = topology::processor_name();
  return name.empty() ? "aarch64 processor" : name;
}

#endif

/// A set of features that code may use, and the width of its registers.
struct Level {
  std::string_view arch;
  std::uint32_t vector_bits;
};

#if defined(TACK_X86_64)

constexpr std::array<Level, 4> levels{{{"x86-64", 128}, {"x86-64-v2", 128}, {"x86-64-v3", 256}, {"x86-64-v4", 512}}};
std::size_t level() noexcept { return static_cast<std::size_t>(x86_level()); }

#elif defined(TACK_AARCH64)

constexpr std::array<Level, 1> levels{{{"aarch64", 128}}};
std::size_t level() noexcept { return 1; }

#endif

}  // namespace

#if defined(TACK_X86_64) || defined(TACK_AARCH64)

CpuArch detect_arch(std::string_view wanted) {
  const std::size_t own = level();
  for (std::size_t k = 0; k < own; ++k)
    if (wanted == levels[k].arch || (wanted == "native" && k + 1 == own))
      return {std::string(levels[k].arch), brand(), levels[k].vector_bits};
  throw Error(ErrorCode::unsupported,
              text("TACK_CPU_TARGET is '", wanted, "', which this processor cannot run; it runs ", runnable_targets(), "."));
}

std::string runnable_targets() {
  std::string names = "native";
  const std::size_t own = level();
  for (std::size_t k = 0; k < own; ++k) names += text(k + 1 == own ? " and " : ", ", levels[k].arch);
  return names;
}

bool can_run(std::string_view arch) noexcept {
  for (std::size_t k = level(); k < levels.size(); ++k)
    if (levels[k].arch == arch) return false;
  return true;
}

#else

CpuArch detect_arch(std::string_view) { return {"unknown", "unknown processor", 64}; }
std::string runnable_targets() { return "native"; }
bool can_run(std::string_view) noexcept { return true; }

#endif

}  // namespace tack::cpu
