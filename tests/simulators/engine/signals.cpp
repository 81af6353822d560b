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

// Of the running thread's guard.
thread_local timer_t* timer = nullptr;

void set_timer(const timer_t& which, long seconds, long nanoseconds) {
  itimerspec when{};
  when.it_value.tv_sec = seconds;
  when.it_value.tv_nsec = nanoseconds;
  timer_settime(which, 0, &when, nullptr);
}

unsigned long running_code(void* context) {
  const mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<unsigned long>(machine.gregs[REG_RIP]);
#else
  return machine.pc;
#endif
}

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
  if (timer != nullptr) set_timer(*timer, 0, 1'000'000);
}

}  // namespace

FaultGuard::FaultGuard(Handler handler, std::vector<char>& stack) {
  stack_t mine{};
  mine.ss_sp = stack.data();
  mine.ss_size = stack.size();
  sigaltstack(&mine, &before_);
  guard = handler;
  if (settings().timeout == 0) return;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = timer_signal();
  event._sigev_un._tid = gettid();
  timed_ = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
  if (!timed_) return;
  timer = &timer_;
  set_timer(timer_, settings().timeout, 0);
}

FaultGuard::~FaultGuard() {
  guard = nullptr;
  timer = nullptr;
  if (timed_) timer_delete(timer_);
  sigaltstack(&before_, nullptr);
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
    struct sigaction timed{};
    timed.sa_sigaction = on_timer;
    timed.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    sigaction(timer_signal(), &timed, nullptr);
  });
}

}  // namespace sim
