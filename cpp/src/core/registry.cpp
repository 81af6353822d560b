// core/registry.cpp -- the one list of backends.
#include "core/registry.h"

#include <array>

#include "backends/cpu/cpu_device.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/hip/hip_backend.h"
#include "backends/level_zero/ze_backend.h"
#include "backends/metal/metal_backend.h"
#include "backends/null/null_backend.h"
#include "core/text.h"

namespace tack {

namespace {

struct Entry {
  std::string_view type;
  std::string_view title;
  bool num_threads;
  std::unique_ptr<Backend> (*make)();
};

// The order is the documentation's; the last one is for measuring, see docs/adding-a-backend.md.
constexpr std::array<Entry, 6> entries{{
    {"cpu", "CPU", true, make_cpu_backend},
    {"metal", "Metal", false, make_metal_backend},
    {"cuda", "CUDA", false, make_cuda_backend},
    {"hip", "HIP", false, make_hip_backend},
    {"level_zero", "Level Zero", false, make_level_zero_backend},
    {"null", "Null", false, make_null_backend},
}};

}  // namespace

std::vector<std::unique_ptr<Backend>> make_backends() {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.reserve(entries.size());
  for (const Entry& entry : entries) backends.push_back(entry.make());
  return backends;
}

Capabilities Backend::describe(RuntimeImpl& /*runtime*/, std::string_view arch) {
  throw Error(ErrorCode::invalid_argument,
              text(title_of(name()), " devices of the architecture '", arch,
                   "' are known only where there is one: this backend compiles for the devices of the machine."));
}

int Backend::adopted_index(RuntimeImpl& /*runtime*/, const DeviceOptions& /*options*/) {
  throw Error(ErrorCode::invalid_argument, text("The '", name(), "' device takes no context; only 'level_zero' does."));
}

std::string title_of(std::string_view type) {
  for (const Entry& entry : entries)
    if (entry.type == type) return std::string(entry.title);
  return std::string(type);
}

bool is_for_users(std::string_view type) noexcept { return type != "null"; }

bool takes_num_threads(std::string_view type) noexcept {
  for (const Entry& entry : entries)
    if (entry.type == type) return entry.num_threads;
  return false;
}

}  // namespace tack
