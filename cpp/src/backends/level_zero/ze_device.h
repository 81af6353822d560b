// backends/level_zero/ze_device.h -- an Intel GPU as a device.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "backend.h"
#include "backends/gpu/staging.h"
#include "backends/level_zero/ze_stream.h"

namespace tack::level_zero {

/// What all GPUs can do that have f64, or have none.
Capabilities capabilities_of(bool f64);

/// Thread-safe. All work goes to one queue, in the order in which it is given.
class Device final : public DeviceImpl {
 public:
  /// `adopted`: the context that an application made and keeps; null makes one.
  Device(const Driver& driver, Log& log, const Gpu& gpu, abi::Context adopted);
  ~Device() override;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void* allocate(std::size_t bytes) override;
  void free(void* pointer, std::size_t bytes) noexcept override;
  void upload(void* destination, const void* source, std::size_t bytes) override;
  void download(void* destination, const void* source, std::size_t bytes) override;
  void copy(void* destination, const void* source, std::size_t bytes) override;
  void fill(void* destination, const void* element, std::size_t size, std::size_t count) override;
  std::unique_ptr<TextureImpl> make_texture(std::array<std::size_t, 3> shape, Sampling sampling) override;
  std::unique_ptr<ModuleImpl> load(std::span<const std::byte> binary, const KernelSource& source) override;
  void launch(const LaunchCommand& command) override;
  void synchronize() override;
  bool addresses(const void* pointer, std::size_t bytes) const noexcept override;

 private:
  const Driver& driver() const noexcept { return context_.driver(); }
  void ask();

  const Context context_;
  Stream stream_;
  gpu::Staging<Stream> uploads_, downloads_;  // two, so that a thread that waits for the device does not keep others from giving it work
  std::uint64_t usual_limit_ = 0;             // of an allocation
};

}  // namespace tack::level_zero
