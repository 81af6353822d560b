// engine/queue.cpp -- the two orders: only what a wait needs, when it needs it; or on a thread, after delays, in any order that is allowed.
#include "queue.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "memory.h"

namespace sim {

Queue::Queue(int device) : legacy_(std::make_shared<Stream>()), device_(device), process_(getpid()) {
  legacy_->queue = this;
  if (settings().order == Order::delayed) worker_ = std::thread([this] { work(); });
}

void Queue::stop() {
  std::vector<std::function<void()>> dropped;  // they may hold what holds this queue, and a stream's last task is kept
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (const TaskPtr& task : pending_) {
      task->after.clear();
      if (!task->started) dropped.push_back(std::exchange(task->work, nullptr));
      task->done = true;
    }
    pending_.clear();
  }
  changed_.notify_all();
  if (!worker_.joinable()) return;
  if (getpid() == process_) {
    worker_.join();
  } else {
    worker_.detach();
  }
}

std::shared_ptr<Stream> Queue::stream(bool blocking) {
  const std::lock_guard lock(mutex_);
  auto made = std::make_shared<Stream>();
  made->queue = this;
  made->blocking = blocking;
  streams_.push_back(made);
  return made;
}

void Queue::remove(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(mutex_);
  std::erase(streams_, stream);
  if (stream->blocking && stream->last != nullptr && !stream->last->done) orphans_.push_back(stream->last);
}

TaskPtr Queue::submit(Stream& stream, std::function<void()> work, const TaskPtr& also_after) {
  const std::lock_guard lock(mutex_);
  auto task = std::make_shared<Task>();
  task->number = ++next_;
  if (!stop_) task->work = std::move(work);
  const auto behind = [&](const TaskPtr& before) {
    if (before != nullptr && !before->done) task->after.push_back(before);
  };
  behind(stream.last);
  behind(also_after);
  if (&stream == legacy_.get()) {
    for (const auto& other : streams_) {
      if (other->blocking) behind(other->last);
    }
    for (const TaskPtr& orphan : orphans_) behind(orphan);
    orphans_.clear();  // what comes later is behind this task
  } else if (stream.blocking) {
    behind(legacy_->last);
  }
  stream.last = task;
  task->done = stop_;
  if (stop_) return task;
  pending_.push_back(task);
  changed_.notify_all();
  return task;
}

TaskPtr Queue::mark(Stream& stream) {
  return &stream == legacy_.get() ? submit(stream, [] {}) : last(stream);
}

TaskPtr Queue::last(Stream& stream) {
  const std::lock_guard lock(mutex_);
  return stream.last;
}

// Runs a task whose predecessors are done, without the lock.
void Queue::run(std::unique_lock<std::mutex>& lock, const TaskPtr& task) {
  busy_ = true;
  task->started = true;
  lock.unlock();
  task->work();
  lock.lock();
  task->work = nullptr;
  task->after.clear();
  task->done = true;
  if (!pending_.empty() && pending_.front() == task) {  // a queue that was stopped meanwhile has none left
    pending_.pop_front();
  } else {
    std::erase(pending_, task);
  }
  busy_ = false;
  changed_.notify_all();
}

void Queue::run_needed(std::unique_lock<std::mutex>& lock, const TaskPtr& task) {
  std::vector<TaskPtr> needed, open{task};
  std::set<std::uint64_t> seen{task->number};
  while (!open.empty()) {
    const TaskPtr one = open.back();
    open.pop_back();
    needed.push_back(one);
    for (const TaskPtr& before : one->after) {
      if (!before->done && seen.insert(before->number).second) open.push_back(before);
    }
  }
  std::sort(needed.begin(), needed.end(), [](const TaskPtr& a, const TaskPtr& b) { return a->number < b->number; });
  const Memory::Opened opened(Memory::instance(), DeviceNumber{device_});  // once for all of them
  for (const TaskPtr& one : needed) {
    changed_.wait(lock, [&] { return !busy_ || one->done; });
    if (!one->done) run(lock, one);
  }
}

void Queue::wait(const TaskPtr& task) {
  if (task == nullptr) return;
  std::unique_lock lock(mutex_);
  if (task->done) return;
  if (worker_.joinable()) {
    changed_.wait(lock, [&] { return task->done || stop_; });
  } else {
    run_needed(lock, task);
  }
}

void Queue::wait_all() {
  const Memory::Opened opened(Memory::instance(), DeviceNumber{device_});  // once for all of it
  std::unique_lock lock(mutex_);
  while (!pending_.empty() && !stop_) {
    if (worker_.joinable()) {
      changed_.wait(lock);
    } else {
      run_needed(lock, TaskPtr(pending_.front()));
    }
  }
}

bool Queue::query(const TaskPtr& task) {
  if (task == nullptr) return true;
  std::unique_lock lock(mutex_);
  if (task->done) return true;
  // Not yet; but a program that asks until it is true must come to an end: the first of what is missing runs now.
  if (!worker_.joinable() && !busy_) {
    TaskPtr first = task;
    while (!first->after.empty()) {
      const auto before = std::find_if(first->after.begin(), first->after.end(), [](const TaskPtr& t) { return !t->done; });
      if (before == first->after.end()) break;
      first = *before;
    }
    run(lock, first);
  }
  return false;
}

// Any task that may run now; the newest one as often as the oldest.
TaskPtr Queue::choose() {
  std::vector<TaskPtr> ready;
  for (const TaskPtr& task : pending_) {
    if (std::all_of(task->after.begin(), task->after.end(), [](const TaskPtr& t) { return t->done; })) ready.push_back(task);
  }
  if (ready.empty()) return nullptr;
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return ready[random_ % ready.size()];
}

void Queue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !pending_.empty(); });
    if (stop_) return;
    changed_.wait_for(lock, settings().delay, [&] { return stop_; });
    if (stop_) return;
    const TaskPtr task = choose();
    if (task != nullptr) run(lock, task);
  }
}

}  // namespace sim
