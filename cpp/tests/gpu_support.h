// gpu_support.h -- what tests of backends over a driver share: the stand-in that they run on, its counters, and kernels printed by hand.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/runtime_impl.h"
#include "error_support.h"
#include "tack/array.hpp"
#include "tack/kernel.hpp"
#include "tack/runtime.hpp"
#include "tack/texture.hpp"

namespace tack::test {

/// A stand-in library of tests/simulators, as the test sees it: functions beside the driver's own. `tests/simulators/standins.py KIND
/// PROGRAM` sets where it lies.
class StandIn {
 public:
  explicit StandIn(const char* setting) {
    const char* path = std::getenv(setting);
    if (path != nullptr) handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(handle_ != nullptr, "needs the stand-ins: run tests/simulators/standins.py KIND PROGRAM");
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

/// A backend on its stand-ins: the names of the device and of an architecture, and the settings that say where the libraries lie.
struct Kind {
  const char* type;
  const char* arch;
  const char* driver;
  const char* compiler;
};

/// Settings for the stand-ins, without a disk cache.
inline Config config_of(const Kind& kind) {
  Config config;
  config.cache = false;
  config.log_level = "error";
  for (const char* name : {kind.driver, kind.compiler})
    if (const char* value = std::getenv(name)) config.set(name, value);
  return config;
}

/// A kernel over `arrays` f32 vectors and one f32 scalar: entry NAME of `text` takes their addresses, the scalar and the length of the
/// first, and runs one thread for each element of the first.
inline KernelSource source_of(const Kind& kind, const std::string& name, const std::string& text, std::size_t arrays) {
  KernelSource source;
  source.name = name;
  source.target = kind.type;
  source.arch = kind.arch;
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

/// The parameters of an entry of `arrays` vectors, one scalar and the length in MSL, and where its thread is.
inline std::string msl_entry(const std::string& name, std::size_t arrays, const std::string& body) {
  std::string text = "#include <metal_stdlib>\nusing namespace metal;\n#pragma METAL fp contract(off)\nkernel void " + name + "(";
  for (std::size_t i = 0; i < arrays; ++i)
    text += std::string("device float* ") + static_cast<char>('a' + static_cast<int>(i)) + " [[buffer(" + std::to_string(i) + ")]], ";
  return text + "constant ulong* words [[buffer(" + std::to_string(arrays) +
         ")]], uint t [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]], "
         "uint size [[threads_per_threadgroup]]) {\n  const ulong i = (ulong)g * size + t;\n  const float s = "
         "as_type<float>((uint)words[0]);\n" +
         body + "\n}\n";
}

/// a[i] = b[i] + s * c[i]
inline KernelSource triad_source(const Kind& kind, const std::string& name = "triad") {
  if (kind.type == std::string_view("metal"))
    return source_of(kind, name, msl_entry(name, 3, "  if (i < words[1]) a[i] = b[i] + s * c[i];"), 3);
  return source_of(kind, name,
                   "extern \"C\" __global__ void " + name +
                       "(float* a, const float* b, const float* c, float s, long long n) {\n"
                       "  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
                       "  if (i < n) a[i] = b[i] + s * c[i];\n"
                       "}\n",
                   3);
}

/// Writes far outside of its array.
inline KernelSource wild_source(const Kind& kind, const std::string& name = "wild") {
  return source_of(kind, name,
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

inline void run_triad(const std::shared_ptr<Kernel>& kernel, const Array& a, const Array& b, const Array& c, double s) {
  kernel->launch(std::vector{Argument(a), Argument(b), Argument(c), Argument(s)});
}

/// Launches, fills and copies take effect in the order in which they are given. `triad`: as triad_source.
inline void check_order(const std::shared_ptr<Device>& device, const KernelSource& triad, std::int64_t length) {
  const auto kernel = device->build(triad, {});
  const Array a = vector_of(device, length, 0.0f), b = vector_of(device, length, 2.0f), c = vector_of(device, length, 3.0f);
  const auto count = static_cast<std::size_t>(length);
  run_triad(kernel, a, b, c, 10.0);
  CHECK(values_of(a) == std::vector<float>(count, 32.0f));
  const float one = 1.0f;
  for (int i = 0; i < 20; ++i) {
    b.fill(&one);
    run_triad(kernel, a, b, a, 1.0);
    c.copy_from(a);
  }
  CHECK(values_of(c) == std::vector<float>(count, 52.0f));
}

/// The threads of a group and the groups of a launch of 1000 iterations, which the kernel of `source` writes to its array's front.
inline std::pair<float, float> grid_of(const std::shared_ptr<Device>& device, KernelSource source, std::uint32_t group, bool whole) {
  source.entries[0].group = group;
  source.entries[0].whole_groups = whole;
  const Array a = vector_of(device, 1000, 0.0f);
  device->build(source, {})->launch(std::vector{Argument(a), Argument(0.0)});
  const std::vector<float> found = values_of(a);
  return {found[0], found[1]};
}

/// A source of one array and one entry that also gets a texture, behind the array.
inline KernelSource with_texture(const Texture& texture, KernelSource source) {
  ArgumentSpec argument;
  argument.name = "tex";
  argument.dtype = f32;
  argument.rank = 3;
  argument.read_only = true;
  argument.texture = texture.reading();
  source.arguments.insert(source.arguments.begin() + 1, argument);
  std::vector<ParamSlot>& params = source.entries.front().params;
  for (ParamSlot& slot : params)
    if (slot.kind == ParamKind::scalar) slot.arg = 2;
  params.insert(params.begin() + 1, {.kind = ParamKind::texture, .arg = 1});
  return source;
}

}  // namespace tack::test
