// test_core_allocator.cpp -- the caching allocator: classes, reuse, statistics, trimming, no memory left, many threads.
#include <doctest/doctest.h>

#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/allocator.h"
#include "fake_backend.h"

using tack::Allocator;
using tack::Error;
using tack::ErrorCode;
using tack::test::FakeDevice;
using tack::test::FakeState;

TEST_CASE("size classes: at least the size, multiples of 64, little waste, each class its own fixed point") {
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size < 5000; ++size) sizes.push_back(size);
  std::mt19937_64 random(1);
  for (int shift = 10; shift < 62; ++shift)
    for (int i = 0; i < 200; ++i) sizes.push_back((std::size_t{1} << shift) + random() % (std::size_t{1} << shift));
  for (int shift = 6; shift <= 62; ++shift)
    for (int delta = -1; delta <= (shift == 62 ? 0 : 1); ++delta)
      sizes.push_back((std::size_t{1} << shift) + static_cast<std::size_t>(delta));
  for (const std::size_t size : sizes) {
    const std::uint32_t size_class = Allocator::class_of(size);
    const std::size_t bytes = Allocator::class_bytes(size_class);
    CAPTURE(size);
    REQUIRE(bytes >= std::max<std::size_t>(size, 64));
    REQUIRE(bytes - std::max<std::size_t>(size, 64) <= (size > (std::size_t{1} << 20) ? size / 16 : size / 4 + 1));
    REQUIRE(bytes % 16 == 0);
    REQUIRE(Allocator::class_of(bytes) == size_class);
  }
  CHECK(Allocator::class_bytes(Allocator::class_of(0)) == 64);
  CHECK(Allocator::class_bytes(Allocator::class_of(65)) == 80);
  CHECK(Allocator::class_bytes(Allocator::class_of(1 << 20)) == 1 << 20);
}

TEST_CASE("a freed block is handed out again, and the statistics tell") {
  FakeState state;
  FakeDevice device(state);
  {
    Allocator allocator(device, "fake:0");
    const Allocator::Block a = allocator.allocate(1000);
    const Allocator::Block b = allocator.allocate(1000);
    CHECK(a.pointer != b.pointer);
    CHECK(reinterpret_cast<std::uintptr_t>(a.pointer) % 64 == 0);
    CHECK(allocator.statistics().in_use == 2048);
    allocator.free(a);
    CHECK(allocator.statistics().cached == 1024);
    const Allocator::Block c = allocator.allocate(1024);
    CHECK(c.pointer == a.pointer);
    const Allocator::Block d = allocator.allocate(1025);
    CHECK(d.pointer != a.pointer);
    const tack::MemoryStatistics now = allocator.statistics();
    CHECK(now.in_use == 1024 + 1024 + 1280);
    CHECK(now.cached == 0);
    CHECK(now.peak == now.in_use);
    CHECK(now.allocations == 4);
    CHECK(now.reused == 1);
    CHECK(state.allocations == 3);
    for (const Allocator::Block& block : {b, c, d}) allocator.free(block);
    CHECK(allocator.statistics().in_use == 0);
    CHECK(allocator.statistics().peak == 1024 + 1024 + 1280);
    CHECK(allocator.trim() == 1024 + 1024 + 1280);
    CHECK(allocator.statistics().cached == 0);
    CHECK(state.allocated == 0);
    CHECK(allocator.trim() == 0);
    allocator.free(allocator.allocate(0));  // zero bytes are legal
  }
  CHECK(state.allocated == 0);  // the cache went with the allocator
}

