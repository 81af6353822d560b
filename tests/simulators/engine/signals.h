// engine/signals.h -- faults of kernels, and of host code that touches device memory, as the signals of the host that they are.
#pragma once

#include <csignal>
#include <ctime>
#include <vector>

namespace sim {

// While one lives, a fault on this thread goes to the handler, which does not return; and so does, with the address of the code that runs,
// the end of the time that a kernel may take, where the handler may return and is called again a little later.
class FaultGuard {
 public:
  static constexpr int memory = 0, arithmetic = 1, instruction = 2, time = 3;
  using Handler = void (*)(int what, unsigned long address);

  // The handler runs on the stack given, since a kernel that overruns its own leaves none.
  FaultGuard(Handler handler, std::vector<char>& stack);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

 private:
  stack_t before_{};
  timer_t timer_{};
  bool timed_ = false;
};

// Installs the handlers, once: the driver stand-ins call it when they are initialised. What was installed before gets what is not ours.
void install_signal_handlers();

}  // namespace sim
