// test_metal_device.cpp -- the Metal backend on its stand-in: memory and how other libraries name it, order, launches, code on disk.
#include <atomic>
#include <cstring>
#include <thread>

#include "backends/metal/metal_api.h"
#include "backends/metal/metal_module.h"
#include "metal_support.h"

using namespace tack;
using namespace tack::test;

namespace {

Array bytes_of(const std::shared_ptr<Device>& device, std::int64_t length, std::uint8_t value) {
  const std::int64_t shape[] = {length};
  const Array array = Array::empty(device, u8, shape);
  array.fill(&value);
  return array;
}

}  // namespace

TEST_CASE("what the device says of itself, and what is said of those that are not there") {
  const auto runtime = Runtime::create(config_of(metal_kind));
  CHECK(runtime->device_count("metal") == 1);
  const auto device = runtime->device("metal");
  CHECK(device->name() == "metal");
  const Capabilities &can = device->capabilities(), apple8 = runtime->describe("metal", "apple8");
  CHECK((can.queued && can.host_addressable && can.supports_workgroups && can.supports_images && !can.supports_f64));
  CHECK((can.arch == "apple8" && can.max_iterations == std::uint64_t{1} << 32 && can.max_buffers == 31 && can.max_group == 1024));
  CHECK((can.array_dtypes == apple8.array_dtypes && can.atomic_dtypes == apple8.atomic_dtypes && can.shared_bytes == apple8.shared_bytes));
  for (const char* arch : {"", "apple", "apple6", "apple8x", "m2"})
    CHECK(error_of([&] { static_cast<void>(runtime->describe("metal", arch)); }).code() == ErrorCode::invalid_argument);
}

TEST_CASE("launches, fills and copies keep the order of the calls, whole words or not") {
  const StandInMetal driver;
  const auto runtime = Runtime::create(config_of(metal_kind));
  const auto device = runtime->device("metal");
  const auto kernel = device->build(triad_source(metal_kind), {});
  const Array a = vector_of(device, 1000, 0.0f), b = vector_of(device, 1000, 2.0f), c = vector_of(device, 1000, 3.0f);
  const Array odd = bytes_of(device, 1003, 1), other = bytes_of(device, 1003, 2);
  run_triad(kernel, a, b, c, 10.0);
  const float one = 1.0f;
  b.fill(&one);  // queued: the launch reads b
  c.copy_from(a);
  const std::uint8_t seven = 7;
  odd.fill(&seven);  // 1003 bytes are no whole words: the host does it, when the queue is empty
  other.copy_from(odd);
  run_triad(kernel, a, b, c, 1.0);
  CHECK(values_of(a) == std::vector<float>(1000, 33.0f));
  CHECK(values_of(c) == std::vector<float>(1000, 32.0f));
  CHECK(static_cast<const std::uint8_t*>(other.buffer()->pointer())[1002] == 7);
  CHECK(driver.reports() == "");
}

TEST_CASE("other libraries name memory by its buffer and a place in it") {
  const StandInMetal driver;
  {
    const auto runtime = Runtime::create(config_of(metal_kind));
    const auto device = runtime->device("metal");
    const Array a = vector_of(device, 1000, 1.0f);
    const MemoryHandle whole = device->handle_of(a.data()), part = device->handle_of(a.data() + 40);
    CHECK((whole.object != nullptr && whole.object != static_cast<void*>(a.data())));
    CHECK((part.object == whole.object && part.offset == whole.offset + 40));
    const float here = 0.0f;
    CHECK(device->handle_of(&here).object == nullptr);
    // Back again: the same memory, usable while either is there.
    const std::shared_ptr<void> again = device->adopt(whole.object);
    CHECK(static_cast<std::byte*>(again.get()) + whole.offset == a.data());
    driver.fail_at(1, 1);
    const Error refused = error_of([&] { device->adopt(whole.object); });
    CHECK(refused.code() == ErrorCode::invalid_argument);
    CHECK(contains(refused.what(), "Metal cannot use another library's memory: "));
  }
  {
    // Of another library: a buffer that tack has not made.
    using namespace metal::abi;
    Problem problem;
    DeviceFacts facts;
    Object gpu = nullptr, buffer = nullptr;
    void* contents = nullptr;
    CHECK(driver.function<Status (*)(Object*, DeviceFacts*, Problem*)>("tack_metal_device")(&gpu, &facts, &problem) == Status::done);
    CHECK(driver.function<Status (*)(Object, std::size_t, Object*, void**, Problem*)>("tack_metal_buffer")(gpu, 400, &buffer, &contents,
                                                                                                           &problem) == Status::done);
    const auto release = driver.function<void (*)(Object)>("tack_metal_release");
    std::shared_ptr<void> memory;
    {
      const auto device = Runtime::create(config_of(metal_kind))->device("metal");
      CHECK(!device->addresses(contents, 400));
      memory = device->adopt(buffer);
      CHECK((memory.get() == contents && device->addresses(contents, 400) && !device->addresses(contents, 4000)));
    }
    release(buffer);  // the adopted memory keeps it, and the device
    std::memset(memory.get(), 0, 400);
    memory.reset();
    release(gpu);
  }
  CHECK(driver.alive() == 0);
}

TEST_CASE("groups that are larger than the code's are refused") {
  const auto device = Runtime::create(config_of(metal_kind))->device("metal");
  KernelSource source = triad_source(metal_kind);
  source.entries[0].group = 2048;
  CHECK(contains(error_of([&] { device->build(source, {}); }).what(), "runs in groups of 2048 threads"));
}

TEST_CASE("code that is not the backend's own is damaged") {
  const auto runtime = Runtime::create(config_of(metal_kind));
  const auto device = runtime->device("metal");
  const KernelSource source = triad_source(metal_kind);
  for (const std::size_t bytes : {0u, 10u, 100u}) {
    const std::vector<std::byte> binary(bytes, std::byte{1});
    CHECK(error_of([&] { device->impl().load(binary, source); }).code() == ErrorCode::corrupt);
  }
}

TEST_CASE("threads launch, fill and wait at once; nothing is left") {
  const StandInMetal driver;
  {
    const auto device = Runtime::create(config_of(metal_kind))->device("metal");
    const auto kernel = device->build(triad_source(metal_kind), {});
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        const Array a = vector_of(device, 500, 0.0f), b = vector_of(device, 500, static_cast<float>(t));
        for (int i = 0; i < 20; ++i) {
          run_triad(kernel, a, a, b, 1.0);
          if (i % 5 == 0) device->synchronize();
        }
        if (values_of(a) != std::vector<float>(500, 20.0f * static_cast<float>(t))) ++wrong;
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
  CHECK(driver.alive() == 0);
  CHECK(driver.reports() == "");
}
