// backends/cuda/cuda_driver.h -- the CUDA driver, opened at run time: its functions, and the one place where their results are judged.
#pragma once

#include <cuda/driver_abi.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/library.h"
#include "core/log.h"
#include "core/native_function.h"
#include "tack/error.hpp"

namespace tack::cuda {

namespace abi {
/// The functions of driver.def.
struct DriverFunctions {
#define X(need, member, symbol, ...) NativeFunction<Result, __VA_ARGS__> member{#symbol};
#include "backends/cuda/driver.def"
#undef X
};
}  // namespace abi

/// A loaded driver. Immutable; thread-safe as the driver is.
class Driver : public abi::DriverFunctions {
 public:
  /// Throws Error(unavailable) when the library has not all the functions that tack needs.
  explicit Driver(Library library);

  /// Calls a function. What it does not do is thrown as Error: "CUDA cannot WHAT: reason." with the native call behind it.
  template <class... Parameters>
  void operator()(std::string_view what, const NativeFunction<abi::Result, Parameters...>& function,
                  std::type_identity_t<Parameters>... arguments) const {
    const abi::Result result = function(arguments...);
    if (result != abi::Result::success) [[unlikely]]
      fail(what, result, function.symbol);
  }
  /// The same where nothing may be thrown: what fails is logged, unless the driver or the context is gone and the thing with it.
  template <class... Parameters>
  void release(Log& log, std::string_view what, const NativeFunction<abi::Result, Parameters...>& function,
               std::type_identity_t<Parameters>... arguments) const noexcept {
    const abi::Result result = function(arguments...);
    if (result != abi::Result::success) [[unlikely]]
      log_failure(log, what, result, function.symbol);
  }

  [[noreturn]] void fail(std::string_view what, abi::Result result, const char* symbol) const;
  Error error_of(std::string_view what, abi::Result result, const char* symbol, std::string_view advice = {}) const;
  std::string name_of(abi::Result result) const;
  std::string text_of(abi::Result result) const;
  const std::string& library() const noexcept { return library_.name(); }

 private:
  void log_failure(Log& log, std::string_view what, abi::Result result, const char* symbol) const noexcept;
  const Library library_;
};

/// The names under which the driver's library is found on this platform.
std::vector<std::string> driver_libraries();
/// "Cannot start the 'cuda' device: ..." with this reason.
Error unavailable(const std::string& reason);
/// Whether a kernel's failure has made the context unusable for good.
bool is_lost(abi::Result result) noexcept;

}  // namespace tack::cuda
