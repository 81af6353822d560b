// backends/hip/hip_backend.cpp -- AMD GPUs, as a backend: which architectures its compiler may see, and the releases to be warned of.
#include "backends/hip/hip_backend.h"

#include <atomic>
#include <set>

#include "backends/gpu/backend.h"
#include "backends/hip/architectures.h"
#include "backends/hip/hip_api.h"
#include "backends/hip/hip_device.h"
#include "backends/hip/hiprtc.h"
#include "core/text.h"

namespace tack {
namespace hip {
namespace {

class HipBackend final : public gpu::Backend<Api> {
 public:
  std::unique_ptr<DeviceImpl> open(RuntimeImpl& runtime, int index, const DeviceOptions& options) override {
    std::unique_ptr<DeviceImpl> device = Backend::open(runtime, index, options);
    {
      const std::lock_guard lock(mutex_);
      present_.insert(device->capabilities().arch);
    }
    warn(runtime, runtime_release(runtime));
    return device;
  }

  std::vector<std::byte> compile(RuntimeImpl& runtime, const KernelSource& source) override {
    const Hiprtc& hiprtc = compiler(runtime);
    Release release = hiprtc.release();
    if (release == Release{}) release = runtime_release(runtime);
    check(source, release);
    warn(runtime, release);
    return hiprtc.compile(source);
  }

  std::string compiler_version(RuntimeImpl& runtime) override {
    // What a release compiles wrongly must not be taken for the code of the next one.
    const Release release = runtime_release(runtime);
    return miscompiles(release) ? text(Api::code_revision, "-rocm-", number_of(release)) : std::string(Api::code_revision);
  }

 private:
  /// {0, 0} where there is no runtime, or one that does not start.
  Release runtime_release(RuntimeImpl& runtime) noexcept {
    try {
      int version = 0;
      const Driver& driver = loaded(runtime);
      driver("ask for its version", driver.runtime_version, &version);
      return release_of(version);
    } catch (const std::exception&) {
      return {};
    }
  }

  /// Throws for what hipRTC would end the process for. What a device says of itself its own hipRTC knows, even if this list does not.
  void check(const KernelSource& source, Release release) {
    const Architecture* const known = find_architecture(source.arch);
    if (known == nullptr || release == Release{}) {
      const std::lock_guard lock(mutex_);
      if (present_.contains(source.arch)) return;
    }
    if (known == nullptr)
      throw Error(ErrorCode::invalid_argument, text("Kernel '", source.name, "': '", source.arch,
                                                    "' is no architecture that tack knows of HIP's; they are ", architecture_names(), '.'));
    if (known->first <= release) return;
    throw Error(ErrorCode::unavailable,
                text("Kernel '", source.name,
                     "': ", release == Release{} ? "a hipRTC of unknown release" : text("the hipRTC of ROCm ", number_of(release)),
                     " does not compile for ", known->name, "; that of ROCm ", number_of(known->first),
                     " and newer do. Install one, or name its library with TACK_LIBHIPRTC."));
  }

  void warn(RuntimeImpl& runtime, Release release) noexcept {
    if (!miscompiles(release) || warned_.exchange(true)) return;
    runtime.log.write(
        LogLevel::warning,
        text("HIP: ROCm ", number_of(release),
             " miscompiles some integer code: its compiler can evaluate a 64-bit signed comparison wrongly inside a long integer "
             "expression, and a kernel then returns wrong values with no error. Use a ROCm release newer than 7.1 if you can; "
             "until then, check integer-heavy kernels against the CPU backend."));
  }

  std::mutex mutex_;                            // guards what follows
  std::set<std::string, std::less<>> present_;  // architectures of started devices
  std::atomic<bool> warned_{false};
};

}  // namespace
}  // namespace hip

std::unique_ptr<Backend> make_hip_backend() { return std::make_unique<hip::HipBackend>(); }

}  // namespace tack
