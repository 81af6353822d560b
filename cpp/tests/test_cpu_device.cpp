// test_cpu_device.cpp -- the CPU device: its capabilities, memory and loading, and when a launch uses threads.
#include "backends/cpu/cpu_device.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/cpu_arch.h"
#include "backends/cpu/float_mode.h"
#include "core/runtime_impl.h"
#include "elf_builder.h"
#include "pool_support.h"
#include "tack/runtime.hpp"

using tack::Config;
using tack::DeviceOptions;
using tack::Runtime;
using tack::cpu::CpuDevice;
using tack::cpu::CpuModule;
using tack::cpu::EntryCost;
using tack::cpu::EntryFunction;
using namespace tack::testing;

namespace {

Config quiet() {
  Config config;
  config.cache = false;
  return config;
}

/// A CPU device of its own runtime, and launches of plain functions on it.
class Machine {
 public:
  explicit Machine(int threads, const Config& config = quiet())
      : runtime(Runtime::create(config)), device(runtime->device("cpu", DeviceOptions{.num_threads = threads})) {}

  CpuDevice& cpu() { return dynamic_cast<CpuDevice&>(device->impl()); }
  std::unique_ptr<CpuModule> module(EntryFunction function, double hint = -1.0) {
    return std::make_unique<CpuModule>(cpu().schedule(), "k", nullptr, std::vector<CpuModule::Function>{{"f", function, hint}});
  }
  void launch(CpuModule& module, std::int64_t n, const void* argument = nullptr) {
    const std::array<std::uint64_t, 1> words{reinterpret_cast<std::uint64_t>(argument)};
    const std::array<std::int64_t, 1> extents{n};
    cpu().launch({.module = &module, .entry = 0, .words = words, .extents = extents, .iterations = n});
  }

  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<tack::Device> device;
};

template <class T>
T& argument(const std::uint64_t* words) {
  return *reinterpret_cast<T*>(words[0]);  // NOLINT(performance-no-int-to-ptr): what a word of the parameter block is
}

using Counts = std::vector<std::atomic<int>>;
void count_each(const std::uint64_t* words, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) argument<Counts>(words)[static_cast<std::size_t>(i)].fetch_add(1, std::memory_order_relaxed);
}
bool all_are(const Counts& counts, int expected) {
  return std::all_of(counts.begin(), counts.end(), [&](const std::atomic<int>& c) { return c.load() == expected; });
}

void cheap(const std::uint64_t*, std::int64_t begin, std::int64_t end) {
  static std::atomic<std::int64_t> sink;
  sink.store(end - begin, std::memory_order_relaxed);
}
void millisecond_each(const std::uint64_t*, std::int64_t begin, std::int64_t end) {
  busy_for(std::chrono::microseconds(1000 * (end - begin)));
}
/// As long as its argument says, in microseconds per iteration: what a loop with run-time bounds does.
void as_told(const std::uint64_t* words, std::int64_t begin, std::int64_t end) {
  busy_for(std::chrono::microseconds(argument<const std::int64_t>(words) * (end - begin)));
}

tack::EntryStatistics statistics(const CpuModule& module) { return module.statistics().at(0); }

}  // namespace

