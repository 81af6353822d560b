// test_hip_device.cpp -- the HIP backend on the stand-in runtime: devices, the thread's device, memory, launches, their limit, errors.
#include <atomic>
#include <thread>

#include "hip_support.h"

using namespace tack;
using namespace tack::test;

TEST_CASE("what a device says of itself") {
  const auto runtime = Runtime::create(config_of(hip_kind));
  CHECK(runtime->device_count("hip") == 2);
  const auto device = runtime->device("hip");
  CHECK(device->name() == "hip:0");
  CHECK(device == runtime->device("hip:0"));
  CHECK(device != runtime->device("hip:1"));
  CHECK(!device->can_address(*runtime->device("hip:1")));
  const Capabilities& can = device->capabilities();
  CHECK(can.arch == "gfx1030");
  CHECK(can.queued);
  CHECK(!can.host_addressable);
  CHECK(can.supports_f64);
  CHECK(can.supports_workgroups);
  CHECK(can.max_iterations == (1ull << 32) - 256);
  CHECK(can.max_groups == 2147483647);
  CHECK(can.shared_bytes == 64 * 1024);
  CHECK(contains(error_of([&] { runtime->device("hip:2"); }).what(),
                 "There is no 'hip:2': this machine has 2 HIP devices, the last is 'hip:1'."));
}

TEST_CASE("kernels, fills and copies run in the order in which they were given") {
  const auto runtime = Runtime::create(config_of(hip_kind));
  for (const char* name : {"hip:0", "hip:1"}) {
    const auto device = runtime->device(name);
    check_order(device, triad_source(hip_kind), 300'000);
  }
  CHECK(StandInRuntime().reports() == "");
}

TEST_CASE("a thread has its device before and after each call; asking for a device by name makes it the thread's") {
  const StandInRuntime driver;
  driver.reset();
  const auto runtime = Runtime::create(config_of(hip_kind));
  const auto device = runtime->device("hip:1");
  CHECK(driver.current() == 1);
  CHECK(runtime->device("hip") == device);  // a bare name is the device that the thread uses already
  driver.set_current(0);
  CHECK(runtime->device("hip")->index() == 0);
  const auto kernel = device->build(triad_source(hip_kind), {});
  const Array a = vector_of(device, 5000, 1.0f);
  run_triad(kernel, a, a, a, 1.0);
  CHECK(values_of(a)[4999] == 2.0f);
  CHECK(driver.current() == 0);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      driver.set_current(t % 2);
      for (int round = 0; round < 10; ++round) {
        const auto value = static_cast<float>(t + 4 * round);
        const Array x = vector_of(device, 5000, 0.0f), y = vector_of(device, 5000, value);
        run_triad(kernel, x, y, y, 2.0);
        if (values_of(x) != std::vector<float>(5000, 3.0f * value)) ++wrong;
        if (driver.current() != t % 2) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(driver.reports() == "");
}

TEST_CASE("memory is given back, on both devices") {
  const StandInRuntime driver;
  const long before = driver.alive();
  {
    const auto runtime = Runtime::create(config_of(hip_kind));
    for (const char* name : {"hip:0", "hip:1"}) {
      const auto device = runtime->device(name);
      const auto kernel = device->build(triad_source(hip_kind), {});
      const Array a = vector_of(device, 1000, 1.0f);
      run_triad(kernel, a, a, a, 1.0);
    }
    CHECK(driver.alive() > before);
  }
  CHECK(driver.alive() == before);
}

TEST_CASE("a launch has less than 2^32 threads, whatever its groups") {
  const auto runtime = Runtime::create(config_of(hip_kind));
  const auto device = runtime->device("hip");
  KernelSource source = source_of(hip_kind, "many", "extern \"C\" __global__ void many(float* a, float s, long long n) {}\n", 1);
  // The extent is the scalar's, not the array's.
  source.arguments[1].kind = ArgumentSpec::Kind::integer;
  source.arguments[1].dtype = i64;
  source.entries[0].params[1] = {ParamKind::scalar, 0, 1, i64};
  source.steps[0].stop = {{{ExtentOp::scalar, 0, 1, 0}}};
  source.text = "extern \"C\" __global__ void many(float* a, long long s, long long n) {}\n";
  const Array a = vector_of(device, 10, 0.0f);
  const std::pair<std::uint32_t, std::uint64_t> limits[] = {{0, (1ull << 32) - 256}, {64, (1ull << 32) - 256}, {1024, (1ull << 32) - 1024}};
  for (const auto& [group, limit] : limits) {
    CAPTURE(group);
    source.entries[0].group = group;
    const auto kernel = device->build(source, {});
    const Error refused = error_of([&] { kernel->launch(std::vector{Argument(a), Argument(static_cast<std::int64_t>(limit + 1))}); });
    CHECK(contains(refused.what(), "Kernel 'many'"));
    CHECK(contains(refused.what(), std::to_string(limit + 1)));
    CHECK(contains(refused.what(), std::to_string(limit)));
  }
}

TEST_CASE("the error of a queued launch comes out at the wait and names the kernel") {
  Kept log;
  const auto runtime = Runtime::create(config_of(hip_kind));
  log.watch(*runtime);
  const auto device = runtime->device("hip:1");
  const Array a = vector_of(device, 10, 1.0f);
  device->build(wild_source(hip_kind), {})->launch(std::vector{Argument(a), Argument(1.0)});
  const Error error = error_of([&] { device->synchronize(); });
  CHECK(error.code() == ErrorCode::driver);
  CHECK(error.fields().native_name == "hipErrorIllegalAddress");
  CHECK(std::string(error.what()).rfind("Kernel 'wild': HIP reports a failure of queued work: ", 0) == 0);
  CHECK(contains(error.what(), "tack.debug(True) finds"));
  CHECK(values_of(vector_of(runtime->device("hip:0"), 3, 2.0f))[2] == 2.0f);
  CHECK(log.text() == "");
}
