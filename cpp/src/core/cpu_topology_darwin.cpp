// core/cpu_topology_darwin.cpp -- how many physical cores there are; macOS limits no process to some of them.
#include <sys/sysctl.h>

#include <cstddef>

#include "core/cpu_topology.h"
#include "core/thread_pool.h"

namespace tack {

int physical_cores() {
  int cores = 0;
  std::size_t size = sizeof cores;
  return sysctlbyname("hw.physicalcpu", &cores, &size, nullptr, 0) == 0 && cores > 0 ? cores : topology::any_cores();
}

}  // namespace tack
