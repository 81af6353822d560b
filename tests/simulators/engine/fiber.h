// engine/fiber.h -- stacks that take turns on one thread: one for each GPU thread that waits at a barrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sim {

class Fibers;

struct Fiber {
  void* stack_pointer = nullptr;
  std::uintptr_t stack = 0;
  std::size_t stack_size = 0;
};

// The fibers of one thread of the host. Each runs the same function, again and again; where that returns it switches back.
class Fibers {
 public:
  explicit Fibers(void (*body)()) : body_(body) {}
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  Fiber& get(std::size_t index);
  // To the fiber, until it switches back.
  void resume(Fiber& fiber);
  // From the running fiber back to resume's caller.
  void back();
  // Forgets what all fibers were doing: each starts anew when it is next resumed.
  void reset();
  const Fiber* running() const { return running_; }

  // What a new fiber does for ever.
  void work() {
    body_();
    back();
  }

 private:
  void prepare(Fiber& fiber);

  void (*body_)();
  std::vector<Fiber> fibers_;
  void* main_ = nullptr;
  Fiber* running_ = nullptr;
};

}  // namespace sim
