// test_null_device.cpp -- the null device takes everything, runs nothing, and is not offered.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "backend.h"
#include "tack/array.hpp"
#include "tack/kernel.hpp"
#include "tack/runtime.hpp"

using namespace tack;

namespace {

std::shared_ptr<Runtime> quiet() {
  Config config;
  config.cache = false;
  return Runtime::create(config);
}

}  // namespace

TEST_CASE("the null device has all that a device can have") {
  const auto runtime = quiet();
  const Capabilities& can = runtime->device("null")->capabilities();
  CHECK(can.array_dtypes == 0x3ff);
  CHECK(can.atomic_dtypes == 0x3ff);
  CHECK(can.supports_f64);
  CHECK(can.supports_workgroups);
  CHECK(can.supports_images);
  CHECK(can.queued);
  CHECK(can.max_iterations == 0);
  CHECK(runtime->device_count("null") == 1);
}

TEST_CASE("its arrays keep what they are given, and kernels change nothing") {
  const auto runtime = quiet();
  const auto device = runtime->device("null");
  const std::int64_t shape[] = {3}, strides[] = {4};
  const Array a = Array::empty(device, f32, shape), b = Array::empty(device, f32, shape);
  const std::vector<float> given{1, 2, 3};
  a.write(given.data(), strides);
  b.copy_from(a);

  KernelSource source;
  source.name = "clear";
  source.target = "null";
  source.arch = "none";
  source.text = "this is no language";
  ArgumentSpec argument;
  argument.name = "x";
  argument.dtype = f32;
  argument.rank = 1;
  argument.written = true;
  source.arguments.push_back(argument);
  EntryPoint entry;
  entry.symbol = "clear";
  entry.params = {{.kind = ParamKind::pointer}};
  source.entries.push_back(entry);
  Step step;
  step.stop = {{{.op = ExtentOp::shape}}};
  source.steps.push_back(step);
  const auto kernel = device->build(source, {});
  kernel->launch(std::vector{Argument(b)});
  device->synchronize();
  CHECK(kernel->statistics().front().symbol == "clear");

  std::vector<float> found(3);
  b.read(found.data(), strides);
  CHECK(found == given);
  const float seven = 7.0f;
  b.fill(&seven);
  b.read(found.data(), strides);
  CHECK(found == std::vector<float>(3, 7.0f));
}

TEST_CASE("no message offers it") {
  const auto runtime = quiet();
  try {
    static_cast<void>(runtime->device("nil"));
    FAIL("there is no such device");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("null") == std::string::npos);
    CHECK(std::string(error.what()).find("'level_zero'") != std::string::npos);
  }
}
