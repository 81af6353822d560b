// backends/metal/metal_queue.h -- the one command queue of a device: what was given to it, what of that is done, and what has failed.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/metal/metal.h"
#include "core/log.h"

namespace tack::metal {

/// Work runs in the order in which it was committed; each piece is one command buffer. Thread-safe.
class CommandQueue {
 public:
  CommandQueue(const Metal& metal, Log& log, abi::Object device);

  /// Commits commands that `encode(commands)` fills. `what` is the kernel's name, for Metal's tools and for the message of a failure.
  /// Throws what `encode` throws; nothing is queued then.
  template <class Encode>
  void submit(const std::string& what, Encode encode) {
    Ref commands(metal_);
    metal_("make a command buffer", metal_.commands, queue_.get(), what.c_str(), commands.place());
    encode(commands.get());
    commit(std::move(commands), what);
  }
  /// Whether all that was given is done, so that the host may touch the device's memory now. Failures are kept for `wait`.
  bool idle();
  /// Until all that was given so far is done. Failures are kept for `wait`.
  void drain();
  /// The same, and throws the first failure, once; others are logged.
  void wait();

 private:
  struct Work {
    std::shared_ptr<const Ref> commands;
    std::string what;
  };
  void commit(Ref commands, const std::string& what);
  /// Forgets work that is done, from the front. With the mutex held.
  void sweep();

  const Metal& metal_;
  Log& log_;
  Ref queue_;
  std::mutex mutex_;  // guards what follows; held while something is committed, so that the order here is Metal's
  std::deque<Work> given_;
  std::uint64_t ended_ = 0;      // how much work is done and forgotten
  std::vector<Error> failures_;  // that nobody has been told of
};

}  // namespace tack::metal
