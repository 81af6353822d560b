// backends/cpu/object_loader.cpp -- lays an object out in memory, relocates it in place, and closes the pages.
#include "backends/cpu/object_loader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/code_memory.h"
#include "backends/cpu/elf_reader.h"
#include "backends/cpu/elf_relocation.h"
#include "backends/cpu/object_link.h"
#include "core/processor.h"

namespace tack::cpu {

namespace {

/// The parts of a mapping, in their order. Each starts on a page of its own.
enum Part : std::size_t {
  part_code,       ///< read, execute: functions, then stubs
  part_constants,  ///< read: constants, tables of addresses, then the slots
  part_data,       ///< read, write
  part_count
};

constexpr std::uint64_t slot_bytes = 8;
/// Far below 2 GiB, so that code and data of one object always reach each other; a kernel has some kilobytes.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;
constexpr std::uint32_t nothing = 0xffffffffu;

class Code final : public LoadedObject {
 public:
  using Function = std::pair<std::string, void*>;

  /// `functions` sorted by name.
  Code(CodeMemory memory, std::size_t code_bytes, std::vector<Function> functions)
      : memory_(std::move(memory)), code_bytes_(code_bytes), functions_(std::move(functions)) {}

  void* find(std::string_view symbol) const noexcept override {
    const auto at = std::lower_bound(functions_.begin(), functions_.end(), symbol,
                                     [](const Function& function, std::string_view name) { return function.first < name; });
    return at != functions_.end() && at->first == symbol ? at->second : nullptr;
  }
  std::size_t code_bytes() const noexcept override { return code_bytes_; }

 private:
  CodeMemory memory_;
  std::size_t code_bytes_;
  std::vector<Function> functions_;
};

const RelocationType* find_type(const Machine& machine, std::uint32_t number) noexcept {
  const auto at = std::find_if(machine.relocations.begin(), machine.relocations.end(),
                               [number](const RelocationType& type) { return type.number == number; });
  return at == machine.relocations.end() ? nullptr : &*at;
}

/// The state of one load.
class Linker {
 public:
  Linker(const Machine& machine, std::span<const std::byte> object, SymbolResolver resolve, std::string_view kernel)
      : machine_(machine), resolve_(resolve), kernel_(kernel), file_(read_object(object, machine.number, machine.name, kernel)) {}

  std::unique_ptr<LoadedObject> link() {
    place_sections();
    plan_slots_and_stubs();
    lay_out_parts();
    CodeMemory memory(static_cast<std::size_t>(total_bytes_));
    base_ = memory.data();
    copy_sections();
    fill_slots_and_stubs();
    for (const RelocationTable& table : file_.relocations) relocate(table);
    auto functions = exported_functions();
    close(memory, part_code, CodeMemory::Access::execute);
    close(memory, part_constants, CodeMemory::Access::read);
    return std::make_unique<Code>(std::move(memory), static_cast<std::size_t>(part_size_[part_code]), std::move(functions));
  }

 private:
  struct Placement {
    Part part = part_count;    ///< part_count: not loaded
    std::uint64_t offset = 0;  ///< into the part
  };

  [[noreturn]] void refuse(const std::string& detail) const { throw object_error(kernel_, detail); }

  [[noreturn]] void refuse_size() const {
    refuse("it needs more than " + std::to_string(most_bytes >> 20) + " MiB of memory for code and data");
  }

  std::string describe(const RelocationTable& table, std::size_t index) const {
    const ObjectRelocation relocation = table[index];
    const RelocationType* type = find_type(machine_, relocation.type);
    return "relocation " + std::to_string(index) + " of section " + quoted(file_.sections[table.target()].name) + " (type " +
           (type != nullptr ? std::string(type->name) : std::to_string(relocation.type)) + ", symbol " +
           quoted(file_.symbols[relocation.symbol].name) + ")";
  }

