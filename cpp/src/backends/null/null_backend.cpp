// backends/null/null_backend.cpp -- a device that takes every kernel and runs none: what is left of a launch is what tack itself costs.
// Also the least that a backend has to be, to copy for a new one; docs/adding-a-backend.md follows it.
#include "backends/null/null_backend.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "core/text.h"

namespace tack {
namespace null {
namespace {

constexpr std::align_val_t alignment{64};

/// Everything that a device of tack's can have, so that no kernel is refused.
Capabilities everything() {
  Capabilities can;
  can.arch = "none";
  can.device_name = "no device";
  can.array_dtypes = can.atomic_dtypes = static_cast<DTypeSet>((1u << array_dtypes.size()) - 1);
  can.supports_f64 = can.supports_workgroups = can.supports_images = true;
  can.queued = true;
  can.max_group = 1024;
  can.shared_bytes = std::uint64_t{48} << 10;
  can.max_image.fill(std::numeric_limits<std::uint32_t>::max());
  return can;
}

class NullModule final : public ModuleImpl {
 public:
  using ModuleImpl::ModuleImpl;
};

class NullTexture final : public TextureImpl {
 public:
  std::uint64_t handle() const noexcept override { return 1; }
  void update(const void* /*texels*/) override {}
};

/// Its memory is the host's, but only copies and fills reach it: arrays keep what they are given.
class NullDevice final : public DeviceImpl {
 public:
  NullDevice() { capabilities_ = everything(); }

  void* allocate(std::size_t bytes) override {
    void* const memory = ::operator new(bytes, alignment, std::nothrow);
    if (memory == nullptr) throw Error(ErrorCode::out_of_memory, text("The host has no ", bytes_text(bytes), " for the null device."));
    return memory;
  }
  void free(void* pointer, std::size_t /*bytes*/) noexcept override { ::operator delete(pointer, alignment); }

  void upload(void* destination, const void* source, std::size_t bytes) override { std::memmove(destination, source, bytes); }
  void download(void* destination, const void* source, std::size_t bytes) override { std::memmove(destination, source, bytes); }
  void copy(void* destination, const void* source, std::size_t bytes) override { std::memmove(destination, source, bytes); }
  void fill(void* destination, const void* element, std::size_t size, std::size_t count) override {
    auto* to = static_cast<std::byte*>(destination);
    for (; count != 0; --count, to += size) std::memcpy(to, element, size);
  }

  std::unique_ptr<TextureImpl> make_texture(std::array<std::size_t, 3> /*shape*/, Sampling /*sampling*/) override {
    return std::make_unique<NullTexture>();
  }
  std::unique_ptr<ModuleImpl> load(std::span<const std::byte> /*binary*/, const KernelSource& source) override {
    return std::make_unique<NullModule>(source.name);
  }
  void launch(const LaunchCommand& /*command*/) override {}
  void synchronize() override {}
};

class NullBackend final : public Backend {
 public:
  std::string name() const override { return "null"; }
  bool numbered() const override { return false; }
  int device_count(RuntimeImpl& /*runtime*/) noexcept override { return 1; }
  std::unique_ptr<DeviceImpl> open(RuntimeImpl& /*runtime*/, int /*index*/, const DeviceOptions& /*options*/) override {
    return std::make_unique<NullDevice>();
  }
  std::uint32_t memory_space(int index) const override { return 0x500 + static_cast<std::uint32_t>(index); }

  Capabilities describe(RuntimeImpl& /*runtime*/, std::string_view arch) override {
    Capabilities can = everything();
    can.arch = arch;
    return can;
  }
  /// The text is the binary.
  std::vector<std::byte> compile(RuntimeImpl& /*runtime*/, const KernelSource& source) override {
    std::vector<std::byte> binary(source.text.size());
    std::memcpy(binary.data(), source.text.data(), binary.size());
    return binary;
  }
  std::string compiler_version(RuntimeImpl& /*runtime*/) override { return "null-1"; }
};

}  // namespace
}  // namespace null

std::unique_ptr<Backend> make_null_backend() { return std::make_unique<null::NullBackend>(); }

}  // namespace tack
