// backend.h -- Backend and DeviceImpl: all that the author of a backend implements. docs/adding-a-backend.md walks through it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tack/device.hpp"
#include "tack/error.hpp"
#include "tack/kernel.hpp"

namespace tack {

class RuntimeImpl;

/// A way around DeviceImpl::launch for launches that take less time than a virtual call, a clock and a queue are worth. Data, so that
/// the core can keep it with a kernel's plan.
struct DirectLaunch {
  /// Runs the launch, all of it and now, on the calling thread; or does nothing and answers false when it is not certainly a short one.
  /// `words` as in LaunchCommand; `iterations` is positive. Called from any thread; throws nothing.
  bool (*run)(void* context, const std::uint64_t* words, std::int64_t iterations) noexcept = nullptr;
  void* context = nullptr;  ///< lives as long as the module
};

/// A loaded binary. Destroying it unloads the code; the core makes sure that no launch of it is running or queued.
class ModuleImpl {
 public:
  /// `kernel`: KernelSource::name, which messages about queued launches need after the kernel is gone.
  explicit ModuleImpl(std::string kernel) : kernel_(std::move(kernel)) {}
  virtual ~ModuleImpl() = default;
  ModuleImpl(const ModuleImpl&) = delete;
  ModuleImpl& operator=(const ModuleImpl&) = delete;
  const std::string& kernel() const noexcept { return kernel_; }
  /// Statistics per entry, in the order of KernelSource::entries; a backend without any answers {}.
  virtual std::vector<EntryStatistics> statistics() const { return {}; }
  /// Predicted ns of `iterations` iterations of an entry, without reading a clock; 0 where launches are queued.
  virtual double predict(std::uint32_t /*entry*/, std::int64_t /*iterations*/) const noexcept { return 0.0; }
  /// For devices whose launches are done when they return; asked once per kernel. Without a `run` all launches go to DeviceImpl::launch.
  virtual DirectLaunch direct(std::uint32_t /*entry*/) noexcept { return {}; }

 private:
  const std::string kernel_;
};

/// What texture units do with the three coordinates that a kernel gives them: x, y, z.
enum class Sampling : std::uint8_t {
  nearest,  ///< coordinates count texels, k + 0.5 being the centre of texel k; the texel that the point lies in
  linear,   ///< the same coordinates; mixes the eight texels around, those at the edge standing for what is beyond it
  repeat,   ///< coordinates count volumes, (k + 0.5) / n being the centre of texel k of n; mixes likewise, texel n being texel 0 again
};

/// A volume of f32 in the form that a device's texture units read. Destroying it frees it once all work queued before that uses it is
/// done; the core destroys it before its device.
class TextureImpl {
 public:
  virtual ~TextureImpl() = default;
  TextureImpl(const TextureImpl&) = delete;
  TextureImpl& operator=(const TextureImpl&) = delete;
  /// The word that kernels get for it (ParamKind::texture), never 0. The same for as long as it lives.
  virtual std::uint64_t handle() const noexcept = 0;
  /// Copies all texels, which lie contiguous in the device's memory, x fastest; in queue order.
  virtual void update(const void* texels) = 0;

 protected:
  TextureImpl() = default;
};

/// One launch: an entry of a module over an index range, with its parameter block already filled by the core.
struct LaunchCommand {
  ModuleImpl* module = nullptr;
  std::uint32_t entry = 0;
  std::span<const std::uint64_t> words;   ///< one per ParamSlot of the entry
  std::span<const std::int64_t> extents;  ///< iterations per dimension, 1..4 of them, all positive
  std::int64_t iterations = 0;            ///< their product
  bool shared = true;                     ///< somebody else may update an array of it; always so of an entry without EntryPoint::alone
};

/// A started device. Calls come from any thread; the core serialises nothing. Every native failure is thrown as Error, with
/// Error::Fields::queued set where it is that of work queued earlier: the core then says which kernels that may have been.
class DeviceImpl {
 public:
  virtual ~DeviceImpl() = default;
  const Capabilities& capabilities() const noexcept { return capabilities_; }

