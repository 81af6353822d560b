// cuda_support.h -- what tests of the CUDA backend share: the stand-in driver that they run on, and kernels printed by hand.
#pragma once

#include <cuda/driver_abi.h>

#include "core/native_function.h"
#include "gpu_support.h"

namespace tack::test {

inline constexpr Kind cuda_kind{"cuda", "sm_90", "TACK_LIBCUDA", "TACK_LIBNVRTC"};

/// The stand-in driver, with the calls of an application that uses contexts itself.
class StandInDriver : public StandIn {
 public:
  StandInDriver() : StandIn("TACK_LIBCUDA") { CHECK(function<cuda::abi::Result (*)(unsigned)>("cuInit")(0) == cuda::abi::Result::success); }

  cuda::abi::Context current() const {
    cuda::abi::Context context = nullptr;
    CHECK(function<cuda::abi::Result (*)(cuda::abi::Context*)>("cuCtxGetCurrent")(&context) == cuda::abi::Result::success);
    return context;
  }
  void set_current(cuda::abi::Context context) const {
    CHECK(function<cuda::abi::Result (*)(cuda::abi::Context)>("cuCtxSetCurrent")(context) == cuda::abi::Result::success);
  }
  void reset() const { set_current(nullptr); }
  /// An application's own context, which is current afterwards.
  cuda::abi::Context create(int ordinal) const {
    cuda::abi::Context context = nullptr;
    CHECK(function<cuda::abi::Result (*)(cuda::abi::Context*, unsigned, int)>("cuCtxCreate_v2")(&context, 0, ordinal) ==
          cuda::abi::Result::success);
    return context;
  }
  void destroy(cuda::abi::Context context) const {
    CHECK(function<cuda::abi::Result (*)(cuda::abi::Context)>("cuCtxDestroy_v2")(context) == cuda::abi::Result::success);
  }
  /// Live objects that belong to a device or its context, and contexts.
  long alive() const {
    return count("device memory") + count("pinned memory") + count("events") + count("modules") + count("streams") +
           count("primary contexts retained") + count("arrays") + count("textures");
  }
};

inline Config cuda_config() { return config_of(cuda_kind); }
inline KernelSource cuda_source(const std::string& name, const std::string& text, std::size_t arrays) {
  return source_of(cuda_kind, name, text, arrays);
}
inline KernelSource triad_source(const std::string& name = "triad") { return triad_source(cuda_kind, name); }
inline KernelSource wild_source(const std::string& name = "wild") { return wild_source(cuda_kind, name); }

}  // namespace tack::test
