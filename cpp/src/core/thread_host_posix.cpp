// core/thread_host_posix.cpp -- forks, threads' names, processors and signals on POSIX systems.
#include <pthread.h>
#if defined(__linux__)
#  include <sched.h>
#  include <sys/syscall.h>
#  include <unistd.h>
#endif

#include <csignal>
#include <cstddef>

#include "core/thread_host.h"

namespace tack::thread_host {

void at_fork_in_child(void (*f)()) { pthread_atfork(nullptr, nullptr, f); }

void name_this_thread(const std::string& name) noexcept {
#if defined(__APPLE__)
  pthread_setname_np(name.c_str());
#else
  pthread_setname_np(pthread_self(), name.c_str());
#endif
}

#if defined(__linux__)

int this_processor() noexcept { return sched_getcpu(); }

int this_thread() noexcept { return static_cast<int>(syscall(SYS_gettid)); }

Processors allowed_processors(int thread) noexcept {
  cpu_set_t set;
  static_assert(CPU_SETSIZE == Processors{}.size());
  Processors result;
  if (sched_getaffinity(thread, sizeof set, &set) != 0) return result;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = CPU_ISSET(i, &set);
  return result;
}

void allow_processors(int thread, const Processors& processors) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::size_t i = 0; i < processors.size(); ++i) {
    if (processors[i]) CPU_SET(i, &set);
  }
  sched_setaffinity(thread, sizeof set, &set);
}

#else

int this_processor() noexcept { return -1; }
int this_thread() noexcept { return 0; }
Processors allowed_processors(int /*thread*/) noexcept { return {}; }
void allow_processors(int /*thread*/, const Processors& /*processors*/) noexcept {}

#endif

struct SignalsBlocked::Before {
  sigset_t set;
};

SignalsBlocked::SignalsBlocked() : before_(std::make_unique<Before>()) {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before_->set);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_->set, nullptr); }

}  // namespace tack::thread_host
