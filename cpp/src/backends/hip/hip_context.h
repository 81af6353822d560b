// backends/hip/hip_context.h -- the device that a thread's calls go to. HIP has one context for each device, and no stack of them.
#pragma once

#include "backends/hip/hip_api.h"

namespace tack::hip {

class Context {
 public:
  Context(const Driver& driver, Log& log, abi::Device ordinal) : driver_(driver), log_(log), ordinal_(ordinal) {}

  const Driver& driver() const noexcept { return driver_; }
  Log& log() const noexcept { return log_; }
  abi::Device ordinal() const noexcept { return ordinal_; }
  /// Makes it this thread's device.
  void make_current() const {
    if (Api::current_device(driver_) != ordinal_) driver_("make it the thread's device", driver_.device_set, ordinal_);
  }

 private:
  const Driver& driver_;
  Log& log_;
  const abi::Device ordinal_;
};

/// Makes a device this thread's until the scope ends; then the thread has again what it had before.
class DeviceScope {
 public:
  explicit DeviceScope(const Context& context) : context_(context), before_(Api::current_device(context.driver())) {
    if (before_ != context.ordinal()) [[unlikely]]
      context.driver()("make it the thread's device", context.driver().device_set, context.ordinal());
  }
  ~DeviceScope() {
    if (before_ != context_.ordinal()) [[unlikely]]
      context_.driver().release(context_.log(), "restore the thread's device", context_.driver().device_set, before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  const Context& context_;
  const abi::Device before_;
};

}  // namespace tack::hip
