// backends/level_zero/ocloc.h -- libocloc, Intel's offline compiler, opened at run time: OpenCL C to SPIR-V, for devices that need not be
// there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/library.h"
#include "core/native_function.h"
#include "tack/kernel.hpp"

namespace tack::level_zero {

namespace abi {
/// The functions of ocloc.def.
struct OclocFunctions {
#define X(need, member, symbol, ...) NativeFunction<int, __VA_ARGS__> member{#symbol};
#include "backends/level_zero/ocloc.def"
#undef X
};
}  // namespace abi

/// A loaded libocloc. Thread-safe: one compilation at a time, as nothing promises more.
class Ocloc : public abi::OclocFunctions {
 public:
  /// Throws Error(unavailable) when the library has not all the functions that tack needs.
  explicit Ocloc(Library library);

  /// Compiles source.text for source.arch (a device's name, or its PCI number as "0x1912") to SPIR-V. Throws Error(compile) with the
  /// compiler's relevant lines, Error(unavailable) where this ocloc does not know the device.
  std::vector<std::byte> compile(const KernelSource& source) const;

 private:
  class Outputs;
  [[noreturn]] void fail(const KernelSource& source, int result, const std::string& log) const;
  const Library library_;
  mutable std::mutex mutex_;
};

}  // namespace tack::level_zero
