// backends/hip/hip_device.cpp -- what an AMD GPU can do.
#include "backends/hip/hip_device.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "core/text.h"

namespace tack::hip {

namespace {

// The runtime counts a launch's threads with 32 bits.
constexpr std::uint64_t most_threads = (std::uint64_t{1} << 32) - 256;

}  // namespace

Capabilities capabilities_of(const Architecture& architecture) {
  Capabilities can = gpu::usual_capabilities();
  can.arch = architecture.name;
  can.device_name = text("an AMD GPU of the architecture ", architecture.name);
  can.shared_bytes = std::uint64_t{64} << 10;
  can.max_groups = std::numeric_limits<std::int32_t>::max();
  can.max_iterations = most_threads;
  return can;
}

HipDevice::HipDevice(const Driver& driver, Log& log, int ordinal) : Device(driver, log, ordinal) {
  using Attribute = abi::DeviceAttribute;
  const std::string arch = architecture();
  capabilities_ = capabilities_of({base_of(arch), {}, false});
  capabilities_.device_name = device_name();
  capabilities_.max_group = static_cast<std::uint32_t>(attribute(Attribute::max_threads_per_block));
  capabilities_.shared_bytes = static_cast<std::uint64_t>(attribute(Attribute::max_shared_memory_per_block));
  capabilities_.max_groups = static_cast<std::uint64_t>(attribute(Attribute::max_grid_dim_x));
  capabilities_.max_iterations = std::min(capabilities_.max_groups * capabilities_.block, most_threads);
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
