// backends/cpu/cpu_arch.h -- what this processor is, as far as code generation asks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tack::cpu {

struct CpuArch {
  std::string arch;               ///< "x86-64", "x86-64-v2", "-v3", "-v4" (the psABI's levels), "aarch64", or "unknown"
  std::string name;               ///< the processor's own name, e.g. "AMD EPYC"
  std::uint32_t vector_bits = 0;  ///< width of the SIMD registers that code for `arch` may use
};

/// Asks the processor, and the operating system's support for its wide registers. `wanted`: "native", or a level to compile for in its
/// place, which the processor must have. Throws Error(unsupported) that names the levels there are.
CpuArch detect_arch(std::string_view wanted);

/// The values of `wanted` that this processor runs, for messages: "native, x86-64 and x86-64-v2".
std::string runnable_targets();

/// Whether this processor has all that code for `arch` may use. Names that are no level are taken on trust.
bool can_run(std::string_view arch) noexcept;

}  // namespace tack::cpu
