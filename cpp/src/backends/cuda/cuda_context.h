// backends/cuda/cuda_context.h -- the context that a device works in, and making it current for the time of a call.
#pragma once

#include "backends/cuda/cuda_api.h"

namespace tack::cuda {

/// A device's context: the primary one, retained and later released, or the one that an application had made current already, which stays
/// the application's.
class Context {
 public:
  /// Takes the calling thread's context if that is one of `ordinal`'s, else retains the primary one.
  Context(const Driver& driver, Log& log, abi::Device ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const noexcept { return driver_; }
  Log& log() const noexcept { return log_; }
  abi::Context handle() const noexcept { return handle_; }
  abi::Device ordinal() const noexcept { return ordinal_; }
  /// Makes it current on this thread in place of what is current there.
  void make_current() const;

 private:
  const Driver& driver_;
  Log& log_;
  const abi::Device ordinal_;
  abi::Context handle_ = nullptr;
  bool retained_ = false;
};

/// Makes a context current on this thread until the scope ends; then what was current before is current again.
class ContextScope {
 public:
  explicit ContextScope(const Context& context) : context_(context) {
    abi::Context now = nullptr;
    context.driver()("read the current context", context.driver().context_current, &now);
    if (now != context.handle()) [[unlikely]]
      push();
  }
  ~ContextScope() {
    if (pushed_) [[unlikely]]
      pop();
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  void push();
  void pop() noexcept;
  const Context& context_;
  bool pushed_ = false;
};

}  // namespace tack::cuda