  /// Takes room at the end of a part. Sizes stay far from overflow, since their sum is checked each time.
  std::uint64_t take(Part part, std::uint64_t bytes, std::uint64_t alignment) {
    const std::uint64_t start = (part_size_[part] + alignment - 1) / alignment * alignment;
    if (bytes > most_bytes || start + bytes > most_bytes) refuse_size();
    part_size_[part] = start + bytes;
    return start;
  }

  void place_sections() {
    placements_.resize(file_.sections.size());
    for (std::size_t i = 1; i < file_.sections.size(); ++i) {
      const ObjectSection& section = file_.sections[i];
      if (!is_loaded(section)) continue;
      if (section.alignment > CodeMemory::page_bytes())
        refuse("section " + quoted(section.name) + " wants an alignment of " + std::to_string(section.alignment) +
               " bytes, more than a page's " + std::to_string(CodeMemory::page_bytes()));
      Part part = part_constants;
      if ((section.flags & elf::section_flag::execute) != 0) {
        part = part_code;
      } else if ((section.flags & elf::section_flag::write) != 0 && !section.name.starts_with(".data.rel.ro")) {
        part = part_data;  // .data.rel.ro is constant once it is relocated
      }
      placements_[i] = {part, take(part, section.size, section.alignment)};
    }
  }

  /// A slot for each symbol whose address is read from memory, a stub for each call that leaves the object.
  void plan_slots_and_stubs() {
    slots_.assign(file_.symbols.size(), nothing);
    stubs_.assign(file_.symbols.size(), nothing);
    for (const RelocationTable& table : file_.relocations) {
      const std::uint64_t room = file_.sections[table.target()].size;
      for (std::size_t i = 0; i < table.size(); ++i) {
        const ObjectRelocation relocation = table[i];
        const RelocationType* type = find_type(machine_, relocation.type);
        if (type == nullptr) refuse(describe(table, i) + " is of a kind that this loader does not know for " + std::string(machine_.name));
        if (type->bytes == 0) continue;
        if (relocation.offset > room || room - relocation.offset < type->bytes)
          refuse(describe(table, i) + " changes " + std::to_string(type->bytes) + " bytes at offset " + std::to_string(relocation.offset) +
                 " of " + std::to_string(room));
        if (relocation.symbol == 0) refuse(describe(table, i) + " names no symbol");
        const ObjectSymbol& symbol = file_.symbols[relocation.symbol];
        const bool stub = type->reach == Reach::call && symbol.section == elf::section_index::undefined;
        if (stub && stubs_[relocation.symbol] == nothing) stubs_[relocation.symbol] = stub_count_++;
        if ((stub || type->reach == Reach::slot) && slots_[relocation.symbol] == nothing) slots_[relocation.symbol] = slot_count_++;
      }
    }
    if (stub_count_ > 0) stub_start_ = take(part_code, stub_count_ * machine_.stub_bytes, machine_.stub_alignment);
    if (slot_count_ > 0) slot_start_ = take(part_constants, slot_count_ * slot_bytes, slot_bytes);
  }

  void lay_out_parts() {
    const std::uint64_t page = CodeMemory::page_bytes();
    for (std::size_t part = 0; part < part_count; ++part) {
      part_start_[part] = total_bytes_;
      total_bytes_ += (part_size_[part] + page - 1) / page * page;
    }
    if (part_size_[part_code] == 0) refuse("it holds no code");
    if (total_bytes_ > most_bytes) refuse_size();
  }

  std::byte* address_in(Part part, std::uint64_t offset) const noexcept { return base_ + part_start_[part] + offset; }
  std::byte* section_address(std::size_t index) const noexcept { return address_in(placements_[index].part, placements_[index].offset); }
  std::byte* slot_address(std::uint32_t slot) const noexcept { return address_in(part_constants, slot_start_ + slot * slot_bytes); }
  std::byte* stub_address(std::uint32_t stub) const noexcept { return address_in(part_code, stub_start_ + stub * machine_.stub_bytes); }

