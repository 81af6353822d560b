// test_cpu_launch.cpp -- what is around a kernel on the CPU: floating-point mode, the pool or what stands for it, direct launches, threads,
// fork.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/float_mode.h"
#include "cpu_support.h"

using tack::Config;
using tack::DeviceOptions;
using tack::Runtime;

using namespace tack::testing;

namespace {

/// What the kernel's threads found their floating-point mode to be.
struct Modes {
  std::atomic<int> wrong{0}, pieces{0};
};
void look_at_mode(const std::uint64_t* words, std::int64_t begin, std::int64_t end) {
  Modes& modes = argument<Modes>(words);
  modes.pieces.fetch_add(1);
  const volatile float smallest = std::numeric_limits<float>::min();
  const bool subnormals = smallest / 2 != 0;
  const volatile float one = 1.0f,
                       less_than_half_a_step = 1e-10f;  // by arithmetic: fegetround tells of the x87's mode, which kernels don't use
  const bool to_nearest = one + less_than_half_a_step == one && -one - less_than_half_a_step == -one;
  if (!to_nearest || !subnormals) modes.wrong.fetch_add(1);
  busy_for(std::chrono::microseconds(200 * (end - begin)));
}

}  // namespace

TEST_CASE("kernels run in the default floating-point mode, and the caller's is back afterwards") {
  for (const int threads : {1, 2}) {
    for (const double hint : {-1.0, 1e-9, 1e6}) {  // timed or probed, without a clock, parallel at once
      CAPTURE(threads);
      CAPTURE(hint);
      Machine machine(threads);
      const auto module = machine.module(look_at_mode, hint);
      Modes modes;
      std::fenv_t before;
      std::fegetenv(&before);
      std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
      _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, subnormals are zero
      const unsigned mine = _mm_getcsr();
#endif
      for (int i = 0; i < 3; ++i) machine.launch(*module, 8, &modes);
      const int rounding = std::fegetround();
#if defined(__x86_64__)
      const unsigned after = _mm_getcsr();
#endif
      std::fesetenv(&before);
      CHECK(rounding == FE_UPWARD);
#if defined(__x86_64__)
      CHECK(after == mine);
#endif
      CHECK(modes.pieces > 0);
      CHECK(modes.wrong == 0);
      if (threads == 2 && hint > 1) CHECK(statistics(*module).parallel > 0);
    }
  }
}

TEST_CASE("workers too are put into the default mode, piece by piece") {
  // A host's thread may have any mode: here one that flushes and rounds upward.
  Machine machine(2);
  machine.runtime->set_parallel_for([](std::int64_t n, std::int64_t, int, tack::ParallelBody body, void* context) {
    std::thread([&] {
      std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
      _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
      body(context, 0, n);
      CHECK(std::fegetround() == FE_UPWARD);
    }).join();
  });
  const auto module = machine.module(look_at_mode, 1e6);
  Modes modes;
  machine.launch(*module, 8, &modes);
  CHECK(modes.pieces == 1);
  CHECK(modes.wrong == 0);
}

TEST_CASE("a host's scheduler replaces the pool, and gives it back") {
  Machine machine(3);
  std::atomic<int> calls{0};
  std::atomic<bool> asked_rightly{true};
  machine.runtime->set_parallel_for([&](std::int64_t n, std::int64_t grain, int threads, tack::ParallelBody body, void* context) {
    calls.fetch_add(1);
    if (threads != 3 || grain < 1) asked_rightly = false;
    for (std::int64_t begin = 0; begin < n; begin += grain) body(context, begin, std::min(n, begin + grain));
  });
  const auto module = machine.module(count_each, 1e6);
  Counts counts(1000);
  machine.launch(*module, 1000, &counts);
  CHECK(all_are(counts, 1));
  CHECK(calls > 0);
  CHECK(asked_rightly);
  CHECK(statistics(*module).parallel == 1);
  CHECK(machine.cpu().schedule().threads() == 3);

  machine.runtime->set_parallel_for({});
  const int before = calls;
  const auto other = machine.module(count_each, 1e6);
  machine.launch(*other, 1000, &counts);
  CHECK(all_are(counts, 2));
  CHECK(calls == before);
}

TEST_CASE("TACK_CPU_POOL=python without such a pool: one warning, and the native one") {
  Config config = quiet();
  config.cpu_pool = "python";
  Machine machine(2, config);
  std::mutex mutex;
  std::vector<std::string> messages;
  machine.runtime->set_log_sink([&](tack::LogLevel, std::string_view message) {
    const std::lock_guard lock(mutex);
    messages.emplace_back(message);
  });
  const auto module = machine.module(millisecond_each);
  for (int i = 0; i < 3; ++i) machine.launch(*module, 8);
  CHECK(statistics(*module).parallel == 3);
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find("TACK_CPU_POOL") != std::string::npos);
}

TEST_CASE("where no thread can start: one warning, and the calling thread does it all") {
  if (thread_sanitizer || address_sanitizer) return;  // they need room that the child forbids itself
  CHECK(in_child([] {
          Machine machine(2);
          std::vector<std::string> messages;
          machine.runtime->set_log_sink([&](tack::LogLevel, std::string_view message) { messages.emplace_back(message); });
          const auto module = machine.module(count_each, 1e6);
          Counts counts(1000);
          forbid_new_threads();
          for (int i = 0; i < 3; ++i) machine.launch(*module, 1000, &counts);
          const auto s = statistics(*module);
          if (!all_are(counts, 3)) return 1;
          if (s.serial != 3 || s.parallel != 0 || s.fan_out_ns >= 0) return 2;
          return messages.size() == 1 && messages[0].find("could not start a thread") != std::string::npos ? 7 : 3;
        }) == 7);
}

