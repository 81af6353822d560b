// backends/metal/metal_module.h -- a kernel's code, as the disk cache keeps it (an archive of Metal's, and the MSL text for where that is
// of no use) and loaded, and how the words of a launch become buffers and constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend.h"
#include "backends/gpu/groups.h"
#include "backends/metal/metal.h"
#include "core/log.h"

namespace tack::metal {

/// Compiles source.text and answers the archive and the text as one binary. `block`: threads of a group where an entry does not say. Throws
/// Error(compile) with the compiler's relevant lines.
std::vector<std::byte> compile(const Metal& metal, Log& log, abi::Object device, const KernelSource& source, std::uint32_t block);

/// Where a word of a launch goes.
enum class Place : std::uint8_t { buffer, texture, constant };

/// Lives no longer than its device.
class MetalModule final : public gpu::GroupedModule {
 public:
  struct Entry {
    Ref pipeline;
    gpu::Groups groups;
    std::vector<Place> places;  // of each word
    std::size_t constants = 0;  // how many words are
  };
  /// Takes the functions out of a binary's archive, or, where this system does not take that, compiles its text again. Throws
  /// Error(corrupt) for bytes that `compile` has not made, Error(driver) for an entry whose groups are too large for its code.
  MetalModule(const Metal& metal, Log& log, abi::Object device, std::span<const std::byte> binary, const KernelSource& source,
              std::uint32_t block);

  const Entry& entry(std::uint32_t index) const noexcept { return entries_[index]; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace tack::metal
