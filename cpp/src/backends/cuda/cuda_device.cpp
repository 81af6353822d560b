// backends/cuda/cuda_device.cpp -- what an NVIDIA GPU can do.
#include "backends/cuda/cuda_device.h"

#include <limits>

#include "backends/gpu/texture.h"
#include "core/text.h"

namespace tack::cuda {

namespace {

abi::Device ordinal_of(const Driver& driver, int index) {
  abi::Device ordinal = 0;
  driver(text("find device ", index), driver.device_get, &ordinal, index);
  return ordinal;
}

}  // namespace

Capabilities capabilities_of(int major, int minor) {
  Capabilities can = gpu::usual_capabilities();
  can.arch = text("sm_", major, minor);
  can.device_name = text("an NVIDIA GPU of compute capability ", major, '.', minor);
  can.supports_images = true;
  const std::uint32_t largest = major < 6 ? 4096 : 16384;
  can.max_image = {largest, largest, largest};
  can.shared_bytes = std::uint64_t{48} << 10;
  can.max_iterations = std::uint64_t{std::numeric_limits<std::int32_t>::max()} * can.block;
  return can;
}

CudaDevice::CudaDevice(const Driver& driver, Log& log, int index) : Device(driver, log, ordinal_of(driver, index)) {
  using Attribute = abi::DeviceAttribute;
  capabilities_ = capabilities_of(attribute(Attribute::compute_capability_major), attribute(Attribute::compute_capability_minor));
  capabilities_.device_name = device_name();
  capabilities_.max_group = static_cast<std::uint32_t>(attribute(Attribute::max_threads_per_block));
  capabilities_.shared_bytes = static_cast<std::uint64_t>(attribute(Attribute::max_shared_memory_per_block));
  capabilities_.max_image = {static_cast<std::uint32_t>(attribute(Attribute::max_texture_depth)),
                             static_cast<std::uint32_t>(attribute(Attribute::max_texture_height)),
                             static_cast<std::uint32_t>(attribute(Attribute::max_texture_width))};
  capabilities_.max_iterations = static_cast<std::uint64_t>(attribute(Attribute::max_grid_dim_x)) * capabilities_.block;
}

std::unique_ptr<TextureImpl> CudaDevice::make_texture(std::array<std::size_t, 3> shape, Sampling sampling) {
  return std::make_unique<gpu::Texture<Api>>(context_, shape, sampling);
}

}  // namespace tack::cuda
