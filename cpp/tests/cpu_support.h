// cpu_support.h -- a CPU device of a runtime of its own and plain functions as its kernels, for the tests of the CPU backend.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "core/runtime_impl.h"
#include "pool_support.h"
#include "tack/runtime.hpp"

namespace tack::testing {

using cpu::CpuDevice;
using cpu::CpuModule;
using cpu::EntryFunction;

inline Config quiet() {
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
    return std::make_unique<CpuModule>(cpu().schedule(), "k", nullptr, std::vector<CpuModule::Function>{{"f", {.usual = function}, hint}});
  }
  void launch(CpuModule& module, std::int64_t n, const void* argument = nullptr, bool shared = true) {
    const std::array<std::uint64_t, 1> words{reinterpret_cast<std::uint64_t>(argument)};
    const std::array<std::int64_t, 1> extents{n};
    cpu().launch({.module = &module, .entry = 0, .words = words, .extents = extents, .iterations = n, .shared = shared});
  }

  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<tack::Device> device;
};

template <class T>
T& argument(const std::uint64_t* words) {
  return *reinterpret_cast<T*>(words[0]);  // NOLINT(performance-no-int-to-ptr): what a word of the parameter block is
}

using Counts = std::vector<std::atomic<int>>;
inline void count_each(const std::uint64_t* words, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) argument<Counts>(words)[static_cast<std::size_t>(i)].fetch_add(1, std::memory_order_relaxed);
}
inline bool all_are(const Counts& counts, int expected) {
  return std::all_of(counts.begin(), counts.end(), [&](const std::atomic<int>& c) { return c.load() == expected; });
}

inline void cheap(const std::uint64_t*, std::int64_t begin, std::int64_t end) {
  static std::atomic<std::int64_t> sink;
  sink.store(end - begin, std::memory_order_relaxed);
}
inline void millisecond_each(const std::uint64_t*, std::int64_t begin, std::int64_t end) {
  busy_for(std::chrono::microseconds(1000 * (end - begin)));
}
/// As long as its argument says, in microseconds per iteration: what a loop with run-time bounds does.
inline void as_told(const std::uint64_t* words, std::int64_t begin, std::int64_t end) {
  busy_for(std::chrono::microseconds(argument<const std::int64_t>(words) * (end - begin)));
}

inline tack::EntryStatistics statistics(const CpuModule& module) { return module.statistics().at(0); }

}  // namespace tack::testing
