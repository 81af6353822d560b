// test_object_damage.cpp -- objects that are damaged, hostile or unknown: each is refused with a reason, and none crashes the loader.
//
// Nothing here is run, so both machines are tried on either. The objects are made by objects/make_objects.py.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "object_support.h"

namespace elf = tack::cpu::elf;
using namespace tack::testing;

TEST_CASE("what kernels must not have is refused by name") {
  for (const auto* machine : {&tack::cpu::x86_64, &tack::cpu::aarch64}) {
    INFO(folder_of(*machine));
    check_contains(refusal(*machine, object_of(*machine, "refused_thread_local")), "holds thread-local data");
    check_contains(refusal(*machine, object_of(*machine, "refused_constructor")), "holds constructors or destructors");
    check_contains(refusal(*machine, object_of(*machine, "refused_unknown")),
                   "'function_that_nobody_offers', which the runtime does not offer");
    check_contains(refusal(*machine, object_of(*machine, "refused_common")), "symbol 'shared' lies in the special section 0xfff2");
  }
  const std::string far = refusal(tack::cpu::x86_64, object_of(tack::cpu::x86_64, "refused_absolute"));
  check_contains(far, "type R_X86_64_32S");
  check_contains(far, "is the code position-independent?");
  check_contains(refusal(tack::cpu::aarch64, object_of(tack::cpu::aarch64, "refused_absolute")), "(type 264, symbol '.rodata')");
}

TEST_CASE("an error is complete: kernel, code, what to do") {
  try {
    tack::cpu::load_object({}, resolve, "saxpy");
    FAIL("an empty object was loaded");
  } catch (const tack::Error& error) {
    CHECK(error.code() == tack::ErrorCode::corrupt);
    CHECK(error.fields().backend == "cpu");
    CHECK(error.fields().operation == "load object");
    CHECK(std::string(error.what()) ==
          "Cannot load the machine code of kernel 'saxpy': the file header claims 64 bytes at offset 0 of an object of 0 bytes. Compile it "
          "again (without the disk cache: TACK_CACHE=0, in C++ Config::cache); if this comes back, please report it.");
  }
}

TEST_CASE("relocations out of range are refused by name") {
  struct Case {
    std::uint32_t type;
    std::int64_t addend;
    const char* expected;
  };
  constexpr std::int64_t far = std::int64_t{1} << 40;
  for (const auto& [type, addend, expected] :
       {Case{2, far, "R_X86_64_PC32"}, Case{2, -far, "R_X86_64_PC32"}, Case{4, far, "R_X86_64_PLT32"}, Case{9, far, "R_X86_64_GOTPCREL"},
        Case{10, 0, "R_X86_64_32,"}, Case{11, 0, "R_X86_64_32S"}}) {
    Sound sound;
    sound.builder.add_relocations(sound.text, {ElfBuilder::relocation(8, sound.object, type, addend)});
    const std::string message = sound.refused();
    check_contains(message, expected);
    check_contains(message, "symbol 'd') does not reach its symbol");
  }
  struct ArmCase {
    std::uint32_t type;
    std::int64_t addend;
    const char* expected;
  };
  for (const auto& [type, addend, expected] :
       {ArmCase{275, far, "does not reach"}, ArmCase{283, far, "does not reach"}, ArmCase{283, 2, "misaligned"},
        ArmCase{280, 1 << 22, "does not reach"}, ArmCase{286, 4, "misaligned"}, ArmCase{299, 8, "misaligned"},
        ArmCase{261, far, "does not reach"}, ArmCase{274, 1 << 22, "does not reach"}, ArmCase{311, 8, "has the addend 8"},
        ArmCase{312, 8, "has the addend 8"}}) {
    ElfBuilder builder(elf::machine_aarch64);
    const std::uint32_t text = builder.add_code(Bytes(64));
    const std::uint32_t function = builder.add_function("f", text);
    builder.add_relocations(text, {ElfBuilder::relocation(8, function, type, addend)});
    INFO(type);
    check_contains(refusal(tack::cpu::aarch64, builder.build()), expected);
  }
}

