// cuda/driver_abi.h -- the part of the CUDA driver's binary interface that tack uses, in tack's own words. Source: NVIDIA's "CUDA Driver
// API" reference manual (docs.nvidia.com/cuda/cuda-driver-api), release 13; tests/unit/test_abi.py compares all of it with the real cuda.h.
#pragma once

#include <cstddef>

namespace tack::cuda::abi {

// Opaque objects; a handle of each is a pointer.
struct ContextObject;
struct ModuleObject;
struct FunctionObject;
struct StreamObject;
struct EventObject;
using Context = ContextObject*;
using Module = ModuleObject*;
using Function = FunctionObject*;
using Stream = StreamObject*;  // null is the context's default stream
using Event = EventObject*;

using Device = int;                        // a device's ordinal
using DevicePointer = unsigned long long;  // an address of the device, as wide as a pointer

// X(name, the manual's name, value)
#define TACK_CUDA_RESULTS(X)                                          \
  X(success, CUDA_SUCCESS, 0)                                         \
  X(invalid_value, CUDA_ERROR_INVALID_VALUE, 1)                       \
  X(out_of_memory, CUDA_ERROR_OUT_OF_MEMORY, 2)                       \
  X(not_initialized, CUDA_ERROR_NOT_INITIALIZED, 3)                   \
  X(deinitialized, CUDA_ERROR_DEINITIALIZED, 4)                       \
  X(stub_library, CUDA_ERROR_STUB_LIBRARY, 34)                        \
  X(no_device, CUDA_ERROR_NO_DEVICE, 100)                             \
  X(invalid_device, CUDA_ERROR_INVALID_DEVICE, 101)                   \
  X(invalid_image, CUDA_ERROR_INVALID_IMAGE, 200)                     \
  X(invalid_context, CUDA_ERROR_INVALID_CONTEXT, 201)                 \
  X(no_binary_for_gpu, CUDA_ERROR_NO_BINARY_FOR_GPU, 209)             \
  X(ecc_uncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE, 214)             \
  X(invalid_ptx, CUDA_ERROR_INVALID_PTX, 218)                         \
  X(unsupported_ptx_version, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222) \
  X(not_found, CUDA_ERROR_NOT_FOUND, 500)                             \
  X(illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS, 700)                 \
  X(launch_out_of_resources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701) \
  X(launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT, 702)                   \
  X(context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)       \
  X(device_assert, CUDA_ERROR_ASSERT, 710)                            \
  X(hardware_stack_error, CUDA_ERROR_HARDWARE_STACK_ERROR, 714)       \
  X(illegal_instruction, CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)         \
  X(misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS, 716)           \
  X(invalid_address_space, CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)     \
  X(invalid_pc, CUDA_ERROR_INVALID_PC, 718)                           \
  X(launch_failed, CUDA_ERROR_LAUNCH_FAILED, 719)                     \
  X(driver_mismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)          \
  X(compat_not_supported, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)

#define TACK_CUDA_DEVICE_ATTRIBUTES(X)                                               \
  X(max_threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)             \
  X(max_grid_dim_x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                           \
  X(max_shared_memory_per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8) \
  X(compute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)      \
  X(compute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)

#define TACK_CUDA_FUNCTION_ATTRIBUTES(X) X(max_threads_per_block, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)

#define TACK_CUDA_POINTER_ATTRIBUTES(X) X(device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)

#define TACK_CUDA_JIT_OPTIONS(X)                  \
  X(error_log_buffer, CU_JIT_ERROR_LOG_BUFFER, 5) \
  X(error_log_buffer_bytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)

#define TACK_CUDA_ENUMERATOR(name, original, value) name = value,
enum class Result : int { TACK_CUDA_RESULTS(TACK_CUDA_ENUMERATOR) };
enum class DeviceAttribute : int { TACK_CUDA_DEVICE_ATTRIBUTES(TACK_CUDA_ENUMERATOR) };
enum class FunctionAttribute : int { TACK_CUDA_FUNCTION_ATTRIBUTES(TACK_CUDA_ENUMERATOR) };
enum class PointerAttribute : int { TACK_CUDA_POINTER_ATTRIBUTES(TACK_CUDA_ENUMERATOR) };
enum class JitOption : int { TACK_CUDA_JIT_OPTIONS(TACK_CUDA_ENUMERATOR) };
#undef TACK_CUDA_ENUMERATOR

inline constexpr unsigned int event_disable_timing = 2;  // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned int host_alloc_portable = 1;   // CU_MEMHOSTALLOC_PORTABLE: pinned for all contexts

}  // namespace tack::cuda::abi
