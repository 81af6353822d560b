// test_cuda_device.cpp -- the CUDA backend on the stand-in driver: devices, contexts, memory, copies, launches, asynchronous errors.
#include <atomic>
#include <cstring>
#include <thread>

#include "cuda_support.h"

using namespace tack;
using namespace tack::test;

TEST_CASE("what a device says of itself") {
  const auto runtime = Runtime::create(cuda_config());
  CHECK(runtime->device_count("cuda") == 2);
  const auto device = runtime->device("cuda");
  CHECK(device->name() == "cuda:0");
  CHECK(device == runtime->device("cuda:0"));
  CHECK(device != runtime->device("cuda:1"));
  CHECK(!device->can_address(*runtime->device("cuda:1")));
  const Capabilities& can = device->capabilities();
  CHECK(can.arch == "sm_90");
  CHECK(!can.device_name.empty());
  CHECK(can.queued);
  CHECK(!can.host_addressable);
  CHECK(can.supports_f64);
  CHECK(can.supports_workgroups);
  CHECK(can.max_iterations == 2147483647ull * 256);
  CHECK(can.max_group == 1024);
  CHECK(can.shared_bytes == 48 * 1024);
  const Error none = error_of([&] { runtime->device("cuda:2"); });
  CHECK(none.code() == ErrorCode::invalid_argument);
  CHECK(contains(none.what(), "There is no 'cuda:2': this machine has 2 CUDA devices, the last is 'cuda:1'."));
}

TEST_CASE("describe: the same capabilities without a device, and none for other architectures") {
  Config nothing;
  nothing.cache = false;
  nothing.lib_cuda = "/nowhere/libcuda.so.1";
  const auto runtime = Runtime::create(nothing);
  const Capabilities can = runtime->describe("cuda", "sm_120");
  CHECK(can.arch == "sm_120");
  CHECK(can.max_iterations == 2147483647ull * 256);
  CHECK(can.atomic_dtypes == Runtime::create(cuda_config())->device("cuda")->capabilities().atomic_dtypes);
  for (const char* arch : {"sm_", "sm_9x", "90", "gfx90a", "sm_35", ""})
    CHECK(error_of([&] { runtime->describe("cuda", arch); }).code() == ErrorCode::invalid_argument);
}

TEST_CASE("a kernel runs on arrays of the device, in the order of the calls") {
  const auto runtime = Runtime::create(cuda_config());
  const auto device = runtime->device("cuda");
  check_order(device, triad_source(), 1000);
  CHECK(StandInDriver().reports() == "");
}

TEST_CASE("the grid: ceil(iterations / group) groups, or one for each iteration") {
  const auto runtime = Runtime::create(cuda_config());
  const auto device = runtime->device("cuda");
  const KernelSource source =
      cuda_source("shape",
                  "extern \"C\" __global__ void shape(float* a, float s, long long n) {\n"
                  "  if (threadIdx.x == 0 && blockIdx.x + 1 == gridDim.x) { a[0] = blockDim.x; a[1] = gridDim.x; }\n"
                  "}\n",
                  1);
  CHECK(grid_of(device, source, 0, false) == std::pair(256.0f, 4.0f));
  CHECK(grid_of(device, source, 100, false) == std::pair(100.0f, 10.0f));
  CHECK(grid_of(device, source, 1000, false) == std::pair(1000.0f, 1.0f));
  CHECK(grid_of(device, source, 64, true) == std::pair(64.0f, 1000.0f));
}

TEST_CASE("groups that are too large for a kernel are refused when it is built") {
  const auto runtime = Runtime::create(cuda_config());
  const auto device = runtime->device("cuda");
  KernelSource source = triad_source();
  source.entries[0].group = 2048;
  const Error error = error_of([&] { device->build(source, {}); });
  CHECK(contains(error.what(), "Kernel 'triad' runs in groups of 2048 threads, but its code leaves registers for 1024 at most."));
}

TEST_CASE("fills of all sizes, short and long") {
  const auto runtime = Runtime::create(cuda_config());
  const auto device = runtime->device("cuda");
  for (const DType type : {u8, i16, f32, f64, i64, u64}) {
    for (const std::int64_t length : {1, 7, 4096, 4097, 100'000}) {
      CAPTURE(name_of(type));
      CAPTURE(length);
      const std::int64_t shape[] = {length};
      const Array array = Array::empty(device, type, shape);
      const std::size_t item = type.size();
      for (const std::uint64_t pattern : {0x0123456789abcdefull, 0x7777777777777777ull}) {
        array.fill(&pattern);
        std::vector<std::byte> found(static_cast<std::size_t>(length) * item), expected(found.size());
        for (std::size_t i = 0; i < expected.size(); i += item) std::memcpy(expected.data() + i, &pattern, item);
        const std::int64_t strides[] = {static_cast<std::int64_t>(item)};
        array.read(found.data(), strides);
        CHECK(found == expected);
      }
    }
  }
  CHECK(StandInDriver().reports() == "");
}

TEST_CASE("copies of any size: taken when an upload returns, there when a download returns") {
  const auto runtime = Runtime::create(cuda_config());
  const auto device = runtime->device("cuda");
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1} << 20, (std::size_t{1} << 20) + 1, (std::size_t{9} << 20) + 12345}) {
    const std::int64_t shape[] = {static_cast<std::int64_t>(bytes)};
    const std::int64_t strides[] = {1};
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
  CHECK(StandInDriver().reports() == "");
}

