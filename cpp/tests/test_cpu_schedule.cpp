// test_cpu_schedule.cpp -- when a launch on the CPU uses threads: probes, hints, samples, what is measured.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "cpu_support.h"

using tack::Config;
using tack::DeviceOptions;
using tack::Runtime;
using tack::cpu::EntryCost;
using namespace tack::testing;

namespace {

/// A parallel launch that tells whether threads help.
void ran_parallel(EntryCost& cost, std::int64_t iterations, double busy_ns, double wall_ns) {
  cost.compared(iterations, wall_ns);
  cost.ran_parallel(iterations, busy_ns);
}

}  // namespace

TEST_CASE("every iteration runs once: serial, probed, parallel, on few and many threads") {
  for (const int threads : {1, 2, 5}) {
    Machine machine(threads);
    for (const double hint : {-1.0, 0.001, 1e6}) {  // unknown; far too low; so high that threads are used at once
      const auto module = machine.module(count_each, hint);
      for (const std::int64_t n : {1, 2, 3, 63, 64, 65, 1000, 100003}) {
        CAPTURE(threads);
        CAPTURE(hint);
        CAPTURE(n);
        Counts counts(static_cast<std::size_t>(n));
        machine.launch(*module, n, &counts);
        machine.launch(*module, n, &counts);
        CHECK(all_are(counts, 2));
      }
      const auto s = statistics(*module);
      CHECK(s.serial + s.parallel == 16);
    }
  }
}

TEST_CASE("cheap small loops stay on the calling thread") {
  Machine machine(2);
  for (const double hint : {-1.0, 0.5}) {
    const auto module = machine.module(cheap, hint);
    for (int i = 0; i < 3000; ++i) machine.launch(*module, 1000);
    const auto s = statistics(*module);
    CHECK(s.parallel == 0);
    CHECK(s.serial == 3000);
  }
}

TEST_CASE("expensive small loops fan out, from the first launch on") {
  Machine machine(2);
  const auto module = machine.module(millisecond_each);
  for (int i = 0; i < 4; ++i) machine.launch(*module, 8);
  const auto s = statistics(*module);
  CHECK(s.parallel == 4);
  CHECK(s.serial == 0);
}

TEST_CASE("one thread never fans out, and everything runs on the calling thread") {
  Machine machine(1);
  static std::thread::id caller;
  static std::atomic<bool> own;
  caller = std::this_thread::get_id();
  own = true;
  const auto module = machine.module([](const std::uint64_t*, std::int64_t begin, std::int64_t end) {
    if (std::this_thread::get_id() != caller) own = false;
    busy_for(std::chrono::microseconds(500 * (end - begin)));
  });
  for (int i = 0; i < 3; ++i) machine.launch(*module, 8);
  const auto s = statistics(*module);
  CHECK(s.serial == 3);
  CHECK(s.parallel == 0);
  CHECK(s.fan_out_ns < 0);
  CHECK(s.ns_per_iteration >= 490000);  // measured all the same: the binding decides about the GIL by it
  CHECK(own);
}

TEST_CASE("a loop whose cost depends on values is followed both ways") {
  Machine machine(2);
  const auto module = machine.module(as_told);
  const std::int64_t nothing = 0, much = 1000;
  for (int i = 0; i < 20; ++i) machine.launch(*module, 8, &nothing);
  CHECK(statistics(*module).parallel == 0);
  for (int i = 0; i < 12; ++i) machine.launch(*module, 8, &much);
  const std::uint64_t parallel = statistics(*module).parallel;
  CHECK(parallel >= 2);  // the first such launches come as a surprise
  for (int i = 0; i < 40; ++i) machine.launch(*module, 8, &nothing);
  const std::uint64_t unlearning = statistics(*module).parallel;
  for (int i = 0; i < 20; ++i) machine.launch(*module, 8, &nothing);
  CHECK(statistics(*module).parallel == unlearning);
}

