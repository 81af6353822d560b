// backends/hip/architectures.h -- AMD's GPU architectures, the releases of ROCm that compile for them, and what is known of releases.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace tack::hip {

/// A release of ROCm. {0, 0} is one that is not known.
struct Release {
  int major = 0, minor = 0;
  auto operator<=>(const Release&) const = default;
};

/// What hipRuntimeGetVersion answers, as a release.
constexpr Release release_of(int runtime_version) noexcept { return {runtime_version / 10'000'000, runtime_version / 100'000 % 100}; }
/// The release in the name of a library's file: "libhiprtc.so.7.0.70002" is of 7.0; {0, 0} where the name does not say it.
Release release_of_file(std::string_view path) noexcept;
/// "7.0".
std::string number_of(Release release);
/// Whether the compiler of a release evaluates some comparisons of 64-bit integers wrongly: AMD clang 20, in ROCm 7.0 and 7.1.
constexpr bool miscompiles(Release release) noexcept { return release == Release{7, 0} || release == Release{7, 1}; }

struct Architecture {
  std::string_view name;  // "gfx90a"
  Release first;          // compiles for it
  bool images;            // has texture units
};

/// Null for what is not in the list. `arch` may have features behind it: "gfx90a:sramecc+:xnack-".
const Architecture* find_architecture(std::string_view arch) noexcept;
/// The names of all, for messages.
std::string architecture_names();
/// The architecture without features.
std::string_view base_of(std::string_view arch) noexcept;

}  // namespace tack::hip
