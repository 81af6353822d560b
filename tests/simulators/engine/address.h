// engine/address.h -- addresses as numbers and as pointers.
#pragma once

#include <bit>
#include <cstdint>

namespace sim {

template <class T = void>
T* pointer_to(std::uintptr_t address) {
  return std::bit_cast<T*>(address);
}

inline std::uintptr_t address_of(const void* pointer) { return std::bit_cast<std::uintptr_t>(pointer); }

}  // namespace sim
