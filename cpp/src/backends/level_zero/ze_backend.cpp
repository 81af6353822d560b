// backends/level_zero/ze_backend.cpp -- starts the driver, finds devices by number or by an application's handles, and names what is
// missing.
#include "backends/level_zero/ze_backend.h"

#include <algorithm>
#include <utility>

#include "backends/gpu/backend.h"
#include "backends/level_zero/ocloc.h"
#include "backends/level_zero/ze_api.h"
#include "backends/level_zero/ze_device.h"
#include "core/text.h"

namespace tack {
namespace level_zero {

std::vector<std::string> Api::driver_libraries() {
#if defined(_WIN32)
  return {"ze_loader.dll"};
#else
  return {"libze_loader.so.1"};
#endif
}

void Api::initialize(const Driver& driver) {
  const abi::Result result = driver.init(abi::init_gpu_only);
  if (result == abi::Result::success) return;
  const std::string call = text(driver.init.symbol, ": ", driver.name_of(result), " (", static_cast<int>(result), ')');
  if (result == abi::Result::uninitialized)
    throw unavailable(
        text("The loader finds no driver with an Intel GPU. /dev/dri must be there, and the user in the group that owns it.\n", call));
  throw unavailable(text("The driver cannot be started: ", driver.text_of(result), ".\n", advice_for(result), call));
}

namespace {

class LevelZeroBackend final : public gpu::LazyBackend<Api> {
 public:
  int device_count(RuntimeImpl& runtime) noexcept override {
    try {
      return static_cast<int>(gpus(started(runtime)).size());
    } catch (const std::exception&) {
      return 0;
    }
  }

  int adopted_index(RuntimeImpl& runtime, const DeviceOptions& options) override {
    const std::vector<Gpu> there = gpus(started(runtime));
    const auto found = std::find_if(there.begin(), there.end(),
                                    [&](const Gpu& gpu) { return reinterpret_cast<std::uintptr_t>(gpu.device) == options.native_device; });
    if (found == there.end())
      throw Error(ErrorCode::invalid_argument, text("device=", options.native_device, " is no handle of one of the ", there.size(),
                                                    " GPUs that Level Zero finds: it must be the ze_device_handle_t of a whole GPU."));
    return static_cast<int>(found - there.begin());
  }

  std::unique_ptr<DeviceImpl> open(RuntimeImpl& runtime, int index, const DeviceOptions& options) override {
    const Driver& driver = started(runtime);
    const std::vector<Gpu> there = gpus(driver);
    if (there.empty()) throw Api::unavailable("The driver finds no Intel GPU.");
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a handle from outside is a number
    auto* const adopted = reinterpret_cast<abi::Context>(options.native_context);
    return std::make_unique<Device>(driver, runtime.log, there.at(static_cast<std::size_t>(index)), adopted);
  }
};

}  // namespace
}  // namespace level_zero

std::unique_ptr<Backend> make_level_zero_backend() { return std::make_unique<level_zero::LevelZeroBackend>(); }

}  // namespace tack
