// backends/cuda/nvrtc.h -- NVRTC, opened at run time: CUDA C to code for a GPU, which need not be there.
#pragma once

#include <cuda/nvrtc_abi.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backends/cuda/cuda_driver.h"
#include "core/library.h"
#include "tack/kernel.hpp"

namespace tack::cuda {

namespace abi {
/// The functions of nvrtc.def.
struct NvrtcFunctions {
#define X(need, member, symbol, ...) NativeFunction<CompileResult, __VA_ARGS__> member{#symbol};
#include "backends/cuda/nvrtc.def"
#undef X
  NativeFunction<const char*, CompileResult> error_string{"nvrtcGetErrorString"};
};
}  // namespace abi

/// A loaded NVRTC. Immutable; thread-safe.
class Nvrtc : public abi::NvrtcFunctions {
 public:
  /// Throws Error(unavailable) when the library has not all the functions that tack needs.
  explicit Nvrtc(Library library);

  /// Compiles source.text for source.arch ("sm_90"): to a cubin where this NVRTC knows the architecture, else to PTX for the newest one
  /// below it, which the driver compiles when it loads it. Throws Error(compile) with the compiler's relevant lines.
  std::vector<std::byte> compile(const KernelSource& source) const;

  /// What `--gpu-architecture` is given for sm_<capability>: "sm_90", or "compute_120" for PTX. `known` as NVRTC lists them, ascending;
  /// empty when it cannot. Empty when the GPU is older than all of them.
  static std::string target_of(int capability, std::span<const int> known);
  /// The lines of a compiler's log that say what is wrong: the first few errors, without warnings and counts.
  static std::string relevant_lines(std::string_view log);

 private:
  class Job;
  std::vector<int> known_architectures() const;
  [[noreturn]] void fail(const KernelSource& source, abi::CompileResult result, const char* symbol, std::string_view log) const;
  const Library library_;
};

/// "sm_90" -> 90; -1 for anything else.
int capability_of(std::string_view arch) noexcept;

/// Where NVRTC is looked for, in this order: the loader's own places, `packages` (Python's site-packages), a CUDA installation.
std::vector<std::string> nvrtc_libraries(std::span<const std::string> packages, const std::string& cuda_path);

}  // namespace tack::cuda