TEST_CASE("a limit holds for what is in use and cached together; the cache goes first") {
  FakeState state;
  FakeDevice device(state);
  constexpr std::size_t mib = std::size_t{1} << 20;
  {
    Allocator allocator(device, "fake:0");
    const Allocator::Block a = allocator.allocate(4 * mib), b = allocator.allocate(4 * mib);
    allocator.free(b);
    allocator.set_limit(6 * mib);  // 4 in use, 4 cached
    CHECK(allocator.statistics().cached == 0);
    CHECK(allocator.statistics().limit == 6 * mib);
    try {
      allocator.allocate(3 * mib);
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::out_of_memory);
      CHECK(std::string(error.what()) ==
            "Allocating 3.0 MiB on 'fake:0' failed; 4.0 MiB in use, 0 B cached, 8.0 MiB at most so far, and the limit is 6.0 MiB. Drop "
            "arrays that are no longer needed, or work in smaller pieces.");
    }
    CHECK(state.allocated == 4 * mib);
    allocator.free(allocator.allocate(2 * mib));  // exactly
    allocator.free(allocator.allocate(mib));      // of another size: what was cached goes
    CHECK(allocator.statistics().in_use + allocator.statistics().cached <= 6 * mib);
    allocator.set_limit(0);
    allocator.free(allocator.allocate(64 * mib));
    allocator.free(a);
  }
  CHECK(state.allocated == 0);
}

TEST_CASE("threads that allocate at once keep to the limit together") {
  FakeState state;
  FakeDevice device(state);
  constexpr std::size_t mib = std::size_t{1} << 20;
  Allocator allocator(device, "fake:0");
  allocator.set_limit(8 * mib);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        std::vector<Allocator::Block> mine;
        try {
          for (int i = 0; i < 4; ++i) mine.push_back(allocator.allocate(mib));
        } catch (const Error& error) {
          CHECK(error.code() == ErrorCode::out_of_memory);
        }
        for (const Allocator::Block& block : mine) allocator.free(block);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(allocator.statistics().peak <= 8 * mib);
  CHECK(allocator.statistics().in_use == 0);
}

TEST_CASE("without memory the cache is given back first, then the error names the sizes and the device stays usable") {
  FakeState state;
  state.memory_limit = 10 << 20;
  FakeDevice device(state);
  Allocator allocator(device, "fake:0");
  const Allocator::Block kept = allocator.allocate(1 << 20);
  allocator.free(allocator.allocate(6 << 20));
  CHECK(allocator.statistics().cached == 6 << 20);
  const Allocator::Block large = allocator.allocate(9 << 20);  // fits only once the cache is empty
  CHECK(allocator.statistics().cached == 0);
  try {
    static_cast<void>(allocator.allocate(std::size_t{3} << 20));
    FAIL("there is no memory left");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::out_of_memory);
    CHECK(std::string(error.what()) ==
          "Allocating 3.0 MiB on 'fake:0' failed; 10.0 MiB in use, 0 B cached, 10.0 MiB at most so far. Drop arrays that are no longer "
          "needed, or work in "
          "smaller pieces.\n  fakeAlloc: FAKE_NO_MEMORY (2)");
    CHECK(error.fields().native_code == 2);
  }
  CHECK_THROWS_AS(static_cast<void>(allocator.allocate(std::size_t{1} << 63)), Error);
  allocator.free(large);
  allocator.free(kept);
  allocator.free(allocator.allocate(8 << 20));
}

TEST_CASE("the cache does not outgrow what was ever in use") {
  FakeState state;
  FakeDevice device(state);
  Allocator allocator(device, "fake:0");
  // One block at a time, each of another class: without a bound the cache would end at the sum of all.
  for (std::size_t mib = 40; mib < 200; mib += 8) allocator.free(allocator.allocate(mib << 20));
  CHECK(allocator.statistics().cached <= std::uint64_t{256} << 20);
  CHECK(allocator.statistics().cached > 0);
  CHECK(state.allocated == allocator.statistics().cached);
}

TEST_CASE("many threads at once never share a live block") {
  FakeState state;
  state.host_addressable = true;
  FakeDevice device(state);
  Allocator allocator(device, "fake:0");
  std::atomic<int> clashes{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<Allocator::Block> live;
      for (int i = 0; i < 3000; ++i) {
        if (live.size() < 8) {
          live.push_back(allocator.allocate(64 + random() % 4000));
          *static_cast<int*>(live.back().pointer) = t;
        } else {
          const std::size_t at = random() % live.size();
          if (*static_cast<int*>(live[at].pointer) != t) ++clashes;
          allocator.free(live[at]);
          live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
        }
        if (i % 500 == 0) allocator.trim();
      }
      for (const Allocator::Block& block : live) allocator.free(block);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(clashes == 0);
  CHECK(allocator.statistics().in_use == 0);
}
