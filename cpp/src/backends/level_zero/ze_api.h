// backends/level_zero/ze_api.h -- the Level Zero loader as backends/gpu sees a driver: names, functions, and what results mean.
#pragma once

#include <level_zero/ze_abi.h>

#include <string>
#include <string_view>
#include <vector>

#include "backend.h"
#include "backends/gpu/driver.h"
#include "core/native_function.h"
#include "core/runtime_impl.h"
#include "tack/error.hpp"

namespace tack::level_zero {

namespace abi {
/// The functions of driver.def.
struct DriverFunctions {
#define X(need, member, symbol, ...) NativeFunction<Result, __VA_ARGS__> member{#symbol};
#include "backends/level_zero/driver.def"
#undef X
  /// Answers the names of the required ones that the library lacks.
  std::vector<std::string> find_in(const Library& library);
};
}  // namespace abi

class Ocloc;

struct Api {
  static constexpr std::string_view type = "level_zero", title = "Level Zero", result_type = "ze_result_t";
  static constexpr std::string_view driver_name = "the Level Zero loader and Intel's GPU driver", compiler_name = "libocloc";
  // Part of the disk cache's key. A newer ocloc makes other code, but not wrong code: what is stored stays valid until what is asked of
  // ocloc or the way in which kernels are launched changes. Then this number does.
  static constexpr std::string_view code_revision = "level_zero-code-2";
  static constexpr std::uint32_t first_memory_space = 0x400;
  static constexpr std::string Config::* driver_setting = &Config::lib_ze;
  static constexpr std::string Config::* compiler_setting = &Config::lib_ocloc;
  using Functions = abi::DriverFunctions;
  using Result = abi::Result;
  using Compiler = Ocloc;

  /// The specification's name of a result and what it means, or null.
  static const char* name_of(const Functions& driver, Result result) noexcept;
  static const char* text_of(const Functions& driver, Result result) noexcept;
  /// What the user can do about a result; empty where its meaning says all.
  static std::string_view advice_for(Result result) noexcept;
  /// Whether queued work has made the device unusable for good.
  static bool is_lost(Result result) noexcept { return result == Result::device_lost || result == Result::requires_reset; }
  /// Whether the driver was gone already, and with it all that it held.
  static bool is_gone(Result result) noexcept { return result == Result::uninitialized; }

  /// "Cannot start the 'level_zero' device: ..." with this reason.
  static Error unavailable(const std::string& reason);
  /// The names under which the libraries are found.
  static std::vector<std::string> driver_libraries();
  static std::vector<std::string> compiler_libraries(RuntimeImpl& runtime);
  /// Throws Error(unavailable) for a driver that does not start.
  static void initialize(const gpu::Driver<Api>& driver);
  /// What devices of an architecture can do that ocloc knows by name. Throws Error(invalid_argument) for other names.
  static Capabilities describe(std::string_view arch);
};

using Driver = gpu::Driver<Api>;

/// A GPU and the driver that found it.
struct Gpu {
  abi::Driver driver = nullptr;
  abi::Device device = nullptr;
};
/// The GPUs of all drivers, in their order; parts of a GPU are not counted. Throws Error.
std::vector<Gpu> gpus(const Driver& driver);

}  // namespace tack::level_zero
