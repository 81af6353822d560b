// hip_support.h -- what tests of the HIP backend share: the stand-in for the runtime that they run on.
#pragma once

#include <hip/runtime_abi.h>

#include "gpu_support.h"

namespace tack::test {

inline constexpr Kind hip_kind{"hip", "gfx1030", "TACK_LIBHIP", "TACK_LIBHIPRTC"};

class StandInRuntime : public StandIn {
 public:
  StandInRuntime() : StandIn("TACK_LIBHIP") { CHECK(function<hip::abi::Result (*)(unsigned)>("hipInit")(0) == hip::abi::Result::success); }

  /// The thread's device.
  int current() const {
    int device = -1;
    CHECK(function<hip::abi::Result (*)(int*)>("hipGetDevice")(&device) == hip::abi::Result::success);
    return device;
  }
  void set_current(int device) const { CHECK(function<hip::abi::Result (*)(int)>("hipSetDevice")(device) == hip::abi::Result::success); }
  void reset() const { set_current(0); }
  /// Live objects that belong to a device. Contexts stay as long as the process.
  long alive() const {
    return count("device memory") + count("pinned memory") + count("events") + count("modules") + count("streams") + count("arrays") +
           count("textures");
  }
};

}  // namespace tack::test
