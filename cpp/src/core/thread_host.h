// core/thread_host.h -- what the thread pool asks of the operating system: thread_host_posix.cpp, thread_host_windows.cpp.
#pragma once

#include <bitset>
#include <memory>
#include <string>

namespace tack::thread_host {

/// Has `f` called in every child process that fork makes from now on; does nothing where there is no fork.
void at_fork_in_child(void (*f)());

/// For debuggers and profilers.
void name_this_thread(const std::string& name) noexcept;

/// The logical processor that the calling thread runs on; negative where threads can't be moved anyway.
int this_processor() noexcept;

/// The calling thread, for the functions below.
int this_thread() noexcept;

/// Logical processors, one bit each.
using Processors = std::bitset<1024>;

/// Those that `thread` may run on; none where the system doesn't tell, also where it has more than fit.
Processors allowed_processors(int thread) noexcept;
/// Has `thread`, running or asleep, run on these only. Refused (and nothing done) where the process has none of them.
void allow_processors(int thread, const Processors& processors) noexcept;

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