  void copy_sections() const {
    std::memset(address_in(part_code, 0), std::to_integer<int>(machine_.padding), static_cast<std::size_t>(part_size_[part_code]));
    for (std::size_t i = 1; i < file_.sections.size(); ++i) {
      const auto bytes = file_.sections[i].bytes;
      if (placements_[i].part != part_count && !bytes.empty()) std::memcpy(section_address(i), bytes.data(), bytes.size());
    }
  }

  /// The symbol's value: an address in this mapping, or the resolver's answer.
  std::uint64_t symbol_address(std::uint32_t index) {
    if (addresses_.empty()) addresses_.resize(file_.symbols.size());
    std::optional<std::uint64_t>& address = addresses_[index];
    if (!address) address = compute_address(file_.symbols[index]);
    return *address;
  }

  std::uint64_t compute_address(const ObjectSymbol& symbol) const {
    using namespace elf;
    if (symbol.type > symbol_type::section)
      refuse("symbol " + quoted(symbol.name) + " is of type " + std::to_string(symbol.type) +
             " (thread-local, common and indirect symbols are not known here)");
    if (symbol.section == section_index::undefined) {
      void* found = resolve_ == nullptr || symbol.name.empty() ? nullptr : resolve_(symbol.name);
      if (found == nullptr && symbol.binding != binding::weak)
        refuse("it uses the symbol " + quoted(symbol.name) + ", which the runtime does not offer");
      return reinterpret_cast<std::uintptr_t>(found);
    }
    if (symbol.section >= section_index::reserved)
      refuse("symbol " + quoted(symbol.name) + " lies in the special section " + hexadecimal(symbol.section) +
             " (common and absolute symbols are not known here)");
    const ObjectSection& section = file_.sections[symbol.section];
    if (placements_[symbol.section].part == part_count)
      refuse("symbol " + quoted(symbol.name) + " lies in section " + quoted(section.name) + ", which is not loaded");
    if (symbol.value > section.size)
      refuse("symbol " + quoted(symbol.name) + " lies at " + std::to_string(symbol.value) + " of the " + std::to_string(section.size) +
             " bytes of section " + quoted(section.name));
    return reinterpret_cast<std::uintptr_t>(section_address(symbol.section)) + symbol.value;
  }

  void fill_slots_and_stubs() {
    for (std::uint32_t i = 0; i < file_.symbols.size(); ++i) {
      if (slots_[i] == nothing) continue;
      const std::uint64_t address = symbol_address(i);
      std::byte* slot = slot_address(slots_[i]);
      std::memcpy(slot, &address, sizeof address);
      if (stubs_[i] == nothing) continue;
      if (!machine_.write_stub(stub_address(stubs_[i]), reinterpret_cast<std::uintptr_t>(slot)))
        refuse("the stub for " + quoted(file_.symbols[i].name) + " cannot reach its slot");
    }
  }

  void relocate(const RelocationTable& table) {
    std::byte* section = section_address(table.target());
    for (std::size_t i = 0; i < table.size(); ++i) {
      const ObjectRelocation relocation = table[i];
      const RelocationType& type = *find_type(machine_, relocation.type);
      if (type.bytes == 0) continue;
      std::uint64_t target = 0;
      if (type.reach == Reach::slot) {
        target = reinterpret_cast<std::uintptr_t>(slot_address(slots_[relocation.symbol]));
      } else if (type.reach == Reach::call && stubs_[relocation.symbol] != nothing) {
        target = reinterpret_cast<std::uintptr_t>(stub_address(stubs_[relocation.symbol]));
      } else {
        target = symbol_address(relocation.symbol);
      }
      const Patch patch{relocation.type, section + relocation.offset, target, static_cast<std::uint64_t>(relocation.addend)};
      switch (machine_.apply(patch)) {
        case PatchResult::done:
          break;
        case PatchResult::out_of_range:
          refuse(describe(table, i) + " does not reach its symbol: is the code position-independent?");
        case PatchResult::misaligned:
          refuse(describe(table, i) + " refers to a misaligned address");
        case PatchResult::bad_addend:
          refuse(describe(table, i) + " has the addend " + std::to_string(relocation.addend));
      }
    }
  }

