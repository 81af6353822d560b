// hip/runtime_abi.h -- the part of the HIP runtime's binary interface that tack uses, in tack's own words. Source: AMD's "HIP Runtime API"
// reference (rocm.docs.amd.com/projects/HIP), releases 5.2 to 7; tests/unit/test_abi.py compares it with the real hip_runtime_api.h.
#pragma once

#include <cstddef>

namespace tack::hip::abi {

// Opaque objects; a handle of each is a pointer.
struct ModuleObject;
struct FunctionObject;
struct StreamObject;
struct EventObject;
using Module = ModuleObject*;
using Function = FunctionObject*;
using Stream = StreamObject*;  // null is the device's default stream
using Event = EventObject*;

using Device = int;           // a device's ordinal
using DevicePointer = void*;  // an address of the device

// X(name, the reference's name, value)
#define TACK_HIP_RESULTS(X)                                     \
  X(success, hipSuccess, 0)                                     \
  X(invalid_value, hipErrorInvalidValue, 1)                     \
  X(out_of_memory, hipErrorOutOfMemory, 2)                      \
  X(not_initialized, hipErrorNotInitialized, 3)                 \
  X(deinitialized, hipErrorDeinitialized, 4)                    \
  X(no_device, hipErrorNoDevice, 100)                           \
  X(invalid_device, hipErrorInvalidDevice, 101)                 \
  X(invalid_image, hipErrorInvalidImage, 200)                   \
  X(invalid_context, hipErrorInvalidContext, 201)               \
  X(no_binary_for_gpu, hipErrorNoBinaryForGpu, 209)             \
  X(ecc_uncorrectable, hipErrorECCNotCorrectable, 214)          \
  X(invalid_kernel_file, hipErrorInvalidKernelFile, 218)        \
  X(not_found, hipErrorNotFound, 500)                           \
  X(illegal_address, hipErrorIllegalAddress, 700)               \
  X(launch_out_of_resources, hipErrorLaunchOutOfResources, 701) \
  X(launch_timeout, hipErrorLaunchTimeOut, 702)                 \
  X(context_is_destroyed, hipErrorContextIsDestroyed, 709)      \
  X(device_assert, hipErrorAssert, 710)                         \
  X(launch_failed, hipErrorLaunchFailure, 719)

#define TACK_HIP_DEVICE_ATTRIBUTES(X)                                           \
  X(max_grid_dim_x, hipDeviceAttributeMaxGridDimX, 29)                          \
  X(max_threads_per_block, hipDeviceAttributeMaxThreadsPerBlock, 56)            \
  X(max_shared_memory_per_block, hipDeviceAttributeMaxSharedMemoryPerBlock, 74) \
  X(image_support, hipDeviceAttributeImageSupport, 10014)

#define TACK_HIP_FUNCTION_ATTRIBUTES(X) X(max_threads_per_block, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)

#define TACK_HIP_POINTER_ATTRIBUTES(X) X(device_ordinal, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)

#define TACK_HIP_ENUMERATOR(name, original, value) name = value,
enum class Result : int { TACK_HIP_RESULTS(TACK_HIP_ENUMERATOR) };
enum class DeviceAttribute : int { TACK_HIP_DEVICE_ATTRIBUTES(TACK_HIP_ENUMERATOR) };
enum class FunctionAttribute : int { TACK_HIP_FUNCTION_ATTRIBUTES(TACK_HIP_ENUMERATOR) };
enum class PointerAttribute : int { TACK_HIP_POINTER_ATTRIBUTES(TACK_HIP_ENUMERATOR) };
#undef TACK_HIP_ENUMERATOR

inline constexpr unsigned int event_disable_timing = 2;  // hipEventDisableTiming
inline constexpr unsigned int host_alloc_portable = 1;   // hipHostMallocPortable: pinned for all devices

// What hipGetDeviceProperties writes, of which tack reads the architecture alone: a structure of two layouts, as the runtime has it up to
// release 5, and since 6 in hipGetDevicePropertiesR0600.
struct Properties {
  static constexpr std::size_t architecture = 396, size = 792;
};
struct PropertiesR0600 {
  static constexpr std::size_t architecture = 1160, size = 1472;
};
inline constexpr std::size_t architecture_bytes = 256;

}  // namespace tack::hip::abi
