// backends/metal/metal.h -- Metal as the backend uses it: its functions, objects that release themselves, and the one place where failures
// are judged.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "backends/metal/metal_api.h"
#include "core/native_function.h"
#include "tack/config.hpp"
#include "tack/error.hpp"

namespace tack::metal {

namespace abi {
/// The functions of metal.def.
struct MetalFunctions {
#define X(member, symbol, result, ...) NativeFunction<result, __VA_ARGS__> member{#symbol};
#include "backends/metal/metal.def"
#undef X
};
}  // namespace abi

/// Metal's functions. Immutable; thread-safe as Metal is.
class Metal : public abi::MetalFunctions {
 public:
  /// The system's Metal, or the library that TACK_LIBMETAL names. Throws Error(unavailable) where there is neither.
  explicit Metal(const Config& config);

  /// Calls a function; its Problem is added. What it does not do is thrown as Error: "Metal cannot WHAT: reason."
  template <class... Parameters, class... Arguments>
  void operator()(std::string_view what, const NativeFunction<abi::Status, Parameters...>& function, Arguments... arguments) const {
    abi::Problem problem;
    if (function(arguments..., &problem) != abi::Status::done) [[unlikely]]
      throw error_of(what, problem, function.symbol);
  }
  Error error_of(std::string_view what, const abi::Problem& problem, const char* symbol) const;
  /// The failure of commands that had been queued; `kernel` is what they were for.
  Error queued_error(std::string_view kernel, const abi::Problem& problem) const;
};

/// An object of Metal's, released when this ends. Commands that use it keep it alive beyond that.
class Ref {
 public:
  Ref() = default;
  explicit Ref(const Metal& metal) : metal_(&metal) {}
  Ref(Ref&& other) noexcept : metal_(other.metal_), object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(metal_, other.metal_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) metal_->release(object_);
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;

  abi::Object get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  /// Where a function puts a new object.
  abi::Object* place() noexcept { return &object_; }

 private:
  const Metal* metal_ = nullptr;
  abi::Object object_ = nullptr;
};

/// "Cannot start the 'metal' device: PROBLEM. ..." with this reason.
Error unavailable(const std::string& reason, const std::string& problem = "missing dependency");

}  // namespace tack::metal
