// bench_core_launch.cpp -- what the core adds to a launch: ns for Kernel::launch with 3 arrays and 1 scalar on a device that does nothing.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <vector>

#include "backend.h"
#include "core/allocator.h"
#include "core/runtime_impl.h"
#include "tack/runtime.hpp"

namespace {

using namespace tack;

class IdleModule final : public ModuleImpl {
 public:
  using ModuleImpl::ModuleImpl;

  double predict(std::uint32_t, std::int64_t) const noexcept override { return 1.0; }
};

class IdleDevice final : public DeviceImpl {
 public:
  IdleDevice() {
    capabilities_.arch = "none";
    capabilities_.host_addressable = true;
  }
  void* allocate(std::size_t bytes) override { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
  void free(void* pointer, std::size_t) noexcept override { std::free(pointer); }
  void upload(void*, const void*, std::size_t) override {}
  void download(void*, const void*, std::size_t) override {}
  void copy(void*, const void*, std::size_t) override {}
  void fill(void*, const void*, std::size_t, std::size_t) override {}
  std::unique_ptr<ModuleImpl> load(std::span<const std::byte>, const KernelSource&) override {
    return std::make_unique<IdleModule>("triad");
  }
  void launch(const LaunchCommand& command) override { sum_ += command.words[command.words.size() - 1]; }
  void synchronize() override {}

 private:
  std::uint64_t sum_ = 0;
};

class IdleBackend final : public Backend {
 public:
  std::string name() const override { return "idle"; }
  int device_count(RuntimeImpl&) noexcept override { return 1; }
  std::unique_ptr<DeviceImpl> open(RuntimeImpl&, int, const DeviceOptions&) override { return std::make_unique<IdleDevice>(); }
  std::uint32_t memory_space(int) const override { return 0x7000; }
  std::vector<std::byte> compile(RuntimeImpl&, const KernelSource&) override { return {}; }
  std::string compiler_version(RuntimeImpl&) override { return "1"; }
};

/// Median ns of a call of `body` over several rounds.
template <class Body>
double measure(Body body) {
  constexpr int rounds = 21, calls = 200000;
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) body();
    times.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / calls);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2];
}

KernelSource triad(bool result) {
  KernelSource source;
  source.name = "triad";
  source.target = "idle";
  source.arch = "none";
  for (const char* name : {"a", "b", "c"}) {
    ArgumentSpec array;
    array.name = name;
    array.dtype = f32;
    array.rank = 1;
    source.arguments.push_back(array);
  }
  ArgumentSpec scalar;
  scalar.name = "s";
  scalar.kind = ArgumentSpec::Kind::floating;
  source.arguments.push_back(scalar);
  EntryPoint entry{"triad_0", {}, 1, 1.0};
  for (std::uint16_t i = 0; i < 3; ++i) {
    entry.params.push_back({ParamKind::pointer, 0, i, i64});
    entry.params.push_back({ParamKind::shape, 0, i, i64});
  }
  entry.params.push_back({ParamKind::scalar, 0, 3, f32});
  entry.params.push_back({ParamKind::extent, 0, 0, i64});
  source.entries = {entry};
  Step step;
  step.stop = {{{ExtentOp::shape, 0, 0, 0}}};
  source.steps = {step};
  if (result) {
    source.scratch_bytes = 64;
    source.result_type = f64;
    source.result_offset = 0;
  }
  return source;
}

}  // namespace

int main() {
  Config config;
  config.cache = false;
  const auto runtime = Runtime::create(config);
  runtime->impl().add_backend(std::make_unique<IdleBackend>());
  const auto device = runtime->device("idle");
  const std::vector<std::int64_t> shape{8};
  const std::array<Array, 3> arrays{Array::empty(device, f32, shape), Array::empty(device, f32, shape), Array::empty(device, f32, shape)};
  const std::vector<Argument> arguments{Argument(arrays[0]), Argument(arrays[1]), Argument(arrays[2]), Argument(2.0)};
  const auto plain = device->build(triad(false), {});
  const auto returning = device->build(triad(true), {});
  std::printf("launch, 3 arrays and 1 scalar      %6.1f ns\n", measure([&] { plain->launch(arguments); }));
  std::printf("launch with scratch and a result   %6.1f ns\n", measure([&] { returning->launch(arguments); }));
  double sum = 0;
  std::printf("predict                            %6.1f ns\n", measure([&] { sum += plain->predict(arguments); }));
  std::printf("check                              %6.1f ns\n", measure([&] { plain->check(arguments); }));
  std::printf("allocate and free 256 bytes        %6.1f ns\n",
              measure([&] { device->allocator().free(device->allocator().allocate(256)); }));
  std::printf("Buffer::allocate, 256 bytes        %6.1f ns\n", measure([&] { Buffer::allocate(device, 256); }));
  std::printf("Array::empty, 8 elements           %6.1f ns\n", measure([&] { Array::empty(device, f32, shape); }));
  return sum > 0 ? 0 : 1;
}
