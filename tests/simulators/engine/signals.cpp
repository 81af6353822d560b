// engine/signals.cpp -- the signal handlers.
#include "signals.h"

#include <csignal>
#include <cstdio>
#include <cstring>
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

// A kernel that overruns its stack leaves none for the handler.
constexpr std::size_t signal_stack_size = 64 * 1024;
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

}  // namespace

FaultGuard::FaultGuard(Handler handler) {
  signal_stack.resize(signal_stack_size);
  stack_t mine{};
  mine.ss_sp = signal_stack.data();
  mine.ss_size = signal_stack.size();
  sigaltstack(&mine, &stack_before);
  guard = handler;
}

FaultGuard::~FaultGuard() {
  guard = nullptr;
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
  });
}

}  // namespace sim
