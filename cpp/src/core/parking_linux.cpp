// core/parking_linux.cpp -- sleeping on a word: the futex.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "core/parking.h"

namespace tack::parking {

void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void wake(std::atomic<std::uint32_t>& word, std::uint32_t count) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count > INT_MAX ? INT_MAX : static_cast<int>(count), nullptr, nullptr, 0);
}

}  // namespace tack::parking
