// backends/cuda/cuda_staging.cpp -- copies in pieces: while the device copies one block, the host fills or empties the next.
#include "backends/cuda/cuda_staging.h"

#include <algorithm>
#include <cstring>

namespace tack::cuda {

namespace {
constexpr abi::Stream stream = nullptr;  // see cuda_device.h
}

void Staging::release() noexcept {
  for (Block& block : ring_) {
    if (block.done != nullptr) driver().release(context_.log(), "destroy an event", driver().event_destroy, block.done);
    if (block.memory != nullptr) driver().release(context_.log(), "free pinned memory", driver().host_free, block.memory);
    block = {};
  }
}

Staging::Block& Staging::next() {
  Block& block = ring_[turn_];
  if (block.memory == nullptr)
    driver()("allocate pinned memory", driver().host_allocate, &block.memory, block_bytes, abi::host_alloc_portable);
  if (block.done == nullptr) driver()("create an event", driver().event_create, &block.done, abi::event_disable_timing);
  if (block.busy) wait(block);
  turn_ = (turn_ + 1) % blocks;
  return block;
}

void Staging::mark(Block& block) {
  block.busy = true;
  try {
    driver()("record an event", driver().event_record, block.done, stream);
  } catch (...) {
    // Nothing would tell when the copy is done: wait for all of it, or the next user of the block would overwrite it.
    block.busy = driver().stream_synchronize(stream) != abi::Result::success;
    throw;
  }
}

void Staging::wait(Block& block) {
  driver()("wait for a copy", driver().event_synchronize, block.done);
  block.busy = false;
}

void Staging::upload(abi::DevicePointer destination, const void* source, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto* from = static_cast<const std::byte*>(source);
  while (bytes != 0) {
    const std::size_t piece = std::min(bytes, block_bytes);
    Block& block = next();
    std::memcpy(block.memory, from, piece);
    driver()("copy to the device", driver().upload, destination, block.memory, piece, stream);
    mark(block);
    destination += piece;
    from += piece;
    bytes -= piece;
  }
}

void Staging::download(void* destination, abi::DevicePointer source, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  struct Piece {
    Block* block = nullptr;
    std::size_t bytes = 0;
  };
  std::array<Piece, blocks> queued;  // copies that are under way, oldest first from `taken` on
  std::size_t given = 0, taken = 0;
  auto* to = static_cast<std::byte*>(destination);
  const auto take = [&] {
    const Piece& piece = queued[taken++ % blocks];
    wait(*piece.block);
    std::memcpy(to, piece.block->memory, piece.bytes);
    to += piece.bytes;
  };
  while (bytes != 0) {
    if (given - taken == blocks) take();
    const std::size_t piece = std::min(bytes, block_bytes);
    Block& block = next();
    driver()("copy from the device", driver().download, block.memory, source, piece, stream);
    mark(block);
    queued[given++ % blocks] = {&block, piece};
    source += piece;
    bytes -= piece;
  }
  while (taken != given) take();
}

}  // namespace tack::cuda