TEST_CASE("what the CPU can do") {
  Machine machine(3);
  const tack::Capabilities& can = machine.device->capabilities();
  CHECK(can.threads == 3);
  CHECK(can.supports_f64);
  CHECK(can.host_addressable);
  CHECK(can.f32_denormals);
  CHECK_FALSE(can.supports_workgroups);
  CHECK_FALSE(can.supports_images);
  CHECK_FALSE(can.queued);
  CHECK(can.max_iterations == 0);
  CHECK(can.array_dtypes == 0x3ff);
  CHECK(can.atomic_dtypes == 0x3ff);
  CHECK_FALSE(can.device_name.empty());
#if defined(__x86_64__)
  const std::vector<std::string> levels{"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
  CHECK(std::find(levels.begin(), levels.end(), can.arch) != levels.end());
  CHECK(can.vector_bits == (can.arch == "x86-64-v4" ? 512u : can.arch == "x86-64-v3" ? 256u : 128u));
  // The compiler's own run-time check, which knows about the operating system's part too.
  CHECK((can.vector_bits >= 256) == (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")));
  if (!__builtin_cpu_supports("avx512vl")) CHECK(can.vector_bits < 512);
#elif defined(__aarch64__)
  CHECK(can.arch == "aarch64");
  CHECK(can.vector_bits == 128);
#endif
}

TEST_CASE("num_threads wins over the setting, which wins over the cores") {
  Config config = quiet();
  const auto threads = [](const Config& c, const DeviceOptions& options) {
    return Runtime::create(c)->device("cpu", options)->capabilities().threads;
  };
  CHECK(threads(config, {}) == static_cast<unsigned>(tack::physical_cores()));
  config.cpu_threads = 5;
  CHECK(threads(config, {}) == 5);
  CHECK(threads(config, {.num_threads = 3}) == 3);
}

TEST_CASE("CPU devices share their memory, whatever their options") {
  const auto runtime = Runtime::create(quiet());
  const auto all = runtime->device("cpu"), one = runtime->device("cpu", {.num_threads = 1});
  CHECK(all->name() == "cpu");
  CHECK(one->name() == "cpu(num_threads=1)");
  CHECK(all != one);
  CHECK(all->can_address(*one));
  CHECK(runtime->device_count("cpu") == 1);
}

TEST_CASE("memory: aligned, writable to the last byte, large blocks to 2 MiB") {
  Machine machine(1);
  CpuDevice& cpu = machine.cpu();
  constexpr std::size_t mib = std::size_t{1} << 20;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, 4 * mib - 1, 4 * mib, 6 * mib + 12345}) {
    CAPTURE(bytes);
    std::vector<void*> blocks;
    for (int i = 0; i < 3; ++i) {
      void* const block = cpu.allocate(bytes);
      REQUIRE(block != nullptr);
      const std::size_t alignment = bytes >= 4 * mib ? 2 * mib : 64;
      CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
      std::memset(block, 1 + i, bytes);
      blocks.push_back(block);
    }
    for (int i = 0; i < 3; ++i) {
      const auto* const data = static_cast<const unsigned char*>(blocks[static_cast<std::size_t>(i)]);
      if (bytes != 0) CHECK(data[0] == 1 + i);
      if (bytes != 0) CHECK(data[bytes - 1] == 1 + i);
      cpu.free(blocks[static_cast<std::size_t>(i)], bytes);
    }
  }
}

TEST_CASE("memory that isn't there: the error names the size, and the device goes on") {
  Machine machine(1);
  for (const std::size_t bytes : {std::size_t{1} << 60, std::numeric_limits<std::size_t>::max()}) {
    try {
      machine.cpu().allocate(bytes);
      FAIL("allocated");
    } catch (const tack::Error& error) {
      CHECK(error.code() == tack::ErrorCode::out_of_memory);
      CHECK(std::string(error.what()).find(std::to_string(bytes)) != std::string::npos);
    }
  }
  void* const block = machine.cpu().allocate(100);
  CHECK(block != nullptr);
  machine.cpu().free(block, 100);
}

TEST_CASE("copies, overlapping ones too, and fills of each element size") {
  Machine machine(1);
  CpuDevice& cpu = machine.cpu();
  std::array<std::uint8_t, 6> bytes{1, 2, 3, 4, 5, 6};
  cpu.copy(bytes.data() + 1, bytes.data(), 5);
  CHECK(bytes == std::array<std::uint8_t, 6>{1, 1, 2, 3, 4, 5});
  std::array<std::uint8_t, 6> other{};
  cpu.upload(other.data(), bytes.data(), 6);
  CHECK(other == bytes);
  cpu.download(bytes.data(), bytes.data() + 3, 0);
  CHECK(other == bytes);
  cpu.copy(nullptr, nullptr, 0);

  const auto fills = [&](auto value) {
    std::array<decltype(value), 5> values{};
    cpu.fill(values.data() + 1, &value, sizeof value, 3);
    return values[0] == 0 && values[1] == value && values[2] == value && values[3] == value && values[4] == 0;
  };
  CHECK(fills(std::uint8_t{0x12}));
  CHECK(fills(std::uint16_t{0x1234}));
  CHECK(fills(std::uint32_t{0x12345678}));
  CHECK(fills(std::uint64_t{0x123456789abcdef0}));
  CHECK(fills(-1.5));
  CHECK_THROWS_AS(cpu.fill(bytes.data(), bytes.data(), 3, 1), tack::Error);
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST_CASE("loading: entries are found by their symbols; a missing one is named") {
#  if defined(__x86_64__)
  constexpr std::array<std::uint8_t, 7> code{0x48, 0x8b, 0x07, 0x48, 0x89, 0x10, 0xc3};  // mov rax, [rdi]; mov [rax], rdx; ret
  ElfBuilder builder(elf::machine_x86_64);
#  else
  constexpr std::array<std::uint32_t, 3> code{0xf9400003, 0xf9000062, 0xd65f03c0};  // ldr x3, [x0]; str x2, [x3]; ret
  ElfBuilder builder(elf::machine_aarch64);
#  endif
  const auto view = std::as_bytes(std::span(code));
  builder.add_function("store_end", builder.add_code({view.begin(), view.end()}));
  const std::vector<std::byte> object = builder.build();

  Machine machine(1);
  tack::KernelSource source;
  source.name = "my_kernel";
  source.target = "cpu";
  source.entries.push_back({.symbol = "store_end", .params = {{}}, .rank = 1, .cost_hint = -1.0});
  const std::unique_ptr<tack::ModuleImpl> module = machine.cpu().load(object, source);
  std::int64_t stored = 0;
  machine.launch(dynamic_cast<CpuModule&>(*module), 123, &stored);
  CHECK(stored == 123);
  CHECK(module->statistics().at(0).symbol == "store_end");

  source.entries.at(0).symbol = "not_there";
  try {
    machine.cpu().load(object, source);
    FAIL("loaded");
  } catch (const tack::Error& error) {
    CHECK(error.code() == tack::ErrorCode::corrupt);
    const std::string message = error.what();
    CHECK(message.find("my_kernel") != std::string::npos);
    CHECK(message.find("not_there") != std::string::npos);
  }
}
#endif

TEST_CASE("compiling goes to the installed compiler, for the source's architecture") {
  const auto runtime = Runtime::create(quiet());
  const auto backend = tack::make_cpu_backend();
  tack::KernelSource source;
  source.name = "k";
  source.text = "the text";
  source.arch = "x86-64-v3";
  CHECK_THROWS_WITH_AS(backend->compile(runtime->impl(), source), doctest::Contains("llvmlite"), tack::Error);
  runtime->set_cpu_compiler([](const tack::CompileRequest& request) {
    CHECK(request.name == "k");
    CHECK(request.text == "the text");
    CHECK(request.arch == "x86-64-v3");
    CHECK_FALSE(request.assembly);
    CHECK_FALSE(request.optimized_ir);
    return std::vector<std::byte>(3, std::byte{7});
  });
  CHECK(backend->compile(runtime->impl(), source) == std::vector<std::byte>(3, std::byte{7}));
  CHECK(backend->compiler_version(runtime->impl()) == backend->compiler_version(runtime->impl()));
  CHECK_FALSE(backend->numbered());
}

// --- When threads are used ---

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
    for (int i = 0; i < 40; ++i) cost.ran_parallel(1000000, 2000000, 1100000);
    CHECK(cost.holding_off());
    while (cost.holding_off()) {
    }
    for (int i = 0; i < 40; ++i) cost.ran_parallel(1000000, 1000000, 500000);
    CHECK_FALSE(cost.holding_off());
  }
  SUBCASE("the longer threads have not helped, the more rarely they are tried") {
    constexpr double serial_ns = 1e6, wall_ns = 2e6;
    EntryCost cost(1);
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
      cost.ran_parallel(1000000, 2 * wall_ns, wall_ns);
    }
    REQUIRE(spells.size() > 8);
    for (std::size_t i = 0; i < spells.size(); ++i) CHECK(spells[i] == std::min(4 << std::min<std::size_t>(i, 20), 512));
    CHECK(tried < 40);
    while (cost.holding_off()) {
    }
    for (int i = 0; i < 40; ++i) cost.ran_parallel(1000000, serial_ns, serial_ns / 2);  // now they help
    while (!cost.holding_off()) cost.ran_parallel(1000000, 2 * wall_ns, wall_ns);
    int spell = 1;
    while (cost.holding_off()) ++spell;
    CHECK(spell == 4);
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
          cost.ran_parallel(n, 2 * wall_ns, wall_ns);
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

// --- Around the kernel ---

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
