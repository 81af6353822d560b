// test_ze_device.cpp -- the Level Zero backend on its stand-in: devices, contexts, memory, copies, launches, what ocloc and the driver
// refuse.
#include <cstring>
#include <thread>

#include "backends/level_zero/ze_module.h"
#include "ze_support.h"

using namespace tack;
using namespace tack::test;

namespace {

bool has(DTypeSet set, DType type) {
  for (std::size_t i = 0; i < array_dtypes.size(); ++i)
    if (array_dtypes[i] == type) return (set >> i & 1u) != 0;
  return false;
}

}  // namespace

TEST_CASE("what a device says of itself") {
  const auto runtime = Runtime::create(ze_config());
  CHECK(runtime->device_count("level_zero") == 2);
  const auto device = runtime->device("level_zero");
  CHECK(device->name() == "level_zero:0");
  CHECK(device == runtime->device("level_zero:0"));
  CHECK(!device->can_address(*runtime->device("level_zero:1")));
  const Capabilities& can = device->capabilities();
  CHECK(can.arch == "0x1912");
  CHECK(can.queued);
  CHECK(can.supports_f64);
  CHECK(has(can.array_dtypes, f64));
  CHECK((has(can.atomic_dtypes, i32) && has(can.atomic_dtypes, u32) && has(can.atomic_dtypes, f32)));
  CHECK((!has(can.atomic_dtypes, i64) && !has(can.atomic_dtypes, u64) && !has(can.atomic_dtypes, f64)));
  CHECK(can.max_iterations == 4294967295ull * 256);
  CHECK(can.max_group == 1024);
  CHECK(contains(error_of([&] { runtime->device("level_zero:2"); }).what(), "There is no 'level_zero:2': this machine has 2 Level Zero"));
}

TEST_CASE("describe: what devices can do that are not there") {
  Config nothing;
  nothing.cache = false;
  nothing.lib_ze = "/nowhere/libze_loader.so.1";
  const auto runtime = Runtime::create(nothing);
  const Capabilities skl = runtime->describe("level_zero", "skl"), dg1 = runtime->describe("level_zero", "dg1"),
                     pvc = runtime->describe("level_zero", "pvc");
  CHECK((skl.supports_f64 && !dg1.supports_f64 && pvc.supports_f64));
  CHECK((has(skl.array_dtypes, f64) && !has(dg1.array_dtypes, f64)));
  CHECK((skl.supports_images && dg1.supports_images && !pvc.supports_images));
  CHECK(skl.atomic_dtypes == Runtime::create(ze_config())->device("level_zero")->capabilities().atomic_dtypes);
  for (const char* arch : {"", " ", "sk", "0x1912", "skl kbl"})
    CHECK(error_of([&] { runtime->describe("level_zero", arch); }).code() == ErrorCode::invalid_argument);
}

TEST_CASE("a kernel runs on arrays of the device, in the order of the calls, compiled with correctly rounded division") {
  const auto runtime = Runtime::create(ze_config());
  const auto device = runtime->device("level_zero");
  check_order(device, ze_triad(), 1000);
  const StandInZe driver;
  CHECK(driver.reports() == "");
  CHECK(contains(std::string(level_zero::build_flags), "-cl-fp32-correctly-rounded-divide-sqrt"));
  CHECK(driver.count("built with " + std::string(level_zero::build_flags)) >= 1);
}

TEST_CASE("the grid: ceil(iterations / group) groups, or one for each iteration") {
  const auto runtime = Runtime::create(ze_config());
  const auto device = runtime->device("level_zero");
  KernelSource source = ze_source(
      "shape",
      "  if (get_local_id(0) == 0 && get_group_id(0) + 1 == get_num_groups(0)) { a[0] = get_local_size(0); a[1] = get_num_groups(0); }", 1);
  CHECK(grid_of(device, source, 0, false) == std::pair(256.0f, 4.0f));
  CHECK(grid_of(device, source, 100, false) == std::pair(100.0f, 10.0f));
  CHECK(grid_of(device, source, 64, true) == std::pair(64.0f, 1000.0f));
  source.entries[0].group = 2048;
  const Error error = error_of([&] { device->build(source, {}); });
  CHECK(contains(error.what(), "Level Zero cannot run kernel 'shape' in groups of 2048 threads (the device has groups of at most 1024): "));
  CHECK(contains(error.what(), "Give the kernel a smaller block=."));
}