TEST_CASE("hostile file headers") {
  using Header = elf::FileHeader;
  CHECK(Sound().refused() == "");
  check_contains(Sound().refused_with<std::uint8_t>(0, 0x7e), "no ELF object");
  check_contains(Sound().refused_with<std::uint8_t>(offsetof(Header, word_class), 1), "not a 64-bit object");
  check_contains(Sound().refused_with<std::uint8_t>(offsetof(Header, byte_order), 2), "not little-endian");
  check_contains(Sound().refused_with<std::uint32_t>(offsetof(Header, version), 7), "ELF version is 7");
  check_contains(Sound().refused_with<std::uint16_t>(offsetof(Header, machine), 40), "made for machine 40, not for x86-64 (62)");
  check_contains(Sound().refused_with<std::uint16_t>(offsetof(Header, type), 3), "its type is 3");
  check_contains(Sound().refused_with<std::uint16_t>(offsetof(Header, section_header_bytes), 0), "section headers have 0 bytes");
  check_contains(Sound().refused_with<std::uint16_t>(offsetof(Header, section_count), 0), "no sections");
  check_contains(Sound().refused_with<std::uint16_t>(offsetof(Header, section_count), 0xffff), "the section table claims 4194240 bytes");
  check_contains(Sound().refused_with<std::uint16_t>(offsetof(Header, name_section), 0xffff), "section names lie in section 65535");
  check_contains(Sound().refused_with<std::uint16_t>(offsetof(Header, name_section), 2), "section names lie in a section of type 0x2");
  for (const std::uint64_t offset : {~std::uint64_t{0}, ~std::uint64_t{0} - 63, std::uint64_t{1} << 63, std::uint64_t{100'000}})
    check_contains(Sound().refused_with<std::uint64_t>(offsetof(Header, section_headers), offset), "the section table claims");
}

TEST_CASE("hostile sections") {
  using Field = elf::SectionHeader;
  Sound sound;
  for (const std::uint64_t huge : {~std::uint64_t{0}, std::uint64_t{1} << 63, ~std::uint64_t{0} - 63, std::uint64_t{100'000}}) {
    check_contains(Sound().refused_with_section<std::uint64_t>(sound.text, offsetof(Field, size), huge), "section 3 claims");
    check_contains(Sound().refused_with_section<std::uint64_t>(sound.text, offsetof(Field, offset), huge), "section 3 claims");
    check_contains(Sound().refused_with_section<std::uint64_t>(sound.relocations, offsetof(Field, size), huge), "section 5 claims");
  }
  check_contains(Sound().refused_with_section<std::uint32_t>(sound.text, offsetof(Field, name), 0xffffffff), "the name of section 3");
  check_contains(Sound().refused_with_section<std::uint32_t>(sound.text, offsetof(Field, type), 6),
                 "section 3 '.text' has the unknown type 0x6");
  check_contains(Sound().refused_with_section<std::uint32_t>(sound.data, offsetof(Field, type), 14), "holds constructors");
  const auto with_flags = [&](std::uint64_t flags) {
    return Sound().refused_with_section<std::uint64_t>(sound.data, offsetof(Field, flags), flags);
  };
  check_contains(with_flags(7), "'.data' wants to be writable and executable at once");
  check_contains(with_flags(0x403), "'.data' holds thread-local data");
  check_contains(with_flags(0x803), "'.data' holds compressed content");
  check_contains(with_flags(0x10000003), "'.data' has the unknown flags 0x10000000");
  check_contains(with_flags(0), "symbol 'd' lies in section '.data', which is not loaded");
  const auto with_alignment = [&](std::uint64_t alignment) {
    return Sound().refused_with_section<std::uint64_t>(sound.data, offsetof(Field, alignment), alignment);
  };
  CHECK(with_alignment(0) == "");
  CHECK(with_alignment(4096) == "");
  check_contains(with_alignment(24), "'.data' has the alignment 24");
  check_contains(with_alignment(std::uint64_t{1} << 63), "wants an alignment of 9223372036854775808 bytes");
  check_contains(with_alignment(std::uint64_t{1} << 20), "wants an alignment of 1048576 bytes");

  for (const std::uint64_t size : {~std::uint64_t{0}, std::uint64_t{1} << 63, (std::uint64_t{1} << 30) + 1, (std::uint64_t{1} << 30)}) {
    Sound zeroed;
    const std::uint32_t bss = zeroed.builder.add(".bss", elf::section_type::no_bits, 3, {}, 16);
    check_contains(zeroed.refused_with_section<std::uint64_t>(bss, offsetof(Field, size), size), "needs more than 1024 MiB");
  }
  Sound many;  // each within the limit, together beyond it, again and again
  for (int i = 0; i < 64; ++i) {
    const std::uint32_t bss = many.builder.add(".bss", elf::section_type::no_bits, 3, {}, 16);
    many.builder.sections[bss].header.size = std::uint64_t{1} << 29;
  }
  check_contains(many.refused(), "needs more than 1024 MiB");

  Sound empty_code;
  check_contains(empty_code.refused_with_section<std::uint32_t>(empty_code.text, offsetof(Field, type), 8),
                 "executable and has no content");
  ElfBuilder no_code(elf::machine_x86_64);
  check_contains(refusal(tack::cpu::x86_64, no_code.build()), "it holds no code");

  // Sections that overlap each other, or the headers, are only read.
  Bytes overlapping = sound.builder.build();
  poke<std::uint64_t>(overlapping, sound.builder.field_offset(sound.text, offsetof(Field, offset)), 0);
  CHECK(refusal(tack::cpu::x86_64, overlapping) == "");
}

TEST_CASE("hostile links between sections") {
  using Field = elf::SectionHeader;
  Sound sound;
  const std::uint32_t symbols = sound.builder.symbol_table;
  const auto with = [&](std::uint32_t section, std::size_t field, std::uint32_t value) {
    return Sound().refused_with_section<std::uint32_t>(section, field, value);
  };
  check_contains(with(symbols, offsetof(Field, link), symbols), "takes its names from section 2, which is no string table");
  check_contains(with(symbols, offsetof(Field, link), 0xffffffff), "takes its names from section 4294967295");
  check_contains(with(sound.relocations, offsetof(Field, link), sound.relocations), "refers to section 5, which is not the symbol table");
  check_contains(with(sound.relocations, offsetof(Field, link), 0xffffffff), "which is not the symbol table");
  check_contains(with(sound.relocations, offsetof(Field, info), 0xffffffff), "relocates section 4294967295 of 6");
  check_contains(with(sound.relocations, offsetof(Field, info), 0), "relocates section 0");
  CHECK(with(sound.relocations, offsetof(Field, info), sound.relocations) == "");  // relocations of what is not loaded are passed over
  check_contains(with(sound.relocations, offsetof(Field, type), 9), "relocations without addends");
  check_contains(with(sound.relocations, offsetof(Field, type), 2), "two symbol tables");
  check_contains(with(sound.relocations, offsetof(Field, type), 18), "extends the symbols");
  check_contains(with(symbols, offsetof(Field, type), 1), "which is not the symbol table");
  CHECK(with(sound.data, offsetof(Field, type), 8) == "");

  check_contains(Sound().refused_with_section<std::uint64_t>(symbols, offsetof(Field, size), 25), "no multiple of a symbol's 24");
  check_contains(Sound().refused_with_section<std::uint64_t>(symbols, offsetof(Field, size), 24), "refers to symbol 2 of 1");
  check_contains(Sound().refused_with_section<std::uint64_t>(sound.relocations, offsetof(Field, size), 23),
                 "no multiple of a relocation's 24");

  Sound zeroed;
  const std::uint32_t bss = zeroed.builder.add(".bss", elf::section_type::no_bits, 3, {}, 16);
  zeroed.builder.sections[bss].header.size = 64;
  zeroed.builder.add_relocations(bss, {ElfBuilder::relocation(0, zeroed.object, 1, 0)});
  check_contains(zeroed.refused(), "relocates section 6 '.bss', which has no content");

  // A string table without an end.
  Sound unending;
  Bytes image = unending.builder.build();
  const std::size_t size_field = unending.builder.field_offset(unending.builder.names, offsetof(Field, size));
  std::uint64_t size = 0;
  std::memcpy(&size, image.data() + size_field, sizeof size);
  poke<std::uint64_t>(image, size_field, size - 1);
  check_contains(refusal(tack::cpu::x86_64, image), "has no end");
}

TEST_CASE("hostile symbols and relocations") {
  const auto with_symbol = [](std::uint8_t binding, std::uint8_t type, std::uint16_t section, std::uint64_t value) {
    Sound sound;
    const std::uint32_t symbol = sound.builder.add_symbol("s\xffy", binding, type, section, value);
    sound.builder.add_relocations(sound.text, {ElfBuilder::relocation(8, symbol, 1, 0)});
    return sound.refused();
  };
  CHECK(with_symbol(0, 1, 3, 64) == "");  // the end of a section is an address of it
  check_contains(with_symbol(0, 1, 3, 65), "symbol 's\\xffy' lies at 65 of the 64 bytes of section '.text'");
  check_contains(with_symbol(0, 1, 3, ~std::uint64_t{0}), "lies at 18446744073709551615");
  check_contains(with_symbol(0, 1, 77, 0), "lies in section 77 of 7");
  check_contains(with_symbol(0, 1, 0xfeff, 0), "lies in section 65279");
  check_contains(with_symbol(0, 1, elf::section_index::absolute, 0x1000), "special section 0xfff1");
  check_contains(with_symbol(0, 1, elf::section_index::extended, 0), "special section 0xffff");
  check_contains(with_symbol(0, 6, 3, 0), "is of type 6");
  check_contains(with_symbol(0, 10, 3, 0), "is of type 10");
  check_contains(with_symbol(1, 0, 0, 0), "uses the symbol 's\\xffy', which the runtime does not offer");
  check_contains(with_symbol(1, 2, 4, 0), "function 's\\xffy' does not lie in code");
  check_contains(with_symbol(1, 2, 3, 64), "function 's\\xffy' does not lie in code");

  Sound twice;
  twice.builder.add_function("f", twice.text, 8);
  check_contains(twice.refused(), "defines the function 'f' twice");

  const auto with_relocation = [](std::uint64_t offset, std::uint32_t symbol, std::uint32_t type) {
    Sound sound;
    sound.builder.add_relocations(sound.text, {ElfBuilder::relocation(offset, symbol, type, 0)});
    return sound.refused();
  };
  CHECK(with_relocation(56, 1, 24) == "");
  CHECK(with_relocation(60, 1, 2) == "");
  for (const std::uint64_t offset :
       {std::uint64_t{61}, std::uint64_t{64}, std::uint64_t{65}, ~std::uint64_t{0}, ~std::uint64_t{0} - 3, std::uint64_t{1} << 63})
    check_contains(with_relocation(offset, 1, 2), "changes 4 bytes at offset " + std::to_string(offset) + " of 64");
  check_contains(with_relocation(57, 1, 1), "changes 8 bytes at offset 57 of 64");
  check_contains(with_relocation(0, 3, 2), "refers to symbol 3 of 3");
  check_contains(with_relocation(0, 0xffffffff, 2), "refers to symbol 4294967295 of 3");
  check_contains(with_relocation(0, 0, 2), "names no symbol");
  check_contains(with_relocation(0, 1, 3),
                 "relocation 0 of section '.text' (type 3, symbol 'f') is of a kind that this loader does not know for x86-64");
  check_contains(with_relocation(0, 1, 0xffffffff), "type 4294967295");
}

TEST_CASE("an object cut off at any length is refused") {
  for (const auto* machine : {&tack::cpu::x86_64, &tack::cpu::aarch64}) {
    for (const std::string& name : good_objects) {
      const Bytes object = object_of(*machine, name);
      for (std::size_t length = 0; length < object.size(); ++length) {
        // A copy of its own, so that the address sanitizer sees a read past its end.
        const Bytes cut(object.begin(), object.begin() + static_cast<std::ptrdiff_t>(length));
        if (refusal(*machine, cut).empty())
          FAIL(name, " of ", folder_of(*machine), " was loaded with ", length, " of its ", object.size(), " bytes");
      }
    }
  }
}

TEST_CASE("flipped bits and wild bytes never crash the loader") {
  std::mt19937_64 random(20261130);
  std::size_t loaded = 0, refused = 0;
  const auto attempt = [&](const tack::cpu::Machine& machine, const Bytes& object) {
    ++(refusal(machine, object).empty() ? loaded : refused);
  };
  for (const auto* machine : {&tack::cpu::x86_64, &tack::cpu::aarch64}) {
    std::vector<std::string> names(good_objects.begin(), good_objects.end());
    names.insert(names.end(), refused_objects.begin(), refused_objects.end());
    for (const std::string& name : names) {
      const Bytes object = object_of(*machine, name);
      for (int i = 0; i < 1500; ++i) {
        Bytes damaged = object;
        const int flips = i < 1000 ? 1 : 2 + i % 7;
        for (int flip = 0; flip < flips; ++flip) damaged[random() % damaged.size()] ^= static_cast<std::byte>(1u << (random() % 8));
        attempt(*machine, damaged);
      }
    }
    // Each byte of a whole object, set to values that make large, negative and neighbouring numbers.
    const Bytes object = object_of(*machine, "table");
    for (std::size_t at = 0; at < object.size(); ++at) {
      for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
        Bytes damaged = object;
        damaged[at] = static_cast<std::byte>(value);
        attempt(*machine, damaged);
      }
    }
  }
  CHECK(loaded > 1000);  // flips in code and constants can't be seen here
  CHECK(refused > 1000);
}
