// core/c_api.cpp -- the C ABI over the C++ library: handles are small objects that hold shared pointers; exceptions become codes.
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "core/strided.h"
#include "core/text.h"
#include "tack/array.hpp"
#include "tack/error.hpp"
#include "tack/runtime.hpp"
#include "tack/tack.h"

struct tack_runtime {
  std::shared_ptr<tack::Runtime> runtime;
};
struct tack_device {
  std::shared_ptr<tack::Device> device;
};
struct tack_array {
  tack::Array array;
};

namespace {

using tack::Error;
using tack::ErrorCode;
using tack::text;

std::string& last_error() {
  thread_local std::string message;
  return message;
}

tack_status fail(tack_status status, const char* message) noexcept {
  try {
    last_error() = message;
  } catch (...) {
    last_error().clear();  // no memory for the text; the code still says what it is
  }
  return status;
}

/// Runs `body` and turns what it throws into a code. The status numbers are the error codes' plus one.
template <class Body>
tack_status guarded(Body body) noexcept {
  last_error().clear();
  try {
    body();
    return TACK_OK;
  } catch (const Error& error) {
    return fail(static_cast<tack_status>(static_cast<int>(error.code()) + 1), error.what());
  } catch (const std::bad_alloc&) {
    return fail(TACK_OUT_OF_MEMORY, "The host has no memory left.");
  } catch (const std::exception& error) {
    return fail(TACK_INTERNAL, error.what());
  } catch (...) {
    return fail(TACK_INTERNAL, "An exception of unknown type.");
  }
}
static_assert(TACK_INVALID_ARGUMENT == static_cast<int>(ErrorCode::invalid_argument) + 1);
static_assert(TACK_INTERNAL == static_cast<int>(ErrorCode::internal) + 1);
static_assert(TACK_ASSERTION == static_cast<int>(ErrorCode::assertion) + 1);

template <class Pointer>
Pointer* required(Pointer* pointer, const char* what) {
  if (pointer == nullptr) throw Error(ErrorCode::invalid_argument, text("'", what, "' is a null pointer."));
  return pointer;
}

tack::DType dtype_of(tack_dtype dtype) {
  const auto number = static_cast<unsigned>(dtype);
  const tack::DType type{static_cast<tack::TypeCode>(number >> 8 & 0xff), static_cast<std::uint8_t>(number & 0xff), 1};
  if (number > 0xffff || tack::dtype_index(type) < 0) throw Error(ErrorCode::invalid_argument, text(number, " is no tack_dtype."));
  return type;
}

std::span<const std::int64_t> shape_of(int rank, const std::int64_t* shape) {
  if (rank < 0) throw Error(ErrorCode::invalid_argument, text("The rank is ", rank, "; it cannot be negative."));
  if (rank != 0) required(shape, "shape");
  return {shape, static_cast<std::size_t>(rank)};
}

struct Dense {
  std::array<std::int64_t, tack::max_rank> strides{};
  std::span<const std::int64_t> span(int rank) const { return {strides.data(), static_cast<std::size_t>(rank)}; }
};
Dense dense(std::span<const std::int64_t> shape, tack::DType dtype) {
  if (shape.size() > tack::max_rank)
    throw Error(ErrorCode::invalid_argument, text("The rank is ", std::uint64_t{shape.size()}, "; it is at most ", tack::max_rank, "."));
  Dense result;
  tack::dense_strides(shape, dtype.size(), result.strides);
  return result;
}

void require_bytes(const tack::Array& array, std::size_t bytes) {
  if (static_cast<std::size_t>(array.bytes()) != bytes)
    throw Error(ErrorCode::invalid_argument, text("The array has ", array.bytes(), " bytes, ", std::uint64_t{bytes}, " were given."));
}

}  // namespace

const char* tack_version(void) { return TACK_VERSION; }
int tack_abi_version(void) { return TACK_ABI_VERSION; }
const char* tack_last_error(void) { return last_error().c_str(); }

tack_status tack_runtime_create(const char* const* names, const char* const* values, size_t count, tack_runtime** runtime) {
  return guarded([&] {
    required(runtime, "runtime");
    tack::Config config = tack::Config::from_environment();
    for (size_t i = 0; i < count; ++i)
      config.set(required(required(names, "names")[i], "names"), required(required(values, "values")[i], "values"));
    *runtime = std::make_unique<tack_runtime>(tack_runtime{tack::Runtime::create(std::move(config))}).release();
  });
}

void tack_runtime_release(tack_runtime* runtime) { const std::unique_ptr<tack_runtime> owned(runtime); }

tack_status tack_runtime_synchronize(tack_runtime* runtime) {
  return guarded([&] { required(runtime, "runtime")->runtime->synchronize(); });
}

tack_status tack_runtime_device_count(tack_runtime* runtime, const char* type, int* count) {
  return guarded([&] { *required(count, "count") = required(runtime, "runtime")->runtime->device_count(required(type, "type")); });
}

tack_status tack_runtime_set_parallel_for(tack_runtime* runtime, tack_parallel_for function, void* user) {
  return guarded([&] {
    tack::Runtime& target = *required(runtime, "runtime")->runtime;
    if (function == nullptr) {
      target.set_parallel_for({});
      return;
    }
    target.set_parallel_for([function, user](std::int64_t n, std::int64_t grain, int threads, tack::ParallelBody body, void* context) {
      function(user, n, grain, threads, body, context);
    });
  });
}

