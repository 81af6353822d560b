// engine/signals.cpp -- the signal handlers.
#include "signals.h"

#include <ucontext.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <vector>

#include <unistd.h>

#include "control.h"
#include "memory.h"

namespace sim {
namespace {

struct Handled {
  int signal;
  int what;
  struct sigaction before;
};
Handled handled[] = {{SIGSEGV, FaultGuard::memory, {}},
                     {SIGBUS, FaultGuard::memory, {}},
                     {SIGFPE, FaultGuard::arithmetic, {}},
                     {SIGILL, FaultGuard::instruction, {}}};

thread_local FaultGuard::Handler guard = nullptr;

int timer_signal() { return SIGRTMIN + 7; }

// The running thread's own timer, which counts the processor's time.
struct Timer {
  Timer() {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = timer_signal();
    event._sigev_un._tid = gettid();
    usable = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0;
  }
  ~Timer() {
    if (usable) timer_delete(timer);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void set(long seconds, long nanoseconds = 0) const {
    itimerspec when{};
    when.it_value.tv_sec = seconds;
    when.it_value.tv_nsec = nanoseconds;
    if (usable) timer_settime(timer, 0, &when, nullptr);
  }

  timer_t timer{};
  bool usable = false;
};

const Timer& own_timer() {
  thread_local const Timer timer;
  return timer;
}

unsigned long running_code(void* context) {
  const mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<unsigned long>(machine.gregs[REG_RIP]);
#else
  return machine.pc;
#endif
}

// A kernel that overruns its stack leaves none for the handler.
constexpr std::size_t signal_stack_size = 65536;
thread_local std::vector<char> signal_stack;
thread_local stack_t stack_before{};

void pass_on(const Handled& one, int signal, siginfo_t* info, void* context) {
  if ((one.before.sa_flags & SA_SIGINFO) != 0 && one.before.sa_sigaction != nullptr) return one.before.sa_sigaction(signal, info, context);
  if (one.before.sa_handler != SIG_DFL && one.before.sa_handler != SIG_IGN) return one.before.sa_handler(signal);
  sigaction(signal, &one.before, nullptr);  // the instruction runs again and ends the process
}

void on_signal(int signal, siginfo_t* info, void* context) {
  for (const Handled& one : handled) {
    if (one.signal != signal) continue;
    const auto address = reinterpret_cast<unsigned long>(info->si_addr);
    if (guard != nullptr) guard(one.what, address);
    if (one.what == FaultGuard::memory && Memory::instance().is_device_address(address)) {
      char text[320];
      std::snprintf(text, sizeof text, "simulator of %s: host code touches device memory at 0x%lx, %s\n", library_name, address,
                    Memory::instance().describe(address).c_str());
      [[maybe_unused]] const ssize_t n = write(2, text, std::strlen(text));
    }
    return pass_on(one, signal, info, context);
  }
}

void on_timer(int, siginfo_t*, void* context) {
  if (guard == nullptr) return;
  guard(FaultGuard::time, running_code(context));
  own_timer().set(0, 1'000'000);
}

}  // namespace

FaultGuard::FaultGuard(Handler handler) {
  signal_stack.resize(signal_stack_size);
  stack_t mine{};
  mine.ss_sp = signal_stack.data();
  mine.ss_size = signal_stack.size();
  sigaltstack(&mine, &stack_before);
  guard = handler;
  if (settings().timeout > 0) own_timer().set(settings().timeout);
}

FaultGuard::~FaultGuard() {
  guard = nullptr;
  if (settings().timeout > 0) own_timer().set(0);
  sigaltstack(&stack_before, nullptr);
}

void install_signal_handlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (Handled& one : handled) {
      struct sigaction mine{};
      mine.sa_sigaction = on_signal;
      mine.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // the handler may leave by a switch to another stack
      sigaction(one.signal, &mine, &one.before);
    }
    struct sigaction timer{};
    timer.sa_sigaction = on_timer;
    timer.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    sigaction(timer_signal(), &timer, nullptr);
  });
}

}  // namespace sim
