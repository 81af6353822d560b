// backends/cpu/cpu_arch.cpp -- the x86-64 level and the processor's name, by cpuid; aarch64 has one level.
#include "backends/cpu/cpu_arch.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#  include <cpuid.h>
#elif defined(_M_X64)
#  include <intrin.h>
#endif
#if defined(__APPLE__)
#  include <sys/sysctl.h>
#elif defined(__linux__)
#  include <fstream>
#endif

namespace tack::cpu {
namespace {

#if defined(__x86_64__) || defined(_M_X64)

struct Registers {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// Zeros for a leaf that the processor doesn't have.
Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf = 0) noexcept {
  Registers r;
#  if defined(_M_X64) && !defined(__x86_64__)
  int values[4] = {};
  __cpuid(values, static_cast<int>(leaf & 0x80000000u));
  if (static_cast<std::uint32_t>(values[0]) < leaf) return r;
  __cpuidex(values, static_cast<int>(leaf), static_cast<int>(subleaf));
  std::memcpy(&r, values, sizeof r);
#  else
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
#  endif
  return r;
}

/// Which register files the operating system saves: bits of XCR0.
std::uint64_t saved_registers() noexcept {
#  if defined(_M_X64) && !defined(__x86_64__)
  return _xgetbv(0);
#  else
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32u | low;
#  endif
}

constexpr bool has(std::uint32_t word, std::initializer_list<unsigned> bits) noexcept {
  for (const unsigned bit : bits) {
    if ((word >> bit & 1u) == 0) return false;
  }
  return true;
}

/// 1 to 4: the highest level all of whose features are there (x86-64 psABI, "Micro-architecture levels").
int x86_level() noexcept {
  const Registers basic = cpuid(1), features = cpuid(7), extended = cpuid(0x80000001u);
  // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
  if (!has(basic.ecx, {0, 9, 13, 19, 20, 23}) || !has(extended.ecx, {0})) return 1;
  // FMA, MOVBE, OSXSAVE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT
  if (!has(basic.ecx, {12, 22, 27, 28, 29}) || !has(features.ebx, {3, 5, 8}) || !has(extended.ecx, {5})) return 2;
  constexpr std::uint64_t ymm = 0x6, zmm = 0xe6;
  const std::uint64_t saved = saved_registers();
  if ((saved & ymm) != ymm) return 2;
  // AVX512 F, DQ, CD, BW, VL
  if (!has(features.ebx, {16, 17, 28, 30, 31}) || (saved & zmm) != zmm) return 3;
  return 4;
}

std::string brand() {
  std::array<char, 49> text{};
  for (std::size_t i = 0; i < 3; ++i) {
    const Registers r = cpuid(0x80000002u + static_cast<std::uint32_t>(i));
    std::memcpy(text.data() + 16 * i, &r, sizeof r);
  }
  const std::string name(text.data());
  const std::size_t first = name.find_first_not_of(' ');
  return first == std::string::npos ? "x86-64 processor" : name.substr(first, name.find_last_not_of(' ') - first + 1);
}

#elif defined(__aarch64__) || defined(_M_ARM64)

std::string brand() {
#  if defined(__APPLE__)
  std::array<char, 128> text{};
  std::size_t size = text.size() - 1;
  if (sysctlbyname("machdep.cpu.brand_string", text.data(), &size, nullptr, 0) == 0 && text[0] != '\0') return text.data();
#  elif defined(__linux__)
  // The device tree names the board, which is the best that Linux says of most of these machines.
  std::ifstream file("/proc/device-tree/model");
  std::string model;
  if (std::getline(file, model, '\0') && !model.empty()) return model;
#  endif
  return "aarch64 processor";
}

#endif

}  // namespace

CpuArch detect_arch() {
#if defined(__x86_64__) || defined(_M_X64)
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
#elif defined(__aarch64__) || defined(_M_ARM64)
  return {"aarch64", brand(), 128};
#else
  return {"unknown", "unknown processor", 64};
#endif
}

}  // namespace tack::cpu
