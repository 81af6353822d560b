// core/updates.cpp -- who is alone, in one word.
#include "core/updates.h"

#include <chrono>
#include <thread>

#include "core/thread_pool.h"

namespace tack {

namespace {

constexpr std::uint64_t is_alone = std::uint64_t{1} << 31, is_awaited = std::uint64_t{1} << 30;
constexpr std::uint64_t of_process = ~std::uint64_t{0} << 32;
constexpr int patience = 200;  // looks at the word before a waiting thread sleeps
constexpr std::chrono::microseconds nap{20};

std::uint64_t this_process() noexcept { return std::uint64_t{forks()} << 32; }

}  // namespace

Updates::Updates() noexcept : state_(this_process()) {}

void Updates::never_alone() noexcept {
  never_.store(true, std::memory_order_seq_cst);
  const Part part(*this, false);
}

Updates::Part::Part(Updates& updates, bool alone) noexcept : updates_(updates), process_(this_process()) {
  std::atomic<std::uint64_t>& state = updates.state_;
  std::uint64_t seen = state.load(std::memory_order_relaxed);
  for (int looks = 0;;) {
    const std::uint64_t now = (seen & of_process) == process_ ? seen : process_;
    if ((now & is_alone) != 0) {
      if ((now & is_awaited) == 0 && !state.compare_exchange_weak(seen, now | is_awaited, std::memory_order_relaxed)) continue;
      if (++looks < patience)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(nap);
      seen = state.load(std::memory_order_relaxed);
      continue;
    }
    alone_ = alone && now == process_;
    // In one order with never_alone(): either it finds this launch, or the launch finds what it said.
    if (state.compare_exchange_weak(seen, alone_ ? now | is_alone : now + 1, std::memory_order_seq_cst)) break;
  }
  if (alone_ && updates.never_.load(std::memory_order_seq_cst)) join();
}

Updates::Part::~Part() {
  // What was updated without locks is there for whoever comes next.
  if (alone_)
    updates_.state_.store(process_, std::memory_order_release);
  else
    updates_.state_.fetch_sub(1, std::memory_order_release);
}

bool Updates::Part::alone() noexcept {
  if (alone_ && (updates_.state_.load(std::memory_order_relaxed) & is_awaited) != 0) join();
  return alone_;
}

/// Goes on as one of several.
void Updates::Part::join() noexcept {
  alone_ = false;
  updates_.state_.store(process_ | 1, std::memory_order_release);
}

}  // namespace tack
