// backends/cpu/cpu_memory_posix.cpp -- small blocks from operator new, large ones mapped so that huge pages fit.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <initializer_list>
#include <new>

#include "backends/cpu/cpu_memory.h"

namespace tack::cpu {
namespace {

constexpr std::align_val_t alignment{64};
constexpr std::size_t huge_page = std::size_t{2} * 1024 * 1024;
constexpr std::size_t large = huge_page;  // random accesses to an array of a few MiB already miss the TLB with small pages

std::size_t whole_pages(std::size_t bytes) noexcept { return (bytes + huge_page - 1) / huge_page * huge_page; }

void* map(std::size_t bytes) noexcept {
  if (bytes > SIZE_MAX - 2 * huge_page) return nullptr;
  const std::size_t size = whole_pages(bytes), room = size + huge_page;
  void* const mapped = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  // Keep the aligned part, give the ends back.
  auto* const base = static_cast<std::byte*>(mapped);
  const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(base) % huge_page) % huge_page;
  if (before != 0) munmap(base, before);
  if (before != huge_page) munmap(base + before + size, huge_page - before);
#if defined(MADV_HUGEPAGE)
  madvise(base + before, size, MADV_HUGEPAGE);  // a wish; without it the pages are small
#endif
  return base + before;
}

}  // namespace

void* allocate_memory(std::size_t bytes) noexcept {
  if (bytes >= large) return map(bytes);
  return ::operator new(bytes == 0 ? 1 : bytes, alignment, std::nothrow);
}

void free_memory(void* pointer, std::size_t bytes) noexcept {
  if (bytes >= large) {
    if (pointer != nullptr) munmap(pointer, whole_pages(bytes));
    return;
  }
  ::operator delete(pointer, alignment);
}

bool is_memory(const void* pointer, std::size_t bytes) noexcept {
#if defined(__linux__)
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(pointer);
  for (const std::uintptr_t address : {first, first + (bytes - 1)}) {
    unsigned char resident = 0;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): pages are found by number
    if (mincore(reinterpret_cast<void*>(address / page * page), 1, &resident) != 0) return false;
  }
#else
  static_cast<void>(pointer);
  static_cast<void>(bytes);
#endif
  return true;
}

}  // namespace tack::cpu
