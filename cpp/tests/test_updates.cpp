// test_updates.cpp -- launches with atomics: alone without locked instructions, else with them, and no update lost.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "core/updates.h"
#include "cpu_support.h"

using tack::Updates;

using namespace tack::testing;

namespace {

/// What kernels add to: one number for all iterations, and how many of these were done by plain instructions.
struct Sum {
  std::int64_t total = 0, plain = 0;
  std::atomic<bool> begun{false};
};

void add_among_others(const std::uint64_t* words, std::int64_t begin, std::int64_t end) {
  const std::atomic_ref<std::int64_t> total(argument<Sum>(words).total);
  for (std::int64_t i = begin; i < end; ++i) total.fetch_add(1, std::memory_order_relaxed);
}
void add_alone(const std::uint64_t* words, std::int64_t begin, std::int64_t end) {
  Sum& sum = argument<Sum>(words);
  sum.begun = true;
  for (std::int64_t i = begin; i < end; ++i) {
    ++sum.total;
    ++sum.plain;
  }
}
/// Ten microseconds an iteration.
void add_slowly_alone(const std::uint64_t* words, std::int64_t begin, std::int64_t end) {
  add_alone(words, begin, end);
  busy_for(std::chrono::microseconds(10 * (end - begin)));
}

std::unique_ptr<CpuModule> adding(Machine& machine, EntryFunction alone, double hint = -1.0) {
  return std::make_unique<CpuModule>(machine.cpu().schedule(), "k", nullptr,
                                     std::vector<CpuModule::Function>{{"f", {.usual = add_among_others, .alone = alone}, hint}});
}

}  // namespace

TEST_CASE("a launch on one thread is alone if its arrays are nobody else's") {
  Machine machine(1);
  for (const double hint : {-1.0, 1e-9, 1e6}) {  // timed, certainly short, certainly long
    CAPTURE(hint);
    const auto module = adding(machine, add_alone, hint);
    Sum own, shared;
    for (int i = 0; i < 3; ++i) {
      machine.launch(*module, 1000, &own, false);
      machine.launch(*module, 1000, &shared, true);
    }
    CHECK(own.total == 3000);
    CHECK(own.plain == 3000);
    CHECK(shared.total == 3000);
    CHECK(shared.plain == 0);
    const bool direct = module->direct(0).run != nullptr;
    CHECK_FALSE(direct);  // nobody would look after the others
  }
}

TEST_CASE("a launch over several threads is not alone") {
  Machine machine(2);
  const auto module = adding(machine, add_alone, 1e6);
  Sum sum;
  machine.launch(*module, 1000, &sum, false);
  CHECK(sum.total == 1000);
  CHECK(sum.plain == 0);
}

TEST_CASE("who is alone goes on with the others as soon as they come") {
  Machine machine(1);
  const auto slow = adding(machine, add_slowly_alone), quick = adding(machine, add_alone);
  Sum sum;
  constexpr std::int64_t slow_count = 100000;  // a second, alone
  std::thread first([&] { machine.launch(*slow, slow_count, &sum, false); });
  const bool begun = eventually([&] { return sum.begun.load(); });
  machine.launch(*quick, 1000, &sum, false);
  first.join();
  CHECK(begun);
  CHECK(sum.total == slow_count + 1000);
  CHECK(sum.plain > 0);
  CHECK(sum.plain < slow_count);
}

TEST_CASE("launches from many threads lose no update, whoever is alone") {
  Machine machine(2);
  const auto module = adding(machine, add_alone);
  Sum sum;
  std::vector<std::thread> callers;
  constexpr int threads = 4, launches = 200;
  for (int t = 0; t < threads; ++t) {
    callers.emplace_back([&, t] {
      for (int k = 0; k < launches; ++k) machine.launch(*module, 50 + 1000 * (k % 3), &sum, (k + t) % 4 == 0);
    });
  }
  for (std::thread& caller : callers) caller.join();
  std::int64_t expected = 0;
  for (int k = 0; k < launches; ++k) expected += threads * (50 + 1000 * (k % 3));
  CHECK(sum.total == expected);
}

TEST_CASE("nobody is alone beside a device that works on its own") {
  Machine machine(1);
  machine.runtime->impl().updates.never_alone();
  const auto module = adding(machine, add_alone);
  Sum sum;
  machine.launch(*module, 1000, &sum, false);
  CHECK(sum.total == 1000);
  CHECK(sum.plain == 0);
}

TEST_CASE("a child of fork does not wait for its parent's launches") {
  Updates updates;
  Updates::Part mine(updates, true);
  CHECK(mine.alone());
  const int code = in_child([&] {
    Updates::Part its(updates, true);
    return its.alone() ? 0 : 1;
  });
  CHECK(code == 0);
  CHECK(mine.alone());
}
