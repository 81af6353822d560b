// core/cpu_topology_darwin.cpp -- how many physical cores there are; macOS limits no process to some of them.
#include <sys/sysctl.h>

#include <array>
#include <cstddef>

#include "core/cpu_topology.h"
#include "core/thread_pool.h"

namespace tack {

std::string topology::processor_name() {
  std::array<char, 128> text{};
  std::size_t size = text.size() - 1;
  return sysctlbyname("machdep.cpu.brand_string", text.data(), &size, nullptr, 0) == 0 ? std::string(text.data()) : std::string();
}

int physical_cores() {
  int cores = 0;
  std::size_t size = sizeof cores;
  return sysctlbyname("hw.physicalcpu", &cores, &size, nullptr, 0) == 0 && cores > 0 ? cores : topology::any_cores();
}

}  // namespace tack
