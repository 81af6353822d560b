// core/thread_pool.h -- the CPU pool: workers that spin briefly, then park; each claims from its own part of the work, then from the
// others'.
#pragma once

#include <cstdint>
#include <memory>

#include "tack/runtime.hpp"

namespace tack {

/// One pool serves any number of concurrent and nested callers. Starts its workers at the first use; survives fork (the child starts anew).
class ThreadPool {
 public:
  /// `threads` counts the calling thread: 1 makes no worker. Throws Error(unavailable) at the first run if no thread can start.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const noexcept;
  /// Every worker is parked, or none was started yet: the next run pays for waking them. A snapshot, without a clock.
  bool idle() const noexcept;
  /// Covers [0, n) with calls of body(context, begin, end), in pieces of about `grain`; returns when all are done.
  /// A nested or concurrent call that finds the pool busy runs on its own thread. Answers whether the workers were called.
  bool run(std::int64_t n, std::int64_t grain, ParallelBody body, void* context);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How many forks led to this process, since somebody first asked or made a pool. A child has none of its parent's threads.
std::uint32_t forks() noexcept;

/// Physical cores that this process may run on (affinity and cgroup limits counted); at least 1.
int physical_cores();

}  // namespace tack
