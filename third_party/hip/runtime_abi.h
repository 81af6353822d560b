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
struct ArrayObject;
struct TextureBody;
struct ResourceViewDescription;
using Module = ModuleObject*;
using Function = FunctionObject*;
using Stream = StreamObject*;  // null is the device's default stream
using Event = EventObject*;
using Array = ArrayObject*;
using TextureObject = TextureBody*;

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
  X(max_texture_width, hipDeviceAttributeMaxTexture3DWidth, 49)                 \
  X(max_texture_height, hipDeviceAttributeMaxTexture3DHeight, 50)               \
  X(max_texture_depth, hipDeviceAttributeMaxTexture3DDepth, 51)                 \
  X(max_threads_per_block, hipDeviceAttributeMaxThreadsPerBlock, 56)            \
  X(max_shared_memory_per_block, hipDeviceAttributeMaxSharedMemoryPerBlock, 74) \
  X(image_support, hipDeviceAttributeImageSupport, 10014)

#define TACK_HIP_FUNCTION_ATTRIBUTES(X) X(max_threads_per_block, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)

#define TACK_HIP_POINTER_ATTRIBUTES(X) X(device_ordinal, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)

#define TACK_HIP_ARRAY_FORMATS(X) X(f32, HIP_AD_FORMAT_FLOAT, 0x20)

#define TACK_HIP_COPY_KINDS(X) X(device_to_device, hipMemcpyDeviceToDevice, 3)

#define TACK_HIP_RESOURCE_KINDS(X) X(array, HIP_RESOURCE_TYPE_ARRAY, 0)

#define TACK_HIP_ADDRESS_MODES(X)      \
  X(wrap, HIP_TR_ADDRESS_MODE_WRAP, 0) \
  X(clamp, HIP_TR_ADDRESS_MODE_CLAMP, 1)

#define TACK_HIP_FILTER_MODES(X)        \
  X(point, HIP_TR_FILTER_MODE_POINT, 0) \
  X(linear, HIP_TR_FILTER_MODE_LINEAR, 1)

#define TACK_HIP_ENUMERATOR(name, original, value) name = value,
enum class Result : int { TACK_HIP_RESULTS(TACK_HIP_ENUMERATOR) };
enum class DeviceAttribute : int { TACK_HIP_DEVICE_ATTRIBUTES(TACK_HIP_ENUMERATOR) };
enum class FunctionAttribute : int { TACK_HIP_FUNCTION_ATTRIBUTES(TACK_HIP_ENUMERATOR) };
enum class PointerAttribute : int { TACK_HIP_POINTER_ATTRIBUTES(TACK_HIP_ENUMERATOR) };
enum class ArrayFormat : int { TACK_HIP_ARRAY_FORMATS(TACK_HIP_ENUMERATOR) };
enum class CopyKind : int { TACK_HIP_COPY_KINDS(TACK_HIP_ENUMERATOR) };
enum class ResourceKind : int { TACK_HIP_RESOURCE_KINDS(TACK_HIP_ENUMERATOR) };
enum class AddressMode : int { TACK_HIP_ADDRESS_MODES(TACK_HIP_ENUMERATOR) };
enum class FilterMode : int { TACK_HIP_FILTER_MODES(TACK_HIP_ENUMERATOR) };
#undef TACK_HIP_ENUMERATOR

inline constexpr unsigned int event_disable_timing = 2;            // hipEventDisableTiming
inline constexpr unsigned int host_alloc_portable = 1;             // hipHostMallocPortable: pinned for all devices
inline constexpr unsigned int texture_normalized_coordinates = 2;  // HIP_TRSF_NORMALIZED_COORDINATES

// What hipGetDeviceProperties writes, of which tack reads the architecture alone: a structure of two layouts, as the runtime has it up to
// release 5, and since 6 in hipGetDevicePropertiesR0600.
struct Properties {
  static constexpr std::size_t architecture = 396, size = 792;
};
struct PropertiesR0600 {
  static constexpr std::size_t architecture = 1160, size = 1472;
};
inline constexpr std::size_t architecture_bytes = 256;

// HIP_ARRAY3D_DESCRIPTOR: sizes in texels.
struct ArrayDescription {
  std::size_t width, height, depth;
  ArrayFormat format = ArrayFormat::f32;  // there is none of the number 0
  unsigned int channels, flags;
};