TEST_CASE("a burst of launches that are each too short to wake the workers for wakes them in the end") {
  Machine machine(2);
  const std::int64_t five = 5;
  const auto module = machine.module(as_told, 5000);
  for (int i = 0; i < 100; ++i) machine.launch(*module, 16, &five);  // 8 ms in all: before anything is measured
  const auto s = statistics(*module);
  CHECK(s.parallel > 0);
  CHECK(s.serial > 0);
}

TEST_CASE("costs that were measured in a busy minute are measured again") {
  Machine machine(2);
  // A host whose second thread is elsewhere, until it does half of the work.
  std::atomic<bool> busy{true};
  machine.runtime->set_parallel_for(
      [&](std::int64_t n, std::int64_t, int, tack::ParallelBody body, void* context) { body(context, 0, busy.load() ? n : n / 2); });
  const std::int64_t one = 1;
  const auto module = machine.module(as_told, 1000);
  for (int i = 0; i < 2000; ++i) machine.launch(*module, 12, &one);
  CHECK(statistics(*module).fan_out_ns > 10000);
  CHECK(statistics(*module).parallel < 100);
  busy = false;
  const std::uint64_t before = statistics(*module).parallel;
  for (int i = 0; i < 50000 && statistics(*module).parallel < before + 100; ++i) machine.launch(*module, 12, &one);  // 0.6 s of work
  CHECK(statistics(*module).parallel >= before + 100);
  CHECK(statistics(*module).fan_out_ns < 10000);
  machine.runtime->set_parallel_for({});
}

TEST_CASE("threads get equally many pieces, which begin at multiples of a cache line's elements") {
  for (const std::int64_t n : {100000, 99999, 1000000, 12345}) {
    Machine machine(2);
    std::int64_t grain = 0;
    machine.runtime->set_parallel_for([&](std::int64_t count, std::int64_t g, int, tack::ParallelBody body, void* context) {
      if (count == n) grain = g;
      body(context, 0, count);
    });
    const auto module = machine.module(cheap, 1e5 / static_cast<double>(n) * 10);  // 1 ms by the hint
    machine.launch(*module, n);
    CAPTURE(n);
    REQUIRE(grain > 0);
    CHECK(grain % 64 == 0);
    const std::int64_t pieces = (n - 1) / grain + 1;
    CHECK(pieces <= 50);
    CHECK(n - (pieces - 1) * grain > grain - 64 * pieces);  // the last one is as long, but for what is rounded
    machine.runtime->set_parallel_for({});
  }
}

TEST_CASE("the costs can be read") {
  Machine machine(2);
  const auto module = machine.module(as_told);
  CHECK(statistics(*module).ns_per_iteration < 0);
  CHECK(module->predict(0, 100) == std::numeric_limits<double>::infinity());
  const std::int64_t ten = 10;
  for (int i = 0; i < 10; ++i) machine.launch(*module, 4, &ten);
  const auto s = statistics(*module);
  CHECK(s.ns_per_iteration >= 9900);
  CHECK(s.ns_per_iteration < 200000);
  CHECK(module->predict(0, 4) >= 4 * 9900);
  CHECK(module->predict(0, 0) == 0);
  CHECK(s.fan_out_ns > 0);
  const auto fan_out = machine.cpu().schedule().fan_out();
  CHECK(fan_out.warm == s.fan_out_ns);
  CHECK(fan_out.idle >= fan_out.warm);
}

