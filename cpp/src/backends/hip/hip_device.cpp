// backends/hip/hip_device.cpp -- what an AMD GPU can do.
#include "backends/hip/hip_device.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/gpu/texture.h"
#include "core/text.h"

namespace tack::hip {

namespace {

// The runtime counts a launch's threads with 32 bits.
constexpr std::uint64_t most_threads = (std::uint64_t{1} << 32) - 256;
// The least that a GPU's texture units take of a volume, which a device says more exactly.
constexpr std::uint32_t widest_volume = 2048;

}  // namespace

Capabilities capabilities_of(const Architecture& architecture) {
  Capabilities can = gpu::usual_capabilities();
  can.arch = architecture.name;
  can.device_name = text("an AMD GPU of the architecture ", architecture.name);
  can.shared_bytes = std::uint64_t{64} << 10;
  can.max_groups = std::numeric_limits<std::int32_t>::max();
  can.max_iterations = most_threads;
  can.supports_images = architecture.images;
  if (architecture.images) can.max_image.fill(widest_volume);
  return can;
}

HipDevice::HipDevice(const Driver& driver, Log& log, int ordinal) : Device(driver, log, ordinal) {
  using Attribute = abi::DeviceAttribute;
  const std::string arch = architecture();
  capabilities_ = capabilities_of({base_of(arch), {}, has_images(arch)});
  capabilities_.device_name = device_name();
  capabilities_.max_group = static_cast<std::uint32_t>(attribute(Attribute::max_threads_per_block));
  capabilities_.shared_bytes = static_cast<std::uint64_t>(attribute(Attribute::max_shared_memory_per_block));
  capabilities_.max_groups = static_cast<std::uint64_t>(attribute(Attribute::max_grid_dim_x));
  capabilities_.max_iterations = std::min(capabilities_.max_groups * capabilities_.block, most_threads);
  if (capabilities_.supports_images)
    capabilities_.max_image = {static_cast<std::uint32_t>(attribute(Attribute::max_texture_depth)),
                               static_cast<std::uint32_t>(attribute(Attribute::max_texture_height)),
                               static_cast<std::uint32_t>(attribute(Attribute::max_texture_width))};
}

std::unique_ptr<TextureImpl> HipDevice::make_texture(std::array<std::size_t, 3> shape, Sampling sampling) {
  return std::make_unique<gpu::Texture<Api>>(context_, shape, sampling);
}

/// The compute accelerators from gfx90a on have no texture units; what samples does not compile for them.
bool HipDevice::has_images(std::string_view arch) const {
  const Driver& driver = context_.driver();
  const Architecture* const known = find_architecture(arch);
  return (known == nullptr || known->images) && attribute(abi::DeviceAttribute::image_support) != 0 && driver.array_create &&
         driver.array_destroy && driver.copy_3d && driver.texture_create && driver.texture_destroy;
}

/// "gfx90a:sramecc+:xnack-", say.
std::string HipDevice::architecture() const {
  constexpr std::size_t room = 4096;  // for what later releases may add at the end
  static_assert(room > 2 * abi::PropertiesR0600::size);
  std::vector<char> properties(room, '\0');
  const bool newer = static_cast<bool>(driver().properties_r0600);
  driver()("ask for the device's properties", newer ? driver().properties_r0600 : driver().properties, properties.data(),
           context_.ordinal());
  const std::size_t offset = newer ? abi::PropertiesR0600::architecture : abi::Properties::architecture;
  properties[offset + abi::architecture_bytes - 1] = '\0';
  return properties.data() + offset;
}

}  // namespace tack::hip
