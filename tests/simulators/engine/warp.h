// engine/warp.h -- collectives of a warp: shuffles, votes, __syncwarp.
#pragma once

#include <array>

namespace sim {

struct WarpCall {
  unsigned operation = 0, mask = 0;
  unsigned long long value = 0;  // given, then the answer
  unsigned argument = 0, width = 32;
};

// Answers the calls that are complete: all lanes of the mask that have not ended wait in the same operation (null: the lane does not wait).
// Gives the lanes that it answered, as bits.
unsigned complete_warp(const std::array<WarpCall*, 32>& calls, unsigned alive);

}  // namespace sim
