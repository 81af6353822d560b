// level_zero/opencl.h -- the few functions of OpenCL that run SPIR-V on the CPU, opened at run time. Source: the "OpenCL API Specification"
// 3.0 of Khronos and its extension cl_intel_unified_shared_memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sim::level_zero::cl {

using Int = std::int32_t;
using Handle = void*;

inline constexpr std::uint64_t all_devices = 0xffffffff;                 // CL_DEVICE_TYPE_ALL
inline constexpr std::uint32_t build_log = 0x1183;                       // CL_PROGRAM_BUILD_LOG
inline constexpr std::uint32_t argument_count = 0x1191;                  // CL_KERNEL_NUM_ARGS
inline constexpr std::uint32_t required_group = 0x11b1;                  // CL_KERNEL_COMPILE_WORK_GROUP_SIZE
inline constexpr Int invalid_argument_size = -51;                        // CL_INVALID_ARG_SIZE
inline constexpr std::uint64_t read_only = 1 << 2;                       // CL_MEM_READ_ONLY
inline constexpr std::uint32_t image_3d = 0x10f2;                        // CL_MEM_OBJECT_IMAGE3D
inline constexpr std::uint32_t red = 0x10b0;                             // CL_R
inline constexpr std::uint32_t floats = 0x10de;                          // CL_FLOAT
inline constexpr std::uint32_t clamp_to_edge = 0x1131, repeat = 0x1133;  // CL_ADDRESS_CLAMP_TO_EDGE, CL_ADDRESS_REPEAT
inline constexpr std::uint32_t nearest = 0x1140, linear = 0x1141;        // CL_FILTER_NEAREST, CL_FILTER_LINEAR

// cl_image_format
struct ImageFormat {
  std::uint32_t order = red, type = floats;
};
// cl_image_desc
struct ImageDesc {
  std::uint32_t type = image_3d;
  std::size_t width = 0, height = 0, depth = 0, array_size = 0, row_pitch = 0, slice_pitch = 0;
  std::uint32_t mip_levels = 0, samples = 0;
  Handle memory = nullptr;
};

// X(member, function, its result, its parameters...)
#define TACK_CL_FUNCTIONS(X)                                                                                                        \
  X(platforms, clGetPlatformIDs, Int, std::uint32_t, Handle*, std::uint32_t*)                                                       \
  X(devices, clGetDeviceIDs, Int, Handle, std::uint64_t, std::uint32_t, Handle*, std::uint32_t*)                                    \
  X(extension, clGetExtensionFunctionAddressForPlatform, void*, Handle, const char*)                                                \
  X(create_context, clCreateContext, Handle, const std::intptr_t*, std::uint32_t, const Handle*, void*, void*, Int*)                \
  X(create_queue, clCreateCommandQueueWithProperties, Handle, Handle, Handle, const std::uint64_t*, Int*)                           \
  X(create_program, clCreateProgramWithIL, Handle, Handle, const void*, std::size_t, Int*)                                          \
  X(build, clBuildProgram, Int, Handle, std::uint32_t, const Handle*, const char*, void*, void*)                                    \
  X(build_info, clGetProgramBuildInfo, Int, Handle, Handle, std::uint32_t, std::size_t, void*, std::size_t*)                        \
  X(release_program, clReleaseProgram, Int, Handle)                                                                                 \
  X(create_kernel, clCreateKernel, Handle, Handle, const char*, Int*)                                                               \
  X(kernel_info, clGetKernelInfo, Int, Handle, std::uint32_t, std::size_t, void*, std::size_t*)                                     \
  X(group_info, clGetKernelWorkGroupInfo, Int, Handle, Handle, std::uint32_t, std::size_t, void*, std::size_t*)                     \
  X(release_kernel, clReleaseKernel, Int, Handle)                                                                                   \
  X(set_argument, clSetKernelArg, Int, Handle, std::uint32_t, std::size_t, const void*)                                             \
  X(launch, clEnqueueNDRangeKernel, Int, Handle, Handle, std::uint32_t, const std::size_t*, const std::size_t*, const std::size_t*, \
    std::uint32_t, const Handle*, Handle*)                                                                                          \
  X(finish, clFinish, Int, Handle)                                                                                                  \
  X(create_image, clCreateImage, Handle, Handle, std::uint64_t, const ImageFormat*, const ImageDesc*, void*, Int*)                  \
  X(write_image, clEnqueueWriteImage, Int, Handle, Handle, std::uint32_t, const std::size_t*, const std::size_t*, std::size_t,      \
    std::size_t, const void*, std::uint32_t, const Handle*, Handle*)                                                                \
  X(release_memory, clReleaseMemObject, Int, Handle)                                                                                \
  X(create_sampler, clCreateSampler, Handle, Handle, std::uint32_t, std::uint32_t, std::uint32_t, Int*)                             \
  X(release_sampler, clReleaseSampler, Int, Handle)

// Intel's runtime for the CPU, its one device, a context and a queue in it.
struct Runtime {
  // The one of this process; opened when it is first asked for. Throws std::runtime_error where it cannot be.
  static const Runtime& instance();

#define X(member, function, result, ...) result (*member)(__VA_ARGS__) = nullptr;
  TACK_CL_FUNCTIONS(X)
#undef X
  Int (*set_pointer)(Handle, std::uint32_t, const void*) = nullptr;  // clSetKernelArgMemPointerINTEL
  Handle device = nullptr, context = nullptr, queue = nullptr;

  // The log of a program's build.
  std::string log_of(Handle program) const;

 private:
  Runtime();
};

}  // namespace sim::level_zero::cl
