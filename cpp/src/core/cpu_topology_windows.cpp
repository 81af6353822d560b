// core/cpu_topology_windows.cpp -- how many physical cores this process may use: those that its affinity touches.
#include <windows.h>

#include <algorithm>
#include <vector>

#include "core/cpu_topology.h"
#include "core/thread_pool.h"

namespace tack {

std::string topology::processor_name() { return {}; }

int physical_cores() {
  DWORD size = 0;
  GetLogicalProcessorInformation(nullptr, &size);
  std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> rows(size / sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION));
  DWORD_PTR process = 0, system = 0;
  if (rows.empty() || GetLogicalProcessorInformation(rows.data(), &size) == FALSE ||
      GetProcessAffinityMask(GetCurrentProcess(), &process, &system) == FALSE) {
    return topology::any_cores();
  }
  const auto is_core = [&](const SYSTEM_LOGICAL_PROCESSOR_INFORMATION& row) {
    return row.Relationship == RelationProcessorCore && (row.ProcessorMask & process) != 0;
  };
  return std::max(1, static_cast<int>(std::count_if(rows.begin(), rows.end(), is_core)));
}

}  // namespace tack
