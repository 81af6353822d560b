// core/thread_host_posix.cpp -- forks, threads' names and signals on POSIX systems.
#include <pthread.h>

#include <csignal>

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
