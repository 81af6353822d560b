// cuda_support.h -- what tests of the CUDA backend share: the stand-in driver that they run on, its counters, and kernels printed by hand.
#pragma once

#include <cuda/driver_abi.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/native_function.h"
#include "core/runtime_impl.h"
#include "tack/array.hpp"
#include "tack/kernel.hpp"
#include "tack/runtime.hpp"

namespace tack::test {

/// A stand-in library of tests/simulators, as the test sees it: functions beside the driver's own. `tests/simulators/standins.py cuda
/// PROGRAM` sets where it lies.
class StandIn {
 public:
  explicit StandIn(const char* setting) {
    const char* path = std::getenv(setting);
    if (path != nullptr) handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(handle_ != nullptr, "needs the stand-ins: run tests/simulators/standins.py cuda PROGRAM");
  }
  /// A number of the counters: of calls by the function's name, of live objects by their kind; 0 where there were none.
  long count(const std::string& name) const {
    const std::string all = function<const char* (*)()>("tack_sim_counters_json")();
    const std::size_t at = all.find("\"" + name + "\": ");
    return at == std::string::npos ? 0 : std::atol(all.c_str() + at + name.size() + 4);
  }
  /// What was done against the driver's rules; empty for nothing.
  std::string reports() const {
    const std::string all = function<const char* (*)()>("tack_sim_counters_json")();
    const std::string reports = all.substr(all.find("\"reports\": ") + 11);
    return reports == "[]}" ? std::string() : reports;
  }
  /// The n-th call from now on fails with this code, 1 is the next; 0 takes it back.
  void fail_at(long n, int code) const { function<void (*)(long, int)>("tack_sim_fail_at")(n, code); }

  template <class F>
  F function(const char* name) const {
    const auto found = reinterpret_cast<F>(dlsym(handle_, name));
    REQUIRE_MESSAGE((found != nullptr), name);
    return found;
  }

 private:
  void* handle_ = nullptr;
};

/// The stand-in driver, with the calls of an application that uses contexts itself.
class StandInDriver : public StandIn {
 public:
  StandInDriver() : StandIn("TACK_LIBCUDA") { CHECK(function<cuda::abi::Result (*)(unsigned)>("cuInit")(0) == cuda::abi::Result::success); }

  cuda::abi::Context current() const {
    cuda::abi::Context context = nullptr;
    CHECK(function<cuda::abi::Result (*)(cuda::abi::Context*)>("cuCtxGetCurrent")(&context) == cuda::abi::Result::success);
    return context;
  }
  void set_current(cuda::abi::Context context) const {
    CHECK(function<cuda::abi::Result (*)(cuda::abi::Context)>("cuCtxSetCurrent")(context) == cuda::abi::Result::success);
  }
  /// An application's own context, which is current afterwards.
  cuda::abi::Context create(int ordinal) const {
    cuda::abi::Context context = nullptr;
    CHECK(function<cuda::abi::Result (*)(cuda::abi::Context*, unsigned, int)>("cuCtxCreate_v2")(&context, 0, ordinal) ==
          cuda::abi::Result::success);
    return context;
  }
  void destroy(cuda::abi::Context context) const {
    CHECK(function<cuda::abi::Result (*)(cuda::abi::Context)>("cuCtxDestroy_v2")(context) == cuda::abi::Result::success);
  }
  /// Live objects that belong to a device or its context, and contexts.
  long alive() const {
    return count("device memory") + count("pinned memory") + count("events") + count("modules") + count("streams") +
           count("primary contexts retained");
  }
};

/// What a runtime logs, kept.
class Kept {
 public:
  void watch(Runtime& runtime) {
    runtime.set_log_sink([this](LogLevel, std::string_view message) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(message);
    });
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  std::string text() const {
    std::string all;
    for (const std::string& line : lines()) all += line + "\n";
    return all;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    lines_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// Settings for the stand-ins, without a disk cache.
inline Config cuda_config() {
  Config config;
  config.cache = false;
  config.log_level = "error";
  for (const char* name : {"TACK_LIBCUDA", "TACK_LIBNVRTC"})
    if (const char* value = std::getenv(name)) config.set(name, value);
  return config;
}

/// A kernel over `arrays` f32 vectors and one f32 scalar: entry NAME of `text` takes their addresses, the scalar and the length of the
/// first, and runs one thread for each element of the first.
inline KernelSource cuda_source(const std::string& name, const std::string& text, std::size_t arrays) {
  KernelSource source;
  source.name = name;
  source.target = "cuda";
  source.arch = "sm_90";
  source.text = text;
  EntryPoint entry;
  entry.symbol = name;
  for (std::size_t i = 0; i < arrays; ++i) {
    ArgumentSpec array;
    array.name = std::string(1, static_cast<char>('a' + static_cast<int>(i)));
    array.dtype = f32;
    array.rank = 1;
    array.written = i == 0;
    source.arguments.push_back(array);
    entry.params.push_back({ParamKind::pointer, 0, static_cast<std::uint16_t>(i), i64});
  }
  ArgumentSpec scalar;
  scalar.name = "s";
  scalar.kind = ArgumentSpec::Kind::floating;
  source.arguments.push_back(scalar);
  entry.params.push_back({ParamKind::scalar, 0, static_cast<std::uint16_t>(arrays), f32});
  entry.params.push_back({ParamKind::extent, 0, 0, i64});
  source.entries = {entry};
  Step step;
  step.stop = {{{ExtentOp::shape, 0, 0, 0}}};
  source.steps = {step};
  return source;
}

/// a[i] = b[i] + s * c[i]
inline KernelSource triad_source(const std::string& name = "triad") {
  return cuda_source(name,
                     "extern \"C\" __global__ void " + name +
                         "(float* a, const float* b, const float* c, float s, long long n) {\n"
                         "  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
                         "  if (i < n) a[i] = b[i] + s * c[i];\n"
                         "}\n",
                     3);
}

/// Writes far outside of its array.
inline KernelSource wild_source(const std::string& name = "wild") {
  return cuda_source(name,
                     "extern \"C\" __global__ void " + name +
                         "(float* a, float s, long long n) {\n"
                         "  a[threadIdx.x + (1ll << 40)] = s;\n"
                         "}\n",
                     1);
}

inline Array vector_of(const std::shared_ptr<Device>& device, std::int64_t length, float value) {
  const std::int64_t shape[] = {length};
  const Array array = Array::empty(device, f32, shape);
  array.fill(&value);
  return array;
}

inline std::vector<float> values_of(const Array& array) {
  std::vector<float> values(static_cast<std::size_t>(array.size()));
  const std::int64_t strides[] = {4};
  array.read(values.data(), strides);
  return values;
}

}  // namespace tack::test
