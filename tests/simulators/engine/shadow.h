// engine/shadow.h -- what is known of each byte of a block's shared memory: who wrote and read it, and between which barriers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sim {

// Where a thread stands: between which barriers of its block, and between which of its warp.
struct Moment {
  std::uint32_t block_epoch;
  std::uint32_t warp_epoch;
  std::uint16_t thread;
};

class Shadow {
 public:
  // A block starts on memory of the given size: nothing is written yet.
  void start(std::size_t size, std::uint32_t epoch);
  // Empty, or what is wrong with the access.
  std::string access(std::size_t offset, std::size_t size, unsigned kind, const Moment& now);

 private:
  struct Touch {
    std::uint32_t block_epoch = 0, warp_epoch = 0;
    std::uint16_t thread = 0;
    bool atomic = false;
  };
  struct Byte {
    Touch write, read;
    bool many_readers = false;  // since the last barrier, of different threads
  };
  static bool together(const Touch& before, const Moment& now);

  std::vector<Byte> bytes_;
  std::uint32_t start_ = 1;
};

}  // namespace sim
