// backends/gpu/driver.h -- a GPU's driver, opened at run time: its functions, and the one place where their results are judged.
// backends/gpu is what the backends share whose drivers are made alike. What differs is in `Api`, a struct of names, types and functions
// that each of them has: cuda/cuda_api.h, hip/hip_api.h.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/library.h"
#include "core/log.h"
#include "core/native_function.h"
#include "core/text.h"
#include "tack/error.hpp"

namespace tack::gpu {

/// A loaded driver. Immutable; thread-safe as the driver is.
template <class Api>
class Driver : public Api::Functions {
 public:
  using Result = Api::Result;

  /// Throws Error(unavailable) when the library has not all the functions that tack needs.
  explicit Driver(Library library) : library_(std::move(library)) {
    const std::vector<std::string> missing = this->find_in(library_);
    if (!missing.empty())
      throw Api::unavailable(text("The ", Api::title, " driver in ", library_.name(), " is too old: it lacks ", missing_text(missing),
                                  ". Update ", Api::driver_name, '.'));
  }

  /// Calls a function. What it does not do is thrown as Error: "CUDA cannot WHAT: reason." with the native call behind it.
  template <class... Parameters>
  void operator()(std::string_view what, const NativeFunction<Result, Parameters...>& function,
                  std::type_identity_t<Parameters>... arguments) const {
    const Result result = function(arguments...);
    if (result != Result::success) [[unlikely]]
      fail(what, result, function.symbol);
  }
  /// The same where nothing may be thrown: what fails is logged, unless the driver or the context is gone and the thing with it.
  template <class... Parameters>
  void release(Log& log, std::string_view what, const NativeFunction<Result, Parameters...>& function,
               std::type_identity_t<Parameters>... arguments) const noexcept {
    const Result result = function(arguments...);
    if (result == Result::success || Api::is_lost(result) || Api::is_gone(result)) [[likely]]
      return;
    try {
      log.write(LogLevel::error, error_of(what, result, function.symbol).what());
    } catch (...) {
      return;  // no memory for the message
    }
  }
  /// Logs what a destructor cannot throw, unless driver or context are gone and all that was in them: then that has been said.
  static void log_failure(Log& log, const std::exception& failure) noexcept {
    const auto* const error = dynamic_cast<const Error*>(&failure);
    if (error != nullptr && (error->fields().queued || Api::is_gone(static_cast<Result>(error->fields().native_code)))) return;
    try {
      log.write(LogLevel::error, failure.what());
    } catch (...) {
      return;  // no memory for the message
    }
  }

  [[noreturn]] void fail(std::string_view what, Result result, const char* symbol) const { throw error_of(what, result, symbol); }
  Error error_of(std::string_view what, Result result, const char* symbol, std::string_view advice = {}) const {
    Error::Fields fields;
    fields.code = result == Result::out_of_memory ? ErrorCode::out_of_memory : ErrorCode::driver;
    fields.backend = Api::type;
    fields.operation = symbol;
    fields.native_code = static_cast<int>(result);
    fields.native_name = name_of(result);
    fields.queued = Api::is_lost(result);
    fields.message = fields.queued ? text(Api::title, " reports a failure of queued work: ", text_of(result), '.')
                                   : text(Api::title, " cannot ", what, ": ", text_of(result), '.');
    if (advice.empty()) advice = Api::advice_for(result);
    if (!advice.empty()) fields.message += text("\n  ", advice);
    return Error(std::move(fields));
  }
  std::string name_of(Result result) const {
    const char* const found = Api::name_of(*this, result);
    return found != nullptr ? found : text(Api::result_type, ' ', static_cast<int>(result));
  }
  std::string text_of(Result result) const {
    const char* const found = Api::text_of(*this, result);
    return found != nullptr ? found : "the driver has no words for it";
  }
  const std::string& library() const noexcept { return library_.name(); }

 private:
  const Library library_;
};

}  // namespace tack::gpu
