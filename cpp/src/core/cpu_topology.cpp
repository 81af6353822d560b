// core/cpu_topology.cpp -- what Linux tells in files: hardware threads of a core, control groups. On no other system are there such.
#include "core/cpu_topology.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

#include "core/text.h"

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

int any_cores() noexcept { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

int usable_cores(int cores, double quota) noexcept {
  // Threads beyond the quota would only be throttled, all of them at once.
  if (quota < cores) cores = static_cast<int>(std::floor(quota));
  return std::max(cores, 1);
}

}  // namespace topology

}  // namespace tack
