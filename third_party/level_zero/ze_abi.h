// level_zero/ze_abi.h -- the part of the Level Zero driver's binary interface that tack uses, in tack's own words. Source: the "oneAPI
// Level Zero Specification" (oneapi-src.github.io/level-zero-spec), core API 1.4; tests/unit/test_abi.py compares all of it with the real
// ze_api.h, but for what is newer than 1.4.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tack::level_zero::abi {

// Opaque objects; a handle of each is a pointer.
struct DriverObject;
struct DeviceObject;
struct ContextObject;
struct CommandListObject;
struct EventPoolObject;
struct EventObject;
struct ModuleObject;
struct BuildLogObject;
struct KernelObject;
struct ImageObject;
struct SamplerObject;
using Driver = DriverObject*;
using Device = DeviceObject*;
using Context = ContextObject*;
using CommandList = CommandListObject*;
using EventPool = EventPoolObject*;
using Event = EventObject*;
using Module = ModuleObject*;
using BuildLog = BuildLogObject*;
using Kernel = KernelObject*;
using Image = ImageObject*;
using Sampler = SamplerObject*;

// X(name, the specification's name, value, what it means)
#define TACK_ZE_RESULTS(X)                                                                                                               \
  X(success, ZE_RESULT_SUCCESS, 0, "no error")                                                                                           \
  X(not_ready, ZE_RESULT_NOT_READY, 1, "it is not done yet")                                                                             \
  X(device_lost, ZE_RESULT_ERROR_DEVICE_LOST, 0x70000001, "the device hung, was reset or removed")                                       \
  X(out_of_host_memory, ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY, 0x70000002, "the host has not enough memory")                                \
  X(out_of_memory, ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, 0x70000003, "the device has not enough memory")                                 \
  X(module_build_failure, ZE_RESULT_ERROR_MODULE_BUILD_FAILURE, 0x70000004, "the driver cannot compile the code")                        \
  X(module_link_failure, ZE_RESULT_ERROR_MODULE_LINK_FAILURE, 0x70000005, "the driver cannot link the code")                             \
  X(requires_reset, ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET, 0x70000006, "the device must be reset")                                       \
  X(low_power, ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE, 0x70000007, "the device is in a low-power state")                              \
  X(insufficient_permissions, ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS, 0x70010000, "this user may not use the device")                  \
  X(not_available, ZE_RESULT_ERROR_NOT_AVAILABLE, 0x70010001, "somebody else has it")                                                    \
  X(dependency_unavailable, ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE, 0x70020000,                                                          \
    "a library that the driver needs is missing or does not "                                                                            \
    "fit")                                                                                                                               \
  X(uninitialized, ZE_RESULT_ERROR_UNINITIALIZED, 0x78000001, "the driver is not initialized")                                           \
  X(unsupported_version, ZE_RESULT_ERROR_UNSUPPORTED_VERSION, 0x78000002, "the driver does not support this version")                    \
  X(unsupported_feature, ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, 0x78000003, "the device does not support this")                            \
  X(invalid_argument, ZE_RESULT_ERROR_INVALID_ARGUMENT, 0x78000004, "an argument is invalid")                                            \
  X(invalid_null_handle, ZE_RESULT_ERROR_INVALID_NULL_HANDLE, 0x78000005, "a handle is invalid")                                         \
  X(object_in_use, ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, 0x78000006, "the device still uses it")                                         \
  X(invalid_null_pointer, ZE_RESULT_ERROR_INVALID_NULL_POINTER, 0x78000007, "a pointer is null")                                         \
  X(invalid_size, ZE_RESULT_ERROR_INVALID_SIZE, 0x78000008, "a size is invalid")                                                         \
  X(unsupported_size, ZE_RESULT_ERROR_UNSUPPORTED_SIZE, 0x78000009, "a size is more than the device supports")                           \
  X(unsupported_alignment, ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, 0x7800000a, "the device does not support this alignment")              \
  X(invalid_synchronization, ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT, 0x7800000b, "an event is in an invalid state")              \
  X(invalid_enumeration, ZE_RESULT_ERROR_INVALID_ENUMERATION, 0x7800000c, "an enumerator is invalid")                                    \
  X(unsupported_enumeration, ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION, 0x7800000d, "the device does not support this enumerator")         \
  X(unsupported_image_format, ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT, 0x7800000e, "the device has no images of this format")           \
  X(invalid_native_binary, ZE_RESULT_ERROR_INVALID_NATIVE_BINARY, 0x7800000f, "the code is no binary for this device")                   \
  X(invalid_kernel_name, ZE_RESULT_ERROR_INVALID_KERNEL_NAME, 0x78000011, "the code has no function of this name")                       \
  X(invalid_group_size, ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION, 0x78000013, "a group of this size is more than the kernel allows") \
  X(invalid_global_width, ZE_RESULT_ERROR_INVALID_GLOBAL_WIDTH_DIMENSION, 0x78000014, "so many groups are more than the kernel allows")  \
  X(invalid_argument_index, ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX, 0x78000015, "the kernel has no argument of this number")      \
  X(invalid_argument_size, ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE, 0x78000016, "the kernel's argument has another size")           \
  X(unlinked, ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED, 0x78000018, "the code uses functions that it lacks")                              \
  X(unknown, ZE_RESULT_ERROR_UNKNOWN, 0x7ffffffe, "an error that the driver does not explain")

