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
struct ArrayObject;
struct ResourceViewDescription;  // CUDA_RESOURCE_VIEW_DESC: never given
using Context = ContextObject*;
using Module = ModuleObject*;
using Function = FunctionObject*;
using Stream = StreamObject*;  // null is the context's default stream
using Event = EventObject*;
using Array = ArrayObject*;

using Device = int;                        // a device's ordinal
using DevicePointer = unsigned long long;  // an address of the device, as wide as a pointer
using TextureObject = unsigned long long;

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
  X(max_texture_width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, 24)              \
  X(max_texture_height, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, 25)            \
  X(max_texture_depth, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, 26)              \
  X(compute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)      \
  X(compute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)

#define TACK_CUDA_FUNCTION_ATTRIBUTES(X) X(max_threads_per_block, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)

#define TACK_CUDA_POINTER_ATTRIBUTES(X) X(device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)

#define TACK_CUDA_JIT_OPTIONS(X)                  \
  X(error_log_buffer, CU_JIT_ERROR_LOG_BUFFER, 5) \
  X(error_log_buffer_bytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)

#define TACK_CUDA_ARRAY_FORMATS(X) X(f32, CU_AD_FORMAT_FLOAT, 0x20)

#define TACK_CUDA_MEMORY_KINDS(X)    \
  X(host, CU_MEMORYTYPE_HOST, 1)     \
  X(device, CU_MEMORYTYPE_DEVICE, 2) \
  X(array, CU_MEMORYTYPE_ARRAY, 3)

#define TACK_CUDA_RESOURCE_KINDS(X) X(array, CU_RESOURCE_TYPE_ARRAY, 0)

#define TACK_CUDA_ADDRESS_MODES(X)        \
  X(wrap, CU_TR_ADDRESS_MODE_WRAP, 0)     \
  X(clamp, CU_TR_ADDRESS_MODE_CLAMP, 1)   \
  X(mirror, CU_TR_ADDRESS_MODE_MIRROR, 2) \
  X(border, CU_TR_ADDRESS_MODE_BORDER, 3)

#define TACK_CUDA_FILTER_MODES(X)      \
  X(point, CU_TR_FILTER_MODE_POINT, 0) \
  X(linear, CU_TR_FILTER_MODE_LINEAR, 1)

#define TACK_CUDA_ENUMERATOR(name, original, value) name = value,
enum class Result : int { TACK_CUDA_RESULTS(TACK_CUDA_ENUMERATOR) };
enum class DeviceAttribute : int { TACK_CUDA_DEVICE_ATTRIBUTES(TACK_CUDA_ENUMERATOR) };
enum class FunctionAttribute : int { TACK_CUDA_FUNCTION_ATTRIBUTES(TACK_CUDA_ENUMERATOR) };
enum class PointerAttribute : int { TACK_CUDA_POINTER_ATTRIBUTES(TACK_CUDA_ENUMERATOR) };
enum class JitOption : int { TACK_CUDA_JIT_OPTIONS(TACK_CUDA_ENUMERATOR) };
enum class ArrayFormat : int { TACK_CUDA_ARRAY_FORMATS(TACK_CUDA_ENUMERATOR) };
enum class MemoryKind : int { TACK_CUDA_MEMORY_KINDS(TACK_CUDA_ENUMERATOR) };
enum class ResourceKind : int { TACK_CUDA_RESOURCE_KINDS(TACK_CUDA_ENUMERATOR) };
enum class AddressMode : int { TACK_CUDA_ADDRESS_MODES(TACK_CUDA_ENUMERATOR) };
enum class FilterMode : int { TACK_CUDA_FILTER_MODES(TACK_CUDA_ENUMERATOR) };
#undef TACK_CUDA_ENUMERATOR

inline constexpr unsigned int event_disable_timing = 2;            // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned int host_alloc_portable = 1;             // CU_MEMHOSTALLOC_PORTABLE: pinned for all contexts
inline constexpr unsigned int texture_normalized_coordinates = 2;  // CU_TRSF_NORMALIZED_COORDINATES

// CUDA_ARRAY3D_DESCRIPTOR: sizes in texels, 0 where the array has not the dimension.
struct ArrayDescription {
  std::size_t width, height, depth;
  ArrayFormat format = ArrayFormat::f32;  // there is none of the number 0
  unsigned int channels, flags;
};

