// engine/memory.cpp -- allocations out of one reserved range of addresses.
#include "memory.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "address.h"
#include "control.h"

namespace sim {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t alignment = 256;
constexpr std::size_t largest_filled = std::size_t{64} << 20;  // beyond it memory starts as zeros, so that untouched pages cost nothing
constexpr int most_devices = 16;
constexpr unsigned char fresh = 0xcb, around = 0xfd;

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

void* at(std::uintptr_t address) { return pointer_to(address); }

bool all(std::uintptr_t from, std::uintptr_t to, unsigned char value) {
  for (std::uintptr_t p = from; p < to; ++p) {
    if (*static_cast<const unsigned char*>(at(p)) != value) return false;
  }
  return true;
}

}  // namespace

Memory& Memory::instance() {
  static Memory* const memory = new Memory;
  return *memory;
}

Memory::Memory() {
  for (slice_ = std::size_t{1} << 40; slice_ >= std::size_t{1} << 28; slice_ /= 2) {
    void* range = mmap(nullptr, slice_ * (most_devices + 1), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) continue;
    madvise(range, slice_ * (most_devices + 1), MADV_DONTDUMP);
    base_ = address_of(range);
    for (int i = 0; i <= most_devices; ++i) next_[i] = base_ + slice_ * static_cast<std::size_t>(i) + page;
    return;
  }
  throw std::bad_alloc();
}

std::uintptr_t Memory::allocate(int device, std::size_t size, MemoryKind kind) {
  const std::lock_guard lock(mutex_);
  const std::size_t payload = round_up(size, alignment);
  if (payload < size || payload > settings().memory - used_[device]) return 0;
  const std::uintptr_t start = place(device, size, kind);
  if (start != 0) {
    used_[device] += payload;
    Control::instance().counter("device memory") += 1;
    Control::instance().counter("device bytes") += static_cast<long>(size);
  }
  return start;
}

std::uintptr_t Memory::allocate_pinned(std::size_t size) {
  const std::lock_guard lock(mutex_);
  const std::uintptr_t start = place(most_devices, size, MemoryKind::pinned);
  if (start != 0) Control::instance().counter("pinned memory") += 1;
  return start;
}

// The allocation ends where a page ends (up to its alignment), so that what runs past it meets the guard.
std::uintptr_t Memory::place(int device, std::size_t size, MemoryKind kind) {
  const std::size_t payload = round_up(size, alignment);
  const std::size_t pages_size = round_up(payload, page);
  const std::uintptr_t pages = next_[device];
  if (pages + pages_size + page > base_ + slice_ * (static_cast<std::size_t>(device) + 1)) return 0;
  if (mprotect(at(pages), pages_size, PROT_READ | PROT_WRITE) != 0) return 0;
  next_[device] = pages + pages_size + page;
  Allocation made{pages + pages_size - payload, size, kind, device, pages, pages_size, 0};
  std::memset(at(pages), around, made.start - pages);
  if (size <= largest_filled) {
    std::memset(at(made.start), fresh, size);
    std::memset(at(made.start + size), around, payload - size);
  }
  if (kind == MemoryKind::device) mprotect(at(pages), pages_size, PROT_NONE);
  live_[made.start] = made;
  return made.start;
}

bool Memory::free(std::uintptr_t start, MemoryKind kind) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(start);
  if (found == live_.end() || found->second.kind != kind) return false;
  Allocation& a = found->second;
  mprotect(at(a.pages), a.pages_size, PROT_READ | PROT_WRITE);
  const std::uintptr_t end = a.start + a.size;
  const std::uintptr_t slack_end = a.size <= largest_filled ? a.pages + a.pages_size : end;
  if (!all(a.pages, a.start, around) || !all(end, slack_end, around)) {
    Control::instance().report("memory around an allocation of " + std::to_string(a.size) + " bytes was written, found when it was freed");
  }
  madvise(at(a.pages), a.pages_size, MADV_DONTNEED);
  mprotect(at(a.pages), a.pages_size, PROT_NONE);
  if (kind != MemoryKind::pinned) {
    used_[a.device] -= round_up(a.size, alignment);
    Control::instance().counter("device memory") -= 1;
    Control::instance().counter("device bytes") -= static_cast<long>(a.size);
  } else {
    Control::instance().counter("pinned memory") -= 1;
  }
  dead_[start] = a;
  live_.erase(found);
  return true;
}