// X(struct, the specification's name, stype's name, its value)
#define TACK_ZE_STRUCTURES(X)                                                                                         \
  X(DeviceProperties, ze_device_properties_t, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES, 0x3)                               \
  X(ComputeProperties, ze_device_compute_properties_t, ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES, 0x4)              \
  X(ModuleProperties, ze_device_module_properties_t, ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES, 0x5)                 \
  X(QueueGroupProperties, ze_command_queue_group_properties_t, ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES, 0x6) \
  X(ImageProperties, ze_device_image_properties_t, ZE_STRUCTURE_TYPE_DEVICE_IMAGE_PROPERTIES, 0xa)                    \
  X(ContextDesc, ze_context_desc_t, ZE_STRUCTURE_TYPE_CONTEXT_DESC, 0xd)                                              \
  X(QueueDesc, ze_command_queue_desc_t, ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, 0xe)                                    \
  X(EventPoolDesc, ze_event_pool_desc_t, ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, 0x10)                                     \
  X(EventDesc, ze_event_desc_t, ZE_STRUCTURE_TYPE_EVENT_DESC, 0x11)                                                   \
  X(ImageDesc, ze_image_desc_t, ZE_STRUCTURE_TYPE_IMAGE_DESC, 0x13)                                                   \
  X(DeviceMemoryDesc, ze_device_mem_alloc_desc_t, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, 0x15)                      \
  X(HostMemoryDesc, ze_host_mem_alloc_desc_t, ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, 0x16)                            \
  X(AllocationProperties, ze_memory_allocation_properties_t, ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES, 0x17)    \
  X(ModuleDesc, ze_module_desc_t, ZE_STRUCTURE_TYPE_MODULE_DESC, 0x1b)                                                \
  X(KernelDesc, ze_kernel_desc_t, ZE_STRUCTURE_TYPE_KERNEL_DESC, 0x1d)                                                \
  X(SamplerDesc, ze_sampler_desc_t, ZE_STRUCTURE_TYPE_SAMPLER_DESC, 0x1f)                                             \
  X(RelaxedLimitsDesc, ze_relaxed_allocation_limits_exp_desc_t, ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC, 0x20001)

