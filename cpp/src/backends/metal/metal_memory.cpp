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
  Ref buffer(metal_);
  void* contents = nullptr;
  abi::Problem problem;
  if (metal_.buffer(device_, bytes, buffer.place(), &contents, &problem) != abi::Status::done) {
    // There is one reason for which Metal makes no buffer.
    Error::Fields fields = metal_.error_of(text("allocate ", bytes_text(bytes)), problem, metal_.buffer.symbol).fields();
    fields.code = ErrorCode::out_of_memory;
    throw Error(std::move(fields));
  }
  return add(contents, std::move(buffer), bytes);
}

void* SharedMemory::adopt(abi::Object given) {
  Ref buffer(metal_);
  void* contents = nullptr;
  std::size_t bytes = 0;
  abi::Problem problem;
  if (metal_.adopt(device_, given, buffer.place(), &contents, &bytes, &problem) != abi::Status::done) {
    Error::Fields fields = metal_.error_of("use another library's memory", problem, metal_.adopt.symbol).fields();
    fields.code = ErrorCode::invalid_argument;
    throw Error(std::move(fields));
  }
  return add(contents, std::move(buffer), bytes);
}

void* SharedMemory::add(void* contents, Ref buffer, std::size_t bytes) {
  const std::unique_lock lock(mutex_);
  const auto [place, is_new] = blocks_.try_emplace(number_of(contents));
  if (is_new)
    place->second = Block{std::move(buffer), bytes};
  else
    ++place->second.users;
  return contents;
}

void SharedMemory::free(void* pointer) noexcept {
  Blocks::node_type block;  // released without the lock
  const std::unique_lock lock(mutex_);
  const auto found = blocks_.find(number_of(pointer));
  if (found != blocks_.end() && --found->second.users == 0) block = blocks_.extract(found);
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
