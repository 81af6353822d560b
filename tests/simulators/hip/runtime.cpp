// hip/runtime.cpp -- the stand-in for the HIP runtime: its functions over those of the CUDA driver's stand-in. A thread has a device,
// whose primary context is current in each call; contexts are made when they are first needed and stay.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <mutex>

#include "architecture.h"
#include "cuda_calls.h"
#include "hip/runtime_abi.h"

namespace sim {
const char* const library_name = "libamdhip64";
}

namespace sim::cuda {

const int usual_architecture = 0x1030;

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
    case hip_abi::DeviceAttribute::max_texture_width:
      return 24;
    case hip_abi::DeviceAttribute::max_texture_height:
      return 25;
    case hip_abi::DeviceAttribute::max_texture_depth:
      return 26;
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

bool images_of(int device) { return has_images(settings().architecture(device, usual_architecture)); }

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
    if (attribute == hip_abi::DeviceAttribute::max_shared_memory_per_block) {
      *value = 65536;
    } else if (attribute == hip_abi::DeviceAttribute::image_support) {
      *value = images_of(device) ? 1 : 0;
    } else {
      return Result::invalid_value;
    }
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

Result hipArray3DCreate(abi::Array* array, const hip_abi::ArrayDescription* description) {
  return on_device<"hipArray3DCreate">([&] {
    if (description == nullptr) return Result::invalid_value;
    if (!images_of(thread_device)) return Result::not_supported;
    const hip_abi::ArrayDescription& d = *description;
    const abi::ArrayDescription same{d.width, d.height, d.depth, abi::ArrayFormat{static_cast<int>(d.format)}, d.channels, d.flags};
    return cuArray3DCreate_v2(array, &same);
  });
}

Result hipArrayDestroy(abi::Array array) {
  return on_device<"hipArrayDestroy", Failing::afterwards>([&] { return cuArrayDestroy(array); });
}

Result hipMemcpy3DAsync(const hip_abi::Copy3D* copy, abi::Stream stream) {
  return on_device<"hipMemcpy3DAsync">([&] {
    if (copy == nullptr || copy->kind != hip_abi::CopyKind::device_to_device) return Result::invalid_value;
    // Of each side one is there, and as soon as one side is an array all is counted in its texels.
    const auto array_of = [](hip_abi::Array handle) { return std::bit_cast<abi::Array>(handle); };
    const bool from_array = copy->from_array != nullptr, to_array = copy->to_array != nullptr;
    if (from_array == (copy->from.pointer != nullptr) || to_array == (copy->to.pointer != nullptr)) return Result::invalid_value;
    std::size_t texel = 1;
    if (from_array || to_array) {
      const auto found = sim::cuda::Driver::instance().arrays.find(bits(from_array ? copy->from_array : copy->to_array));
      if (found == nullptr) return Result::invalid_handle;
      texel = found->texels->channels * sizeof(float);
    }
    const auto side = [&](hip_abi::Array array, const hip_abi::Position& at, const hip_abi::PitchedPointer& memory) {
      abi::CopySide made{};
      made.x = at.x * texel;
      made.y = at.y;
      made.z = at.z;
      made.kind = array != nullptr ? abi::MemoryKind::array : abi::MemoryKind::device;
      made.array = array_of(array);
      made.device = number(memory.pointer);
      made.pitch = memory.pitch;
      made.height = memory.height;
      return made;
    };
    const abi::Copy3D same{side(copy->from_array, copy->from_position, copy->from), side(copy->to_array, copy->to_position, copy->to),
                           copy->width * texel, copy->height, copy->depth};
    return cuMemcpy3DAsync_v2(&same, stream);
  });
}

Result hipTexObjectCreate(hip_abi::TextureObject* object, const hip_abi::ResourceDescription* resource,
                          const hip_abi::TextureDescription* description, const hip_abi::ResourceViewDescription* view) {
  return on_device<"hipTexObjectCreate">([&] {
    if (object == nullptr || resource == nullptr || description == nullptr) return Result::invalid_value;
    if (!images_of(thread_device)) return Result::not_supported;
    // The runtime takes neither anisotropy nor levels of detail, and one address mode for all dimensions.
    const hip_abi::TextureDescription& d = *description;
    if (d.max_anisotropy != 0 || d.mipmap_bias != 0.0f || d.min_level != 0.0f || d.max_level != 0.0f || view != nullptr)
      return Result::not_supported;
    if (d.address[0] != d.address[1] || d.address[0] != d.address[2]) return Result::invalid_value;
    abi::ResourceDescription source{};
    source.kind = abi::ResourceKind{static_cast<int>(resource->kind)};
    source.content.array = std::bit_cast<abi::Array>(resource->content.array);
    source.flags = resource->flags;
    abi::TextureDescription same{};
    for (abi::AddressMode& mode : same.address) mode = abi::AddressMode{static_cast<int>(d.address[0])};
    same.filter = abi::FilterMode{static_cast<int>(d.filter)};
    same.flags = d.flags;
    std::copy(std::begin(d.border), std::end(d.border), std::begin(same.border));
    abi::TextureObject made = 0;
    const Result result = cuTexObjectCreate(&made, &source, &same, nullptr);
    if (result == Result::success) *object = std::bit_cast<hip_abi::TextureObject>(made);
    return result;
  });
}

Result hipTexObjectDestroy(hip_abi::TextureObject object) {
  return on_device<"hipTexObjectDestroy", Failing::afterwards>([&] { return cuTexObjectDestroy(bits(object)); });
}

const char* hipGetErrorName(Result result) { return result_name(result); }
const char* hipGetErrorString(Result result) { return result_name(result); }
}
#pragma GCC visibility pop
