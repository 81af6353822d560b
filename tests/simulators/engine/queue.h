// engine/queue.h -- a device's queued work: streams, what waits for what, and when it runs.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "control.h"

namespace sim {

struct Task {
  std::uint64_t number = 0;
  std::function<void()> work;
  std::vector<std::shared_ptr<Task>> after;
  bool done = false, started = false;
};
using TaskPtr = std::shared_ptr<Task>;

class Queue;

struct Stream {
  Queue* queue = nullptr;
  bool blocking = true;  // takes part in the legacy default stream's ordering
  TaskPtr last;
};

// The work of one context. Thread-safe. Work is never run while the queue's own lock is held, and never two tasks at once.
class Queue {
 public:
  explicit Queue(int device);
  ~Queue() { stop(); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  std::shared_ptr<Stream> legacy() const { return legacy_; }
  std::shared_ptr<Stream> stream(bool blocking);
  // Ends it: what has not run is dropped, and what is submitted later.
  void stop();
  // Takes part in no ordering any more; its queued work remains.
  void remove(const std::shared_ptr<Stream>& stream);

  // Queues work behind all that the stream's rules put before it.
  TaskPtr submit(Stream& stream, std::function<void()> work, const TaskPtr& also_after = nullptr);
  // Until the task is done.
  void wait(const TaskPtr& task);
  // Until all is done.
  void wait_all();
  // Whether it is done. Asked again and again it becomes done.
  bool query(const TaskPtr& task);
  // A task whose end means that all work given to the stream is done; for the legacy stream, that of all blocking streams.
  TaskPtr mark(Stream& stream);
  // The stream's last task, null if it never had one.
  TaskPtr last(Stream& stream);

 private:
  void run(std::unique_lock<std::mutex>& lock, const TaskPtr& task);
  void run_needed(std::unique_lock<std::mutex>& lock, const TaskPtr& task);
  void work();
  TaskPtr choose();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Stream> legacy_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::vector<TaskPtr> orphans_;  // last tasks of destroyed streams
  std::deque<TaskPtr> pending_;
  std::uint64_t next_ = 0;
  std::uint64_t random_ = 88172645463325252ull;
  int device_;
  bool busy_ = false, stop_ = false;
  std::thread worker_;
  int process_;  // a forked child has no worker
};

}  // namespace sim
