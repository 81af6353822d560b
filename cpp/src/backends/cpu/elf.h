// backends/cpu/elf.h -- the part of the ELF64 format that the object loader reads, in our own words; all numbers little-endian.
#pragma once

#include <bit>
#include <cstdint>

namespace tack::cpu::elf {

static_assert(std::endian::native == std::endian::little, "the object loader reads little-endian structures as they lie");

/// The first bytes of a file.
struct FileHeader {
  std::uint8_t magic[4];  ///< 0x7f 'E' 'L' 'F'
  std::uint8_t word_class;
  std::uint8_t byte_order;
  std::uint8_t ident_version;
  std::uint8_t os_abi;
  std::uint8_t unused[8];
  std::uint16_t type;
  std::uint16_t machine;
  std::uint32_t version;
  std::uint64_t entry;
  std::uint64_t program_headers;
  std::uint64_t section_headers;  ///< file offset of the section table
  std::uint32_t flags;
  std::uint16_t header_bytes;
  std::uint16_t program_header_bytes;
  std::uint16_t program_header_count;
  std::uint16_t section_header_bytes;
  std::uint16_t section_count;
  std::uint16_t name_section;  ///< index of the section that holds the sections' names
};
static_assert(sizeof(FileHeader) == 64);

struct SectionHeader {
  std::uint32_t name;  ///< offset into the name section
  std::uint32_t type;
  std::uint64_t flags;
  std::uint64_t address;
  std::uint64_t offset;  ///< of the content in the file
  std::uint64_t size;
  std::uint32_t link;  ///< relocations: their symbol table; symbol table: its strings
  std::uint32_t info;  ///< relocations: the section that they change
  std::uint64_t alignment;
  std::uint64_t entry_bytes;
};
static_assert(sizeof(SectionHeader) == 64);

struct Symbol {
  std::uint32_t name;
  std::uint8_t info;  ///< binding in the high four bits, type in the low four
  std::uint8_t other;
  std::uint16_t section;
  std::uint64_t value;  ///< offset into the section
  std::uint64_t size;
};
static_assert(sizeof(Symbol) == 24);

/// A relocation with an explicit addend.
struct Rela {
  std::uint64_t offset;  ///< into the section that is changed
  std::uint64_t info;    ///< symbol index in the high half, type in the low half
  std::int64_t addend;
};
static_assert(sizeof(Rela) == 24);

inline constexpr std::uint8_t magic[4] = {0x7f, 'E', 'L', 'F'};
inline constexpr std::uint8_t class_64 = 2;
inline constexpr std::uint8_t little_endian = 1;
inline constexpr std::uint8_t version_current = 1;
inline constexpr std::uint16_t type_relocatable = 1;

inline constexpr std::uint16_t machine_x86_64 = 62;
inline constexpr std::uint16_t machine_aarch64 = 183;

namespace section_type {
inline constexpr std::uint32_t null = 0, program = 1, symbols = 2, strings = 3, rela = 4, note = 7, no_bits = 8, rel = 9, init_array = 14,
                               fini_array = 15, preinit_array = 16, symbols_index = 18, relr = 19, x86_64_unwind = 0x70000001;
}

namespace section_flag {
inline constexpr std::uint64_t write = 0x1, alloc = 0x2, execute = 0x4, merge = 0x10, strings = 0x20, info_link = 0x40, link_order = 0x80,
                               group = 0x200, tls = 0x400, compressed = 0x800;
}

namespace section_index {
inline constexpr std::uint16_t undefined = 0, reserved = 0xff00, absolute = 0xfff1, common = 0xfff2, extended = 0xffff;
}

namespace binding {
inline constexpr std::uint8_t local = 0, global = 1, weak = 2;
}

namespace symbol_type {
inline constexpr std::uint8_t none = 0, object = 1, function = 2, section = 3, file = 4;
}

}  // namespace tack::cpu::elf
