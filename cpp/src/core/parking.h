// core/parking.h -- puts a thread to sleep on a 32-bit word and wakes sleepers: the futex on Linux, std::atomic elsewhere.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__linux__)
#  include <linux/futex.h>
#  include <sys/syscall.h>
#  include <unistd.h>

#  include <climits>
#endif

namespace tack::parking {

/// Sleeps while `word` holds `expected`. May return early for no reason: call it in a loop that looks at the word.
inline void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
#if defined(__linux__)
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
#else
  word.wait(expected, std::memory_order_acquire);
#endif
}

/// Wakes up to `count` threads that sleep on `word`. Change the word first.
inline void wake(std::atomic<std::uint32_t>& word, std::uint32_t count) noexcept {
#if defined(__linux__)
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count > INT_MAX ? INT_MAX : static_cast<int>(count), nullptr, nullptr, 0);
#else
  if (count == 1) {
    word.notify_one();
  } else {
    word.notify_all();
  }
#endif
}

/// A hint for the body of a spin loop.
inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) && !defined(_MSC_VER)
  asm volatile("isb" ::: "memory");  // about as long as x86's pause; "yield" does nothing on most cores
#endif
}

}  // namespace tack::parking
