// core/native_function.h -- a function of a library that is opened at run time, found by its name; backends list theirs in a .def file.
#pragma once

#include <string>
#include <vector>

#include "core/library.h"

namespace tack {

/// `symbol` is the name under which the library has it, and what messages call it.
template <class Result, class... Parameters>
struct NativeFunction {
  const char* symbol;
  Result (*address)(Parameters...) = nullptr;
  Result operator()(Parameters... arguments) const { return address(arguments...); }
  explicit operator bool() const noexcept { return address != nullptr; }
};

/// Looks a function up. A required one that is not there is added to `missing`.
template <class Result, class... Parameters>
void find_function(const Library& library, NativeFunction<Result, Parameters...>& function, bool required,
                   std::vector<std::string>& missing) {
  function.address = reinterpret_cast<Result (*)(Parameters...)>(library.find(function.symbol));
  if (!function && required) missing.emplace_back(function.symbol);
}

/// "cuInit", "cuInit, cuDeviceGet and 30 more": for messages.
std::string missing_text(const std::vector<std::string>& missing);

}  // namespace tack
