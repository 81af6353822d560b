// core/thread_host.h -- what the thread pool asks of the operating system: thread_host_posix.cpp, thread_host_windows.cpp.
#pragma once

#include <memory>
#include <string>

namespace tack::thread_host {

/// Has `f` called in every child process that fork makes from now on; does nothing where there is no fork.
void at_fork_in_child(void (*f)());

/// For debuggers and profilers.
void name_this_thread(const std::string& name) noexcept;

/// Threads made inside this scope receive no asynchronous signals: those belong to the application's threads.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  struct Before;
  std::unique_ptr<Before> before_;  // null where there are no such signals
};

}  // namespace tack::thread_host
