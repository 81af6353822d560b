// backends/cpu/elf_reader.h -- a relocatable object, parsed with every offset, count and string checked; nothing is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/elf.h"
#include "tack/error.hpp"

namespace tack::cpu {

/// Makes the errors of one load. `kernel` is for the message; `detail` says what is wrong, with the offending values.
Error object_error(std::string_view kernel, const std::string& detail);
/// A name out of an object, for a message: in quotes, printable ASCII only, cut short when it is very long.
std::string quoted(std::string_view name);
/// A number for a message: "0x1f".
std::string hexadecimal(std::uint64_t value);

struct ObjectSection {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint64_t flags = 0;
  std::uint64_t size = 0;  ///< in memory
  std::uint64_t alignment = 1;
  std::span<const std::byte> bytes;  ///< empty for a section without content (.bss)
  std::uint32_t link = 0;
  std::uint32_t info = 0;
};

struct ObjectSymbol {
  std::string_view name;  ///< a section symbol carries its section's name
  std::uint8_t binding = 0;
  std::uint8_t type = 0;
  std::uint16_t section = 0;
  std::uint64_t value = 0;
};

struct ObjectRelocation {
  std::uint64_t offset = 0;
  std::uint32_t symbol = 0;
  std::uint32_t type = 0;
  std::int64_t addend = 0;
};

/// The relocations of one section; read one by one, since a kernel may have thousands.
class RelocationTable {
 public:
  RelocationTable(std::uint32_t section, std::uint32_t target, std::span<const std::byte> bytes)
      : section_(section), target_(target), bytes_(bytes) {}
  std::uint32_t section() const noexcept { return section_; }  ///< index of the table's own section
  std::uint32_t target() const noexcept { return target_; }    ///< index of the section that it changes; below the section count
  std::size_t size() const noexcept { return bytes_.size() / sizeof(elf::Rela); }
  /// `index` < size(). The symbol index is below the symbol count.
  ObjectRelocation operator[](std::size_t index) const noexcept;

 private:
  std::uint32_t section_;
  std::uint32_t target_;
  std::span<const std::byte> bytes_;
};

/// Views into the object's bytes, which must outlive it.
struct ObjectFile {
  std::vector<ObjectSection> sections;
  std::vector<ObjectSymbol> symbols;
  std::vector<RelocationTable> relocations;  ///< of sections that are loaded (see is_loaded)
};

/// Whether a section has a place in memory: allocated, and neither unwind tables nor notes, which nothing here reads.
bool is_loaded(const ObjectSection& section) noexcept;

/// Throws Error(corrupt) that names the kernel and what is wrong. `machine` is the only one accepted.
ObjectFile read_object(std::span<const std::byte> bytes, std::uint16_t machine, std::string_view machine_name, std::string_view kernel);

}  // namespace tack::cpu
