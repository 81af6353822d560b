// backends/cuda/cuda_device.h -- an NVIDIA GPU as a device.
#pragma once

#include "backends/cuda/cuda_context.h"
#include "backends/gpu/device.h"

namespace tack::cuda {

/// What a GPU of compute capability `major`.`minor` can do, as far as that alone decides it.
Capabilities capabilities_of(int major, int minor);

class CudaDevice final : public gpu::Device<Api> {
 public:
  CudaDevice(const Driver& driver, Log& log, int index);
};

}  // namespace tack::cuda
