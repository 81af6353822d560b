// backends/metal/metal_module.cpp -- makes a pipeline of each entry.
#include "backends/metal/metal_module.h"

#include <algorithm>

#include "backends/metal/metal_code.h"
#include "core/text.h"

namespace tack::metal {

namespace {
Place place_of(const ParamSlot& slot) noexcept {
  switch (slot.kind) {
    case ParamKind::pointer:
    case ParamKind::scratch:
    case ParamKind::records:
      return Place::buffer;
    case ParamKind::texture:
      return Place::texture;
    default:
      return Place::constant;
  }
}

std::size_t count(const EntryPoint& entry, Place place) noexcept {
  const auto is_there = [place](const ParamSlot& slot) { return place_of(slot) == place; };
  return static_cast<std::size_t>(std::count_if(entry.params.begin(), entry.params.end(), is_there));
}

}  // namespace

std::size_t buffers_of(const EntryPoint& entry) noexcept {
  return count(entry, Place::buffer) + (count(entry, Place::constant) == 0 ? 0 : 1);
}
std::size_t textures_of(const EntryPoint& entry) noexcept { return count(entry, Place::texture); }

MetalModule::MetalModule(const Metal& metal, Log& log, abi::Object device, std::span<const std::byte> binary, const KernelSource& source,
                         std::uint32_t block)
    : ModuleImpl(source.name) {
  Code code(metal, log, device, binary, kernel());
  for (const EntryPoint& point : source.entries) {
    Entry entry;
    entry.group = group_of(point, block);
    entry.whole_groups = point.whole_groups;
    for (const ParamSlot& slot : point.params) entry.places.push_back(place_of(slot));
    entry.constants = count(point, Place::constant);
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
