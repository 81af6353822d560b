// backends/gpu/staging.h -- copies between the host's memory and the device through a ring of pinned blocks: while the device copies one
// block, the host fills or empties the next.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <mutex>

#include "backends/gpu/driver.h"

namespace tack::gpu {

/// Pinned memory is what the device copies from and to while the host goes on. The ring is made at the first copy. Thread-safe: copies
/// of several threads take turns. The context must be current.
template <class Api>
class Staging {
 public:
  explicit Staging(const typename Api::Context& context) : context_(context) {}

  /// Gives the blocks back. Nothing may be under way.
  void release() noexcept {
    for (Block& block : ring_) {
      if (block.done != nullptr) driver().release(context_.log(), "destroy an event", driver().event_destroy, block.done);
      if (block.memory != nullptr) driver().release(context_.log(), "free pinned memory", driver().host_free, block.memory);
      block = {};
    }
  }

  /// Queues a copy to the device; has taken all of `source` when it returns.
  void upload(void* destination, const void* source, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto* from = static_cast<const std::byte*>(source);
    auto* to = static_cast<std::byte*>(destination);
    while (bytes != 0) {
      const std::size_t piece = std::min(bytes, block_bytes);
      Block& block = next();
      std::memcpy(block.memory, from, piece);
      driver()("copy to the device", driver().upload, Api::address(to), block.memory, piece, stream);
      mark(block);
      to += piece;
      from += piece;
      bytes -= piece;
    }
  }

  /// Queues a copy from the device and waits for it.
  void download(void* destination, const void* source, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    struct Piece {
      Block* block = nullptr;
      std::size_t bytes = 0;
    };
    std::array<Piece, blocks> queued;  // copies that are under way, oldest first from `taken` on
    std::size_t given = 0, taken = 0;
    const auto* from = static_cast<const std::byte*>(source);
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
      driver()("copy from the device", driver().download, block.memory, Api::address(from), piece, stream);
      mark(block);
      queued[given++ % blocks] = {&block, piece};
      from += piece;
      bytes -= piece;
    }
    while (taken != given) take();
  }

  static constexpr std::size_t blocks = 4;
  static constexpr std::size_t block_bytes = std::size_t{1} << 20;

 private:
  static constexpr typename Api::Stream stream = nullptr;  // see gpu/device.h

  struct Block {
    void* memory = nullptr;
    typename Api::Event done = nullptr;  // recorded behind the last copy that uses the memory
    bool busy = false;                   // there is such a copy
  };

  const Driver<Api>& driver() const noexcept { return context_.driver(); }

  /// The next block, free to use.
  Block& next() {
    Block& block = ring_[turn_];
    if (block.memory == nullptr)
      driver()("allocate pinned memory", driver().host_allocate, &block.memory, block_bytes, Api::host_alloc_portable);
    if (block.done == nullptr) driver()("create an event", driver().event_create, &block.done, Api::event_disable_timing);
    if (block.busy) wait(block);
    turn_ = (turn_ + 1) % blocks;
    return block;
  }

  /// Notes that a copy was queued that uses the block.
  void mark(Block& block) {
    block.busy = true;
    try {
      driver()("record an event", driver().event_record, block.done, stream);
    } catch (...) {
      // Nothing would tell when the copy is done: wait for all of it, or the next user of the block would overwrite it.
      block.busy = driver().stream_synchronize(stream) != Driver<Api>::Result::success;
      throw;
    }
  }

  void wait(Block& block) {
    driver()("wait for a copy", driver().event_synchronize, block.done);
    block.busy = false;
  }

  const typename Api::Context& context_;
  std::mutex mutex_;  // guards the rest
  std::array<Block, blocks> ring_;
  std::size_t turn_ = 0;
};

}  // namespace tack::gpu
