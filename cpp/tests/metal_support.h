// metal_support.h -- what tests of the Metal backend share: its stand-in, and what is alive in it.
#pragma once

#include "gpu_support.h"

namespace tack::test {

inline constexpr Kind metal_kind{"metal", "apple8", "TACK_LIBMETAL", "TACK_LIBMETAL"};

class StandInMetal : public StandIn {
 public:
  StandInMetal() : StandIn("TACK_LIBMETAL") {}
  /// Metal knows nothing of threads.
  void reset() const {}
  /// Live objects of all kinds.
  long alive() const {
    long all = 0;
    for (const char* kind :
         {"devices", "buffers", "libraries", "archives", "pipelines", "volumes", "queues", "command buffers", "device memory"})
      all += count(kind);
    return all;
  }
};

}  // namespace tack::test
