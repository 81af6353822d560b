// level_zero/driver.cpp -- the Level Zero stand-in: initialisation, devices, contexts and their memory.
#include "driver.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "../engine/signals.h"

namespace sim {
const char* const library_name = "libze";
}

namespace sim::level_zero {
namespace {

enum class Initialized { no, yes, in_parent };
std::atomic<Initialized> state{Initialized::no};

constexpr std::uint32_t usual_version = abi::version(1, 12);

// ocloc knows these numbers too. The first has larger groups than a real one of its kind, so that all of the suite's run.
constexpr Model models[] = {
    {0x1912, "Simulated Gen9 GPU", true, true, 1024},
    {0x4905, "Simulated Xe-LP GPU", false, true, 512},
    {0x0bd5, "Simulated Xe-HPC GPU", true, false, 1024},
};

std::shared_ptr<Context> find_context(abi::Context handle) { return Driver::instance().contexts.find(bits(handle)); }

Result allocate(const ContextPtr& context, int device, std::size_t size, std::size_t alignment, void** pointer) {
  if (pointer == nullptr) return Result::invalid_null_pointer;
  if (size == 0) return Result::unsupported_size;
  if (alignment > 256) return Result::unsupported_alignment;
  const std::uintptr_t start = device < 0 ? Memory::instance().allocate_pinned(size) : Memory::instance().allocate(device, size);
  if (start == 0) return Result::out_of_memory;
  const std::lock_guard lock(context->mutex);
  context->memory[start] = device;
  *pointer = pointer_to(start);
  return Result::success;
}

}  // namespace

Context::Context(std::uint64_t number) : handle_number(number) {
  for (int device = 0; device < settings().devices; ++device) queues.push_back(std::make_unique<Queue>(device));
}

Driver& Driver::instance() {
  static Driver* const driver = new Driver;  // never destroyed: calls may come while the process ends
  return *driver;
}

bool initialized() { return state.load(std::memory_order_relaxed) == Initialized::yes; }

Result misuse(const char* function, Result result, const std::string& what) {
  Control::instance().report(std::string(function) + ": " + what);
  return result;
}

int number_of(abi::Device device) {
  const std::uint64_t number = bits(device) - device_handle - 1;
  return number < static_cast<std::uint64_t>(settings().devices) ? static_cast<int>(number) : -1;
}

const Model& model_of(int device) {
  const int wanted = settings().architecture(device, static_cast<int>(models[0].id));
  const Model* const found =
      std::find_if(std::begin(models), std::end(models), [&](const Model& m) { return m.id == static_cast<std::uint32_t>(wanted); });
  return found == std::end(models) ? models[0] : *found;
}

std::size_t max_allocation() { return settings().memory / 4; }

std::uint32_t api_version() {
  const auto wanted = static_cast<std::uint32_t>(settings().driver_version);
  return wanted >= abi::version(1, 0) ? wanted : usual_version;
}

}  // namespace sim::level_zero

using namespace sim;
using namespace sim::level_zero;

