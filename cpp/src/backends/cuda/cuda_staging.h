// backends/cuda/cuda_staging.h -- copies between the host's memory and the device through a ring of pinned blocks.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>

#include "backends/cuda/cuda_context.h"

namespace tack::cuda {

/// Pinned memory is what the device copies from and to while the host goes on. The ring is made at the first copy. Thread-safe: copies
/// of several threads take turns. The context must be current.
class Staging {
 public:
  explicit Staging(const Context& context) : context_(context) {}
  /// Gives the blocks back. Nothing may be under way.
  void release() noexcept;

  /// Queues a copy to the device; has taken all of `source` when it returns.
  void upload(abi::DevicePointer destination, const void* source, std::size_t bytes);
  /// Queues a copy from the device and waits for it.
  void download(void* destination, abi::DevicePointer source, std::size_t bytes);

  static constexpr std::size_t blocks = 4;
  static constexpr std::size_t block_bytes = std::size_t{1} << 20;

 private:
  struct Block {
    void* memory = nullptr;
    abi::Event done = nullptr;  // recorded behind the last copy that uses the memory
    bool busy = false;          // there is such a copy
  };
  const Driver& driver() const noexcept { return context_.driver(); }
  /// The next block, free to use.
  Block& next();
  /// Notes that a copy was queued that uses the block.
  void mark(Block& block);
  void wait(Block& block);

  const Context& context_;
  std::mutex mutex_;  // guards the rest
  std::array<Block, blocks> ring_;
  std::size_t turn_ = 0;
};

}  // namespace tack::cuda
