// test_core_queue.cpp -- failures of queued work: where they come out, which kernels they name, and that code outlives its launches.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "fake_backend.h"
#include "tack/array.hpp"
#include "tack/kernel.hpp"
#include "tack/runtime.hpp"

using namespace tack;
using namespace tack::test;

namespace {

KernelSource source_of(const std::string& name) {
  KernelSource source;
  source.name = name;
  source.target = "fake";
  source.arch = "fake_1";
  source.text = name;
  source.entries = {{name + "_0", {}, 1, -1.0}};
  Step step;
  step.stop = {{{ExtentOp::constant, 0, 0, 5}}};
  source.steps = {step};
  return source;
}

/// A queued device whose work fails when `broken` is set: each wait, and each call that notices, says so.
struct Broken {
  FakeState state;
  std::atomic<bool> broken{false};
  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<Device> device;
  std::vector<std::string> logged;

  Broken() {
    state.on_synchronize = [this] { fail(); };
    state.on_launch = [this](const LaunchCommand&) { fail(); };
    runtime = fake_runtime(state);
    runtime->set_log_sink([this](LogLevel, std::string_view message) { logged.emplace_back(message); });
    device = runtime->device("fake");
  }
  ~Broken() {
    device.reset();
    runtime.reset();
  }
  void fail() const {
    if (!broken) return;
    Error::Fields fields{ErrorCode::driver, "it broke.", "fake", "fakeWait", 7, "FAKE_LOST"};
    fields.queued = true;
    throw Error(fields);
  }
  void launch(const std::string& name) { device->build(source_of(name), {})->launch({}); }
  template <class Work>
  std::string message(Work work) {
    try {
      work();
    } catch (const Error& error) {
      CHECK(error.fields().queued);
      return std::string(error.what()).substr(0, std::string(error.what()).find('\n'));
    }
    return "";
  }
  std::string wait() {
    return message([&] { device->synchronize(); });
  }
};

}  // namespace

TEST_CASE("the failure of queued work names the kernels launched since the last wait") {
  Broken bench;
  bench.launch("first");
  bench.device->synchronize();
  bench.broken = true;
  CHECK(bench.wait() == "Work queued on 'fake:0': it broke.");
  bench.broken = false;
  bench.launch("a");
  bench.broken = true;
  CHECK(bench.wait() == "Kernel 'a': it broke.");
  bench.broken = false;
  bench.launch("b");
  bench.launch("b");
  bench.launch("a");
  bench.launch("c");
  bench.broken = true;
  CHECK(bench.wait() == "Kernel 'a', 'b' or 'c' (queued since the last wait): it broke.");
  CHECK(bench.wait() == "Kernel 'a', 'b' or 'c' (queued since the last wait): it broke.");  // a device that is lost says so again
  bench.broken = false;
  bench.device->synchronize();
  for (int i = 0; i < 20; ++i) bench.launch("k" + std::to_string(i));
  bench.broken = true;
  CHECK(bench.wait() == "Kernel 'k12', 'k13', 'k14', 'k15', 'k16', 'k17', 'k18' or 'k19' (queued since the last wait): it broke.");
  bench.broken = false;
}

TEST_CASE("a failure that a later launch notices is not blamed on it") {
  Broken bench;
  bench.launch("culprit");
  const auto innocent = bench.device->build(source_of("innocent"), {});
  bench.broken = true;
  CHECK(bench.message([&] { innocent->launch({}); }) == "Kernel 'culprit': it broke.");
  bench.broken = false;
}

TEST_CASE("a failure that was thrown is not logged again when the device ends; one that nobody waited for is") {
  std::vector<std::string> logged;
  for (const bool waited : {true, false}) {
    Broken bench;
    bench.runtime->set_log_sink([&](LogLevel, std::string_view message) { logged.emplace_back(message); });
    bench.launch("k");
    bench.broken = true;
    if (waited) CHECK(bench.wait() == "Kernel 'k': it broke.");
  }
  REQUIRE(logged.size() == 1);
  CHECK(logged[0].rfind("'fake:0' ended with an error that nobody has waited for: Kernel 'k': it broke.", 0) == 0);
}

TEST_CASE("code lives until a wait behind its last launch, a download being one") {
  Broken bench;
  bench.launch("k");
  CHECK(bench.state.modules == 1);
  const std::int64_t shape[] = {4}, strides[] = {4};
  const Array array = Array::empty(bench.device, f32, shape);
  std::vector<float> values(4);
  array.write(values.data(), strides);
  CHECK(bench.state.modules == 1);
  array.read(values.data(), strides);
  CHECK(bench.state.modules == 0);
  bench.launch("k");
  bench.broken = true;
  CHECK(bench.wait() == "Kernel 'k': it broke.");
  CHECK(bench.state.modules == 1);  // nobody knows whether it still runs
  bench.broken = false;
  bench.device->synchronize();
  CHECK(bench.state.modules == 0);
}

TEST_CASE("launches and waits of many threads, with kernels that come and go") {
  Broken bench;
  std::atomic<bool> stop{false};
  std::thread waiter([&] {
    while (!stop) {
      bench.broken = true;
      CHECK(bench.wait().find("it broke.") != std::string::npos);
      bench.broken = false;
      bench.wait();
    }
  });
  std::vector<std::thread> launchers;
  for (int t = 0; t < 3; ++t)
    launchers.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        try {
          bench.launch("k" + std::to_string(t) + "_" + std::to_string(i % 10));
        } catch (const Error& error) {
          CHECK(error.fields().queued);
        }
        {
          const std::lock_guard lock(bench.state.mutex);
          bench.state.launches.clear();
        }
      }
    });
  for (std::thread& launcher : launchers) launcher.join();
  stop = true;
  waiter.join();
  bench.device->synchronize();
  CHECK(bench.state.modules == 0);
}