TEST_CASE("arrays of two devices are copied through the host") {
  const auto runtime = Runtime::create(cuda_config());
  const Array a = vector_of(runtime->device("cuda:0"), 300'000, 4.0f);
  const Array b = vector_of(runtime->device("cuda:1"), 300'000, 5.0f);
  b.copy_from(a);
  CHECK(values_of(b) == std::vector<float>(300'000, 4.0f));
}

TEST_CASE("a process that has no context gets the primary one, and it is current on the thread that asked") {
  const StandInDriver driver;
  driver.set_current(nullptr);
  const long retained = driver.count("primary contexts retained");
  {
    const auto runtime = Runtime::create(cuda_config());
    const auto device = runtime->device("cuda:1");
    CHECK(driver.count("primary contexts retained") == retained + 1);
    const auto ours = driver.current();
    CHECK(ours != nullptr);
    std::thread([&] {
      CHECK(driver.current() == nullptr);
      const Array a = vector_of(device, 10, 1.0f);
      CHECK(values_of(a)[9] == 1.0f);
      CHECK(driver.current() == nullptr);  // as it was
      CHECK(runtime->device("cuda:1") == device);
      CHECK(driver.current() == ours);
    }).join();
    // A bare "cuda" is the device that the thread uses already.
    CHECK(runtime->device("cuda") == device);
    driver.set_current(nullptr);
    CHECK(runtime->device("cuda")->index() == 0);
  }
  CHECK(driver.count("primary contexts retained") == retained);
  driver.set_current(nullptr);
}

TEST_CASE("an application's context is adopted, used, left as it was, and not destroyed") {
  const StandInDriver driver;
  const long contexts = driver.count("contexts");
  const auto theirs = driver.create(0);
  {
    const auto runtime = Runtime::create(cuda_config());
    const auto device = runtime->device("cuda");
    CHECK(driver.current() == theirs);
    CHECK(driver.count("primary contexts retained") == 0);
    const auto other = driver.create(1);
    const auto kernel = device->build(triad_source(), {});
    const Array a = vector_of(device, 10, 1.0f);
    run_triad(kernel, a, a, a, 1.0);
    CHECK(values_of(a)[9] == 2.0f);
    CHECK(driver.current() == other);
    driver.destroy(other);
    driver.set_current(theirs);
  }
  CHECK(driver.current() == theirs);
  CHECK(driver.count("contexts") == contexts + 1);
  driver.destroy(theirs);
  CHECK(driver.alive() == 0);
  driver.set_current(nullptr);
}

TEST_CASE("calls from many threads at once") {
  const StandInDriver driver;
  const auto runtime = Runtime::create(cuda_config());
  const auto device = runtime->device("cuda");
  const auto kernel = device->build(triad_source(), {});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 25; ++round) {
        const auto value = static_cast<float>(t + 4 * round);
        const Array a = vector_of(device, 5000, 0.0f), b = vector_of(device, 5000, value), c = vector_of(device, 5000, 1.0f);
        run_triad(kernel, a, b, c, 2.0);
        if (values_of(a) != std::vector<float>(5000, value + 2.0f)) ++wrong;
        if (driver.current() != nullptr) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(driver.reports() == "");
}

TEST_CASE("the error of a queued launch comes out at the wait and names the kernel") {
  Kept log;
  const auto runtime = Runtime::create(cuda_config());
  log.watch(*runtime);
  const auto device = runtime->device("cuda:1");
  const auto wild = device->build(wild_source(), {}), triad = device->build(triad_source(), {});
  const Array a = vector_of(device, 10, 1.0f);
  run_triad(triad, a, a, a, 1.0);
  device->synchronize();
  wild->launch(std::vector{Argument(a), Argument(1.0)});
  const Error error = error_of([&] { device->synchronize(); });
  CHECK(error.code() == ErrorCode::driver);
  CHECK(error.fields().native_name == "CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK(std::string(error.what()).rfind("Kernel 'wild': CUDA reports a failure of queued work: ", 0) == 0);
  CHECK(contains(error.what(), "tack.debug(True) finds"));
  CHECK(contains(error.what(), "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
  // The driver drops the context; every call says so, and the rest of the process goes on.
  CHECK(contains(error_of([&] { values_of(a); }).what(), "its arrays are lost"));
  const auto other = runtime->device("cuda:0");
  CHECK(values_of(vector_of(other, 3, 2.0f))[2] == 2.0f);
  CHECK(log.text() == "");
}

TEST_CASE("two devices' errors at one wait: the first is thrown, the other logged") {
  Kept log;
  const auto runtime = Runtime::create(cuda_config());
  log.watch(*runtime);
  for (const char* name : {"cuda:0", "cuda:1"}) {
    const auto device = runtime->device(name);
    device->build(wild_source(std::string("wild_") + name[5]), {})
        ->launch(std::vector{Argument(vector_of(device, 10, 1.0f)), Argument(1.0)});
  }
  CHECK(contains(error_of([&] { runtime->synchronize(); }).what(), "Kernel 'wild_0'"));
  CHECK(contains(log.text(), "'cuda:1' failed as well: Kernel 'wild_1'"));
}
