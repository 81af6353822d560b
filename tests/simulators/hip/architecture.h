// hip/architecture.h -- names of AMD's architectures as numbers: "gfx90a" is 0x90a.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace sim::hip {

// -1 for what is no such name.
inline int number_of(std::string_view name) {
  const std::string base(name.substr(0, name.find(':')));
  char* end = nullptr;
  const long number = base.starts_with("gfx") ? std::strtol(base.c_str() + 3, &end, 16) : 0;
  return number > 0 && *end == '\0' ? static_cast<int>(number) : -1;
}

// The compute accelerators have no texture units.
inline bool has_images(int architecture) { return architecture != 0x90a && (architecture >> 4) != 0x94 && (architecture >> 4) != 0x95; }

inline std::string name_of(int architecture) {
  char text[32];
  std::snprintf(text, sizeof text, "gfx%x", static_cast<unsigned>(architecture));
  return text;
}

}  // namespace sim::hip
