// backends/cuda/cuda_backend.cpp -- NVIDIA GPUs, as a backend.
#include "backends/cuda/cuda_backend.h"

#include "backends/cuda/cuda_api.h"
#include "backends/cuda/cuda_device.h"
#include "backends/cuda/nvrtc.h"
#include "backends/gpu/backend.h"

namespace tack {

std::unique_ptr<Backend> make_cuda_backend() { return std::make_unique<gpu::Backend<cuda::Api>>(); }

}  // namespace tack
