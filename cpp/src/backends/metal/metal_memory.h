// backends/metal/metal_memory.h -- which buffer of Metal's an address lies in.
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
  SharedMemory(const Metal& metal, abi::Object device) : metal_(metal), device_(device) {}

  /// Throws Error(out_of_memory).
  void* allocate(std::size_t bytes);
  /// Commands that use it keep it alive until they are done.
  void free(void* pointer) noexcept;
  /// The address of a buffer that another library has made, which `free` lets go of again. Throws Error(invalid_argument) where the host
  /// cannot see it.
  void* adopt(abi::Object buffer);

  /// The buffer with this address in it; none for memory that is not the device's.
  std::optional<abi::Binding> find(const void* pointer) const;

 private:
  void* add(void* contents, Ref buffer, std::size_t bytes);

  struct Block {
    Ref buffer;
    std::size_t bytes = 0;
    unsigned users = 1;  // who is to free it: tack's own memory may be adopted when it comes back from another library
  };
  using Blocks = std::map<std::uintptr_t, Block>;

  const Metal& metal_;
  const abi::Object device_;
  mutable std::shared_mutex mutex_;  // guards what follows
  Blocks blocks_;                    // by their first address
};

}  // namespace tack::metal
