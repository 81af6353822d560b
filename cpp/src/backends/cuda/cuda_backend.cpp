// backends/cuda/cuda_backend.cpp -- starts driver and compiler when they are first needed, and says what is missing when they cannot.
#include "backends/cuda/cuda_backend.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "backends/cuda/cuda_context.h"
#include "backends/cuda/cuda_device.h"
#include "backends/cuda/cuda_driver.h"
#include "backends/cuda/nvrtc.h"
#include "core/runtime_impl.h"
#include "core/text.h"

namespace tack {
namespace cuda {
namespace {

// Part of the disk cache's key. A newer NVRTC makes other code, but not wrong code: what is stored stays valid until what is asked of NVRTC
// or the way in which kernels are launched changes. Then this number does.
constexpr std::string_view code_revision = "cuda-code-1";

constexpr std::uint32_t first_memory_space = 0x200;
constexpr int oldest_capability = 50, oldest_driver = 11000;  // what NVRTC 12 compiles for; CUDA 11.0

class CudaBackend final : public Backend {
 public:
  std::string name() const override { return "cuda"; }
  std::uint32_t memory_space(int index) const override { return first_memory_space + static_cast<std::uint32_t>(index); }

  int device_count(RuntimeImpl& runtime) noexcept override {
    try {
      int count = 0;
      const Driver& driver = started(runtime);
      driver("count the devices", driver.device_count, &count);
      return count;
    } catch (const std::exception&) {
      return 0;
    }
  }

  int current_index(RuntimeImpl& runtime) noexcept override {
    try {
      return std::max(current_device(started(runtime)), 0);
    } catch (const std::exception&) {
      return 0;
    }
  }

  std::unique_ptr<DeviceImpl> open(RuntimeImpl& runtime, int index, const DeviceOptions& /*options*/) override {
    return std::make_unique<CudaDevice>(started(runtime), runtime.log, index);
  }

  Capabilities describe(RuntimeImpl& /*runtime*/, std::string_view arch) override {
    const int capability = capability_of(arch);
    if (capability < oldest_capability)
      throw Error(ErrorCode::invalid_argument,
                  text("'", arch, "' is no architecture that tack compiles for; CUDA's are called sm_75, sm_90, sm_120 and so on, from sm_",
                       oldest_capability, '.'));
    return capabilities_of(capability / 10, capability % 10);
  }

  std::vector<std::byte> compile(RuntimeImpl& runtime, const KernelSource& source) override { return compiler(runtime).compile(source); }
  std::string compiler_version(RuntimeImpl& /*runtime*/) override { return std::string(code_revision); }

 private:
  /// The driver, loaded and initialised. What fails is tried again by the next call.
  const Driver& started(RuntimeImpl& runtime) {
    const std::lock_guard lock(mutex_);
    if (!driver_) {
      Library library = Library::open(runtime.config.lib_cuda, driver_libraries());
      if (!library.loaded()) throw unavailable(library.reason());
      driver_ = std::make_unique<const Driver>(std::move(library));
    }
    if (!initialized_) initialize(*driver_);
    initialized_ = true;
    return *driver_;
  }

  static void initialize(const Driver& driver) {
    int version = 0;
    require(driver, driver.driver_version.symbol, driver.driver_version(&version));
    if (version < oldest_driver)
      throw unavailable(text("The CUDA driver in ", driver.library(), " is too old: it is for CUDA ", version / 1000, '.',
                             version % 1000 / 10, ", and 11.0 is needed. Update NVIDIA's driver."));
    require(driver, driver.init.symbol, driver.init(0));
  }

  /// Throws Error(unavailable) that says what a failed first call means.
  static void require(const Driver& driver, const char* symbol, abi::Result result) {
    if (result == abi::Result::success) return;
    const std::string call = text(symbol, ": ", driver.name_of(result), " (", static_cast<int>(result), ')');
    switch (result) {
      case abi::Result::no_device:
        throw unavailable(text("The driver finds no NVIDIA GPU. nvidia-smi and CUDA_VISIBLE_DEVICES say more.\n", call));
      case abi::Result::stub_library:
        throw unavailable(text(driver.library(), " is the stub for linking, not a driver.\n", call));
      case abi::Result::driver_mismatch:
      case abi::Result::compat_not_supported:
        throw unavailable(text("The driver's library and its kernel module do not fit together: restart the machine.\n", call));
      default:
        throw unavailable(text("The driver cannot be started: ", driver.text_of(result), ".\n", call));
    }
  }

  const Nvrtc& compiler(RuntimeImpl& runtime) {
    const std::lock_guard lock(mutex_);
    if (!nvrtc_) {
      Library library = Library::open(runtime.config.lib_nvrtc, nvrtc_libraries(runtime.package_folders(), runtime.config.cuda_path));
      if (!library.loaded()) throw unavailable(text("NVRTC, CUDA's compiler, is not found.\n", library.reason()));
      nvrtc_ = std::make_unique<const Nvrtc>(std::move(library));
    }
    return *nvrtc_;
  }

  std::mutex mutex_;  // guards what follows
  std::unique_ptr<const Driver> driver_;
  bool initialized_ = false;
  std::unique_ptr<const Nvrtc> nvrtc_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> make_cuda_backend() { return std::make_unique<cuda::CudaBackend>(); }

}  // namespace tack
