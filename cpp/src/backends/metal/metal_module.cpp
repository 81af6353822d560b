// backends/metal/metal_module.cpp -- makes a pipeline of each entry.
#include "backends/metal/metal_module.h"

#include <algorithm>

#include "backends/metal/metal_code.h"
#include "core/text.h"

namespace tack::metal {

namespace {
bool is_address(const ParamSlot& slot) noexcept {
  return slot.kind == ParamKind::pointer || slot.kind == ParamKind::scratch || slot.kind == ParamKind::records;
}
}  // namespace

std::size_t buffers_of(const EntryPoint& entry) noexcept {
  const auto addresses = static_cast<std::size_t>(std::count_if(entry.params.begin(), entry.params.end(), is_address));
  return addresses + (addresses == entry.params.size() ? 0 : 1);
}

MetalModule::MetalModule(const Metal& metal, Log& log, abi::Object device, std::span<const std::byte> binary, const KernelSource& source,
                         std::uint32_t block)
    : ModuleImpl(source.name) {
  Code code(metal, log, device, binary, kernel());
  for (const EntryPoint& point : source.entries) {
    Entry entry;
    entry.group = group_of(point, block);
    entry.whole_groups = point.whole_groups;
    for (const ParamSlot& slot : point.params) entry.address.push_back(is_address(slot));
    entry.constants = static_cast<std::size_t>(std::count(entry.address.begin(), entry.address.end(), false));
    abi::PipelineFacts facts{};
    entry.pipeline = code.pipeline(point.symbol, entry.group, facts);
    if (entry.group > facts.max_threads)
      throw Error({ErrorCode::driver,
                   text("Kernel '", kernel(), "' runs in groups of ", entry.group, " threads, but its code leaves registers for ",
                        facts.max_threads, " at most. Give it a smaller block=."),
                   "metal",
                   metal.pipeline.symbol,
                   0,
                   {}});
    entries_.push_back(std::move(entry));
    symbols_.push_back(point.symbol);
  }
}

std::vector<EntryStatistics> MetalModule::statistics() const {
  std::vector<EntryStatistics> rows;
  rows.reserve(symbols_.size());
  for (const std::string& symbol : symbols_) rows.push_back({.symbol = symbol});
  return rows;
}

}  // namespace tack::metal