#pragma GCC visibility push(default)
extern "C" {

Result zeInit(std::uint32_t flags) {
  static CallSite site("zeInit");
  return call(
      site, nullptr,
      [&] {
        if (flags > 3) return Result::invalid_enumeration;
        if (settings().devices == 0) return Result::uninitialized;
        if (state.exchange(Initialized::yes) == Initialized::no) {
          install_signal_handlers();
          pthread_atfork(nullptr, nullptr, [] { state = Initialized::in_parent; });
        }
        return Result::success;
      },
      false);
}

Result zeDriverGet(std::uint32_t* count, abi::Driver* drivers) {
  static CallSite site("zeDriverGet");
  return call(site, nullptr, [&] {
    if (drivers != nullptr && *count > 0) drivers[0] = handle_of<abi::Driver>(driver_handle);
    *count = 1;
    return Result::success;
  });
}

Result zeDriverGetApiVersion(abi::Driver, std::uint32_t* version) {
  static CallSite site("zeDriverGetApiVersion");
  return call(site, nullptr, [&] {
    *version = api_version();
    return Result::success;
  });
}

Result zeDeviceGet(abi::Driver driver, std::uint32_t* count, abi::Device* devices) {
  static CallSite site("zeDeviceGet");
  return call(site, nullptr, [&] {
    if (bits(driver) != driver_handle) return Result::invalid_null_handle;
    const auto there = static_cast<std::uint32_t>(settings().devices);
    for (std::uint32_t i = 0; devices != nullptr && i < std::min(*count, there); ++i)
      devices[i] = handle_of<abi::Device>(device_handle + 1 + i);
    *count = devices == nullptr ? there : std::min(*count, there);
    return Result::success;
  });
}

Result zeDeviceGetProperties(abi::Device device, abi::DeviceProperties* properties) {
  static CallSite site("zeDeviceGetProperties");
  return call(site, nullptr, [&] {
    const int number = number_of(device);
    if (number < 0) return Result::invalid_null_handle;
    if (properties->stype != abi::StructureType::DeviceProperties) return misuse(site.name, Result::invalid_argument, "wrong stype");
    properties->type = abi::device_type_gpu;
    properties->vendor_id = 0x8086;
    properties->device_id = model_of(number).id;
    properties->max_allocation = max_allocation();
    std::snprintf(properties->name, sizeof properties->name, "%s", model_of(number).name);
    return Result::success;
  });
}

Result zeDeviceGetComputeProperties(abi::Device device, abi::ComputeProperties* properties) {
  static CallSite site("zeDeviceGetComputeProperties");
  return call(site, nullptr, [&] {
    const int number = number_of(device);
    if (number < 0) return Result::invalid_null_handle;
    if (properties->stype != abi::StructureType::ComputeProperties) return misuse(site.name, Result::invalid_argument, "wrong stype");
    properties->max_group = properties->max_group_x = properties->max_group_y = properties->max_group_z = model_of(number).max_group;
    properties->max_groups_x = properties->max_groups_y = properties->max_groups_z = 0xffffffff;
    properties->shared_bytes = 64 << 10;
    return Result::success;
  });
}

Result zeDeviceGetModuleProperties(abi::Device device, abi::ModuleProperties* properties) {
  static CallSite site("zeDeviceGetModuleProperties");
  return call(site, nullptr, [&] {
    const int number = number_of(device);
    if (number < 0) return Result::invalid_null_handle;
    if (properties->stype != abi::StructureType::ModuleProperties) return misuse(site.name, Result::invalid_argument, "wrong stype");
    properties->spirv_version = abi::version(1, 2);
    properties->flags = model_of(number).f64 ? abi::module_flag_fp64 : 0;
    properties->fp32_flags = abi::fp_flag_denorm;
    return Result::success;
  });
}

Result zeDeviceGetImageProperties(abi::Device device, abi::ImageProperties* properties) {
  static CallSite site("zeDeviceGetImageProperties");
  return call(site, nullptr, [&] {
    const int number = number_of(device);
    if (number < 0) return Result::invalid_null_handle;
    if (properties->stype != abi::StructureType::ImageProperties) return misuse(site.name, Result::invalid_argument, "wrong stype");
    properties->max_3d = model_of(number).images ? largest_image : 0;
    properties->max_samplers = model_of(number).images ? 16 : 0;
    return Result::success;
  });
}

// The first kind of queue copies, the second computes: who takes the first one for kernels meets a failure.
Result zeDeviceGetCommandQueueGroupProperties(abi::Device device, std::uint32_t* count, abi::QueueGroupProperties* groups) {
  static CallSite site("zeDeviceGetCommandQueueGroupProperties");
  return call(site, nullptr, [&] {
    if (number_of(device) < 0) return Result::invalid_null_handle;
    for (std::uint32_t i = 0; groups != nullptr && i < std::min(*count, 2u); ++i) {
      if (groups[i].stype != abi::StructureType::QueueGroupProperties) return misuse(site.name, Result::invalid_argument, "wrong stype");
      groups[i].flags = i == 0 ? 2 : 3;
      groups[i].queues = 1;
      groups[i].max_fill_pattern = ~std::size_t{0};
    }
    *count = 2;
    return Result::success;
  });
}

Result zeContextCreate(abi::Driver driver, const abi::ContextDesc* desc, abi::Context* context) {
  static CallSite site("zeContextCreate");
  return call(site, nullptr, [&] {
    if (bits(driver) != driver_handle) return Result::invalid_null_handle;
    if (desc->stype != abi::StructureType::ContextDesc) return misuse(site.name, Result::invalid_argument, "wrong stype");
    static std::atomic<std::uint64_t> made{0};
    *context = handle_of<abi::Context>(Driver::instance().contexts.add(std::make_shared<Context>(++made)));
    return Result::success;
  });
}

Result zeContextDestroy(abi::Context handle) {
  static CallSite site("zeContextDestroy");
  return call<Failing::afterwards>(site, nullptr, [&] {
    const ContextPtr context = Driver::instance().contexts.remove(bits(handle));
    if (context == nullptr) return Result::invalid_null_handle;
    if (context->unfinished != 0 && !context->disturbed)
      misuse(site.name, Result::object_in_use, std::to_string(context->unfinished) + " commands of the context have not run");
    return Result::success;
  });
}

Result zeMemAllocDevice(abi::Context handle, const abi::DeviceMemoryDesc* desc, std::size_t size, std::size_t alignment, abi::Device device,
                        void** pointer) {
  static CallSite site("zeMemAllocDevice");
  const ContextPtr context = find_context(handle);
  return call(site, context, [&] {
    const int number = number_of(device);
    if (context == nullptr || number < 0) return Result::invalid_null_handle;
    if (desc->stype != abi::StructureType::DeviceMemoryDesc) return misuse(site.name, Result::invalid_argument, "wrong stype");
    const auto* const more = static_cast<const abi::RelaxedLimitsDesc*>(desc->next);
    const bool relaxed = more != nullptr && more->stype == abi::StructureType::RelaxedLimitsDesc && more->flags == abi::relaxed_max_size;
    if (size > (relaxed ? settings().memory : max_allocation())) return Result::unsupported_size;
    return allocate(context, number, size, alignment, pointer);
  });
}

Result zeMemAllocHost(abi::Context handle, const abi::HostMemoryDesc* desc, std::size_t size, std::size_t alignment, void** pointer) {
  static CallSite site("zeMemAllocHost");
  const ContextPtr context = find_context(handle);
  return call(site, context, [&] {
    if (context == nullptr) return Result::invalid_null_handle;
    if (desc->stype != abi::StructureType::HostMemoryDesc) return misuse(site.name, Result::invalid_argument, "wrong stype");
    return allocate(context, -1, size, alignment, pointer);
  });
}

Result zeMemFree(abi::Context handle, void* pointer) {
  static CallSite site("zeMemFree");
  const ContextPtr context = find_context(handle);
  return call<Failing::afterwards>(site, context, [&] {
    if (context == nullptr) return Result::invalid_null_handle;
    if (context->unfinished != 0 && !context->disturbed)
      misuse(site.name, Result::object_in_use, "memory is freed while " + std::to_string(context->unfinished) + " commands have not run");
    const std::lock_guard lock(context->mutex);
    const auto found = context->memory.find(address_of(pointer));
    if (found == context->memory.end()) return misuse(site.name, Result::invalid_argument, "no allocation of the context starts there");
    Memory::instance().free(found->first, found->second < 0 ? MemoryKind::pinned : MemoryKind::device);
    context->memory.erase(found);
    return context->error.load();
  });
}

Result zeMemGetAllocProperties(abi::Context handle, const void* pointer, abi::AllocationProperties* properties, abi::Device* device) {
  static CallSite site("zeMemGetAllocProperties");
  const ContextPtr context = find_context(handle);
  return call(site, context, [&] {
    if (context == nullptr) return Result::invalid_null_handle;
    if (properties->stype != abi::StructureType::AllocationProperties) return misuse(site.name, Result::invalid_argument, "wrong stype");
    properties->type = abi::memory_unknown;
    if (device != nullptr) *device = nullptr;
    const std::optional<Allocation> there = Memory::instance().find(address_of(pointer));
    const std::lock_guard lock(context->mutex);
    const auto found = there ? context->memory.find(there->start) : context->memory.end();
    if (found == context->memory.end()) return Result::success;
    properties->type = found->second < 0 ? 1 : abi::memory_device;
    properties->id = there->start;
    if (device != nullptr && found->second >= 0)
      *device = handle_of<abi::Device>(device_handle + 1 + static_cast<std::uint64_t>(found->second));
    return Result::success;
  });
}
}
#pragma GCC visibility pop
