// hip/runtime.cpp -- the stand-in for the HIP runtime: its functions over those of the CUDA driver's stand-in. A thread has a device,
// whose primary context is current in each call; contexts are made when they are first needed and stay.
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "architecture.h"
#include "cuda_calls.h"
#include "hip/runtime_abi.h"

namespace sim {
const char* const library_name = "libamdhip64";
}

namespace sim::cuda {

const int usual_architecture = 0x90a;

void trace_result(const char* function, Result result) {
  Control::instance().trace(std::string(function) + " -> " + std::to_string(static_cast<int>(result)));
}

}  // namespace sim::cuda

namespace sim::hip {
namespace {

using namespace sim::cuda;
namespace hip_abi = tack::hip::abi;

constexpr int usual_version = 7'02'00000;  // ROCm 7.2
constexpr std::uint64_t most_threads = std::uint64_t{1} << 32;

thread_local int thread_device = 0;

bool valid_device(int device) { return device >= 0 && device < settings().devices; }

// Makes the context of the thread's device current, as every call of the runtime does. Without a GPU, or after a fork, there is none.
void select() {
  if (!initialized()) cuInit(0);
  if (!initialized() || !valid_device(thread_device)) return;
  static std::mutex mutex;
  static std::array<ContextPtr, 16>* const all = new std::array<ContextPtr, 16>;  // for calls while the process ends
  ContextPtr context;
  {
    const std::lock_guard lock(mutex);
    ContextPtr& own = (*all)[static_cast<std::size_t>(thread_device)];
    if (own == nullptr) {
      tack::cuda::abi::Context handle = nullptr;
      cuDevicePrimaryCtxRetain(&handle, thread_device);
      own = Driver::instance().contexts.find(bits(handle));
    }
    context = own;
  }
  std::vector<ContextPtr>& stack = context_stack();
  if (stack.size() != 1 || stack.back() != context) stack.assign(1, context);
}

// The frame of a call that works on the thread's device.
template <Name name, Failing failing = Failing::instead, class F>
Result on_device(F body) {
  {
    const Nested quiet;
    select();
  }
  return call<name, Needs::driver, failing>([&](const ContextPtr&) { return body(); });
}

// Of one that may come before anything else.
template <Name name, class F>
Result anywhere(F body) {
  return call<name, Needs::nothing>([&](const ContextPtr&) { return body(); });
}

tack::cuda::abi::DevicePointer number(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// The attribute's number in CUDA; 0 for one that is answered here or not at all.
int cuda_attribute(hip_abi::DeviceAttribute attribute) {
  switch (attribute) {
    case hip_abi::DeviceAttribute::max_threads_per_block:
      return 1;
    case hip_abi::DeviceAttribute::max_grid_dim_x:
      return 5;
    default:
      return 0;
  }
}

const char* result_name(Result result) {
#define SIM_CASE(member, original, value) \
  if (static_cast<int>(result) == (value)) return #original;
  TACK_HIP_RESULTS(SIM_CASE)
#undef SIM_CASE
  return "hipErrorUnknown";
}

void write_architecture(void* properties, int device, std::size_t offset) {
  const std::string name = name_of(settings().architecture(device, usual_architecture)) + ":sramecc+:xnack-";
  std::memcpy(static_cast<char*>(properties) + offset, name.c_str(), name.size() + 1);
}

}  // namespace
}  // namespace sim::hip

using namespace sim;
using namespace sim::hip;
using sim::cuda::Failing;
using sim::cuda::Result;

#pragma GCC visibility push(default)
extern "C" {

Result hipInit(unsigned flags) {
  return anywhere<"hipInit">([&] { return cuInit(flags); });
}

Result hipRuntimeGetVersion(int* version) {
  return anywhere<"hipRuntimeGetVersion">([&] {
    if (version == nullptr) return Result::invalid_value;
    *version = settings().driver_version == Settings{}.driver_version ? usual_version : settings().driver_version;
    return Result::success;
  });
}

Result hipGetDeviceCount(int* count) {
  return anywhere<"hipGetDeviceCount">([&] {
    if (count == nullptr) return Result::invalid_value;
    *count = settings().devices;
    return settings().devices == 0 ? Result::no_device : Result::success;
  });
}

Result hipGetDevice(int* device) {
  return on_device<"hipGetDevice">([&] {
    if (device == nullptr) return Result::invalid_value;
    *device = thread_device;
    return Result::success;
  });
}

Result hipSetDevice(int device) {
  return on_device<"hipSetDevice">([&] {
    if (!valid_device(device)) return Result::invalid_device;
    thread_device = device;
    return Result::success;
  });
}

Result hipDeviceGetName(char* name, int length, int device) {
  return on_device<"hipDeviceGetName">([&] { return cuDeviceGetName(name, length, device); });
}

Result hipDeviceGetAttribute(int* value, hip_abi::DeviceAttribute attribute, int device) {
  return on_device<"hipDeviceGetAttribute">([&] {
    if (value == nullptr) return Result::invalid_value;
    if (!valid_device(device)) return Result::invalid_device;
    const auto changed = settings().attributes.find(static_cast<int>(attribute));
    if (changed != settings().attributes.end()) {
      *value = changed->second;
      return Result::success;
    }
    if (const int known = cuda_attribute(attribute); known != 0) return cuDeviceGetAttribute(value, known, device);
    if (attribute != hip_abi::DeviceAttribute::max_shared_memory_per_block && attribute != hip_abi::DeviceAttribute::image_support)
      return Result::invalid_value;
    *value = attribute == hip_abi::DeviceAttribute::max_shared_memory_per_block ? 65536 : 0;
    return Result::success;
  });
}

Result hipGetDevicePropertiesR0600(void* properties, int device) {
  return on_device<"hipGetDevicePropertiesR0600">([&] {
    if (properties == nullptr) return Result::invalid_value;
    if (!valid_device(device)) return Result::invalid_device;
    std::memset(properties, 0, hip_abi::PropertiesR0600::size);
    write_architecture(properties, device, hip_abi::PropertiesR0600::architecture);
    return Result::success;
  });
}

Result hipDeviceSynchronize() {
  return on_device<"hipDeviceSynchronize">([&] { return cuCtxSynchronize(); });
}

Result hipModuleLoadData(abi::Module* module, const void* image) {
  return on_device<"hipModuleLoadData">([&] { return cuModuleLoadData(module, image); });
}

Result hipModuleUnload(abi::Module module) {
  return on_device<"hipModuleUnload", Failing::afterwards>([&] { return cuModuleUnload(module); });
}

Result hipModuleGetFunction(abi::Function* function, abi::Module module, const char* name) {
  return on_device<"hipModuleGetFunction">([&] { return cuModuleGetFunction(function, module, name); });
}

Result hipFuncGetAttribute(int* value, int attribute, abi::Function function) {
  return on_device<"hipFuncGetAttribute">([&] { return cuFuncGetAttribute(value, attribute, function); });
}

Result hipModuleLaunchKernel(abi::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                             unsigned block_z, unsigned shared, abi::Stream stream, void** parameters, void** extra) {
  return on_device<"hipModuleLaunchKernel">([&] {
    if (std::uint64_t{grid_x} * block_x >= most_threads) return Result::invalid_value;
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra);
  });
}

Result hipStreamCreateWithFlags(abi::Stream* stream, unsigned flags) {
  return on_device<"hipStreamCreateWithFlags">([&] { return cuStreamCreate(stream, flags); });
}

Result hipStreamDestroy(abi::Stream stream) {
  return on_device<"hipStreamDestroy", Failing::afterwards>([&] { return cuStreamDestroy_v2(stream); });
}

Result hipStreamSynchronize(abi::Stream stream) {
  return on_device<"hipStreamSynchronize">([&] { return cuStreamSynchronize(stream); });
}

Result hipEventCreateWithFlags(abi::Event* event, unsigned flags) {
  return on_device<"hipEventCreateWithFlags">([&] { return cuEventCreate(event, flags); });
}

Result hipEventRecord(abi::Event event, abi::Stream stream) {
  return on_device<"hipEventRecord">([&] { return cuEventRecord(event, stream); });
}

Result hipEventSynchronize(abi::Event event) {
  return on_device<"hipEventSynchronize">([&] { return cuEventSynchronize(event); });
}

Result hipEventDestroy(abi::Event event) {
  return on_device<"hipEventDestroy", Failing::afterwards>([&] { return cuEventDestroy_v2(event); });
}

Result hipMalloc(void** pointer, std::size_t size) {
  return on_device<"hipMalloc">([&] {
    abi::DevicePointer made = 0;
    const Result result = pointer == nullptr ? Result::invalid_value : cuMemAlloc_v2(&made, size);
    if (result == Result::success) *pointer = pointer_to(made);
    return result;
  });
}

Result hipFree(void* pointer) {
  return on_device<"hipFree", Failing::afterwards>([&] { return cuMemFree_v2(number(pointer)); });
}

Result hipHostMalloc(void** pointer, std::size_t size, unsigned flags) {
  return on_device<"hipHostMalloc">([&] { return cuMemHostAlloc(pointer, size, flags); });
}

Result hipHostFree(void* pointer) {
  return on_device<"hipHostFree", Failing::afterwards>([&] { return cuMemFreeHost(pointer); });
}

Result hipPointerGetAttribute(void* data, int attribute, void* pointer) {
  return on_device<"hipPointerGetAttribute">([&] { return cuPointerGetAttribute(data, attribute, number(pointer)); });
}

Result hipMemcpyHtoDAsync(void* to, const void* from, std::size_t size, abi::Stream stream) {
  return on_device<"hipMemcpyHtoDAsync">([&] { return cuMemcpyHtoDAsync_v2(number(to), from, size, stream); });
}

Result hipMemcpyDtoHAsync(void* to, void* from, std::size_t size, abi::Stream stream) {
  return on_device<"hipMemcpyDtoHAsync">([&] { return cuMemcpyDtoHAsync_v2(to, number(from), size, stream); });
}

Result hipMemcpyDtoDAsync(void* to, void* from, std::size_t size, abi::Stream stream) {
  return on_device<"hipMemcpyDtoDAsync">([&] { return cuMemcpyDtoDAsync_v2(number(to), number(from), size, stream); });
}

Result hipMemsetD8Async(void* to, unsigned char value, std::size_t n, abi::Stream stream) {
  return on_device<"hipMemsetD8Async">([&] { return cuMemsetD8Async(number(to), value, n, stream); });
}

Result hipMemsetD16Async(void* to, unsigned short value, std::size_t n, abi::Stream stream) {
  return on_device<"hipMemsetD16Async">([&] { return cuMemsetD16Async(number(to), value, n, stream); });
}

Result hipMemsetD32Async(void* to, int value, std::size_t n, abi::Stream stream) {
  return on_device<"hipMemsetD32Async">([&] { return cuMemsetD32Async(number(to), static_cast<unsigned>(value), n, stream); });
}

const char* hipGetErrorName(Result result) { return result_name(result); }
const char* hipGetErrorString(Result result) { return result_name(result); }
}
#pragma GCC visibility pop
