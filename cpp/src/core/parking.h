// core/parking.h -- puts a thread to sleep on a 32-bit word and wakes sleepers: parking_linux.cpp, parking_elsewhere.cpp.
#pragma once

#include <atomic>
#include <cstdint>

namespace tack::parking {

/// Sleeps while `word` holds `expected`. May return early for no reason: call it in a loop that looks at the word.
void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) noexcept;

/// Wakes up to `count` threads that sleep on `word`, or all. Change the word first.
void wake(std::atomic<std::uint32_t>& word, std::uint32_t count) noexcept;

}  // namespace tack::parking
