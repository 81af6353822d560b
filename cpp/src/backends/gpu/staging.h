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
/// of several threads take turns. `Stream` is where the device's work goes: DefaultStream has what it must be able to do.
template <class Stream>
class Staging {
 public:
  explicit Staging(Stream& stream) : stream_(stream) {}

  /// Gives the blocks back. Nothing may be under way.
  void release() noexcept {
    for (Block& block : ring_) {
      if (block.done != nullptr) stream_.destroy_event(block.done);
      if (block.memory != nullptr) stream_.free_host(block.memory);
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
      stream_.upload(to, block.memory, piece, block.done);
      block.busy = true;
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
    const auto take = [&](const Piece& piece) {
      wait(*piece.block);
      std::memcpy(to, piece.block->memory, piece.bytes);
      to += piece.bytes;
    };
    while (bytes != 0) {
      if (given - taken == blocks) take(queued[taken++ % blocks]);
      const std::size_t piece = std::min(bytes, block_bytes);
      Block& block = next();
      stream_.download(block.memory, from, piece, block.done);
      block.busy = true;
      queued[given++ % blocks] = {&block, piece};
      from += piece;
      bytes -= piece;
    }
    for (; taken != given; ++taken) take(queued[taken % blocks]);
  }

  static constexpr std::size_t blocks = 4;
  static constexpr std::size_t block_bytes = std::size_t{1} << 20;

 private:
  struct Block {
    void* memory = nullptr;
    Stream::Event done = nullptr;  // signalled behind the last copy that uses the memory
    bool busy = false;             // there is such a copy
  };

  /// The next block, free to use.
  Block& next() {
    Block& block = ring_[turn_];
    if (block.memory == nullptr) block.memory = stream_.allocate_host(block_bytes);
    if (block.done == nullptr) block.done = stream_.create_event();
    if (block.busy) wait(block);
    turn_ = (turn_ + 1) % blocks;
    return block;
  }

  void wait(Block& block) {
    stream_.wait("wait for a copy", block.done);
    block.busy = false;
  }

  Stream& stream_;
  std::mutex mutex_;  // guards the rest
  std::array<Block, blocks> ring_;
  std::size_t turn_ = 0;
};

/// A context's default stream (see gpu/device.h) and pinned memory. The context must be current.
template <class Api>
class DefaultStream {
 public:
  using Event = Api::Event;
  explicit DefaultStream(const Api::Context& context) : context_(context) {}

  void* allocate_host(std::size_t bytes) const {
    void* memory = nullptr;
    driver()("allocate pinned memory", driver().host_allocate, &memory, bytes, Api::host_alloc_portable);
    return memory;
  }
  void free_host(void* memory) const noexcept { driver().release(context_.log(), "free pinned memory", driver().host_free, memory); }
  Event create_event() const {
    Event event = nullptr;
    driver()("create an event", driver().event_create, &event, Api::event_disable_timing);
    return event;
  }
  void destroy_event(Event event) const noexcept { driver().release(context_.log(), "destroy an event", driver().event_destroy, event); }
  /// Queue a copy, and `done` behind it. Nothing uses the host's memory any more when they throw.
  void upload(void* to, const void* from, std::size_t bytes, Event done) const {
    driver()("copy to the device", driver().upload, Api::address(to), from, bytes, stream);
    mark(done);
  }
  void download(void* to, const void* from, std::size_t bytes, Event done) const {
    driver()("copy from the device", driver().download, to, Api::address(from), bytes, stream);
    mark(done);
  }
  /// Until all is done that was queued before the event.
  void wait(std::string_view what, Event event) const { driver()(what, driver().event_synchronize, event); }

 private:
  static constexpr Api::Stream stream = nullptr;

  const Driver<Api>& driver() const noexcept { return context_.driver(); }
  void mark(Event event) const {
    const auto result = driver().event_record(event, stream);
    if (result == Driver<Api>::Result::success) [[likely]]
      return;
    // Nothing would tell when the copy is done: wait for all of it, or the next user of the memory would overwrite it.
    static_cast<void>(driver().stream_synchronize(stream));
    driver().fail("record an event", result, driver().event_record.symbol);
  }
  const Api::Context& context_;
};

}  // namespace tack::gpu