  /// Every function that is not local to the object, sorted by name.
  std::vector<Code::Function> exported_functions() {
    std::vector<Code::Function> functions;
    for (std::uint32_t i = 1; i < file_.symbols.size(); ++i) {
      const ObjectSymbol& symbol = file_.symbols[i];
      if (symbol.type != elf::symbol_type::function || symbol.section == elf::section_index::undefined) continue;
      if (symbol.binding != elf::binding::global && symbol.binding != elf::binding::weak) continue;
      symbol_address(i);  // checks the section's index, and that the symbol lies in it
      if (placements_[symbol.section].part != part_code || symbol.value == file_.sections[symbol.section].size)
        refuse("function " + quoted(symbol.name) + " does not lie in code");
      functions.emplace_back(std::string(symbol.name), section_address(symbol.section) + symbol.value);
    }
    std::sort(functions.begin(), functions.end());
    const auto twice =
        std::adjacent_find(functions.begin(), functions.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twice != functions.end()) refuse("it defines the function " + quoted(twice->first) + " twice");
    return functions;
  }

  void close(CodeMemory& memory, Part part, CodeMemory::Access access) const {
    if (part_size_[part] > 0)
      memory.protect(static_cast<std::size_t>(part_start_[part]), static_cast<std::size_t>(part_size_[part]), access);
  }

  const Machine& machine_;
  SymbolResolver resolve_;
  std::string_view kernel_;
  ObjectFile file_;
  std::vector<Placement> placements_;  // by section
  std::array<std::uint64_t, part_count> part_size_{}, part_start_{};
  std::uint64_t total_bytes_ = 0, stub_start_ = 0, slot_start_ = 0;
  std::uint32_t stub_count_ = 0, slot_count_ = 0;
  std::vector<std::uint32_t> slots_, stubs_;             // by symbol: its number, or nothing
  std::vector<std::optional<std::uint64_t>> addresses_;  // by symbol
  std::byte* base_ = nullptr;
};

}  // namespace

ObjectFormat object_format(std::span<const std::byte> object) noexcept {
  const auto starts_with = [&](std::initializer_list<std::uint8_t> bytes) {
    return object.size() >= bytes.size() && std::equal(bytes.begin(), bytes.end(), object.begin(),
                                                       [](std::uint8_t expected, std::byte got) { return std::byte{expected} == got; });
  };
  if (starts_with({0x7f, 'E', 'L', 'F'})) return ObjectFormat::elf;
  if (starts_with({0xcf, 0xfa, 0xed, 0xfe})) return ObjectFormat::mach_o;                 // MH_MAGIC_64
  if (starts_with({0x64, 0x86}) || starts_with({0x64, 0xaa})) return ObjectFormat::coff;  // IMAGE_FILE_MACHINE_AMD64, _ARM64
  if (starts_with({0x00, 0x00, 0xff, 0xff})) return ObjectFormat::coff;                   // one with many sections
  return ObjectFormat::unknown;
}

const Machine* host_machine() noexcept {
#if defined(TACK_X86_64)
  return &x86_64;
#elif defined(TACK_AARCH64)
  return &aarch64;
#else
  return nullptr;
#endif
}

std::unique_ptr<LoadedObject> link_object(const Machine& machine, std::span<const std::byte> object, SymbolResolver resolve,
                                          std::string_view name) {
  return Linker(machine, object, resolve, name).link();
}

std::unique_ptr<LoadedObject> load_object(std::span<const std::byte> object, SymbolResolver resolve, std::string_view name) {
  const Machine* machine = host_machine();
  if (machine == nullptr) {
    throw Error(ErrorCode::unsupported,
                "Kernel '" + std::string(name) + "' cannot run on this processor: machine code is loaded on x86-64 and AArch64 only.");
  }
  return link_object(*machine, object, resolve, name);
}

}  // namespace tack::cpu
