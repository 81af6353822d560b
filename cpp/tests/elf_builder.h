// elf_builder.h -- makes small ELF objects by hand, right or wrong in any field, for the tests of the object loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/elf.h"

namespace tack::testing {

namespace elf = cpu::elf;

/// Sections and symbols as given; build() lays them out: header, contents, section table. Public fields may be spoilt before build().
class ElfBuilder {
 public:
  struct Section {
    std::string name;
    elf::SectionHeader header{};
    std::vector<std::byte> bytes;
  };

  explicit ElfBuilder(std::uint16_t machine) {
    std::memcpy(header.magic, elf::magic, sizeof header.magic);
    header.word_class = elf::class_64;
    header.byte_order = elf::little_endian;
    header.ident_version = elf::version_current;
    header.type = elf::type_relocatable;
    header.machine = machine;
    header.version = elf::version_current;
    header.header_bytes = sizeof(elf::FileHeader);
    header.section_header_bytes = sizeof(elf::SectionHeader);
    sections.emplace_back();  // index 0 is no section
    names = add(".strtab", elf::section_type::strings, 0, {});
    symbol_table = add(".symtab", elf::section_type::symbols, 0, std::vector<std::byte>(sizeof(elf::Symbol)));
    sections[symbol_table].header.link = names;
    sections[symbol_table].header.entry_bytes = sizeof(elf::Symbol);
    strings.push_back('\0');
  }

  std::uint32_t add(std::string name, std::uint32_t type, std::uint64_t flags, std::vector<std::byte> bytes, std::uint64_t alignment = 1) {
    Section section{.name = std::move(name), .bytes = std::move(bytes)};
    section.header.type = type;
    section.header.flags = flags;
    section.header.size = section.bytes.size();
    section.header.alignment = alignment;
    sections.push_back(std::move(section));
    return static_cast<std::uint32_t>(sections.size() - 1);
  }

  std::uint32_t add_code(std::vector<std::byte> bytes, std::string name = ".text") {
    return add(std::move(name), elf::section_type::program, elf::section_flag::alloc | elf::section_flag::execute, std::move(bytes), 16);
  }

  std::uint32_t add_symbol(std::string_view name, std::uint8_t binding, std::uint8_t type, std::uint16_t section, std::uint64_t value) {
    elf::Symbol symbol{};
    symbol.name = add_string(name);
    symbol.info = static_cast<std::uint8_t>(binding << 4 | type);
    symbol.section = section;
    symbol.value = value;
    append(sections[symbol_table].bytes, symbol);
    sections[symbol_table].header.size = sections[symbol_table].bytes.size();
    return static_cast<std::uint32_t>(sections[symbol_table].bytes.size() / sizeof(elf::Symbol) - 1);
  }

  std::uint32_t add_function(std::string_view name, std::uint32_t section, std::uint64_t value = 0) {
    return add_symbol(name, elf::binding::global, elf::symbol_type::function, static_cast<std::uint16_t>(section), value);
  }

  /// A table of relocations for `target`; more than one may be added.
  std::uint32_t add_relocations(std::uint32_t target, const std::vector<elf::Rela>& relocations) {
    std::vector<std::byte> bytes;
    for (const elf::Rela& relocation : relocations) append(bytes, relocation);
    const std::uint32_t index =
        add(".rela" + sections[target].name, elf::section_type::rela, elf::section_flag::info_link, std::move(bytes), 8);
    sections[index].header.link = symbol_table;
    sections[index].header.info = target;
    sections[index].header.entry_bytes = sizeof(elf::Rela);
    return index;
  }

  static elf::Rela relocation(std::uint64_t offset, std::uint32_t symbol, std::uint32_t type, std::int64_t addend) {
    return {offset, std::uint64_t{symbol} << 32 | type, addend};
  }

  std::vector<std::byte> build() {
    for (Section& section : sections)
      if (!section.name.empty()) section.header.name = add_string(section.name);
    sections[names].bytes = strings_as_bytes();
    sections[names].header.size = sections[names].bytes.size();
    header.section_count = static_cast<std::uint16_t>(sections.size());
    header.name_section = static_cast<std::uint16_t>(names);
    std::vector<std::byte> image(sizeof header);
    for (Section& section : sections) {
      section.header.offset = image.size();
      image.insert(image.end(), section.bytes.begin(), section.bytes.end());
    }
    header.section_headers = image.size();
    for (const Section& section : sections) append(image, section.header);
    std::memcpy(image.data(), &header, sizeof header);
    return image;
  }

  /// Where a field of a section's header lies in what build() answered.
  std::size_t field_offset(std::uint32_t section, std::size_t field) const {
    return static_cast<std::size_t>(header.section_headers) + section * sizeof(elf::SectionHeader) + field;
  }

  elf::FileHeader header{};
  std::vector<Section> sections;
  std::uint32_t names = 0, symbol_table = 0;

 private:
  template <class T>
  static void append(std::vector<std::byte>& bytes, const T& value) {
    const auto view = std::as_bytes(std::span(&value, 1));
    bytes.insert(bytes.end(), view.begin(), view.end());
  }
  std::uint32_t add_string(std::string_view text) {
    const auto offset = static_cast<std::uint32_t>(strings.size());
    strings.append(text).push_back('\0');
    return offset;
  }
  std::vector<std::byte> strings_as_bytes() const {
    const auto view = std::as_bytes(std::span(strings.data(), strings.size()));
    return {view.begin(), view.end()};
  }

  std::string strings;
};

/// Overwrites one field of a finished object.
template <class T>
void poke(std::vector<std::byte>& image, std::size_t offset, T value) {
  std::memcpy(image.data() + offset, &value, sizeof value);
}

}  // namespace tack::testing
