// test_core_c_api.cpp -- the C ABI as a host uses it: handles, errors per thread, arrays, wrapped memory, log and parallel_for.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tack/tack.h"

namespace {

/// A runtime that touches no disk, and its CPU device.
struct Host {
  tack_runtime* runtime = nullptr;
  tack_device* device = nullptr;
  Host() {
    const char* names[] = {"TACK_CACHE", "TACK_LOG"};
    const char* values[] = {"0", "error"};
    REQUIRE(tack_runtime_create(names, values, 2, &runtime) == TACK_OK);
    REQUIRE(tack_device_get(runtime, "cpu", 0, &device) == TACK_OK);
  }
  ~Host() {
    tack_device_release(device);
    tack_runtime_release(runtime);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
};

bool last_error_has(const char* part) { return std::strstr(tack_last_error(), part) != nullptr; }

}  // namespace

TEST_CASE("version") {
  CHECK(std::string(tack_version()) == TACK_VERSION);
  CHECK(tack_abi_version() == TACK_ABI_VERSION);
}

TEST_CASE("runtime and devices") {
  const Host host;
  CHECK(std::string(tack_device_name(host.device)) == "cpu");
  CHECK(tack_device_supports(host.device, TACK_F64) == 1);
  CHECK(tack_device_supports(host.device, static_cast<tack_dtype>(0x210)) == 0);
  tack_device* one = nullptr;
  REQUIRE(tack_device_get(host.runtime, "cpu", 1, &one) == TACK_OK);
  CHECK(std::string(tack_device_name(one)) == "cpu(num_threads=1)");
  CHECK(tack_device_synchronize(one) == TACK_OK);
  tack_device_release(one);
  int count = -1;
  CHECK(tack_runtime_device_count(host.runtime, "cpu", &count) == TACK_OK);
  CHECK(count == 1);
  CHECK(tack_runtime_synchronize(host.runtime) == TACK_OK);
}

TEST_CASE("errors: a code, a message of this thread, outputs untouched") {
  const Host host;
  int somewhere = 0;
  auto* const untouched = reinterpret_cast<tack_device*>(&somewhere);
  tack_device* device = untouched;
  CHECK(tack_device_get(host.runtime, "gpu", 0, &device) == TACK_INVALID_ARGUMENT);
  CHECK(device == untouched);
  CHECK(last_error_has("Unknown device 'gpu'. The devices are 'cpu'"));
  std::thread([] { CHECK(std::string(tack_last_error()).empty()); }).join();
  CHECK(tack_device_get(host.runtime, "cpu", -1, &device) == TACK_INVALID_ARGUMENT);
  CHECK(tack_device_get(host.runtime, nullptr, 0, &device) == TACK_INVALID_ARGUMENT);
  CHECK(last_error_has("'spec' is a null pointer"));
  CHECK(tack_device_get(nullptr, "cpu", 0, &device) == TACK_INVALID_ARGUMENT);
  CHECK(tack_device_get(host.runtime, "cpu", 0, nullptr) == TACK_INVALID_ARGUMENT);
  CHECK(tack_runtime_synchronize(host.runtime) == TACK_OK);
  CHECK(std::string(tack_last_error()).empty());

  const char* names[] = {"TACK_CPU_THREADS"};
  const char* values[] = {"many"};
  tack_runtime* runtime = nullptr;
  CHECK(tack_runtime_create(names, values, 1, &runtime) == TACK_INVALID_ARGUMENT);
  CHECK(last_error_has("TACK_CPU_THREADS is 'many'"));
  CHECK(tack_runtime_create(nullptr, nullptr, 1, &runtime) == TACK_INVALID_ARGUMENT);
  CHECK(runtime == nullptr);
  const char* library_names[] = {"TACK_CACHE", "TACK_LIBHIP"};
  const char* library_values[] = {"0", "/nowhere/libamdhip64.so"};
  REQUIRE(tack_runtime_create(library_names, library_values, 2, &runtime) == TACK_OK);
  CHECK(tack_device_get(runtime, "hip", 0, &device) == TACK_UNAVAILABLE);
  CHECK(last_error_has("Cannot start the 'hip' device: missing dependency."));
  tack_runtime_release(runtime);
  tack_runtime_release(nullptr);
  tack_device_release(nullptr);
  tack_array_release(nullptr);
}

TEST_CASE("arrays: create, fill, upload, download, copy; any order of releasing") {
  tack_array* a = nullptr;
  tack_array* b = nullptr;
  {
    const Host host;
    const int64_t shape[] = {2, 3};
    REQUIRE(tack_array_create(host.device, TACK_I32, 2, shape, &a) == TACK_OK);
    REQUIRE(tack_array_create(host.device, TACK_I32, 2, shape, &b) == TACK_OK);
    uint64_t in_use = 0;
    CHECK(tack_device_memory(host.device, &in_use, nullptr) == TACK_OK);
    CHECK(in_use == 128);
  }
  const int32_t numbers[6] = {1, 2, 3, 4, 5, 6};
  int32_t back[6] = {};
  CHECK(tack_array_upload(a, numbers, sizeof numbers) == TACK_OK);
  CHECK(tack_array_copy(b, a) == TACK_OK);
  CHECK(tack_array_download(b, back, sizeof back) == TACK_OK);
  CHECK(std::memcmp(numbers, back, sizeof back) == 0);
  CHECK(static_cast<const int32_t*>(tack_array_data(b))[5] == 6);
  const int32_t seven = 7;
  CHECK(tack_array_fill(b, &seven) == TACK_OK);
  CHECK(tack_array_download(b, back, sizeof back) == TACK_OK);
  CHECK(back[0] == 7);
  CHECK(back[5] == 7);
  CHECK(tack_array_download(b, back, 20) == TACK_INVALID_ARGUMENT);
  CHECK(last_error_has("The array has 24 bytes, 20 were given."));

  tack_dtype dtype = TACK_F64;
  int rank = 0;
  int64_t shape[8] = {};
  int64_t strides[8] = {};
  CHECK(tack_array_describe(a, &dtype, &rank, shape, strides) == TACK_OK);
  CHECK(dtype == TACK_I32);
  CHECK(rank == 2);
  CHECK(std::pair(shape[0], shape[1]) == std::pair<int64_t, int64_t>(2, 3));
  CHECK(std::pair(strides[0], strides[1]) == std::pair<int64_t, int64_t>(12, 4));
  CHECK(tack_array_describe(a, nullptr, nullptr, nullptr, nullptr) == TACK_OK);
  tack_array_release(a);
  tack_array_release(b);
}

TEST_CASE("arrays that are refused") {
  const Host host;
  tack_array* array = nullptr;
  const int64_t negative[] = {-1};
  const int64_t many[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  const int64_t large[] = {INT64_MAX, 2};
  CHECK(tack_array_create(host.device, TACK_F32, 1, negative, &array) == TACK_INVALID_ARGUMENT);
  CHECK(tack_array_create(host.device, TACK_F32, 9, many, &array) == TACK_INVALID_ARGUMENT);
  CHECK(tack_array_create(host.device, TACK_F32, -1, many, &array) == TACK_INVALID_ARGUMENT);
  CHECK(tack_array_create(host.device, TACK_F32, 1, nullptr, &array) == TACK_INVALID_ARGUMENT);
  CHECK(tack_array_create(host.device, static_cast<tack_dtype>(77), 1, many, &array) == TACK_INVALID_ARGUMENT);
  CHECK(tack_array_create(host.device, TACK_F32, 2, large, &array) == TACK_INVALID_ARGUMENT);
  CHECK(array == nullptr);
  CHECK(tack_array_create(host.device, TACK_F32, 0, nullptr, &array) == TACK_OK);
  tack_array_release(array);
}

TEST_CASE("wrapped memory: released once, with the last user, and not at all when wrapping fails") {
  const Host host;
  alignas(8) double numbers[4] = {1, 2, 3, 4};
  int released = 0;
  const auto release = [](void* user) { ++*static_cast<int*>(user); };
  const int64_t shape[] = {4};
  const int64_t too_many[] = {5};
  const int64_t large[] = {INT64_MAX};
  tack_array* array = nullptr;
  CHECK(tack_array_wrap(host.device, numbers, sizeof numbers, TACK_F64, 1, too_many, release, &released, &array) == TACK_INVALID_ARGUMENT);
  CHECK(tack_array_wrap(host.device, numbers, sizeof numbers, TACK_F64, 1, large, release, &released, &array) == TACK_INVALID_ARGUMENT);
  CHECK(tack_array_wrap(host.device, nullptr, 32, TACK_F64, 1, shape, release, &released, &array) == TACK_INVALID_ARGUMENT);
  CHECK(tack_array_wrap(host.device, reinterpret_cast<char*>(numbers) + 1, 16, TACK_F64, 1, shape, release, &released, &array) ==
        TACK_INVALID_ARGUMENT);
  CHECK(released == 0);
  REQUIRE(tack_array_wrap(host.device, numbers, sizeof numbers, TACK_F64, 1, shape, release, &released, &array) == TACK_OK);
  const double nine = 9;
  CHECK(tack_array_fill(array, &nine) == TACK_OK);
  CHECK(numbers[3] == 9);
  tack_array_release(array);
  CHECK(released == 1);
  REQUIRE(tack_array_wrap(host.device, numbers, sizeof numbers, TACK_F64, 1, shape, nullptr, nullptr, &array) == TACK_OK);
  tack_array_release(array);
}

TEST_CASE("log sink and parallel_for can be installed and taken away") {
  const Host host;
  std::vector<std::string> seen;
  const auto sink = [](void* user, int level, const char* message) {
    static_cast<std::vector<std::string>*>(user)->push_back(std::to_string(level) + message);
  };
  CHECK(tack_runtime_set_log_sink(host.runtime, sink, &seen) == TACK_OK);
  CHECK(tack_runtime_set_log_sink(host.runtime, nullptr, nullptr) == TACK_OK);
  const auto serial = [](void*, int64_t n, int64_t, int, tack_parallel_body body, void* context) { body(context, 0, n); };
  CHECK(tack_runtime_set_parallel_for(host.runtime, serial, nullptr) == TACK_OK);
  CHECK(tack_runtime_set_parallel_for(host.runtime, nullptr, nullptr) == TACK_OK);
  CHECK(tack_runtime_set_parallel_for(nullptr, serial, nullptr) == TACK_INVALID_ARGUMENT);
}