// CUDA_MEMCPY3D: one side's fields and the other's, then the size of what is copied. x, pitch and width are in bytes.
struct CopySide {
  std::size_t x, y, z, level;
  MemoryKind kind = MemoryKind::host;  // likewise
  const void* host;
  DevicePointer device;
  Array array;
  void* reserved;
  std::size_t pitch, height;
};
struct Copy3D {
  CopySide from, to;
  std::size_t width, height, depth;
};

// CUDA_RESOURCE_DESC, of which tack uses arrays alone.
struct ResourceDescription {
  ResourceKind kind;
  union {
    Array array;
    int reserved[32];
  } content;
  unsigned int flags;
};

// CUDA_TEXTURE_DESC.
struct TextureDescription {
  AddressMode address[3];
  FilterMode filter;
  unsigned int flags, max_anisotropy;
  FilterMode mipmap_filter;
  float mipmap_bias, min_level, max_level, border[4];
  int reserved[12];
};

// X(structure, field, the manual's structure, its field): where the fields lie, for the comparison with cuda.h.
#define TACK_CUDA_FIELDS(X)                                                 \
  X(ArrayDescription, width, CUDA_ARRAY3D_DESCRIPTOR, Width)                \
  X(ArrayDescription, height, CUDA_ARRAY3D_DESCRIPTOR, Height)              \
  X(ArrayDescription, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth)                \
  X(ArrayDescription, format, CUDA_ARRAY3D_DESCRIPTOR, Format)              \
  X(ArrayDescription, channels, CUDA_ARRAY3D_DESCRIPTOR, NumChannels)       \
  X(ArrayDescription, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags)                \
  X(Copy3D, from.x, CUDA_MEMCPY3D, srcXInBytes)                             \
  X(Copy3D, from.kind, CUDA_MEMCPY3D, srcMemoryType)                        \
  X(Copy3D, from.host, CUDA_MEMCPY3D, srcHost)                              \
  X(Copy3D, from.device, CUDA_MEMCPY3D, srcDevice)                          \
  X(Copy3D, from.array, CUDA_MEMCPY3D, srcArray)                            \
  X(Copy3D, from.pitch, CUDA_MEMCPY3D, srcPitch)                            \
  X(Copy3D, from.height, CUDA_MEMCPY3D, srcHeight)                          \
  X(Copy3D, to.x, CUDA_MEMCPY3D, dstXInBytes)                               \
  X(Copy3D, to.kind, CUDA_MEMCPY3D, dstMemoryType)                          \
  X(Copy3D, to.host, CUDA_MEMCPY3D, dstHost)                                \
  X(Copy3D, to.device, CUDA_MEMCPY3D, dstDevice)                            \
  X(Copy3D, to.array, CUDA_MEMCPY3D, dstArray)                              \
  X(Copy3D, to.pitch, CUDA_MEMCPY3D, dstPitch)                              \
  X(Copy3D, to.height, CUDA_MEMCPY3D, dstHeight)                            \
  X(Copy3D, width, CUDA_MEMCPY3D, WidthInBytes)                             \
  X(Copy3D, height, CUDA_MEMCPY3D, Height)                                  \
  X(Copy3D, depth, CUDA_MEMCPY3D, Depth)                                    \
  X(ResourceDescription, kind, CUDA_RESOURCE_DESC, resType)                 \
  X(ResourceDescription, content, CUDA_RESOURCE_DESC, res.array.hArray)     \
  X(ResourceDescription, flags, CUDA_RESOURCE_DESC, flags)                  \
  X(TextureDescription, address, CUDA_TEXTURE_DESC, addressMode)            \
  X(TextureDescription, filter, CUDA_TEXTURE_DESC, filterMode)              \
  X(TextureDescription, flags, CUDA_TEXTURE_DESC, flags)                    \
  X(TextureDescription, max_anisotropy, CUDA_TEXTURE_DESC, maxAnisotropy)   \
  X(TextureDescription, mipmap_filter, CUDA_TEXTURE_DESC, mipmapFilterMode) \
  X(TextureDescription, mipmap_bias, CUDA_TEXTURE_DESC, mipmapLevelBias)    \
  X(TextureDescription, border, CUDA_TEXTURE_DESC, borderColor)             \
  X(TextureDescription, reserved, CUDA_TEXTURE_DESC, reserved)
#define TACK_CUDA_STRUCTURES(X)                \
  X(ArrayDescription, CUDA_ARRAY3D_DESCRIPTOR) \
  X(Copy3D, CUDA_MEMCPY3D)                     \
  X(ResourceDescription, CUDA_RESOURCE_DESC)   \
  X(TextureDescription, CUDA_TEXTURE_DESC)

}  // namespace tack::cuda::abi
