// pool_support.h -- what the tests of the thread pool and of the CPU device share: deadlines, child processes, sanitizers.
#pragma once

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

namespace tack::testing {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool address_sanitizer = true;
#else
inline constexpr bool address_sanitizer = false;
#endif

inline void busy_for(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// Waits until `done()`; false after ten seconds, so that a defect fails instead of hanging.
template <class Done>
bool eventually(Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

/// Runs `body` in a child of fork; answers what it returned, or -1 for a child that crashed or did not end in 20 s.
template <class Body>
int in_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int code = 99;
    try {
      code = body();
    } catch (...) {
      code = 98;
    }
    _exit(code);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// From here on this process can start no thread: it can map no stack for one, and those that are left over are taken. For children only.
inline void forbid_new_threads() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto now = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  const rlimit limit{now + (1u << 20), now + (1u << 20)};
  setrlimit(RLIMIT_AS, &limit);
  for (bool started = true; started;) {
    try {
      std::thread([] {
        for (;;) pause();
      }).detach();
    } catch (const std::system_error&) {
      started = false;
    }
  }
}

}  // namespace tack::testing
