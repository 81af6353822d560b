// engine/warp.cpp -- what each lane gets.
#include "warp.h"

#include "../device/abi.h"

namespace sim {
namespace {

bool complete(const std::array<WarpCall*, 32>& calls, const WarpCall& call, unsigned alive) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (((call.mask & alive) >> lane & 1u) == 0) continue;
    if (calls[lane] == nullptr || calls[lane]->mask != call.mask || calls[lane]->operation != call.operation) return false;
  }
  return true;
}

// The lane whose value a lane takes: itself where the source is outside its segment of the given width.
unsigned source(const WarpCall& call, unsigned lane) {
  const unsigned first = lane & ~(call.width - 1), last = first + call.width - 1;
  switch (call.operation) {
    case SIM_SHUFFLE:
      return first + (call.argument & (call.width - 1));
    case SIM_SHUFFLE_UP:
      return lane - first >= call.argument ? lane - call.argument : lane;
    case SIM_SHUFFLE_DOWN:
      return lane + call.argument <= last ? lane + call.argument : lane;
    case SIM_SHUFFLE_XOR:
      return (lane ^ call.argument) <= last ? lane ^ call.argument : lane;
    default:
      return lane;
  }
}

}  // namespace

unsigned complete_warp(const std::array<WarpCall*, 32>& calls, unsigned alive) {
  unsigned ready = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (calls[lane] != nullptr && complete(calls, *calls[lane], alive)) ready |= 1u << lane;
  }
  std::array<unsigned long long, 32> given{};
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (calls[lane] != nullptr) given[lane] = calls[lane]->value;
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((ready >> lane & 1u) == 0) continue;
    WarpCall& call = *calls[lane];
    if (call.operation == SIM_BALLOT) {
      call.value = 0;
      for (unsigned i = 0; i < 32; ++i) {
        if ((call.mask >> i & 1u) != 0 && given[i] != 0) call.value |= 1ull << i;
      }
    } else if (call.operation != SIM_SYNC) {
      call.value = given[source(call, lane)];
    }
  }
  return ready;
}

}  // namespace sim
