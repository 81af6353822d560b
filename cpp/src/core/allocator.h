// core/allocator.h -- caches a device's freed memory in size classes, so that most allocations ask no driver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "backend.h"

namespace tack {

/// Thread-safe. Sizes are rounded up to classes: four for each power of two, sixteen above 1 MiB (at most 25 % and 6 % of waste), at
/// least 64 bytes. A freed block is reused in queue order, which is safe because a device has one queue. What is cached stays below
/// what was in use at the worst time (or 256 MiB); beyond that the cache is given back to the system.
class Allocator {
 public:
  struct Block {
    void* pointer = nullptr;
    std::uint32_t size_class = 0;
  };

  Allocator(DeviceImpl& device, std::string device_name);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// At least `bytes` (0 is legal), uninitialised, aligned to 64. When the device or the limit has no more, trims, tries once more and then
  /// throws Error(out_of_memory) with the sizes.
  Block allocate(std::size_t bytes);
  void free(Block block) noexcept;
  MemoryStatistics statistics() const;
  /// Gives all cached blocks back to the system; answers their bytes.
  std::uint64_t trim() noexcept;
  /// What is in use and cached together may take; 0: anything. What is in use stays so.
  void set_limit(std::uint64_t bytes) noexcept;

  static std::uint32_t class_of(std::size_t bytes) noexcept;
  static std::size_t class_bytes(std::uint32_t size_class) noexcept;

 private:
  static constexpr std::uint32_t steps_log2 = 4;  // room for sixteen classes in each power of two
  static constexpr std::size_t classes = std::size_t{64} << steps_log2;
  using FreeLists = std::array<std::vector<void*>, classes>;

  void count() noexcept;
  bool reserve(std::size_t size);
  void unreserve(std::size_t size) noexcept;
  void* from_system(std::size_t size, std::size_t asked);
  std::uint64_t release(FreeLists& lists) noexcept;

  DeviceImpl& device_;
  const std::string device_name_;
  mutable std::mutex mutex_;
  FreeLists free_;
  MemoryStatistics statistics_;
};

}  // namespace tack
