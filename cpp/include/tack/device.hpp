// tack/device.hpp -- Device: where arrays live and kernels run; its capabilities are data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tack/dtype.hpp"
#include "tack/export.hpp"
#include "tack/queue.hpp"

namespace tack {

class Allocator;
class DeviceImpl;
class Kernel;
class Runtime;
struct KernelSource;
struct KernelKey;

/// Options that make a separate device. Only the CPU knows num_threads, only Level Zero knows contexts.
struct DeviceOptions {
  std::optional<int> num_threads;
  /// A context that an application made and a device in it, as the driver's handles; 0: none, tack makes its own. The application keeps
  /// the context for as long as the device is used.
  std::uintptr_t native_context = 0, native_device = 0;
  bool operator==(const DeviceOptions&) const = default;
};

/// What a device can do. Filled once when it starts; asked by the frontend, the code generators and the tests. Runtime::describe has it
/// for devices that are not there.
struct Capabilities {
  std::string arch;            ///< what code is compiled for: "x86-64-v4", "sm_90", "gfx90a", ...
  std::string device_name;     ///< as the driver or the OS calls it
  DTypeSet array_dtypes = 0;   ///< element types that arrays may have
  DTypeSet atomic_dtypes = 0;  ///< element types that array atomics may have
  bool supports_f64 = false;
  bool supports_workgroups = false;  ///< shared memory, barriers, thread_id, block reductions
  bool supports_images = false;      ///< 3-D textures are sampled by hardware
  bool f32_denormals = true;
  bool queued = false;            ///< launches return before they are done
  bool host_addressable = false;  ///< the host may read and write the device's memory (after waiting)
  std::uint64_t max_iterations =
      0;                         ///< a launch's limit with groups of `block` threads; 0 is none. With groups of N threads: N / block of it
  std::uint64_t max_groups = 0;  ///< 0: max_iterations / block. Else a launch's limit of groups, and max_iterations is that of threads
  std::uint32_t block = 256;     ///< threads of a group where the kernel does not say
  std::uint32_t max_group = 0;   ///< the most threads a group may have; 0: the device has no groups
  std::uint64_t shared_bytes = 0;            ///< memory that a group's threads share
  std::array<std::uint32_t, 3> max_image{};  ///< the largest {depth, height, width} of textures that hardware samples
  std::uint32_t max_buffers = 0;             ///< a kernel's limit of array parameters; 0 is none
  std::uint32_t vector_bits = 0;             ///< CPU: width of the SIMD registers
  std::uint32_t threads = 1;                 ///< CPU: how many threads a launch may use
};

struct MemoryStatistics {
  std::uint64_t in_use = 0;       ///< bytes of live buffers, each rounded up to its size class
  std::uint64_t cached = 0;       ///< bytes kept for reuse
  std::uint64_t peak = 0;         ///< the highest in_use
  std::uint64_t allocations = 0;  ///< buffers handed out
  std::uint64_t reused = 0;       ///< of these, from the cache
  std::uint64_t limit = 0;        ///< of in_use and cached together; 0: none
};

/// How other libraries name memory (DLPack's `data` and `byte_offset`): by its address, or, on Metal, by its MTLBuffer and a place in it.
struct MemoryHandle {
  void* object = nullptr;
  std::size_t offset = 0;
};

/// Thread-safe. One object per (type, index, options) of a Runtime, which owns it. A shared_ptr to a device shares the ownership of
/// the whole Runtime, so that both live exactly as long as any handle to either: asked for twice, it is the same device.
class TACK_API Device {
 public:
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& type() const noexcept;  ///< "cpu", "cuda", ...
  int index() const noexcept;
  /// "cpu", "cuda:1"; device 0 of a numbered type is "cuda:0"; options show: "cpu(num_threads=1)".
  const std::string& name() const noexcept;
  const DeviceOptions& options() const noexcept;
  const Capabilities& capabilities() const noexcept;
  std::shared_ptr<Runtime> runtime() const;
  std::shared_ptr<Device> shared_from_this();
  std::weak_ptr<Device> weak_from_this();

  /// Devices with equal memory ids can address each other's buffers.
  std::uint32_t memory_id() const noexcept;
  bool can_address(const Device& other) const noexcept { return memory_id() == other.memory_id(); }

  /// Whether kernels here can use `bytes` of memory at an address that tack did not allocate. Looks at the ends only; devices that cannot
  /// tell answer true.
  bool addresses(const void* pointer, std::size_t bytes) const noexcept;

  /// The name of the device's memory at an address; no object where it has none there.
  MemoryHandle handle_of(const void* pointer) const;
  /// The address of memory that another library has named by an object. Kernels can use it for as long as the answer lives, which keeps the
  /// device, and on Metal the memory. Throws Error(invalid_argument) for an object that the device cannot use.
  std::shared_ptr<void> adopt(void* object);

  /// Finishes all queued work; throws the queue's first error. Blocking.
  void synchronize();
  /// Waits until the work that another library has put into a stream of the device's driver is done. `stream` is the driver's handle; 0 and
  /// those of the default stream need no waiting, as tack's own work lies there. Nothing on devices without streams. Blocking.
  void wait_for_stream(std::uintptr_t stream);

  /// Where its work is put in order.
  Queue& queue() noexcept { return *queue_; }

  /// The kernel that an earlier process (or this one) stored under `key`, or null. Reads the disk, compiles nothing.
  std::shared_ptr<Kernel> load(const KernelKey& key);
  /// Compiles (or finds in the disk cache) and loads; stores the result under `key` as well when it is not empty.
  /// Concurrent calls with one key compile once. Throws Error(compile), Error(unavailable).
  std::shared_ptr<Kernel> build(const KernelSource& source, const KernelKey& key);
  /// How many kernels this device compiled, and how many it loaded from the disk cache.
  std::uint64_t compiled() const noexcept;
  std::uint64_t loaded() const noexcept;

  MemoryStatistics memory() const;
  /// Gives cached memory back to the system; answers the bytes.
  std::uint64_t trim();
  /// What buffers and cache may take together, in bytes; 0: all that there is. Buffers that are there already stay.
  void set_memory_limit(std::uint64_t bytes);

  DeviceImpl& impl() noexcept { return *impl_; }  // for libtack's own files
  Allocator& allocator() noexcept;                // for libtack's own files

 private:
  friend class RuntimeImpl;
  struct Data;
  Device(std::unique_ptr<Data> data, std::unique_ptr<DeviceImpl> impl);
  std::unique_ptr<Data> data_;
  std::unique_ptr<DeviceImpl> impl_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace tack
