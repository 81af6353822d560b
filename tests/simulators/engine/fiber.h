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

// The fibers of one thread of the host. All run the same function, which never returns: it switches back when it has nothing to do.
class Fibers {
 public:
  Fibers(void (*body)(void*), void* argument) : body_(body), argument_(argument) {}
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

  // For the entry of a new fiber.
  void enter() { body_(argument_); }

 private:
  void prepare(Fiber& fiber);

  void (*body_)(void*);
  void* argument_;
  std::vector<Fiber> fibers_;
  void* main_ = nullptr;
  Fiber* running_ = nullptr;
};

}  // namespace sim
