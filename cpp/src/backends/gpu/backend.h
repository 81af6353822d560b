// backends/gpu/backend.h -- starts driver and compiler when they are first needed, and says what is missing when they cannot.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backend.h"
#include "backends/gpu/driver.h"
#include "core/runtime_impl.h"

namespace tack::gpu {

/// What all have that open their driver and their compiler when they are first needed.
template <class Api>
class LazyBackend : public tack::Backend {
 public:
  std::string name() const override { return std::string(Api::type); }
  std::uint32_t memory_space(int index) const override { return Api::first_memory_space + static_cast<std::uint32_t>(index); }

  Capabilities describe(RuntimeImpl& /*runtime*/, std::string_view arch) override { return Api::describe(arch); }
  std::vector<std::byte> compile(RuntimeImpl& runtime, const KernelSource& source) override { return compiler(runtime).compile(source); }
  std::string compiler_version(RuntimeImpl& /*runtime*/) override { return std::string(Api::code_revision); }

 protected:
  /// The driver, loaded. What fails is tried again by the next call.
  const Driver<Api>& loaded(RuntimeImpl& runtime) {
    const std::lock_guard lock(mutex_);
    if (!driver_) {
      Library library = Library::open(runtime.config.*Api::driver_setting, Api::driver_libraries());
      if (!library.loaded()) throw Api::unavailable(library.reason());
      driver_ = std::make_unique<const Driver<Api>>(std::move(library));
    }
    return *driver_;
  }

  /// The driver, loaded and initialised.
  const Driver<Api>& started(RuntimeImpl& runtime) {
    const Driver<Api>& driver = loaded(runtime);
    const std::lock_guard lock(mutex_);
    if (!initialized_) Api::initialize(driver);
    initialized_ = true;
    return driver;
  }

  const Api::Compiler& compiler(RuntimeImpl& runtime) {
    const std::lock_guard lock(mutex_);
    if (!compiler_) {
      Library library = Library::open(runtime.config.*Api::compiler_setting, Api::compiler_libraries(runtime));
      if (!library.loaded())
        throw Api::unavailable(text(Api::compiler_name, ", ", Api::title, "'s compiler, is not found.\n", library.reason()));
      compiler_ = std::make_unique<const typename Api::Compiler>(std::move(library));
    }
    return *compiler_;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<const Driver<Api>> driver_;
  bool initialized_ = false;
  std::unique_ptr<const typename Api::Compiler> compiler_;
};

/// One whose driver counts devices from 0 and knows which is a thread's current one.
template <class Api>
class Backend : public LazyBackend<Api> {
 public:
  int device_count(RuntimeImpl& runtime) noexcept override {
    try {
      int count = 0;
      const Driver<Api>& driver = started(runtime);
      driver("count the devices", driver.device_count, &count);
      return count;
    } catch (const std::exception&) {
      return 0;
    }
  }

  int current_index(RuntimeImpl& runtime) noexcept override {
    try {
      return std::max(Api::current_device(started(runtime)), 0);
    } catch (const std::exception&) {
      return 0;
    }
  }

  std::unique_ptr<DeviceImpl> open(RuntimeImpl& runtime, int index, const DeviceOptions& /*options*/) override {
    return std::make_unique<typename Api::Device>(started(runtime), runtime.log, index);
  }

 protected:
  using LazyBackend<Api>::started;
};

}  // namespace tack::gpu
