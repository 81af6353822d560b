// backends/metal/metal_memory.h -- which buffer of Metal's an address lies in: tack's own memory, and pages of other libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

#include "backends/metal/metal.h"

namespace tack::metal {

/// Memory that host and GPU share: an address is the host's, and kernels get the buffer and an offset. Thread-safe.
class SharedMemory {
 public:
  SharedMemory(const Metal& metal, abi::Object device, std::size_t page_bytes) : metal_(metal), device_(device), page_bytes_(page_bytes) {}

  /// Throws Error(out_of_memory).
  void* allocate(std::size_t bytes);
  /// Commands that use it keep it alive until they are done.
  void free(void* pointer) noexcept;

  /// Makes somebody else's memory usable, until `forget`ted as often as adopted. False where the GPU cannot use it.
  bool adopt(const void* pointer, std::size_t bytes);
  void forget(const void* pointer, std::size_t bytes) noexcept;

  /// The buffer with this address in it; none for memory of nobody's.
  std::optional<abi::Binding> find(const void* pointer) const;

 private:
  struct Block {
    Ref buffer;
    std::size_t bytes = 0;
    std::size_t users = 1;
  };
  using Blocks = std::map<std::uintptr_t, Block>;
  /// The pages that a range lies in.
  struct Pages {
    std::uintptr_t start = 0;
    std::size_t bytes = 0;
  };
  Pages pages_of(const void* pointer, std::size_t bytes) const noexcept;

  const Metal& metal_;
  const abi::Object device_;
  const std::size_t page_bytes_;
  mutable std::shared_mutex mutex_;  // guards what follows
  Blocks own_;
  std::map<std::pair<std::uintptr_t, std::size_t>, Block> adopted_;  // by first page and length; they may overlap
};

}  // namespace tack::metal
