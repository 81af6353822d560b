// backends/hip/hiprtc.cpp -- what hipRTC is asked for.
#include "backends/hip/hiprtc.h"

#include "core/text.h"

namespace tack::hip {

std::vector<std::byte> Hiprtc::compile(const KernelSource& source) const {
  return run(source,
             {text("--offload-arch=", base_of(source.arch)), "-std=c++17", "-O3", "-ffp-contract=off",
              "-fhip-fp32-correctly-rounded-divide-sqrt", "-fno-gpu-flush-denormals-to-zero", "-mno-unsafe-fp-atomics"},
             code_size, code);
}

}  // namespace tack::hip