#define TACK_ZE_CONSTANTS(X)                                              \
  X(init_gpu_only, ZE_INIT_FLAG_GPU_ONLY, 1)                              \
  X(device_type_gpu, ZE_DEVICE_TYPE_GPU, 1)                               \
  X(module_flag_fp64, ZE_DEVICE_MODULE_FLAG_FP64, 2)                      \
  X(fp_flag_denorm, ZE_DEVICE_FP_FLAG_DENORM, 1)                          \
  X(queue_group_compute, ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE, 1) \
  X(queue_asynchronous, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS, 2)            \
  X(event_pool_host_visible, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, 1)          \
  X(event_scope_host, ZE_EVENT_SCOPE_FLAG_HOST, 4)                        \
  X(image_3d, ZE_IMAGE_TYPE_3D, 4)                                        \
  X(layout_32, ZE_IMAGE_FORMAT_LAYOUT_32, 2)                              \
  X(format_float, ZE_IMAGE_FORMAT_TYPE_FLOAT, 4)                          \
  X(swizzle_red, ZE_IMAGE_FORMAT_SWIZZLE_R, 0)                            \
  X(swizzle_zero, ZE_IMAGE_FORMAT_SWIZZLE_0, 4)                           \
  X(swizzle_one, ZE_IMAGE_FORMAT_SWIZZLE_1, 5)                            \
  X(address_repeat, ZE_SAMPLER_ADDRESS_MODE_REPEAT, 1)                    \
  X(address_clamp, ZE_SAMPLER_ADDRESS_MODE_CLAMP, 2)                      \
  X(filter_nearest, ZE_SAMPLER_FILTER_MODE_NEAREST, 0)                    \
  X(filter_linear, ZE_SAMPLER_FILTER_MODE_LINEAR, 1)                      \
  X(memory_unknown, ZE_MEMORY_TYPE_UNKNOWN, 0)                            \
  X(memory_device, ZE_MEMORY_TYPE_DEVICE, 2)                              \
  X(module_spirv, ZE_MODULE_FORMAT_IL_SPIRV, 0)                           \
  X(relaxed_max_size, ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE, 1)

enum class Result : int {
#define X(name, original, value, words) name = value,
  TACK_ZE_RESULTS(X)
#undef X
};
enum class StructureType : std::uint32_t {
#define X(name, original, stype, value) name = value,
  TACK_ZE_STRUCTURES(X)
#undef X
};
#define X(name, original, value) inline constexpr std::uint32_t name = value;
TACK_ZE_CONSTANTS(X)
#undef X
inline constexpr std::uint32_t queue_in_order = 2;  // ZE_COMMAND_QUEUE_FLAG_IN_ORDER, of immediate command lists
inline constexpr std::uint64_t no_timeout = ~std::uint64_t{0};

/// A version as the driver answers it: 1.4 is 0x10004.
constexpr std::uint32_t version(std::uint32_t major, std::uint32_t minor) noexcept { return major << 16 | minor; }

