// backends/cpu/cpu_memory.h -- host memory for arrays: cpu_memory_posix.cpp, cpu_memory_windows.cpp.
#pragma once

#include <cstddef>

namespace tack::cpu {

/// Memory aligned to 64 bytes, uninitialised; from 4 MiB on, where the system has such, aligned to 2 MiB and marked for huge
/// pages. Null when there is none.
void* allocate_memory(std::size_t bytes) noexcept;
/// `bytes` as it was asked for.
void free_memory(void* pointer, std::size_t bytes) noexcept;
/// Whether the first and the last of `bytes` (at least 1) lie in this process's memory. Where the system cannot tell: true.
bool is_memory(const void* pointer, std::size_t bytes) noexcept;

}  // namespace tack::cpu
