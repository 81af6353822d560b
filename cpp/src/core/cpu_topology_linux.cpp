// core/cpu_topology_linux.cpp -- how many physical cores this process may use: affinity, control groups, hardware threads.
#include <sched.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/cpu_topology.h"
#include "core/thread_pool.h"

namespace tack {
namespace {

/// The logical CPUs that the calling thread may run on; empty if the system doesn't say.
std::vector<int> allowed_cpus() {
  constexpr int most_cpus = 65536;
  for (int cpus = 1024; cpus <= most_cpus; cpus *= 2) {  // the call fails as long as the set is smaller than the kernel's
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(static_cast<std::size_t>(cpus)),
                                                               [](cpu_set_t* s) { CPU_FREE(s); });
    if (!set) return {};
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    if (sched_getaffinity(0, size, set.get()) != 0) continue;
    std::vector<int> allowed;
    for (int cpu = 0; cpu < cpus; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), size, set.get())) allowed.push_back(cpu);
    }
    return allowed;
  }
  return {};
}

}  // namespace

std::string topology::processor_name() {
  // The device tree names the board, which is the best that Linux says of most machines that are not x86.
  std::ifstream file("/proc/device-tree/model");
  std::string model;
  std::getline(file, model, '\0');
  return model;
}

int physical_cores() {
  const std::vector<int> cpus = allowed_cpus();
  const int cores = cpus.empty() ? topology::any_cores() : topology::distinct_cores(cpus, "");
  return topology::usable_cores(cores, topology::quota(""));
}

}  // namespace tack
