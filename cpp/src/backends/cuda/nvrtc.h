// backends/cuda/nvrtc.h -- NVRTC, opened at run time: CUDA C to code for a GPU, which need not be there.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/cuda_api.h"
#include "backends/gpu/compiler.h"

namespace tack::cuda {

/// A loaded NVRTC. Immutable; thread-safe.
class Nvrtc final : public gpu::Compiler<Api> {
 public:
  using Compiler::Compiler;

  /// Compiles source.text for source.arch ("sm_90"): to a cubin where this NVRTC knows the architecture, else to PTX for the newest one
  /// below it, which the driver compiles when it loads it. Throws Error(compile) with the compiler's relevant lines.
  std::vector<std::byte> compile(const KernelSource& source) const;

  /// What `--gpu-architecture` is given for sm_<capability>: "sm_90", or "compute_120" for PTX. `known` as NVRTC lists them, ascending;
  /// empty when it cannot. Empty when the GPU is older than all of them.
  static std::string target_of(int capability, std::span<const int> known);

 private:
  std::vector<int> known_architectures() const;
};

/// "sm_90" -> 90; -1 for anything else.
int capability_of(std::string_view arch) noexcept;

/// Where NVRTC is looked for, in this order: the loader's own places, `packages` (Python's site-packages), a CUDA installation.
std::vector<std::string> nvrtc_libraries(std::span<const std::string> packages, const std::string& cuda_path);

}  // namespace tack::cuda
