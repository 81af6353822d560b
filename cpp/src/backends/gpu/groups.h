// backends/gpu/groups.h -- what the modules of all GPUs have in common: entries whose iterations run in groups of threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend.h"

namespace tack::gpu {

/// How an entry's iterations are divided.
struct Groups {
  std::uint32_t threads = 0;  ///< of a group
  bool whole = false;         ///< as EntryPoint::whole_groups

  Groups() = default;
  /// `block`: threads of a group where the entry does not say.
  Groups(const EntryPoint& point, std::uint32_t block) noexcept
      : threads(point.group == 0 ? block : point.group), whole(point.whole_groups) {}
  /// Groups of a launch, of which `iterations` is positive.
  std::int64_t count(std::int64_t iterations) const noexcept { return whole ? iterations : (iterations - 1) / threads + 1; }
};

/// A module of such entries.
class GroupedModule : public ModuleImpl {
 public:
  /// The entries by name: nobody measures launches that are queued.
  std::vector<EntryStatistics> statistics() const override;

 protected:
  explicit GroupedModule(const KernelSource& source);
  /// Throws Error(driver) where the code of an entry runs in groups of at most `most` threads, as `symbol` of the driver says.
  void check_registers(const Groups& groups, std::uint32_t most, std::string_view backend, const char* symbol) const;

 private:
  std::vector<std::string> symbols_;
};

}  // namespace tack::gpu