TEST_CASE("fills of all sizes, copies of any size") {
  const auto runtime = Runtime::create(ze_config());
  const auto device = runtime->device("level_zero");
  for (const DType type : {u8, i16, f32, f64}) {
    for (const std::int64_t length : {1, 7, 4097}) {
      CAPTURE(name_of(type));
      const std::int64_t shape[] = {length}, strides[] = {static_cast<std::int64_t>(type.size())};
      const Array array = Array::empty(device, type, shape);
      const std::uint64_t pattern = 0x0123456789abcdefull;
      array.fill(&pattern);
      std::vector<std::byte> found(static_cast<std::size_t>(length) * type.size()), expected(found.size());
      for (std::size_t i = 0; i < expected.size(); i += type.size()) std::memcpy(expected.data() + i, &pattern, type.size());
      array.read(found.data(), strides);
      CHECK(found == expected);
    }
  }
  for (const std::size_t bytes : {std::size_t{1}, (std::size_t{1} << 20) + 1, (std::size_t{9} << 20) + 12345}) {
    const std::int64_t shape[] = {static_cast<std::int64_t>(bytes)}, strides[] = {1};
    const Array x = Array::empty(device, u8, shape), y = Array::empty(device, u8, shape);
    std::vector<std::uint8_t> source(bytes), found(bytes);
    for (std::size_t i = 0; i < bytes; ++i) source[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13);
    const std::vector<std::uint8_t> expected = source;
    x.write(source.data(), strides);
    std::fill(source.begin(), source.end(), std::uint8_t{0});
    y.copy_from(x);
    y.read(found.data(), strides);
    CHECK(found == expected);
  }
  const Array there = vector_of(runtime->device("level_zero:1"), 300'000, 5.0f), here = vector_of(device, 300'000, 4.0f);
  there.copy_from(here);
  CHECK(values_of(there) == std::vector<float>(300'000, 4.0f));
  CHECK(StandInZe().reports() == "");
}

TEST_CASE("an allocation beyond the device's memory is an error with the sizes, one beyond its usual limit is none") {
  const auto runtime = Runtime::create(ze_config());
  const auto device = runtime->device("level_zero");
  const std::int64_t large[] = {std::int64_t{3} << 29}, too_large[] = {std::int64_t{1} << 50};
  const Error error = error_of([&] { Array::empty(device, u8, too_large); });
  CHECK(error.code() == ErrorCode::out_of_memory);
  CHECK(contains(error.what(), "Allocating 1.0 PiB on 'level_zero:0' failed"));
  CHECK(Array::empty(device, u8, large).size() == large[0]);
}

TEST_CASE("threads launch one kernel, each with its own arguments") {
  const auto runtime = Runtime::create(ze_config());
  const auto device = runtime->device("level_zero");
  const auto kernel = device->build(ze_triad(), {});
  std::vector<std::thread> threads;
  std::array<std::vector<float>, 4> found;
  for (std::size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] {
      const Array a = vector_of(device, 500, 0.0f), b = vector_of(device, 500, static_cast<float>(t)), c = vector_of(device, 500, 1.0f);
      for (int i = 0; i < 25; ++i) run_triad(kernel, a, b, c, static_cast<double>(i));
      found[t] = values_of(a);
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < found.size(); ++t) CHECK(found[t] == std::vector<float>(500, static_cast<float>(t) + 24.0f));
  CHECK(StandInZe().reports() == "");
}

TEST_CASE("an application's context: used, told apart from others, and left alone") {
  const StandInZe driver;
  const long before = driver.alive();
  const auto context = driver.create();
  {
    const auto runtime = Runtime::create(ze_config());
    DeviceOptions options;
    options.native_context = reinterpret_cast<std::uintptr_t>(context);
    options.native_device = reinterpret_cast<std::uintptr_t>(driver.device(1));
    const auto device = runtime->device("level_zero", options);
    CHECK(device->index() == 1);
    CHECK(device == runtime->device("level_zero", options));
    CHECK(device != runtime->device("level_zero:1"));
    CHECK(!device->can_address(*runtime->device("level_zero:1")));
    const Array a = vector_of(device, 100, 0.0f), b = vector_of(device, 100, 2.0f), c = vector_of(device, 100, 3.0f);
    run_triad(device->build(ze_triad(), {}), a, b, c, 10.0);
    CHECK(values_of(a) == std::vector<float>(100, 32.0f));
    // Memory of the context can be used, that of another cannot.
    const Array other = vector_of(runtime->device("level_zero:1"), 100, 1.0f);
    CHECK(device->addresses(a.data(), 400));
    CHECK(!device->addresses(other.data(), 400));
    float host = 0.0f;
    CHECK(!device->addresses(&host, sizeof host));

    options.native_device = 0;
    CHECK(contains(error_of([&] { runtime->device("level_zero", options); }).what(), "context= and device= go together"));
    options.native_device = 12345;
    CHECK(contains(error_of([&] { runtime->device("level_zero", options); }).what(), "device=12345 is no handle of one of the 2 GPUs"));
    CHECK(contains(error_of([&] { runtime->device("level_zero:1", options); }).what(), "leave the number out"));
    CHECK(
        contains(error_of([&] { runtime->device("cpu", options); }).what(), "The 'cpu' device takes no context; only 'level_zero' does."));
  }
  CHECK(driver.alive() == before + 1);
  driver.destroy(context);
  CHECK(driver.reports() == "");
}

TEST_CASE("what ocloc refuses is told with its lines, what the driver refuses with its log") {
  const auto runtime = Runtime::create(ze_config());
  const auto device = runtime->device("level_zero");
  const Error compile = error_of([&] { device->build(ze_source("wrong", "  a[0] = nothing;", 1), {}); });
  CHECK(compile.code() == ErrorCode::compile);
  CHECK(contains(compile.what(), "Kernel 'wrong' cannot be compiled for Level Zero (skl):"));
  CHECK(contains(compile.what(), "use of undeclared identifier 'nothing'"));
  CHECK(!contains(compile.what(), "Build failed"));
  KernelSource unknown = ze_triad();
  unknown.arch = "nonesuch";
  const Error device_unknown = error_of([&] { runtime->compile(unknown); });
  CHECK(device_unknown.code() == ErrorCode::unavailable);
  CHECK(contains(device_unknown.what(), "knows no device 'nonesuch'"));
  const std::vector<std::byte> junk(64);
  const Error corrupt = error_of([&] { device->impl().load(junk, ze_triad()); });
  CHECK(corrupt.code() == ErrorCode::corrupt);
  CHECK(contains(corrupt.what(), "Level Zero cannot load the code of kernel 'triad': the driver cannot compile the code."));
  CHECK(contains(corrupt.what(), "The driver's log:"));
  KernelSource renamed = ze_triad();
  renamed.entries[0].symbol = "other";
  CHECK(error_of([&] { device->impl().load(runtime->compile(ze_triad()), renamed); }).code() == ErrorCode::corrupt);
  CHECK(StandIn("TACK_LIBOCLOC").count("ocloc outputs") == 0);
  CHECK(StandIn("TACK_LIBOCLOC").reports() == "");
}
