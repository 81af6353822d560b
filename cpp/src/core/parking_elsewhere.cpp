// core/parking_elsewhere.cpp -- sleeping on a word: the C++ library's way, which on macOS and Windows is the system's own.
#include "core/parking.h"

namespace tack::parking {

void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) noexcept { word.wait(expected, std::memory_order_acquire); }

void wake(std::atomic<std::uint32_t>& word, std::uint32_t count) noexcept {
  if (count == 1) {
    word.notify_one();
  } else {
    word.notify_all();
  }
}

}  // namespace tack::parking
