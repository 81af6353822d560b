// backends/cuda/cuda_context.cpp -- which context is used, and the stack of current contexts.
#include "backends/cuda/cuda_context.h"

namespace tack::cuda {

Context::Context(const Driver& driver, Log& log, abi::Device ordinal) : driver_(driver), log_(log), ordinal_(ordinal) {
  abi::Context current = nullptr;
  if (Api::current_device(driver) == ordinal) driver("read the current context", driver.context_current, &current);
  unsigned int flags = 0;
  int active = 0;
  driver("read the state of the primary context", driver.primary_state, ordinal, &flags, &active);
  // Only to compare would be a bad reason for making a primary context that nobody has yet: it takes time and memory.
  if (current != nullptr && active == 0) {
    handle_ = current;
    return;
  }
  driver("retain the primary context", driver.primary_retain, &handle_, ordinal);
  retained_ = true;
  if (current == nullptr || current == handle_) return;
  handle_ = current;
  retained_ = false;
  driver.release(log, "release the primary context", driver.primary_release, ordinal);
}

Context::~Context() {
  if (!retained_) return;
  driver_.release(log_, "release the primary context", driver_.primary_release, ordinal_);
  // Where nobody else holds it, it ends now, and should not stay current on this thread.
  unsigned int flags = 0;
  int active = 1;
  abi::Context current = nullptr;
  if (driver_.primary_state(ordinal_, &flags, &active) != abi::Result::success || active != 0) return;
  if (driver_.context_current(&current) == abi::Result::success && current == handle_)
    driver_.release(log_, "leave the primary context", driver_.context_set, nullptr);
}

void Context::make_current() const {
  abi::Context now = nullptr;
  driver_("read the current context", driver_.context_current, &now);
  if (now != handle_) driver_("make its context current", driver_.context_set, handle_);
}

void ContextScope::push() {
  context_.driver()("make its context current", context_.driver().context_push, context_.handle());
  pushed_ = true;
}

void ContextScope::pop() noexcept {
  abi::Context popped = nullptr;
  context_.driver().release(context_.log(), "restore the current context", context_.driver().context_pop, &popped);
}

}  // namespace tack::cuda
