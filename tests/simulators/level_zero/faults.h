// level_zero/faults.h -- accesses outside of all memory by kernels, which would end the OpenCL runtime's threads and so the process.
#pragma once

#include <csignal>
#include <cstdint>

namespace sim::level_zero {

// While one lives, such an access finds a page that nobody reads; the launch goes on, and its end takes the pages away. One at a time.
class WildAccesses {
 public:
  WildAccesses();
  ~WildAccesses();
  WildAccesses(const WildAccesses&) = delete;
  WildAccesses& operator=(const WildAccesses&) = delete;

  // The address of the first one; 0: there was none.
  std::uintptr_t first() const;

 private:
  struct sigaction before_{};
};

}  // namespace sim::level_zero
