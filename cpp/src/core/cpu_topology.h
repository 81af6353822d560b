// core/cpu_topology.h -- the parts of physical_cores() (cpu_topology_linux.cpp, _darwin, _windows) that tests can point at a folder of
// their own.
#pragma once

#include <span>
#include <string>

namespace tack::topology {

/// Distinct cores among the logical CPUs `cpus`, by the sibling lists in `<root>/sys/devices/system/cpu`. A CPU without one is a core.
int distinct_cores(std::span<const int> cpus, const std::string& root);

/// CPUs' worth of time that the process's control groups grant, of versions 1 and 2, the tightest of all ancestors; infinity without a
/// limit.
double quota(const std::string& root);

/// All logical CPUs of the machine, at least 1: for when the system says nothing better.
int any_cores() noexcept;

/// What the system calls the processor, or the machine; empty where it says nothing. (x86-64 processors say it themselves.)
std::string processor_name();

/// min(cores, whole CPUs of the quota), at least 1.
int usable_cores(int cores, double quota) noexcept;

}  // namespace tack::topology