// hipMemcpy3DParms: each side is an array or memory with rows of `pitch` bytes. Positions and sizes are in texels as soon as one side is an
// array. (HIP_MEMCPY3D, which is closer to CUDA's, names the kinds of memory by numbers that release 6 has changed.)
struct Position {
  std::size_t x, y, z;
};
struct PitchedPointer {
  void* pointer;
  std::size_t pitch, width, height;
};
struct Copy3D {
  Array from_array;
  Position from_position;
  PitchedPointer from;
  Array to_array;
  Position to_position;
  PitchedPointer to;
  std::size_t width, height, depth;
  CopyKind kind = CopyKind::device_to_device;  // the number 0 is a copy within the host
};

// HIP_RESOURCE_DESC, of which tack uses arrays alone.
struct ResourceDescription {
  ResourceKind kind;
  union {
    Array array;
    int reserved[32];
  } content;
  unsigned int flags;
};

// HIP_TEXTURE_DESC.
struct TextureDescription {
  AddressMode address[3];
  FilterMode filter;
  unsigned int flags, max_anisotropy;
  FilterMode mipmap_filter;
  float mipmap_bias, min_level, max_level, border[4];
  int reserved[12];
};

// X(structure, field, the reference's structure, its field): where the fields lie, for the comparison with the headers.
#define TACK_HIP_FIELDS(X)                                                 \
  X(ArrayDescription, width, HIP_ARRAY3D_DESCRIPTOR, Width)                \
  X(ArrayDescription, height, HIP_ARRAY3D_DESCRIPTOR, Height)              \
  X(ArrayDescription, depth, HIP_ARRAY3D_DESCRIPTOR, Depth)                \
  X(ArrayDescription, format, HIP_ARRAY3D_DESCRIPTOR, Format)              \
  X(ArrayDescription, channels, HIP_ARRAY3D_DESCRIPTOR, NumChannels)       \
  X(ArrayDescription, flags, HIP_ARRAY3D_DESCRIPTOR, Flags)                \
  X(PitchedPointer, pointer, hipPitchedPtr, ptr)                           \
  X(PitchedPointer, pitch, hipPitchedPtr, pitch)                           \
  X(PitchedPointer, width, hipPitchedPtr, xsize)                           \
  X(PitchedPointer, height, hipPitchedPtr, ysize)                          \
  X(Copy3D, from_array, hipMemcpy3DParms, srcArray)                        \
  X(Copy3D, from_position, hipMemcpy3DParms, srcPos)                       \
  X(Copy3D, from, hipMemcpy3DParms, srcPtr)                                \
  X(Copy3D, to_array, hipMemcpy3DParms, dstArray)                          \
  X(Copy3D, to_position, hipMemcpy3DParms, dstPos)                         \
  X(Copy3D, to, hipMemcpy3DParms, dstPtr)                                  \
  X(Copy3D, width, hipMemcpy3DParms, extent.width)                         \
  X(Copy3D, height, hipMemcpy3DParms, extent.height)                       \
  X(Copy3D, depth, hipMemcpy3DParms, extent.depth)                         \
  X(Copy3D, kind, hipMemcpy3DParms, kind)                                  \
  X(ResourceDescription, kind, HIP_RESOURCE_DESC, resType)                 \
  X(ResourceDescription, content, HIP_RESOURCE_DESC, res.array.hArray)     \
  X(ResourceDescription, flags, HIP_RESOURCE_DESC, flags)                  \
  X(TextureDescription, address, HIP_TEXTURE_DESC, addressMode)            \
  X(TextureDescription, filter, HIP_TEXTURE_DESC, filterMode)              \
  X(TextureDescription, flags, HIP_TEXTURE_DESC, flags)                    \
  X(TextureDescription, max_anisotropy, HIP_TEXTURE_DESC, maxAnisotropy)   \
  X(TextureDescription, mipmap_filter, HIP_TEXTURE_DESC, mipmapFilterMode) \
  X(TextureDescription, mipmap_bias, HIP_TEXTURE_DESC, mipmapLevelBias)    \
  X(TextureDescription, border, HIP_TEXTURE_DESC, borderColor)             \
  X(TextureDescription, reserved, HIP_TEXTURE_DESC, reserved)
#define TACK_HIP_STRUCTURES(X)                \
  X(ArrayDescription, HIP_ARRAY3D_DESCRIPTOR) \
  X(Position, hipPos)                         \
  X(PitchedPointer, hipPitchedPtr)            \
  X(Copy3D, hipMemcpy3DParms)                 \
  X(ResourceDescription, HIP_RESOURCE_DESC)   \
  X(TextureDescription, HIP_TEXTURE_DESC)

}  // namespace tack::hip::abi
