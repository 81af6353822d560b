// backends/cpu/elf_reader.cpp -- parses a relocatable ELF64 object; whatever the bytes are, it answers or throws, and reads nothing
// outside.
#include "backends/cpu/elf_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace tack::cpu {

Error object_error(std::string_view kernel, const std::string& detail) {
  Error::Fields fields;
  fields.code = ErrorCode::corrupt;
  fields.backend = "cpu";
  fields.operation = "load object";
  fields.message = "Cannot load the machine code of kernel '" + std::string(kernel) + "': " + detail +
                   ". Compile it again (without the disk cache: TACK_CACHE=0, in C++ Config::cache); if this comes back, please report it.";
  return Error(std::move(fields));
}

std::string quoted(std::string_view name) {
  constexpr std::size_t longest = 120;
  std::string text = "'";
  for (const char c : name.substr(0, longest)) {
    if (c >= 0x20 && c < 0x7f) {
      text += c;
    } else {
      constexpr std::string_view digits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      text += "\\x";
      text += digits[byte >> 4];
      text += digits[byte & 15];
    }
  }
  if (name.size() > longest) text += "...";
  return text + "'";
}

std::string hexadecimal(std::uint64_t value) {
  std::string text;
  do {
    text.insert(text.begin(), "0123456789abcdef"[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + text;
}

namespace {

/// A structure at a place that the caller has checked; the file gives no alignment.
template <class T>
T read_at(std::span<const std::byte> bytes, std::uint64_t offset) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// Parsing state of one object.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view kernel) : bytes_(bytes), kernel_(kernel) {}

  ObjectFile read(std::uint16_t machine, std::string_view machine_name) {
    read_sections(read_file_header(machine, machine_name));
    read_symbols();
    read_relocations();
    return std::move(file_);
  }

 private:
  [[noreturn]] void refuse(const std::string& detail) const { throw object_error(kernel_, detail); }

  std::string named(std::size_t index) const { return "section " + std::to_string(index) + " " + quoted(file_.sections[index].name); }

  /// `size` bytes at `offset`, or an error that names `what`. No sum here can overflow.
  std::span<const std::byte> slice(std::uint64_t offset, std::uint64_t size, const std::string& what) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset)
      refuse(what + " claims " + std::to_string(size) + " bytes at offset " + std::to_string(offset) + " of an object of " +
             std::to_string(bytes_.size()) + " bytes");
    return bytes_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  }

  /// The zero-terminated string at `offset` of a string table.
  std::string_view string_at(std::span<const std::byte> table, std::uint32_t offset, const std::string& what) const {
    if (offset >= table.size())
      refuse("the name of " + what + " lies at " + std::to_string(offset) + " of a string table of " + std::to_string(table.size()) +
             " bytes");
    constexpr std::size_t longest = 65536;  // so that names which share one long string cannot cost quadratic time
    const auto rest = table.subspan(offset, std::min(longest, table.size() - offset));
    const auto* begin = reinterpret_cast<const char*>(rest.data());
    const void* end = std::memchr(begin, 0, rest.size());
    if (end == nullptr) refuse("the name of " + what + " has no end");
    return {begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin)};
  }

  elf::FileHeader read_file_header(std::uint16_t machine, std::string_view machine_name) const {
    const auto header = read_at<elf::FileHeader>(slice(0, sizeof(elf::FileHeader), "the file header"), 0);
    if (!std::equal(std::begin(header.magic), std::end(header.magic), std::begin(elf::magic))) refuse("it is no ELF object");
    if (header.word_class != elf::class_64) refuse("it is not a 64-bit object (class " + std::to_string(header.word_class) + ")");
    if (header.byte_order != elf::little_endian) refuse("it is not little-endian (byte order " + std::to_string(header.byte_order) + ")");
    if (header.ident_version != elf::version_current || header.version != elf::version_current)
      refuse("its ELF version is " + std::to_string(header.version) + ", not 1");
    if (header.machine != machine)
      refuse("it is made for machine " + std::to_string(header.machine) + ", not for " + std::string(machine_name) + " (" +
             std::to_string(machine) + ")");
    if (header.type != elf::type_relocatable) refuse("its type is " + std::to_string(header.type) + ", not a relocatable object (1)");
    if (header.section_header_bytes != sizeof(elf::SectionHeader))
      refuse("its section headers have " + std::to_string(header.section_header_bytes) + " bytes, not 64");
    if (header.section_count == 0) refuse("it has no sections, or more than 65279");
    if (header.name_section >= header.section_count)
      refuse("its section names lie in section " + std::to_string(header.name_section) + " of " + std::to_string(header.section_count));
    return header;
  }

  void read_sections(const elf::FileHeader& header) {
    const std::size_t count = header.section_count;
    const auto table = slice(header.section_headers, std::uint64_t{count} * sizeof(elf::SectionHeader), "the section table");
    file_.sections.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto raw = read_at<elf::SectionHeader>(table, i * sizeof(elf::SectionHeader));
      ObjectSection& section = file_.sections[i];
      section.type = raw.type;
      section.flags = raw.flags;
      section.size = raw.size;
      section.alignment = std::max<std::uint64_t>(raw.alignment, 1);
      section.link = raw.link;
      section.info = raw.info;
      if (i > 0 && raw.type != elf::section_type::null && raw.type != elf::section_type::no_bits)
        section.bytes = slice(raw.offset, raw.size, "section " + std::to_string(i));
    }
    const ObjectSection& names = file_.sections[header.name_section];
    if (names.type != elf::section_type::strings) refuse("its section names lie in a section of type " + hexadecimal(names.type));
    for (std::size_t i = 1; i < count; ++i) {
      const auto raw = read_at<elf::SectionHeader>(table, i * sizeof(elf::SectionHeader));
      file_.sections[i].name = string_at(names.bytes, raw.name, "section " + std::to_string(i));
    }
    for (std::size_t i = 1; i < count; ++i) check_section(i);
  }

  /// Refuses what has a meaning at run time that this loader does not give it.
  void check_section(std::size_t index) const {
    const ObjectSection& section = file_.sections[index];
    if ((section.flags & elf::section_flag::alloc) == 0) return;
    using namespace elf;
    static constexpr std::array<std::pair<std::uint64_t, const char*>, 2> refused{
        {{section_flag::tls, "thread-local data"}, {section_flag::compressed, "compressed content"}}};
    for (const auto& [flag, meaning] : refused)
      if ((section.flags & flag) != 0) refuse(named(index) + " holds " + meaning + ", which kernels may not have");
    constexpr std::uint64_t known = section_flag::write | section_flag::alloc | section_flag::execute | section_flag::merge |
                                    section_flag::strings | section_flag::info_link | section_flag::link_order | section_flag::group;
    if ((section.flags & ~known) != 0) refuse(named(index) + " has the unknown flags " + hexadecimal(section.flags & ~known));
    if ((section.flags & section_flag::write) != 0 && (section.flags & section_flag::execute) != 0)
      refuse(named(index) + " wants to be writable and executable at once");
    switch (section.type) {
      case section_type::program:
      case section_type::no_bits:
      case section_type::note:
      case section_type::x86_64_unwind:
        break;
      case section_type::init_array:
      case section_type::fini_array:
      case section_type::preinit_array:
        refuse(named(index) + " holds constructors or destructors, which kernels may not have");
      default:
        refuse(named(index) + " has the unknown type " + hexadecimal(section.type));
    }
    // Constructors of a target that puts them into ordinary data.
    if (section.name.starts_with(".ctors") || section.name.starts_with(".dtors"))
      refuse(named(index) + " holds constructors or destructors, which kernels may not have");
    if (section.type == section_type::no_bits && (section.flags & section_flag::execute) != 0)
      refuse(named(index) + " is executable and has no content");
    if (!std::has_single_bit(section.alignment)) refuse(named(index) + " has the alignment " + std::to_string(section.alignment));
  }

  void read_symbols() {
    std::size_t table = 0;
    for (std::size_t i = 1; i < file_.sections.size(); ++i) {
      if (file_.sections[i].type == elf::section_type::symbols_index) refuse(named(i) + " extends the symbols, which is not known here");
      if (file_.sections[i].type != elf::section_type::symbols) continue;
      if (table != 0) refuse("it has two symbol tables");
      table = i;
    }
    if (table == 0) return;
    symbol_section_ = table;
    const ObjectSection& section = file_.sections[table];
    if (section.bytes.size() % sizeof(elf::Symbol) != 0)
      refuse(named(table) + " has " + std::to_string(section.bytes.size()) + " bytes, no multiple of a symbol's 24");
    if (section.link >= file_.sections.size() || file_.sections[section.link].type != elf::section_type::strings)
      refuse(named(table) + " takes its names from section " + std::to_string(section.link) + ", which is no string table");
    const auto names = file_.sections[section.link].bytes;
    const std::size_t count = section.bytes.size() / sizeof(elf::Symbol);
    file_.symbols.resize(count);
    for (std::size_t i = 1; i < count; ++i) {
      const auto raw = read_at<elf::Symbol>(section.bytes, i * sizeof(elf::Symbol));
      ObjectSymbol& symbol = file_.symbols[i];
      symbol.binding = static_cast<std::uint8_t>(raw.info >> 4);
      symbol.type = static_cast<std::uint8_t>(raw.info & 15);
      symbol.section = raw.section;
      symbol.value = raw.value;
      const bool in_section = raw.section != elf::section_index::undefined && raw.section < elf::section_index::reserved;
      if (in_section && raw.section >= file_.sections.size())
        refuse("symbol " + std::to_string(i) + " lies in section " + std::to_string(raw.section) + " of " +
               std::to_string(file_.sections.size()));
      if (raw.name != 0) {
        symbol.name = string_at(names, raw.name, "symbol " + std::to_string(i));
      } else if (in_section && symbol.type == elf::symbol_type::section) {
        symbol.name = file_.sections[raw.section].name;
      }
    }
  }

  void read_relocations() {
    for (std::size_t i = 1; i < file_.sections.size(); ++i) {
      const ObjectSection& section = file_.sections[i];
      const bool explicit_addends = section.type == elf::section_type::rela;
      if (!explicit_addends && section.type != elf::section_type::rel && section.type != elf::section_type::relr) continue;
      if (section.info >= file_.sections.size() || section.info == 0)
        refuse(named(i) + " relocates section " + std::to_string(section.info) + " of " + std::to_string(file_.sections.size()));
      const ObjectSection& target = file_.sections[section.info];
      if (!is_loaded(target)) continue;
      if (!explicit_addends) refuse(named(i) + " holds relocations without addends, which are not known here");
      if (target.type == elf::section_type::no_bits) refuse(named(i) + " relocates " + named(section.info) + ", which has no content");
      if (symbol_section_ == 0 || section.link != symbol_section_)
        refuse(named(i) + " refers to section " + std::to_string(section.link) + ", which is not the symbol table");
      if (section.bytes.size() % sizeof(elf::Rela) != 0)
        refuse(named(i) + " has " + std::to_string(section.bytes.size()) + " bytes, no multiple of a relocation's 24");
      const RelocationTable table(static_cast<std::uint32_t>(i), section.info, section.bytes);
      for (std::size_t r = 0; r < table.size(); ++r)
        if (table[r].symbol >= file_.symbols.size())
          refuse("relocation " + std::to_string(r) + " of " + named(i) + " refers to symbol " + std::to_string(table[r].symbol) + " of " +
                 std::to_string(file_.symbols.size()));
      file_.relocations.push_back(table);
    }
  }

  std::span<const std::byte> bytes_;
  std::string_view kernel_;
  ObjectFile file_;
  std::size_t symbol_section_ = 0;
};

}  // namespace

ObjectRelocation RelocationTable::operator[](std::size_t index) const noexcept {
  const auto raw = read_at<elf::Rela>(bytes_, index * sizeof(elf::Rela));
  return {raw.offset, static_cast<std::uint32_t>(raw.info >> 32), static_cast<std::uint32_t>(raw.info), raw.addend};
}

bool is_loaded(const ObjectSection& section) noexcept {
  if ((section.flags & elf::section_flag::alloc) == 0) return false;
  if (section.type == elf::section_type::note || section.type == elf::section_type::x86_64_unwind) return false;
  return section.name != ".eh_frame";
}

ObjectFile read_object(std::span<const std::byte> bytes, std::uint16_t machine, std::string_view machine_name, std::string_view kernel) {
  return Reader(bytes, kernel).read(machine, machine_name);
}

}  // namespace tack::cpu
