// backends/metal/metal_backend.cpp -- opens the GPU when it is first needed, compiles for it, and says what is missing where there is none.
#include "backends/metal/metal_backend.h"

#include <charconv>
#include <mutex>
#include <span>
#include <string>
#include <system_error>

#include "backends/metal/metal_device.h"
#include "backends/metal/metal_module.h"
#include "core/file.h"
#include "core/runtime_impl.h"
#include "core/text.h"

namespace tack {
namespace metal {
namespace {

// Part of the disk cache's key: changes with what is asked of Metal and with the form of binaries. An archive of another macOS is no harm:
// what Metal does not take of it, it compiles.
constexpr std::string_view code_revision = "metal-code-1";

constexpr std::uint32_t memory_space_of_metal = 0x100;
constexpr std::string_view arch_prefix = "apple";

/// TACK_DUMP_MSL: the text as a file in /tmp. Its name tells texts apart; one that is there is the same text.
void dump(Log& log, const KernelSource& source) {
  const std::string_view part = source.text;
  std::string name;
  for (const char c : digest(std::span(&part, 1)).substr(0, 8)) name += text("0123456789abcdef"[c >> 4 & 15], "0123456789abcdef"[c & 15]);
  const std::string path = text("/tmp/tack-", source.name, '-', name, ".metal");
  std::error_code error;
  File file = File::create(path, error);
  if (error == std::errc::file_exists) return;
  if (!error) file.write({std::as_bytes(std::span(part))}, error);
  if (!error) file.close(error);
  if (error) log.write(LogLevel::warning, text("TACK_DUMP_MSL: the file ", path, " cannot be written: ", error.message(), '.'));
}

class MetalBackend final : public Backend {
 public:
  std::string name() const override { return "metal"; }
  bool numbered() const override { return false; }
  std::uint32_t memory_space(int index) const override { return memory_space_of_metal + static_cast<std::uint32_t>(index); }

  int device_count(RuntimeImpl& runtime) noexcept override {
    try {
      static_cast<void>(gpu(runtime));
      return 1;
    } catch (const std::exception&) {
      return 0;
    }
  }

  std::unique_ptr<DeviceImpl> open(RuntimeImpl& runtime, int /*index*/, const DeviceOptions& /*options*/) override {
    return std::make_unique<MetalDevice>(gpu(runtime), runtime.log);
  }

  Capabilities describe(RuntimeImpl& /*runtime*/, std::string_view arch) override {
    std::uint32_t family = 0;
    if (arch.starts_with(arch_prefix)) {
      const char* const end = arch.data() + arch.size();
      const auto [stop, error] = std::from_chars(arch.data() + arch_prefix.size(), end, family);
      if (error != std::errc{} || stop != end) family = 0;
    }
    if (family < oldest_family)
      throw Error(ErrorCode::invalid_argument,
                  text("'", arch, "' is no architecture that tack compiles for; Apple's GPUs are called apple7 (M1), apple8 and so on."));
    return capabilities_of(family);
  }

  std::vector<std::byte> compile(RuntimeImpl& runtime, const KernelSource& source) override {
    if (runtime.config.dump_msl) dump(runtime.log, source);
    const Gpu& one = gpu(runtime);
    return metal::compile(one.metal, runtime.log, one.device.get(), source, capabilities_of(one.facts.family).block);
  }
  std::string compiler_version(RuntimeImpl& /*runtime*/) override { return std::string(code_revision); }

 private:
  /// The GPU, opened. What fails is tried again by the next call.
  const Gpu& gpu(RuntimeImpl& runtime) {
    const std::lock_guard lock(mutex_);
    if (!metal_) metal_ = std::make_unique<const Metal>(runtime.config);
    if (!gpu_) gpu_ = std::make_unique<const Gpu>(*metal_);
    return *gpu_;
  }

  std::mutex mutex_;  // guards what follows
  std::unique_ptr<const Metal> metal_;
  std::unique_ptr<const Gpu> gpu_;
};

}  // namespace
}  // namespace metal

std::unique_ptr<Backend> make_metal_backend() { return std::make_unique<metal::MetalBackend>(); }

}  // namespace tack
