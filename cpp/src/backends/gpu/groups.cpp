// backends/gpu/groups.cpp -- statistics of modules, and groups that are too large for their code.
#include "backends/gpu/groups.h"

#include "core/text.h"
#include "tack/error.hpp"

namespace tack::gpu {

GroupedModule::GroupedModule(const KernelSource& source) : ModuleImpl(source.name) {
  symbols_.reserve(source.entries.size());
  for (const EntryPoint& point : source.entries) symbols_.push_back(point.symbol);
}

std::vector<EntryStatistics> GroupedModule::statistics() const {
  std::vector<EntryStatistics> rows;
  rows.reserve(symbols_.size());
  for (const std::string& symbol : symbols_) rows.push_back({.symbol = symbol});
  return rows;
}

void GroupedModule::check_registers(const Groups& groups, std::uint32_t most, std::string_view backend, const char* symbol) const {
  if (groups.threads <= most) return;
  throw Error({ErrorCode::driver,
               text("Kernel '", kernel(), "' runs in groups of ", groups.threads, " threads, but its code leaves registers for ", most,
                    " at most. Give it a smaller block=."),
               std::string(backend),
               symbol,
               0,
               {}});
}

}  // namespace tack::gpu
