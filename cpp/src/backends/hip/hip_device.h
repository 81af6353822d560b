// backends/hip/hip_device.h -- an AMD GPU as a device.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "backends/gpu/device.h"
#include "backends/hip/architectures.h"
#include "backends/hip/hip_context.h"

namespace tack::hip {

/// What a GPU of an architecture can do, as far as that alone decides it.
Capabilities capabilities_of(const Architecture& architecture);

class HipDevice final : public gpu::Device<Api> {
 public:
  HipDevice(const Driver& driver, Log& log, int ordinal);
  std::unique_ptr<TextureImpl> make_texture(std::array<std::size_t, 3> shape, Sampling sampling) override;

 private:
  std::string architecture() const;
  bool has_images(std::string_view arch) const;
};

}  // namespace tack::hip
