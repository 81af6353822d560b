// core/cpu_topology.cpp -- how many physical cores this process may use: affinity, control groups, hardware threads.
#include "core/cpu_topology.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include "core/text.h"
#include "core/thread_pool.h"

#if defined(__linux__)
#  include <sched.h>
#elif defined(__APPLE__)
#  include <sys/sysctl.h>
#elif defined(_WIN32)
#  include <windows.h>
#endif

namespace tack {
namespace topology {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The limit of one group's folder: "200000 100000" or "max 100000" in cpu.max; two files in version 1, where a negative quota is none.
double group_quota(const std::string& folder, bool version2) {
  double quota = 0, period = 0;
  if (version2) {
    std::istringstream line(first_line(folder + "/cpu.max"));
    if (!(line >> quota >> period)) return no_limit;
  } else {
    std::istringstream quota_text(first_line(folder + "/cpu.cfs_quota_us")), period_text(first_line(folder + "/cpu.cfs_period_us"));
    if (!(quota_text >> quota) || !(period_text >> period)) return no_limit;
  }
  return quota > 0 && period > 0 ? quota / period : no_limit;
}

/// The tightest limit of the group `path` under `mount` and of its ancestors. In a container the group's path may name folders of the
/// host that are not there; its own group is then the mount itself, which is the last one asked.
double tightest(const std::string& mount, std::string path, bool version2) {
  double limit = no_limit;
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    limit = std::min(limit, group_quota(mount + path, version2));
    if (path.empty()) return limit;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

bool lists_controller(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const std::size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == wanted) return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

int distinct_cores(std::span<const int> cpus, const std::string& root) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    const std::string name = text("cpu", cpu);
    const std::string siblings = first_line(text(root, "/sys/devices/system/cpu/", name, "/topology/thread_siblings_list"));
    cores.insert(siblings.empty() ? name : siblings);
  }
  return static_cast<int>(cores.size());
}

double quota(const std::string& root) {
  double limit = no_limit;
  std::ifstream groups(root + "/proc/self/cgroup");
  // "0::/path" is version 2, "4:cpu,cpuacct:/path" version 1.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      limit = std::min(limit, tightest(root + "/sys/fs/cgroup", path, true));
      limit = std::min(limit, tightest(root + "/sys/fs/cgroup/unified", path, true));
    } else if (lists_controller(controllers, "cpu")) {
      limit = std::min(limit, tightest(root + "/sys/fs/cgroup/cpu", path, false));
      limit = std::min(limit, tightest(root + "/sys/fs/cgroup/cpu,cpuacct", path, false));
    }
  }
  return limit;
}

int usable_cores(int cores, double quota) noexcept {
  // Threads beyond the quota would only be throttled, all of them at once.
  if (quota < cores) cores = static_cast<int>(std::floor(quota));
  return std::max(cores, 1);
}

}  // namespace topology

namespace {

int any_cores() noexcept { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

#if defined(__linux__)
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
#endif

}  // namespace

int physical_cores() {
#if defined(__linux__)
  const std::vector<int> cpus = allowed_cpus();
  const int cores = cpus.empty() ? any_cores() : topology::distinct_cores(cpus, "");
  return topology::usable_cores(cores, topology::quota(""));
#elif defined(__APPLE__)
  int cores = 0;
  std::size_t size = sizeof cores;
  return sysctlbyname("hw.physicalcpu", &cores, &size, nullptr, 0) == 0 && cores > 0 ? cores : any_cores();
#elif defined(_WIN32)
  DWORD size = 0;
  GetLogicalProcessorInformation(nullptr, &size);
  std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> rows(size / sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION));
  DWORD_PTR process = 0, system = 0;
  if (rows.empty() || !GetLogicalProcessorInformation(rows.data(), &size) ||
      !GetProcessAffinityMask(GetCurrentProcess(), &process, &system)) {
    return any_cores();
  }
  const auto counts = [&](const SYSTEM_LOGICAL_PROCESSOR_INFORMATION& row) {
    return row.Relationship == RelationProcessorCore && (row.ProcessorMask & process) != 0;
  };
  return std::max(1, static_cast<int>(std::count_if(rows.begin(), rows.end(), counts)));
#else
  return any_cores();
#endif
}

}  // namespace tack