struct DeviceProperties {
  StructureType stype = StructureType::DeviceProperties;
  void* next = nullptr;
  std::uint32_t type = 0, vendor_id = 0, device_id = 0, flags = 0, subdevice_id = 0, core_clock_rate = 0;
  std::uint64_t max_allocation = 0;
  std::uint32_t max_hardware_contexts = 0, max_queue_priority = 0, threads_per_eu = 0, simd_width = 0, eus_per_subslice = 0,
                subslices_per_slice = 0, slices = 0;
  std::uint64_t timer_resolution = 0;
  std::uint32_t timestamp_bits = 0, kernel_timestamp_bits = 0;
  unsigned char uuid[16] = {};
  char name[256] = {};
};
struct ComputeProperties {
  StructureType stype = StructureType::ComputeProperties;
  void* next = nullptr;
  std::uint32_t max_group = 0, max_group_x = 0, max_group_y = 0, max_group_z = 0, max_groups_x = 0, max_groups_y = 0, max_groups_z = 0,
                shared_bytes = 0, subgroup_sizes_count = 0, subgroup_sizes[8] = {};
};
struct ModuleProperties {
  StructureType stype = StructureType::ModuleProperties;
  void* next = nullptr;
  std::uint32_t spirv_version = 0, flags = 0, fp16_flags = 0, fp32_flags = 0, fp64_flags = 0, max_arguments_bytes = 0, printf_bytes = 0;
  unsigned char native_kernel[16] = {};
};
struct QueueGroupProperties {
  StructureType stype = StructureType::QueueGroupProperties;
  void* next = nullptr;
  std::uint32_t flags = 0;
  std::size_t max_fill_pattern = 0;
  std::uint32_t queues = 0;
};
struct ImageProperties {
  StructureType stype = StructureType::ImageProperties;
  void* next = nullptr;
  std::uint32_t max_1d = 0, max_2d = 0, max_3d = 0;
  std::uint64_t max_buffer = 0;
  std::uint32_t max_slices = 0, max_samplers = 0, max_read_arguments = 0, max_write_arguments = 0;
};
struct ContextDesc {
  StructureType stype = StructureType::ContextDesc;
  const void* next = nullptr;
  std::uint32_t flags = 0;
};
struct QueueDesc {
  StructureType stype = StructureType::QueueDesc;
  const void* next = nullptr;
  std::uint32_t ordinal = 0, index = 0, flags = 0, mode = 0, priority = 0;
};
struct EventPoolDesc {
  StructureType stype = StructureType::EventPoolDesc;
  const void* next = nullptr;
  std::uint32_t flags = 0, count = 0;
};
struct EventDesc {
  StructureType stype = StructureType::EventDesc;
  const void* next = nullptr;
  std::uint32_t index = 0, signal = 0, wait = 0;
};
struct ImageFormat {
  std::uint32_t layout = layout_32, type = format_float, x = swizzle_red, y = swizzle_zero, z = swizzle_zero, w = swizzle_one;
};
struct ImageDesc {
  StructureType stype = StructureType::ImageDesc;
  const void* next = nullptr;
  std::uint32_t flags = 0, type = image_3d;
  ImageFormat format;
  std::uint64_t width = 0;
  std::uint32_t height = 0, depth = 0, array_levels = 0, mip_levels = 0;
};
struct ImageRegion {
  std::uint32_t x = 0, y = 0, z = 0, width = 0, height = 0, depth = 0;
};
struct SamplerDesc {
  StructureType stype = StructureType::SamplerDesc;
  const void* next = nullptr;
  std::uint32_t address = 0, filter = 0;
  std::uint8_t normalized = 0;
};
struct DeviceMemoryDesc {
  StructureType stype = StructureType::DeviceMemoryDesc;
  const void* next = nullptr;
  std::uint32_t flags = 0, ordinal = 0;
};
struct HostMemoryDesc {
  StructureType stype = StructureType::HostMemoryDesc;
  const void* next = nullptr;
  std::uint32_t flags = 0;
};
struct AllocationProperties {
  StructureType stype = StructureType::AllocationProperties;
  void* next = nullptr;
  std::uint32_t type = 0;
  std::uint64_t id = 0, page_bytes = 0;
};
struct ModuleDesc {
  StructureType stype = StructureType::ModuleDesc;
  const void* next = nullptr;
  std::uint32_t format = 0;
  std::size_t bytes = 0;
  const std::uint8_t* code = nullptr;
  const char* build_flags = nullptr;
  const void* constants = nullptr;
};
struct KernelDesc {
  StructureType stype = StructureType::KernelDesc;
  const void* next = nullptr;
  std::uint32_t flags = 0;
  const char* name = nullptr;
};
struct RelaxedLimitsDesc {
  StructureType stype = StructureType::RelaxedLimitsDesc;
  const void* next = nullptr;
  std::uint32_t flags = 0;
};
struct GroupCount {
  std::uint32_t x = 1, y = 1, z = 1;
};

}  // namespace tack::level_zero::abi
