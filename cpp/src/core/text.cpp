// core/text.cpp -- small helpers that messages are made with.
#include "core/text.h"

#include <array>
#include <cstddef>
#include <cstdio>

namespace tack {

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < 1024) return text(bytes, " B");
  constexpr std::array<const char*, 6> units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024.0;
  std::size_t unit = 0;
  // 1023.95 would be shown as 1024.0 of the smaller unit.
  while (value >= 1023.95 && unit + 1 < units.size()) {
    value /= 1024.0;
    ++unit;
  }
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f %s", value, units[unit]);
  return buffer;
}

}  // namespace tack
