// backends/gpu/device.h -- memory, copies and launches on a context's default stream.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backend.h"
#include "backends/gpu/driver.h"
#include "backends/gpu/module.h"
#include "backends/gpu/staging.h"

namespace tack::gpu {

/// What GPUs with f64, workgroups and atomics of 32 and 64 bits can do; the rest is left to the caller.
Capabilities usual_capabilities();

/// Thread-safe. All work goes to the context's default stream (the legacy one): PyTorch, CuPy and others use the same one unless told
/// otherwise, so that on one thread their work and tack's is done in the order in which it was given, and streams that were not created as
/// non-blocking wait for it and are waited for.
template <class Api>
class Device : public DeviceImpl {
 public:
  /// `ordinal`: the driver's number of the device.
  Device(const Driver<Api>& driver, Log& log, int ordinal)
      : context_(driver, log, ordinal), stream_(context_), uploads_(stream_), downloads_(stream_) {}
  ~Device() override {
    try {
      const Scope scope(context_);
      uploads_.release();
      downloads_.release();
    } catch (const std::exception& error) {
      Driver<Api>::log_failure(context_.log(), error);
    }
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void* allocate(std::size_t bytes) override {
    const Scope scope(context_);
    typename Api::DevicePointer pointer{};
    driver()("allocate memory", driver().memory_allocate, &pointer, bytes);
    return Api::pointer(pointer);
  }

  void free(void* pointer, std::size_t /*bytes*/) noexcept override {
    try {
      const Scope scope(context_);
      // Queued work may still use it. A failure of that work comes out again at the next wait.
      static_cast<void>(driver().stream_synchronize(stream));
      driver().release(context_.log(), "free memory", driver().memory_free, Api::address(pointer));
    } catch (const std::exception& error) {
      Driver<Api>::log_failure(context_.log(), error);
    }
  }

  void upload(void* destination, const void* source, std::size_t bytes) override {
    const Scope scope(context_);
    uploads_.upload(destination, source, bytes);
  }

  void download(void* destination, const void* source, std::size_t bytes) override {
    const Scope scope(context_);
    downloads_.download(destination, source, bytes);
  }

  void copy(void* destination, const void* source, std::size_t bytes) override {
    if (bytes == 0) return;
    const Scope scope(context_);
    driver()("copy on the device", driver().copy, Api::address(destination), Api::address(source), bytes, stream);
  }

  void fill(void* destination, const void* element, std::size_t size, std::size_t count) override {
    if (count == 0) return;
    const Scope scope(context_);
    constexpr std::string_view what = "fill memory";
    const auto to = Api::address(destination);
    switch (size) {
      case 1:
        return driver()(what, driver().fill_8, to, Bits{element}, count, stream);
      case 2:
        return driver()(what, driver().fill_16, to, Bits{element}, count, stream);
      case 4:
        return driver()(what, driver().fill_32, to, Bits{element}, count, stream);
      case 8:
        return fill_64(destination, element, count);
      default:
        throw Error(ErrorCode::internal, text("fill on ", Api::title, ": elements of ", size,
                                              " bytes were given; 1, 2, 4 and 8 are known. Please report this."));
    }
  }

  std::unique_ptr<ModuleImpl> load(std::span<const std::byte> binary, const KernelSource& source) override {
    return std::make_unique<Module<Api>>(context_, binary, source, capabilities_.block);
  }

  void launch(const LaunchCommand& command) override {
    const typename Module<Api>::Entry& entry = static_cast<const Module<Api>*>(command.module)->entry(command.entry);
    // The driver reads as many bytes of each word as the parameter has; a parameter is at most 8 bytes long.
    std::array<void*, usual_words> pointers;
    std::vector<void*> more;
    void** parameters = pointers.data();
    if (command.words.size() > usual_words) [[unlikely]] {
      more.resize(command.words.size());
      parameters = more.data();
    }
    for (std::size_t i = 0; i < command.words.size(); ++i) parameters[i] = const_cast<std::uint64_t*>(&command.words[i]);
    const Scope scope(context_);
    driver()("launch it", driver().launch, entry.function, static_cast<unsigned int>(entry.groups.count(command.iterations)), 1u, 1u,
             entry.groups.threads, 1u, 1u, 0u, stream, parameters, nullptr);
  }

  void synchronize() override {
    const Scope scope(context_);
    driver()("finish queued work", driver().stream_synchronize, stream);
  }

  void wait_for_stream(std::uintptr_t other) override {
    if (other <= 1) return;  // the default stream, which is tack's
    const Scope scope(context_);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a handle is what other libraries hand over
    driver()("wait for a stream", driver().stream_synchronize, reinterpret_cast<Api::Stream>(other));
  }

  void make_current() override { context_.make_current(); }

  bool addresses(const void* pointer, std::size_t bytes) const noexcept override {
    if (!driver().pointer_attribute) return true;
    try {
      const Scope scope(context_);
      const auto* const first = static_cast<const std::byte*>(pointer);
      for (const std::byte* const end : {first, first + bytes - 1}) {
        int ordinal = -1;
        if (driver().pointer_attribute(&ordinal, Api::pointer_ordinal, Api::address(end)) != Driver<Api>::Result::success) return false;
        if (ordinal != context_.ordinal()) return false;
      }
    } catch (const Error&) {
      return true;  // no context: the call that follows says so
    }
    return true;
  }

 protected:
  using Scope = Api::Scope;
  static constexpr Api::Stream stream = nullptr;

  const Driver<Api>& driver() const noexcept { return context_.driver(); }

  int attribute(Api::DeviceAttribute which) const {
    int value = 0;
    driver()("ask the device what it can do", driver().device_attribute, &value, which, context_.ordinal());
    return value;
  }
  std::string device_name() const {
    std::array<char, 256> name{};
    driver()("ask for the device's name", driver().device_name, name.data(), static_cast<int>(name.size()) - 1, context_.ordinal());
    return name.data();
  }

  const Api::Context context_;

 private:
  static constexpr std::size_t usual_words = 64;  // parameters of a launch up to this number lie on the stack

  /// An element's bits as the integer that is asked for: drivers disagree about the signs of what they fill with.
  struct Bits {
    const void* element;
    template <std::integral Integer>
    operator Integer() const noexcept {
      Integer bits;
      std::memcpy(&bits, element, sizeof bits);
      return bits;
    }
  };

  /// Drivers fill with 32 bits at most. Equal halves are twice as many of these; of others the front is written by the host, and then
  /// doubled by copies.
  void fill_64(void* destination, const void* element, std::size_t count) {
    constexpr std::size_t size = 8, seed = 4096;
    const std::uint32_t low = Bits{element}, high = Bits{static_cast<const std::byte*>(element) + 4};
    if (low == high) return driver()("fill memory", driver().fill_32, Api::address(destination), Bits{element}, 2 * count, stream);
    std::size_t done = std::min(count, seed);
    const std::vector<std::uint64_t> front(done, std::uint64_t{Bits{element}});
    uploads_.upload(destination, front.data(), done * size);
    while (done != count) {
      const std::size_t piece = std::min(done, count - done);
      driver()("fill memory", driver().copy, Api::address(static_cast<std::byte*>(destination) + done * size), Api::address(destination),
               piece * size, stream);
      done += piece;
    }
  }

  DefaultStream<Api> stream_;
  Staging<DefaultStream<Api>> uploads_,
      downloads_;  // two, so that a thread that waits for the device does not keep others from giving it work
};

}  // namespace tack::gpu
