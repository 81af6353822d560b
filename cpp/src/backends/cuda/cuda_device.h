// backends/cuda/cuda_device.h -- an NVIDIA GPU as a device.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "backends/cuda/cuda_context.h"
#include "backends/gpu/device.h"

namespace tack::cuda {

/// What a GPU of compute capability `major`.`minor` can do, as far as that alone decides it.
Capabilities capabilities_of(int major, int minor);

class CudaDevice final : public gpu::Device<Api> {
 public:
  CudaDevice(const Driver& driver, Log& log, int index);
  std::unique_ptr<TextureImpl> make_texture(std::array<std::size_t, 3> shape, Sampling sampling) override;
};

}  // namespace tack::cuda