TEST_CASE("what an entry costs: hints, samples, sizes") {
  SUBCASE("no clock for what is certainly short") {
    CHECK(EntryCost(0.5).certainly_short(8));
    CHECK_FALSE(EntryCost(0.5).certainly_short(100000));
    CHECK_FALSE(EntryCost(-1).certainly_short(1));
    EntryCost cost(10);
    CHECK_FALSE(cost.certainly_short(1000));
    for (int i = 0; i < 4; ++i) cost.ran_serial(1000, 1000);  // the hint was ten times too high
    CHECK(cost.certainly_short(1000));
    CHECK_FALSE(cost.certainly_short(1000000));
  }
  SUBCASE("nothing known, a hint, a measurement") {
    EntryCost nothing(-1);
    CHECK(nothing.predict(1) == std::numeric_limits<double>::infinity());
    EntryCost hinted(2);
    CHECK(hinted.predict(100) == doctest::Approx(200));
    hinted.ran_serial(100, 500);
    CHECK(hinted.predict(100) == doctest::Approx(500));
    CHECK(hinted.measured() == doctest::Approx(5));
    EntryCost nonsense(std::nan(""));
    CHECK(nonsense.varies());
  }
  SUBCASE("sizes that differ much are remembered apart") {
    EntryCost cost(1);
    cost.ran_serial(1000, 100);
    cost.ran_serial(10000000, 10000000);
    CHECK(cost.predict(1000) == doctest::Approx(100));
    CHECK(cost.predict(10000000) == doctest::Approx(10000000));
    CHECK(cost.predict(std::numeric_limits<std::int64_t>::max()) > 1e18);
  }
  SUBCASE("one interrupted run does not spoil what is known") {
    EntryCost cost(1);
    for (int i = 0; i < 10; ++i) cost.ran_serial(1000, 1000);
    cost.ran_serial(1000, 5000000);
    CHECK(cost.predict(1000) == doctest::Approx(1000));
    cost.ran_serial(1000, 1000);
    for (int i = 0; i < 40; ++i) cost.ran_serial(1000, 5000);  // again and again: no accident
    CHECK(cost.predict(1000) > 4500);
  }
  SUBCASE("threads that don't help are left out for a spell") {
    EntryCost cost(1);
    cost.ran_serial(1000000, 1000000);
    CHECK_FALSE(cost.holding_off());
    for (int i = 0; i < 40; ++i) ran_parallel(cost, 1000000, 2000000, 1100000);
    CHECK(cost.holding_off());
    while (cost.holding_off()) {
    }
    for (int i = 0; i < 40; ++i) ran_parallel(cost, 1000000, 1000000, 500000);
    CHECK_FALSE(cost.holding_off());
  }
  SUBCASE("the longer threads have not helped, the more rarely they are tried") {
    constexpr double serial_ns = 1e4, wall_ns = 2e4;
    EntryCost cost(0.01);
    cost.ran_serial(1000000, serial_ns);
    std::vector<int> spells;
    int tried = 0;
    for (int launch = 0, spell = 0; launch < 5000; ++launch) {
      if (cost.holding_off()) {
        ++spell;
        cost.ran_serial(1000000, serial_ns);
        continue;
      }
      if (spell != 0) spells.push_back(spell);
      spell = 0;
      ++tried;
      ran_parallel(cost, 1000000, 2 * wall_ns, wall_ns);
    }
    REQUIRE(spells.size() > 8);
    for (std::size_t i = 0; i < spells.size(); ++i) CHECK(spells[i] == std::min(4 << std::min<std::size_t>(i, 20), 512));
    CHECK(tried < 40);
    while (cost.holding_off()) {
    }
    for (int i = 0; i < 40; ++i) ran_parallel(cost, 1000000, serial_ns, serial_ns / 2);  // now they help
    while (!cost.holding_off()) ran_parallel(cost, 1000000, 2 * wall_ns, wall_ns);
    int spell = 1;
    while (cost.holding_off()) ++spell;
    CHECK(spell == 4);
  }
  SUBCASE("a launch that fetches the data from another core's cache proves nothing, unless it takes long") {
    for (const bool small : {true, false}) {
      CAPTURE(small);
      const double serial_ns = small ? 13e3 : 13e6;
      EntryCost cost(0.01);
      cost.ran_serial(200000, serial_ns);
      while (!cost.holding_off()) ran_parallel(cost, 200000, 4 * serial_ns, 2 * serial_ns);
      while (cost.holding_off()) cost.ran_serial(200000, serial_ns);
      ran_parallel(cost, 200000, 4 * serial_ns, 2 * serial_ns);  // the second thread's half comes over
      CHECK(cost.holding_off() == !small);
      while (cost.holding_off()) {
      }
      for (int launch = 0; launch < 20; ++launch) ran_parallel(cost, 200000, serial_ns, 0.4 * serial_ns);
      CHECK_FALSE(cost.holding_off());
      // Once only: the next one that takes so long has nothing to fetch.
      while (!cost.holding_off()) ran_parallel(cost, 200000, 4 * serial_ns, 2 * serial_ns);
      while (cost.holding_off()) cost.ran_serial(200000, serial_ns);
      for (int launch = 0; launch < 2; ++launch) ran_parallel(cost, 200000, 4 * serial_ns, 2 * serial_ns);
      CHECK(cost.holding_off());
    }
  }
  SUBCASE("launches that take long are tried again soon, as rarely as makes trials cheap") {
    constexpr double serial_ns = 35e6;
    for (const double ratio : {1.0, 1.3, 2.0, 4.0}) {
      CAPTURE(ratio);
      EntryCost cost(3.5);
      cost.ran_serial(10000000, serial_ns);
      double without = 0, with = 0;
      int spell = 0, longest = 0;
      for (int launch = 0; launch < 2000; ++launch) {
        without += serial_ns;
        if (cost.holding_off()) {
          longest = std::max(longest, ++spell);
          with += serial_ns;
          cost.ran_serial(10000000, serial_ns);
        } else {
          spell = 0;
          with += ratio * serial_ns;
          ran_parallel(cost, 10000000, 2 * ratio * serial_ns, ratio * serial_ns);
        }
      }
      CHECK(with < 1.06 * without);
      CHECK(longest >= 4);
      CHECK(longest <= std::max(4.0, (ratio - 1) / 0.03));
      // The other programs are gone.
      int late = 0;
      for (int launch = 0; launch < 110; ++launch) {
        if (cost.holding_off()) {
          ++late;
          cost.ran_serial(10000000, serial_ns);
        } else {
          ran_parallel(cost, 10000000, serial_ns, serial_ns / 2);
        }
      }
      CHECK(late <= std::max(4.0, (ratio - 1) / 0.03));
    }
  }
  SUBCASE("one interrupted launch keeps no threads out") {
    EntryCost cost(1);
    cost.ran_serial(1000000, 1000000);
    for (int i = 0; i < 200; ++i) {
      for (int good = 0; good < 10; ++good) ran_parallel(cost, 1000000, 1200000, 600000);
      ran_parallel(cost, 1000000, 60000000, 30000000);
      CHECK_FALSE(cost.holding_off());
    }
  }
  SUBCASE("a wrong verdict is revised within a few launches") {
    // 10^7 gathers: 35 ms on one thread, 19 on two.
    constexpr std::int64_t n = 10000000;
    constexpr double serial_ns = 35e6, wall_ns = 19e6;
    const auto serial_launches = [&](EntryCost& cost) {
      int serial = 0;
      for (int launch = 0; launch < 60; ++launch) {
        if (cost.holding_off()) {
          ++serial;
          cost.ran_serial(n, serial_ns);
        } else {
          ran_parallel(cost, n, 2 * wall_ns, wall_ns);
        }
      }
      CHECK_FALSE(cost.holding_off());
      CHECK(cost.predict(n) > 0.7 * serial_ns);
      return serial;
    };
    SUBCASE("of a hint that is too low") {
      EntryCost cost(1.2);
      CHECK(serial_launches(cost) == 1);
    }
    SUBCASE("of a probe that ran in the caches") {
      EntryCost cost(1.2);
      cost.probed(n, 8e6);
      CHECK(serial_launches(cost) == 1);
    }
    SUBCASE("of a launch that ran when the processor was faster") {
      EntryCost cost(1.2);
      cost.ran_serial(n, 8e6);
      CHECK(serial_launches(cost) <= 4);
    }
  }
}