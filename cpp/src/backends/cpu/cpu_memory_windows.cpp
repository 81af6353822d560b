// backends/cpu/cpu_memory_windows.cpp -- all memory from operator new: large pages need a privilege that programs do not have.
#include <windows.h>

#include <initializer_list>
#include <new>

#include "backends/cpu/cpu_memory.h"

namespace tack::cpu {
namespace {

constexpr std::align_val_t alignment{64};

}  // namespace

void* allocate_memory(std::size_t bytes) noexcept { return ::operator new(bytes == 0 ? 1 : bytes, alignment, std::nothrow); }

void free_memory(void* pointer, std::size_t /*bytes*/) noexcept { ::operator delete(pointer, alignment); }

bool is_memory(const void* pointer, std::size_t bytes) noexcept {
  const auto* const first = static_cast<const std::byte*>(pointer);
  for (const std::byte* const address : {first, first + (bytes - 1)}) {
    MEMORY_BASIC_INFORMATION region{};
    if (VirtualQuery(address, &region, sizeof region) == 0 || region.State != MEM_COMMIT) return false;
  }
  return true;
}

}  // namespace tack::cpu
