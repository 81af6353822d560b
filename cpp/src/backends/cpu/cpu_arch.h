// backends/cpu/cpu_arch.h -- what this processor is, as far as code generation asks.
#pragma once

#include <cstdint>
#include <string>

namespace tack::cpu {

struct CpuArch {
  std::string arch;               ///< "x86-64", "x86-64-v2", "-v3", "-v4" (the psABI's levels), "aarch64", or "unknown"
  std::string name;               ///< the processor's own name, e.g. "AMD EPYC"
  std::uint32_t vector_bits = 0;  ///< width of the SIMD registers that code for `arch` may use
};

/// Asks the processor, and the operating system's support for its wide registers. Never throws but bad_alloc.
CpuArch detect_arch();

}  // namespace tack::cpu
