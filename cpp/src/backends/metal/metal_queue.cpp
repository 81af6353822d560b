// backends/metal/metal_queue.cpp -- commits, waits, and keeps the first failure until somebody waits.
#include "backends/metal/metal_queue.h"

#include <cstddef>
#include <utility>

namespace tack::metal {

namespace {
constexpr std::size_t most_failures = 16;  // that are kept until somebody waits
}

CommandQueue::CommandQueue(const Metal& metal, Log& log, abi::Object device) : metal_(metal), log_(log), queue_(metal) {
  metal_("make a command queue", metal_.queue, device, queue_.place());
}

void CommandQueue::commit(Ref commands, const std::string& what) {
  Work work{std::make_shared<const Ref>(std::move(commands)), what};
  const std::lock_guard lock(mutex_);
  sweep();
  given_.push_back(std::move(work));  // first, so that nothing runs that is not known here
  metal_.commit(given_.back().commands->get());
}

void CommandQueue::sweep() {
  abi::Problem problem;
  while (!given_.empty()) {
    const Work& work = given_.front();
    const abi::Progress progress = metal_.progress(work.commands->get(), &problem);
    if (progress == abi::Progress::pending) return;
    if (progress == abi::Progress::failed && failures_.size() < most_failures) failures_.push_back(metal_.queued_error(work.what, problem));
    given_.pop_front();
    ++ended_;
  }
}

bool CommandQueue::idle() {
  const std::lock_guard lock(mutex_);
  sweep();
  return given_.empty();
}

void CommandQueue::drain() {
  std::uint64_t all = 0;
  for (bool first = true;; first = false) {
    std::shared_ptr<const Ref> commands;
    {
      const std::lock_guard lock(mutex_);
      sweep();
      if (first) all = ended_ + given_.size();
      if (ended_ >= all) return;
      // Usually all are done when the last one is; Metal promises the order in which they start.
      commands = (first ? given_.back() : given_.front()).commands;
    }
    // Without the lock: other threads go on giving work.
    abi::Problem problem;
    metal_.wait(commands->get(), &problem);
  }
}

void CommandQueue::wait() {
  drain();
  std::vector<Error> failures;
  {
    const std::lock_guard lock(mutex_);
    failures.swap(failures_);
  }
  for (std::size_t i = 1; i < failures.size(); ++i) log_.write(LogLevel::error, failures[i].what());
  if (!failures.empty()) throw Error(failures.front());
}

}  // namespace tack::metal
