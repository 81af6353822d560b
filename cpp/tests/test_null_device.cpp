// test_null_device.cpp -- the null device takes everything, runs nothing, and is not offered.
#include <string>
#include <vector>

#include "null_support.h"

using namespace tack;
using namespace tack::test;

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

  ArgumentSpec argument;
  argument.name = "x";
  argument.rank = 1;
  argument.written = true;
  const auto kernel = device->build(null_source("clear", argument, {.kind = ParamKind::pointer}), {});
  kernel->launch(std::vector{Argument(b)});
  device->synchronize();

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
