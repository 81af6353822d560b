// backends/hip/hiprtc.h -- hipRTC, opened at run time: HIP C++ to code for a GPU, which need not be there.
#pragma once

#include <cstddef>
#include <vector>

#include "backends/gpu/compiler.h"
#include "backends/hip/architectures.h"
#include "backends/hip/hip_api.h"

namespace tack::hip {

/// A loaded hipRTC. Immutable; thread-safe.
class Hiprtc final : public gpu::Compiler<Api> {
 public:
  using Compiler::Compiler;

  /// The release that its file's name says; {0, 0} where it does not. hiprtcVersion is of no use: it answers 9.0 in 5.2 and in 7.0.2.
  Release release() const { return release_of_file(library().path()); }

  /// Compiles source.text for source.arch ("gfx90a"). Throws Error(compile) with the compiler's relevant lines.
  std::vector<std::byte> compile(const KernelSource& source) const;
};

}  // namespace tack::hip
