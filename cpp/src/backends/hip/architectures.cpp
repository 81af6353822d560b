// backends/hip/architectures.cpp -- the list, which hipRTC is asked by: that of ROCm 5.2 ends the process for an architecture that it does
// not know. Sources: what hipRTC 5.2 takes, tried; LLVM's "User Guide for AMDGPU Backend" and the LLVM release that each ROCm has.
#include "backends/hip/architectures.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/text.h"

namespace tack::hip {

namespace {

constexpr Release r5_2{5, 2}, r5_3{5, 3}, r5_7{5, 7}, r6_0{6, 0}, r6_2{6, 2}, r6_4{6, 4}, r7_0{7, 0};

constexpr std::array<Architecture, 34> architectures{{
    {"gfx803", r5_2, true},  {"gfx900", r5_2, true},  {"gfx902", r5_2, true},  {"gfx904", r5_2, true},  {"gfx906", r5_2, true},
    {"gfx908", r5_2, true},  {"gfx909", r5_2, true},  {"gfx90a", r5_2, false}, {"gfx90c", r5_2, true},  {"gfx942", r5_7, false},
    {"gfx950", r7_0, false}, {"gfx1010", r5_2, true}, {"gfx1011", r5_2, true}, {"gfx1012", r5_2, true}, {"gfx1013", r5_2, true},
    {"gfx1030", r5_2, true}, {"gfx1031", r5_2, true}, {"gfx1032", r5_2, true}, {"gfx1033", r5_2, true}, {"gfx1034", r5_2, true},
    {"gfx1035", r5_2, true}, {"gfx1036", r5_2, true}, {"gfx1100", r5_3, true}, {"gfx1101", r5_3, true}, {"gfx1102", r5_3, true},
    {"gfx1103", r5_3, true}, {"gfx1150", r6_0, true}, {"gfx1151", r6_0, true}, {"gfx1152", r6_4, true}, {"gfx1153", r7_0, true},
    {"gfx1200", r6_2, true}, {"gfx1201", r6_2, true}, {"gfx940", r5_3, false}, {"gfx941", r5_7, false},
}};

}  // namespace

Release release_of_file(std::string_view path) noexcept {
  constexpr std::string_view suffix = ".so.";
  const std::size_t at = path.rfind(suffix);
  if (at == std::string_view::npos) return {};
  const char* const end = path.data() + path.size();
  Release release;
  const auto [dot, wrong] = std::from_chars(path.data() + at + suffix.size(), end, release.major);
  if (wrong != std::errc{} || dot == end || *dot != '.') return {};
  return std::from_chars(dot + 1, end, release.minor).ec == std::errc{} ? release : Release{};
}

std::string number_of(Release release) { return text(release.major, '.', release.minor); }

std::string_view base_of(std::string_view arch) noexcept { return arch.substr(0, arch.find(':')); }

const Architecture* find_architecture(std::string_view arch) noexcept {
  const auto* const found =
      std::find_if(architectures.begin(), architectures.end(), [&](const Architecture& a) { return a.name == base_of(arch); });
  return found == architectures.end() ? nullptr : found;
}

std::string architecture_names() {
  std::string names;
  for (const Architecture& architecture : architectures) names += text(names.empty() ? "" : " ", architecture.name);
  return names;
}

}  // namespace tack::hip
