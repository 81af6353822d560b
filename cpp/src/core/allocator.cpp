// core/allocator.cpp -- the caching allocator.
#include "core/allocator.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "core/text.h"

namespace tack {

namespace {

constexpr std::size_t smallest = 64;
constexpr std::size_t fine_from = std::size_t{1} << 20;            // from here on sixteen classes for each power of two
constexpr std::size_t largest = std::size_t{1} << 62;              // beyond it class sizes would overflow
constexpr std::uint64_t always_cached = std::uint64_t{256} << 20;  // cached without looking at the peak

}  // namespace

std::uint32_t Allocator::class_of(std::size_t bytes) noexcept {
  const std::size_t size = std::max(bytes, smallest);
  // size lies in (base, 2 * base], which is cut into 2^log2 equal steps.
  const std::size_t base = std::bit_floor(size - 1);
  const auto octave = static_cast<std::uint32_t>(std::countr_zero(base)) + 1;
  const int log2 = size > fine_from ? 4 : 2;
  const std::size_t step = std::max<std::size_t>(base >> log2, 1);
  const std::size_t index = (size - base + step - 1) / step;
  return (octave << steps_log2) + static_cast<std::uint32_t>(index) - 1;
}

std::size_t Allocator::class_bytes(std::uint32_t size_class) noexcept {
  const std::size_t base = std::size_t{1} << (std::clamp(size_class >> steps_log2, 1u, 63u) - 1u);
  const std::size_t index = (size_class & ((1u << steps_log2) - 1)) + 1;
  const int log2 = base >= fine_from ? 4 : 2;
  return base + index * (base >> log2);
}

Allocator::Allocator(DeviceImpl& device, std::string device_name) : device_(device), device_name_(std::move(device_name)) {}

Allocator::~Allocator() { trim(); }

Allocator::Block Allocator::allocate(std::size_t bytes) {
  if (bytes > largest)
    throw Error(ErrorCode::out_of_memory,
                text("Allocating ", bytes_text(bytes), " on '", device_name_, "' failed: no device has as much."));
  Block block{nullptr, class_of(bytes)};
  const std::size_t size = class_bytes(block.size_class);
  {
    const std::lock_guard lock(mutex_);
    std::vector<void*>& list = free_[block.size_class];
    if (!list.empty()) {
      block.pointer = list.back();
      list.pop_back();
      statistics_.cached -= size;
      ++statistics_.reused;
      statistics_.in_use += size;
      count();
      return block;
    }
  }
  // The driver works without the lock: it may be slow, and other threads' cached blocks need it not.
  block.pointer = from_system(size, bytes);
  return block;
}

/// Counts a block whose bytes are in use already. Needs the lock.
void Allocator::count() noexcept {
  ++statistics_.allocations;
  statistics_.peak = std::max(statistics_.peak, statistics_.in_use);
}

/// Counts bytes as in use before they are there, so that threads that allocate at once keep to the limit together.
bool Allocator::reserve(std::size_t size) {
  const std::lock_guard lock(mutex_);
  if (statistics_.limit != 0 && statistics_.in_use + statistics_.cached + size > statistics_.limit) return false;
  statistics_.in_use += size;
  return true;
}

void Allocator::unreserve(std::size_t size) noexcept {
  const std::lock_guard lock(mutex_);
  statistics_.in_use -= size;
}

void* Allocator::from_system(std::size_t size, std::size_t asked) {
  Error::Fields cause;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (attempt == 1) trim();
    if (!reserve(size)) continue;
    try {
      void* const pointer = device_.allocate(size);
      const std::lock_guard lock(mutex_);
      count();
      return pointer;
    } catch (const Error& error) {
      unreserve(size);
      if (error.code() != ErrorCode::out_of_memory) throw;
      cause = error.fields();
    } catch (const std::bad_alloc&) {
      unreserve(size);
    }
  }
  const MemoryStatistics now = statistics();
  cause.code = ErrorCode::out_of_memory;
  cause.message = text("Allocating ", bytes_text(asked), " on '", device_name_, "' failed; ", bytes_text(now.in_use), " in use, ",
                       bytes_text(now.cached), " cached, ", bytes_text(now.peak), " at most so far",
                       now.limit != 0 ? text(", and the limit is ", bytes_text(now.limit)) : std::string(),
                       ". Drop arrays that are no longer needed, or work in smaller pieces.");
  throw Error(std::move(cause));
}

void Allocator::free(Block block) noexcept {
  const std::size_t size = class_bytes(block.size_class);
  // On the heap: a thousand lists are too much for a small thread's stack, and this is the rare case.
  std::unique_ptr<FreeLists> evicted;
  bool cached = false;
  try {
    const std::lock_guard lock(mutex_);
    statistics_.in_use -= size;
    const std::uint64_t limit = std::max(always_cached, statistics_.peak);
    if (statistics_.cached + size > limit && statistics_.cached != 0) {
      evicted = std::make_unique<FreeLists>();
      std::swap(*evicted, free_);
      statistics_.cached = 0;
    }
    free_[block.size_class].push_back(block.pointer);
    statistics_.cached += size;
    cached = true;
  } catch (...) {
    cached = false;  // no memory for the list itself: the block goes back to the system
  }
  if (!cached) device_.free(block.pointer, size);
  if (evicted) release(*evicted);
}

void Allocator::set_limit(std::uint64_t bytes) noexcept {
  bool above = false;
  {
    const std::lock_guard lock(mutex_);
    statistics_.limit = bytes;
    above = bytes != 0 && statistics_.in_use + statistics_.cached > bytes;
  }
  if (above) trim();
}

MemoryStatistics Allocator::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

std::uint64_t Allocator::trim() noexcept {
  std::uint64_t bytes = 0;
  // One list after the other, so that nothing has to be allocated when there is no memory left.
  for (std::uint32_t size_class = 0; size_class < classes; ++size_class) {
    std::vector<void*> list;
    {
      const std::lock_guard lock(mutex_);
      list.swap(free_[size_class]);
      if (!list.empty()) statistics_.cached -= list.size() * class_bytes(size_class);
    }
    for (void* pointer : list) {
      device_.free(pointer, class_bytes(size_class));
      bytes += class_bytes(size_class);
    }
  }
  return bytes;
}

std::uint64_t Allocator::release(FreeLists& lists) noexcept {
  std::uint64_t bytes = 0;
  for (std::uint32_t size_class = 0; size_class < classes; ++size_class) {
    for (void* pointer : lists[size_class]) {
      device_.free(pointer, class_bytes(size_class));
      bytes += class_bytes(size_class);
    }
  }
  return bytes;
}

}  // namespace tack
