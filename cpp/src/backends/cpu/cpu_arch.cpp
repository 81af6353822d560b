// backends/cpu/cpu_arch.cpp -- the x86-64 level and the processor's name, by cpuid; aarch64 has one level.
#include "backends/cpu/cpu_arch.h"

#include <array>
#include <cstring>

#include "core/cpu_topology.h"
#include "core/processor.h"

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

}  // namespace

CpuArch detect_arch() {
#if defined(TACK_X86_64)
  switch (x86_level()) {
    case 4:
      return {"x86-64-v4", brand(), 512};
    case 3:
      return {"x86-64-v3", brand(), 256};
    case 2:
      return {"x86-64-v2", brand(), 128};
    default:
      return {"x86-64", brand(), 128};
  }
#elif defined(TACK_AARCH64)
  return {"aarch64", brand(), 128};
#else
  return {"unknown", "unknown processor", 64};
#endif
}

}  // namespace tack::cpu
