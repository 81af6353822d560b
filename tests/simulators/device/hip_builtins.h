// device/hip_builtins.h -- what HIP C++ text finds without an include under hipRTC: what CUDA's does, under another name of the compiler.
#pragma once
#pragma GCC system_header
#include "cuda_builtins.h"

#undef __CUDACC__
#undef __CUDACC_RTC__
#undef __NVCC__
#define __HIP__ 1
#define __HIPCC__ 1
#define __HIPCC_RTC__ 1
#define __HIP_DEVICE_COMPILE__ 1

typedef cudaTextureObject_t hipTextureObject_t;
