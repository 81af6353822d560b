// backends/metal/metal_device.h -- an Apple silicon GPU as a device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "backend.h"
#include "backends/metal/metal_memory.h"
#include "backends/metal/metal_queue.h"

namespace tack::metal {

constexpr std::uint32_t oldest_family = 7;  // M1; what came before has not the atomics

/// What a GPU of Apple's family `family` (7 is M1) can do, as far as that alone decides it.
Capabilities capabilities_of(std::uint32_t family);

/// The system's GPU, opened. Immutable.
struct Gpu {
  explicit Gpu(const Metal& metal);
  const Metal& metal;
  abi::DeviceFacts facts{};
  Ref device;
};

/// Thread-safe. All work goes to one command queue. Memory is shared with the host, which does copies and fills itself where nothing is
/// queued, and else puts them in the queue.
class MetalDevice final : public DeviceImpl {
 public:
  MetalDevice(const Gpu& gpu, Log& log);

  void* allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
  void free(void* pointer, std::size_t /*bytes*/) noexcept override { memory_.free(pointer); }
  void upload(void* destination, const void* source, std::size_t bytes) override;
  void download(void* destination, const void* source, std::size_t bytes) override;
  void copy(void* destination, const void* source, std::size_t bytes) override;
  void fill(void* destination, const void* element, std::size_t size, std::size_t count) override;
  std::unique_ptr<TextureImpl> make_texture(std::array<std::size_t, 3> shape, Sampling sampling) override;
  std::unique_ptr<ModuleImpl> load(std::span<const std::byte> binary, const KernelSource& source) override;
  void launch(const LaunchCommand& command) override;
  void synchronize() override { queue_.wait(); }
  bool addresses(const void* pointer, std::size_t bytes) const noexcept override;
  MemoryHandle handle_of(const void* pointer) const override;
  std::shared_ptr<void> adopt(void* object) override;

 private:
  class Texture;
  abi::Binding place_of(const void* pointer) const;
  /// New memory for the time of some commands.
  Ref temporary(std::size_t bytes, void*& contents) const;

  const Gpu& gpu_;
  const Metal& metal_;
  Log& log_;
  SharedMemory memory_;
  CommandQueue queue_;
};

}  // namespace tack::metal
