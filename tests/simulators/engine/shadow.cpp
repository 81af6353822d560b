// engine/shadow.cpp -- races and reads of what nobody wrote, in shared memory.
#include "shadow.h"

#include "../device/abi.h"

namespace sim {

void Shadow::start(std::size_t size, std::uint32_t epoch) {
  if (bytes_.size() < size || epoch < start_) bytes_.assign(size, Byte{});
  start_ = epoch;
}

// Whether nothing orders the two: no barrier of the block between them, and if both threads are of one warp, none of the warp.
bool Shadow::together(const Touch& before, const Moment& now) {
  if (before.block_epoch != now.block_epoch || before.thread == now.thread) return false;
  return before.thread / 32 != now.thread / 32 || before.warp_epoch == now.warp_epoch;
}

std::string Shadow::access(std::size_t offset, std::size_t size, unsigned kind, const Moment& now) {
  const bool atomic = kind == SIM_ATOMIC || kind == SIM_ATOMIC_READ;
  const bool writes = kind == SIM_WRITE || kind == SIM_ATOMIC;
  const auto pair = [&](const char* first, const Touch& touch, const char* second) {
    return std::string("race in shared memory: thread ") + std::to_string(touch.thread) + first + std::to_string(now.thread) + second +
           " the same bytes with no barrier between";
  };
  for (std::size_t i = offset; i < offset + size; ++i) {
    Byte& byte = bytes_[i];
    if (kind != SIM_WRITE && byte.write.block_epoch < start_) return "shared memory is read that no thread of the block has written";
    if (together(byte.write, now) && !(atomic && byte.write.atomic)) {
      return writes ? pair(" and thread ", byte.write, " write") : pair(" writes and thread ", byte.write, " reads");
    }
    const bool since = byte.read.block_epoch == now.block_epoch;  // read since the last barrier
    if (writes) {
      const bool others = byte.many_readers && since && byte.read.warp_epoch == now.warp_epoch;
      if ((others || together(byte.read, now)) && !(atomic && byte.read.atomic)) return pair(" reads and thread ", byte.read, " writes");
      const bool plain = byte.write.block_epoch == now.block_epoch && !byte.write.atomic;  // written so since the last barrier
      byte.write = {now.block_epoch, now.warp_epoch, now.thread, atomic && !plain};
    } else {
      byte.many_readers = together(byte.read, now) || (byte.many_readers && since);
      byte.read = {now.block_epoch, now.warp_epoch, now.thread, atomic && (byte.read.atomic || !since)};
    }
  }
  return {};
}

}  // namespace sim
