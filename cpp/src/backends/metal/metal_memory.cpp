// backends/metal/metal_memory.cpp -- the table of buffers by address.
#include "backends/metal/metal_memory.h"

#include <iterator>
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
  blocks_.emplace(number_of(contents), std::move(block));
  return contents;
}

void SharedMemory::free(void* pointer) noexcept {
  Blocks::node_type block;  // released without the lock
  const std::unique_lock lock(mutex_);
  block = blocks_.extract(number_of(pointer));
}

std::optional<abi::Binding> SharedMemory::find(const void* pointer) const {
  const std::uintptr_t address = number_of(pointer);
  const std::shared_lock lock(mutex_);
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return std::nullopt;
  const auto& [start, block] = *std::prev(after);
  if (address - start >= block.bytes) return std::nullopt;
  return abi::Binding{block.buffer.get(), address - start};
}

}  // namespace tack::metal
