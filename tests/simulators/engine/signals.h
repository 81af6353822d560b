// engine/signals.h -- faults of kernels, and of host code that touches device memory, as the signals of the host that they are.
#pragma once

namespace sim {

// While one lives, a fault on this thread goes to the handler, which does not return; and so does, with the address of the code that runs,
// the end of the time that a kernel may take, where the handler may return and is called again a little later.
class FaultGuard {
 public:
  static constexpr int memory = 0, arithmetic = 1, instruction = 2, time = 3;
  using Handler = void (*)(int what, unsigned long address);

  explicit FaultGuard(Handler handler);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;
};

// Installs the handlers, once: the driver stand-ins call it when they are initialised. What was installed before gets what is not ours.
void install_signal_handlers();

}  // namespace sim