tack_status tack_runtime_set_log_sink(tack_runtime* runtime, tack_log_sink sink, void* user) {
  return guarded([&] {
    tack::Runtime& target = *required(runtime, "runtime")->runtime;
    if (sink == nullptr) {
      target.set_log_sink({});
      return;
    }
    target.set_log_sink([sink, user](tack::LogLevel level, std::string_view message) {
      sink(user, static_cast<int>(level), std::string(message).c_str());
    });
  });
}

tack_status tack_device_get(tack_runtime* runtime, const char* spec, int num_threads, tack_device** device) {
  return guarded([&] {
    required(device, "device");
    tack::DeviceOptions options;
    if (num_threads != 0) options.num_threads = num_threads;
    *device = std::make_unique<tack_device>(tack_device{required(runtime, "runtime")->runtime->device(required(spec, "spec"), options)})
                  .release();
  });
}

void tack_device_release(tack_device* device) { const std::unique_ptr<tack_device> owned(device); }

const char* tack_device_name(const tack_device* device) { return device == nullptr ? "" : device->device->name().c_str(); }

int tack_device_supports(const tack_device* device, tack_dtype dtype) {
  int answer = 0;
  const tack_status status = guarded([&] {
    const int index = tack::dtype_index(dtype_of(dtype));
    answer = required(device, "device")->device->capabilities().array_dtypes >> index & 1;
  });
  return status == TACK_OK ? answer : 0;
}

tack_status tack_device_synchronize(tack_device* device) {
  return guarded([&] { required(device, "device")->device->synchronize(); });
}

tack_status tack_device_memory(tack_device* device, uint64_t* in_use, uint64_t* cached) {
  return guarded([&] {
    const tack::MemoryStatistics statistics = required(device, "device")->device->memory();
    if (in_use != nullptr) *in_use = statistics.in_use;
    if (cached != nullptr) *cached = statistics.cached;
  });
}

tack_status tack_device_trim(tack_device* device) {
  return guarded([&] { required(device, "device")->device->trim(); });
}

tack_status tack_array_create(tack_device* device, tack_dtype dtype, int rank, const int64_t* shape, tack_array** array) {
  return guarded([&] {
    required(array, "array");
    tack::Array made = tack::Array::empty(required(device, "device")->device, dtype_of(dtype), shape_of(rank, shape));
    *array = std::make_unique<tack_array>(tack_array{std::move(made)}).release();
  });
}

tack_status tack_array_wrap(tack_device* device, void* pointer, size_t bytes, tack_dtype dtype, int rank, const int64_t* shape,
                            void (*release)(void* user), void* user, tack_array** array) {
  return guarded([&] {
    required(array, "array");
    const tack::DType type = dtype_of(dtype);
    const std::span<const std::int64_t> lengths = shape_of(rank, shape);
    const Dense strides = dense(lengths, type);
    // Armed at the very end: where this function fails the memory stays the caller's business.
    const auto armed = std::make_shared<bool>(false);
    std::function<void()> owner;
    if (release != nullptr)
      owner = [armed, release, user] {
        if (*armed) release(user);
      };
    auto made = std::make_unique<tack_array>();
    auto buffer = tack::Buffer::wrap(required(device, "device")->device, pointer, bytes, std::move(owner), true);
    made->array = tack::Array::view(std::move(buffer), type, lengths, strides.span(rank), 0, false);
    *armed = true;
    *array = made.release();
  });
}

void tack_array_release(tack_array* array) { const std::unique_ptr<tack_array> owned(array); }

tack_status tack_array_describe(const tack_array* array, tack_dtype* dtype, int* rank, int64_t* shape, int64_t* strides) {
  return guarded([&] {
    const tack::Array& described = required(array, "array")->array;
    const tack::DType type = described.dtype();
    if (dtype != nullptr) *dtype = static_cast<tack_dtype>(static_cast<unsigned>(type.code) << 8 | type.bits);
    if (rank != nullptr) *rank = described.rank();
    for (int d = 0; d < described.rank(); ++d) {
      if (shape != nullptr) shape[d] = described.shape(d);
      if (strides != nullptr) strides[d] = described.stride(d);
    }
  });
}

void* tack_array_data(const tack_array* array) { return array == nullptr ? nullptr : array->array.data(); }

tack_status tack_array_upload(tack_array* array, const void* source, size_t bytes) {
  return guarded([&] {
    const tack::Array& target = required(array, "array")->array;
    require_bytes(target, bytes);
    if (bytes != 0) required(source, "source");
    target.write(source, dense(target.shape(), target.dtype()).span(target.rank()));
  });
}

tack_status tack_array_download(const tack_array* array, void* destination, size_t bytes) {
  return guarded([&] {
    const tack::Array& origin = required(array, "array")->array;
    require_bytes(origin, bytes);
    if (bytes != 0) required(destination, "destination");
    origin.read(destination, dense(origin.shape(), origin.dtype()).span(origin.rank()));
  });
}

tack_status tack_array_copy(tack_array* destination, const tack_array* source) {
  return guarded([&] { required(destination, "destination")->array.copy_from(required(source, "source")->array); });
}

tack_status tack_array_fill(tack_array* array, const void* element) {
  return guarded([&] { required(array, "array")->array.fill(required(element, "element")); });
}
