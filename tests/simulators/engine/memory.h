// engine/memory.h -- device memory and pinned host memory: addresses apart from all others, guard pages around every allocation, none used
// twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sim {

// Of a device; of a device and open to the host all the time; of the host.
enum class MemoryKind { device, shared, pinned };

struct DeviceNumber {
  int value;
};

struct Allocation {
  std::uintptr_t start = 0;
  std::size_t size = 0;
  MemoryKind kind = MemoryKind::device;
  int device = 0;
  std::uintptr_t pages = 0;  // what is mapped, without the guards
  std::size_t pages_size = 0;
  int open = 0;  // how many users may touch it at this moment; 0: nobody

  bool contains(std::uintptr_t address, std::size_t bytes) const {
    return address >= start && bytes <= size && address - start <= size - bytes;
  }
};

// The memory of all devices of this process. Thread-safe.
class Memory {
 public:
  static Memory& instance();

  // New memory, 256-byte aligned and filled with a pattern. Null where the device has not so much left.
  std::uintptr_t allocate(int device, std::size_t size, MemoryKind kind = MemoryKind::device);
  std::uintptr_t allocate_pinned(std::size_t size);
  // False where no live allocation of the kind starts there. Reports what was written around it.
  bool free(std::uintptr_t start, MemoryKind kind);
  // Frees everything of a device and answers how many allocations that were.
  void free_all(int device);

  // The live allocation that holds the address.
  std::optional<Allocation> find(std::uintptr_t address) const;
  std::size_t used(int device) const;

  // Whether the address lies where only device memory is, live or not.
  bool is_device_address(std::uintptr_t address) const;
  // What lies there, for a report: "16 bytes past an allocation of 400 bytes on device 0", "in freed memory", "host memory".
  std::string describe(std::uintptr_t address) const;

  // While one lives, host threads may touch an allocation's memory, or all memory of a device. Else an access by host code ends in a
  // report.
  class Opened {
   public:
    Opened(Memory& memory, std::uintptr_t address);
    Opened(Memory& memory, DeviceNumber device);
    ~Opened();
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    Memory& memory_;
    std::vector<std::uintptr_t> allocations_;
  };

 private:
  Memory();
  std::uintptr_t place(int device, std::size_t size, MemoryKind kind);
  void change(Allocation& allocation, int by);
  const Allocation* find_locked(std::uintptr_t address) const;

  mutable std::mutex mutex_;
  std::uintptr_t base_ = 0;
  std::size_t slice_ = 0;  // addresses for each device; one slice more for pinned memory
  std::map<int, std::uintptr_t> next_;
  std::map<int, std::size_t> used_;
  std::map<std::uintptr_t, Allocation> live_, dead_;
};

}  // namespace sim