  /// Device memory, at least 64-byte aligned. Throws Error(out_of_memory). The core caches; this always asks the system.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Gives memory back once all work queued before this call that uses it is done.
  virtual void free(void* pointer, std::size_t bytes) noexcept = 0;

  /// Contiguous copies in queue order. upload has taken its source when it returns; download waits.
  virtual void upload(void* destination, const void* source, std::size_t bytes) = 0;
  virtual void download(void* destination, const void* source, std::size_t bytes) = 0;
  virtual void copy(void* destination, const void* source, std::size_t bytes) = 0;
  /// Writes `count` elements of `size` bytes (1, 2, 4 or 8).
  virtual void fill(void* destination, const void* element, std::size_t size, std::size_t count) = 0;

  /// A volume of `shape` = {depth, height, width} texels, undefined until its first update. Asked only of devices with
  /// Capabilities::supports_images, for shapes up to max_image. Throws Error(out_of_memory).
  virtual std::unique_ptr<TextureImpl> make_texture(std::array<std::size_t, 3> shape, Sampling sampling);

  virtual std::unique_ptr<ModuleImpl> load(std::span<const std::byte> binary, const KernelSource& source) = 0;
  /// Runs or queues one launch, in order.
  virtual void launch(const LaunchCommand& command) = 0;
  /// Waits for the queue and throws its first error.
  virtual void synchronize() = 0;
  /// Called on a thread that has just asked for the device by name, each time: what other libraries on that thread should then see.
  virtual void make_current() {}
  /// Waits for a stream of another library's, given by the driver's handle. Backends whose drivers have streams do.
  virtual void wait_for_stream(std::uintptr_t /*stream*/) {}
  /// Whether the device can use this memory of somebody else's. A device that cannot tell answers true.
  virtual bool addresses(const void* /*pointer*/, std::size_t /*bytes*/) const noexcept { return true; }
  /// See Device::handle_of and Device::adopt. Devices whose memory is named by its address have nothing to add.
  virtual MemoryHandle handle_of(const void* pointer) const { return {const_cast<void*>(pointer), 0}; }
  virtual std::shared_ptr<void> adopt(void* object) { return {std::shared_ptr<void>(), object}; }

 protected:
  Capabilities capabilities_;
};

/// A kind of device. One object per Runtime; constructing it touches no driver.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;           ///< "cuda"
  virtual bool numbered() const { return true; }  ///< takes "cuda:1"
  virtual bool available_in_this_build() const { return true; }
  /// Devices present; 0 without a driver, without a GPU or with a driver that is too old. Never throws.
  virtual int device_count(RuntimeImpl& runtime) noexcept = 0;
  /// Which device a spec without a number means on this thread: the one that an embedding framework has made current, else the first.
  virtual int current_index(RuntimeImpl& /*runtime*/) noexcept { return 0; }
  /// Which device an application's handles (DeviceOptions::native_context and native_device, both given) mean. Throws
  /// Error(invalid_argument) where there is none, and where the backend makes no use of other contexts.
  virtual int adopted_index(RuntimeImpl& runtime, const DeviceOptions& options);
  /// Starts device `index`. Throws Error(unavailable) in the page's form (see core/unavailable.h).
  virtual std::unique_ptr<DeviceImpl> open(RuntimeImpl& runtime, int index, const DeviceOptions& options) = 0;
  /// Devices whose memory is common answer equal numbers (all CPU devices: 0).
  virtual std::uint32_t memory_space(int index) const = 0;

  /// The capabilities of a device of the architecture `arch` ("sm_90"), without one: what code can be compiled for. Throws
  /// Error(invalid_argument) that says which architectures there are.
  virtual Capabilities describe(RuntimeImpl& runtime, std::string_view arch);
  /// Source text to binary. Needs no device, so that machines without the hardware can compile for it.
  virtual std::vector<std::byte> compile(RuntimeImpl& runtime, const KernelSource& source) = 0;
  /// Part of the disk cache's key: a new compiler compiles anew. Must be cheap and load nothing.
  virtual std::string compiler_version(RuntimeImpl& runtime) = 0;
};

/// The backends of this build, in the order of the documentation. The only list of backends; defined in core/registry.cpp.
std::vector<std::unique_ptr<Backend>> make_backends();

}  // namespace tack