TEST_CASE("where no thread can start and the host has a fallback: one warning, and the fallback does it") {
  if (thread_sanitizer || address_sanitizer) return;
  CHECK(in_child([] {
          Machine machine(2);
          std::vector<std::string> messages;
          machine.runtime->set_log_sink([&](tack::LogLevel, std::string_view message) { messages.emplace_back(message); });
          int calls = 0;
          machine.runtime->set_parallel_for_fallback(
              [&](std::int64_t n, std::int64_t grain, int threads, tack::ParallelBody body, void* context) {
                if (threads == 2 && grain >= 1) ++calls;
                body(context, 0, n);
              });
          const auto module = machine.module(count_each, 1e6);
          Counts counts(1000);
          forbid_new_threads();
          for (int i = 0; i < 3; ++i) machine.launch(*module, 1000, &counts);
          if (!all_are(counts, 3)) return 1;
          if (calls < 1 || statistics(*module).parallel < 1) return 2;
          if (messages.size() != 1 || messages[0].find("the host program's own threads") == std::string::npos) return 3;
          machine.runtime->set_parallel_for_fallback({});
          const auto other = machine.module(count_each, 1e6);
          const int before = calls;
          machine.launch(*other, 1000, &counts);
          return all_are(counts, 4) && calls == before && statistics(*other).serial == 1 ? 7 : 4;
        }) == 7);
}

TEST_CASE("a fallback is not used while the pool works") {
  Machine machine(2);
  std::atomic<int> calls{0};
  machine.runtime->set_parallel_for_fallback([&](std::int64_t n, std::int64_t, int, tack::ParallelBody body, void* context) {
    ++calls;
    body(context, 0, n);
  });
  const auto module = machine.module(count_each, 1e6);
  Counts counts(1000);
  machine.launch(*module, 1000, &counts);
  CHECK(all_are(counts, 1));
  CHECK(calls == 0);
}

TEST_CASE("direct launches: short ones only, counted, in the default floating-point mode") {
  Machine machine(2);
  const auto module = machine.module(count_each, 0.1);
  const tack::DirectLaunch direct = module->direct(0);
  const bool offered = direct.run != nullptr;
  REQUIRE(offered);
  Counts counts(10);
  const std::array<std::uint64_t, 1> words{reinterpret_cast<std::uint64_t>(&counts)};
  CHECK(direct.run(direct.context, words.data(), 10));
  CHECK(all_are(counts, 1));
  CHECK(statistics(*module).serial == 1);
  CHECK_FALSE(direct.run(direct.context, words.data(), 1000000));
  CHECK(all_are(counts, 1));
  const auto unknown = machine.module(count_each);  // nobody can say that it is short
  const tack::DirectLaunch timed = unknown->direct(0);
  CHECK_FALSE(timed.run(timed.context, words.data(), 1));

  const auto looking = machine.module(look_at_mode, 1e-9);
  Modes modes;
  const std::array<std::uint64_t, 1> mode_words{reinterpret_cast<std::uint64_t>(&modes)};
  std::fenv_t before;
  std::fegetenv(&before);
  std::fesetround(FE_UPWARD);
  const tack::DirectLaunch look = looking->direct(0);
  const bool ran = look.run(look.context, mode_words.data(), 8);
  const int rounding = std::fegetround();
  std::fesetenv(&before);
  CHECK(ran);
  CHECK(rounding == FE_UPWARD);
  CHECK(modes.pieces == 1);
  CHECK(modes.wrong == 0);
}

TEST_CASE("launches of one kernel from several threads, each with its own arguments") {
  Machine machine(2);
  const auto module = machine.module(count_each);
  std::atomic<bool> right{true};
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        Counts counts(20000);
        machine.launch(*module, 20000, &counts);
        if (!all_are(counts, 1)) right = false;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(right);
  const auto s = statistics(*module);
  CHECK(s.serial + s.parallel == 200);
}

TEST_CASE("a kernel that launches another one") {
  static Machine* inner_machine;
  static CpuModule* inner_module;
  Machine machine(2);
  const auto inner = machine.module(count_each, 1e6);
  inner_machine = &machine;
  inner_module = inner.get();
  const auto outer = machine.module(
      [](const std::uint64_t* words, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) inner_machine->launch(*inner_module, 100, &argument<Counts>(words));
      },
      1e6);
  Counts counts(100);
  machine.launch(*outer, 16, &counts);
  CHECK(all_are(counts, 16));
}

TEST_CASE("a child of fork launches in parallel as its parent does") {
  if (thread_sanitizer) return;  // it refuses threads in a child of fork
  Machine machine(2);
  const auto module = machine.module(millisecond_each);
  machine.launch(*module, 8);
  const std::uint64_t before = statistics(*module).parallel;
  CHECK(in_child([&] {
          machine.launch(*module, 8);
          return statistics(*module).parallel == before + 1 ? 7 : 1;
        }) == 7);
  machine.launch(*module, 8);
  CHECK(statistics(*module).parallel == before + 1);
}
