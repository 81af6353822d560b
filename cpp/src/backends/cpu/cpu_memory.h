// backends/cpu/cpu_memory.h -- host memory for arrays.
#pragma once

#include <cstddef>

namespace tack::cpu {

/// Memory aligned to 64 bytes, uninitialised; from 4 MiB on aligned to 2 MiB and marked for huge pages. Null when there is none.
void* allocate_memory(std::size_t bytes) noexcept;
/// `bytes` as it was asked for.
void free_memory(void* pointer, std::size_t bytes) noexcept;

}  // namespace tack::cpu
