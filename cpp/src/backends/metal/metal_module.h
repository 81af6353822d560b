// backends/metal/metal_module.h -- a loaded kernel: the code of its entries, and how the words of a launch become buffers and constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend.h"
#include "backends/metal/metal.h"
#include "core/log.h"

namespace tack::metal {

/// Where a word of a launch goes.
enum class Place : std::uint8_t { buffer, texture, constant };

/// How many buffers an entry binds: one for each address, and one more for all its numbers.
std::size_t buffers_of(const EntryPoint& entry) noexcept;
std::size_t textures_of(const EntryPoint& entry) noexcept;

/// Lives no longer than its device.
class MetalModule final : public ModuleImpl {
 public:
  struct Entry {
    Ref pipeline;
    std::uint32_t group = 0;    // threads
    bool whole_groups = false;  // as EntryPoint::whole_groups
    std::vector<Place> places;  // of each word
    std::size_t constants = 0;  // how many words are
  };
  /// `block`: threads of a group where an entry does not say. Throws Error(corrupt) for bytes that are no code of Metal's, Error(driver)
  /// for an entry whose groups are too large for its code.
  MetalModule(const Metal& metal, Log& log, abi::Object device, std::span<const std::byte> binary, const KernelSource& source,
              std::uint32_t block);

  const Entry& entry(std::uint32_t index) const noexcept { return entries_[index]; }
  std::vector<EntryStatistics> statistics() const override;

 private:
  std::vector<Entry> entries_;
  std::vector<std::string> symbols_;
};

}  // namespace tack::metal