void Memory::free_all(int device) {
  std::map<std::uintptr_t, Allocation> all_live;
  {
    const std::lock_guard lock(mutex_);
    all_live = live_;
  }
  for (const auto& [start, allocation] : all_live) {
    if (allocation.kind == MemoryKind::device && allocation.device == device) free(start, MemoryKind::device);
  }
}

const Allocation* Memory::find_locked(std::uintptr_t address) const {
  const auto after = live_.upper_bound(address);
  if (after == live_.begin()) return nullptr;
  const Allocation& before = std::prev(after)->second;
  return before.contains(address, 1) || address == before.start ? &before : nullptr;
}

std::optional<Allocation> Memory::find(std::uintptr_t address) const {
  const std::lock_guard lock(mutex_);
  const Allocation* found = find_locked(address);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::size_t Memory::used(int device) const {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(device);
  return found == used_.end() ? 0 : found->second;
}

bool Memory::is_device_address(std::uintptr_t address) const { return address >= base_ && address < base_ + slice_ * most_devices; }

std::string Memory::describe(std::uintptr_t address) const {
  const std::lock_guard lock(mutex_);
  if (address < base_ || address >= base_ + slice_ * (most_devices + 1)) return address < page ? "a null pointer" : "host memory";
  const auto after = live_.upper_bound(address);
  if (after != live_.begin()) {
    const Allocation& a = std::prev(after)->second;
    const std::string name = (a.kind != MemoryKind::pinned ? "device " + std::to_string(a.device) : std::string("the host, pinned"));
    const std::string what = "an allocation of " + std::to_string(a.size) + " bytes on " + name;
    if (a.contains(address, 1)) return "in " + what;
    if (address < a.pages + a.pages_size + page) return std::to_string(address - a.start - a.size) + " bytes past the end of " + what;
  }
  if (after != live_.end() && address >= after->second.pages - page) {
    return std::to_string(after->second.start - address) + " bytes before an allocation of " + std::to_string(after->second.size) +
           " bytes";
  }
  const auto dead = dead_.upper_bound(address);
  if (dead != dead_.begin() && std::prev(dead)->second.contains(address, 1)) {
    return "in freed memory, once an allocation of " + std::to_string(std::prev(dead)->second.size) + " bytes";
  }
  return "in no allocation";
}

void Memory::change(Allocation& allocation, int by) {
  if (allocation.kind != MemoryKind::device) return;
  const bool was_open = allocation.open > 0;
  allocation.open += by;
  const bool is_open = allocation.open > 0;
  if (was_open != is_open) mprotect(at(allocation.pages), allocation.pages_size, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

Memory::Opened::Opened(Memory& memory, std::uintptr_t address) : memory_(memory) {
  const std::lock_guard lock(memory_.mutex_);
  const Allocation* found = memory_.find_locked(address);
  if (found == nullptr) return;
  allocations_.push_back(found->start);
  memory_.change(memory_.live_.at(found->start), 1);
}

Memory::Opened::Opened(Memory& memory, DeviceNumber device) : memory_(memory) {
  const std::lock_guard lock(memory_.mutex_);
  for (auto& [start, allocation] : memory_.live_) {
    if (allocation.kind != MemoryKind::device || allocation.device != device.value) continue;
    allocations_.push_back(start);
    memory_.change(allocation, 1);
  }
}

Memory::Opened::~Opened() {
  const std::lock_guard lock(memory_.mutex_);
  for (const std::uintptr_t start : allocations_) {
    const auto found = memory_.live_.find(start);
    if (found != memory_.live_.end()) memory_.change(found->second, -1);
  }
}

}  // namespace sim
