// backends/level_zero/ze_stream.h -- a context, and the one queue in it that all of a device's work goes to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "backends/level_zero/ze_api.h"

namespace tack::level_zero {

/// A context: tack's own, or one that an application made and keeps. Thread-safe.
class Context {
 public:
  /// `adopted`: the application's; null makes one.
  Context(const Driver& driver, Log& log, const Gpu& gpu, abi::Context adopted);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const noexcept { return driver_; }
  Log& log() const noexcept { return log_; }
  abi::Context handle() const noexcept { return handle_; }
  abi::Device device() const noexcept { return gpu_.device; }

  /// Memory of the device, or pinned memory of the host's that the device reads and writes. Throws Error(out_of_memory).
  void* allocate_device(std::size_t bytes, std::uint64_t usual_limit) const;
  void* allocate_host(std::size_t bytes) const;
  void free(void* pointer) const noexcept;  // of either kind
  /// An image of the device. Throws Error(out_of_memory).
  abi::Image make_image(const abi::ImageDesc& desc) const;

 private:
  friend class Stream;
  void require_memory(std::string_view what, abi::Result result, const char* symbol) const;
  const Driver& driver_;
  Log& log_;
  const Gpu gpu_;
  abi::Context handle_ = nullptr;
  bool ours_ = false;
};

/// An immediate command list that does its commands in order, and the events that say when they are done. Thread-safe.
class Stream {
 public:
  using Event = abi::Event;
  static constexpr std::uint32_t max_events = 16;

  explicit Stream(const Context& context);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Queue a copy, a fill or a launch behind all others; nothing is queued when they throw. `done`, if not null, is signalled when it is
  /// done.
  void copy(std::string_view what, void* destination, const void* source, std::size_t bytes, abi::Event done = nullptr);
  void fill(void* destination, const void* element, std::size_t size, std::size_t bytes);
  void copy_to_image(abi::Image image, const void* texels, const abi::ImageRegion& region);
  /// `prepare(kernel)` sets the kernel's arguments, which are taken when this returns: nobody else sets any meanwhile.
  template <class Prepare>
  void launch(abi::Kernel kernel, const abi::GroupCount& groups, Prepare prepare) {
    const std::lock_guard lock(mutex_);
    prepare(kernel);
    in_order();
    driver()("launch it", driver().append_launch, list_, kernel, &groups, nullptr, 0u, nullptr);
  }
  /// Waits for all that was queued. Throws what came of it.
  void finish();

  // What gpu::Staging asks of a stream.
  void* allocate_host(std::size_t bytes) const { return context_.allocate_host(bytes); }
  void free_host(void* memory) const noexcept { context_.free(memory); }
  void upload(void* to, const void* from, std::size_t bytes, abi::Event done) { copy("copy to the device", to, from, bytes, done); }
  void download(void* to, const void* from, std::size_t bytes, abi::Event done) { copy("copy from the device", to, from, bytes, done); }
  abi::Event create_event();
  void destroy_event(abi::Event event) const noexcept;
  /// Waits until it is signalled, and makes it ready to be signalled again.
  void wait(std::string_view what, abi::Event event) const;

 private:
  const Driver& driver() const noexcept { return context_.driver(); }
  abi::QueueDesc describe_queue(const Gpu& gpu);
  void in_order();

  const Context& context_;
  bool barriers_ = true;  // the driver keeps no order by itself
  abi::CommandList list_ = nullptr;
  abi::EventPool pool_ = nullptr;
  std::uint32_t events_ = 0;  // made so far
  std::mutex mutex_;          // held while commands are appended: a list takes one thread's at a time
  std::mutex finishing_;      // guards what follows
  abi::Event all_ = nullptr;  // signalled when all is done
  bool awaited_ = false;      // its signal is on its way, or not reset
};

}  // namespace tack::level_zero
