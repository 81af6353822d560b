// hip/cuda_calls.h -- the functions of the CUDA driver's stand-in that HIP's is made of, as HIP itself is where the GPU is NVIDIA's.
#pragma once

#include "../cuda/driver.h"

extern "C" {
sim::cuda::Result cuInit(unsigned flags);
sim::cuda::Result cuDevicePrimaryCtxRetain(tack::cuda::abi::Context* context, int device);
sim::cuda::Result cuDeviceGetName(char* name, int length, int device);
sim::cuda::Result cuDeviceGetAttribute(int* value, int number, int device);
sim::cuda::Result cuCtxSynchronize();
sim::cuda::Result cuModuleLoadData(tack::cuda::abi::Module* module, const void* image);
sim::cuda::Result cuModuleUnload(tack::cuda::abi::Module module);
sim::cuda::Result cuModuleGetFunction(tack::cuda::abi::Function* function, tack::cuda::abi::Module module, const char* name);
sim::cuda::Result cuFuncGetAttribute(int* value, int number, tack::cuda::abi::Function function);
sim::cuda::Result cuLaunchKernel(tack::cuda::abi::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned shared, tack::cuda::abi::Stream stream, void** parameters,
                                 void** extra);
sim::cuda::Result cuStreamCreate(tack::cuda::abi::Stream* stream, unsigned flags);
sim::cuda::Result cuStreamDestroy_v2(tack::cuda::abi::Stream stream);
sim::cuda::Result cuStreamSynchronize(tack::cuda::abi::Stream stream);
sim::cuda::Result cuEventCreate(tack::cuda::abi::Event* event, unsigned flags);
sim::cuda::Result cuEventRecord(tack::cuda::abi::Event event, tack::cuda::abi::Stream stream);
sim::cuda::Result cuEventSynchronize(tack::cuda::abi::Event event);
sim::cuda::Result cuEventDestroy_v2(tack::cuda::abi::Event event);
sim::cuda::Result cuMemAlloc_v2(tack::cuda::abi::DevicePointer* pointer, std::size_t size);
sim::cuda::Result cuMemFree_v2(tack::cuda::abi::DevicePointer pointer);
sim::cuda::Result cuMemHostAlloc(void** pointer, std::size_t size, unsigned flags);
sim::cuda::Result cuMemFreeHost(void* pointer);
sim::cuda::Result cuPointerGetAttribute(void* data, int attribute, tack::cuda::abi::DevicePointer pointer);
sim::cuda::Result cuMemcpyHtoDAsync_v2(tack::cuda::abi::DevicePointer to, const void* from, std::size_t size,
                                       tack::cuda::abi::Stream stream);
sim::cuda::Result cuMemcpyDtoHAsync_v2(void* to, tack::cuda::abi::DevicePointer from, std::size_t size, tack::cuda::abi::Stream stream);
sim::cuda::Result cuMemcpyDtoDAsync_v2(tack::cuda::abi::DevicePointer to, tack::cuda::abi::DevicePointer from, std::size_t size,
                                       tack::cuda::abi::Stream stream);
sim::cuda::Result cuMemsetD8Async(tack::cuda::abi::DevicePointer to, unsigned char value, std::size_t n, tack::cuda::abi::Stream stream);
sim::cuda::Result cuMemsetD16Async(tack::cuda::abi::DevicePointer to, unsigned short value, std::size_t n, tack::cuda::abi::Stream stream);
sim::cuda::Result cuMemsetD32Async(tack::cuda::abi::DevicePointer to, unsigned value, std::size_t n, tack::cuda::abi::Stream stream);
sim::cuda::Result cuArray3DCreate_v2(tack::cuda::abi::Array* array, const tack::cuda::abi::ArrayDescription* description);
sim::cuda::Result cuArrayDestroy(tack::cuda::abi::Array array);
sim::cuda::Result cuMemcpy3DAsync_v2(const tack::cuda::abi::Copy3D* copy, tack::cuda::abi::Stream stream);
sim::cuda::Result cuTexObjectCreate(tack::cuda::abi::TextureObject* object, const tack::cuda::abi::ResourceDescription* resource,
                                    const tack::cuda::abi::TextureDescription* description,
                                    const tack::cuda::abi::ResourceViewDescription* view);
sim::cuda::Result cuTexObjectDestroy(tack::cuda::abi::TextureObject object);
}
