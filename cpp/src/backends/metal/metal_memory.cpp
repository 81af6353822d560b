// backends/metal/metal_memory.cpp -- the tables of buffers by address.
#include "backends/metal/metal_memory.h"

#include <mutex>
#include <utility>

#include "core/text.h"

namespace tack::metal {

namespace {
std::uintptr_t number_of(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }
}  // namespace

void* SharedMemory::allocate(std::size_t bytes) {
  Block block{Ref(metal_), bytes};
  void* contents = nullptr;
  abi::Problem problem;
  if (metal_.buffer(device_, bytes, block.buffer.place(), &contents, &problem) != abi::Status::done) {
    // There is one reason for which Metal makes no buffer.
    Error::Fields fields = metal_.error_of(text("allocate ", bytes_text(bytes)), problem, metal_.buffer.symbol).fields();
    fields.code = ErrorCode::out_of_memory;
    throw Error(std::move(fields));
  }
  const std::unique_lock lock(mutex_);
  own_.emplace(number_of(contents), std::move(block));
  return contents;
}

void SharedMemory::free(void* pointer) noexcept {
  Blocks::node_type block;  // released without the lock
  const std::unique_lock lock(mutex_);
  block = own_.extract(number_of(pointer));
}

SharedMemory::Pages SharedMemory::pages_of(const void* pointer, std::size_t bytes) const noexcept {
  const std::uintptr_t start = number_of(pointer) / page_bytes_ * page_bytes_;
  const std::uintptr_t end = (number_of(pointer) + bytes + page_bytes_ - 1) / page_bytes_ * page_bytes_;
  return {start, end - start};
}

bool SharedMemory::adopt(const void* pointer, std::size_t bytes) {
  const Pages pages = pages_of(pointer, bytes);
  const std::unique_lock lock(mutex_);
  const auto found = adopted_.find({pages.start, pages.bytes});
  if (found != adopted_.end()) {
    ++found->second.users;
    return true;
  }
  Block block{Ref(metal_), pages.bytes};
  abi::Problem problem;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  if (metal_.wrap(device_, reinterpret_cast<void*>(pages.start), pages.bytes, block.buffer.place(), &problem) != abi::Status::done)
    return false;
  adopted_.emplace(std::pair(pages.start, pages.bytes), std::move(block));
  return true;
}

void SharedMemory::forget(const void* pointer, std::size_t bytes) noexcept {
  const Pages pages = pages_of(pointer, bytes);
  const std::unique_lock lock(mutex_);
  const auto found = adopted_.find({pages.start, pages.bytes});
  if (found != adopted_.end() && --found->second.users == 0) adopted_.erase(found);
}

std::optional<abi::Binding> SharedMemory::find(const void* pointer) const {
  const std::uintptr_t address = number_of(pointer);
  const auto inside = [address](std::uintptr_t start, const Block& block) { return address >= start && address - start < block.bytes; };
  const std::shared_lock lock(mutex_);
  const auto after = own_.upper_bound(address);
  if (after != own_.begin()) {
    const auto& [start, block] = *std::prev(after);
    if (inside(start, block)) return abi::Binding{block.buffer.get(), address - start};
  }
  for (const auto& [key, block] : adopted_)
    if (inside(key.first, block)) return abi::Binding{block.buffer.get(), address - key.first};
  return std::nullopt;
}

}  // namespace tack::metal
