// object_support.h -- what the tests of the object loader share: the objects, a resolver, and the message of a refusal.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/object_link.h"
#include "backends/cpu/object_loader.h"
#include "elf_builder.h"
#include "tack/error.hpp"

namespace tack::testing {

using Bytes = std::vector<std::byte>;

inline std::int64_t outside_data = 123456789;

inline std::int64_t weak_and_present(std::int64_t x) { return x * 10; }

/// What the tests' objects may use beside the runtime's own functions.
inline void* resolve(std::string_view name) {
  if (name == "outside_data") return &outside_data;
  if (name == "weak_and_present") return reinterpret_cast<void*>(&weak_and_present);
  return cpu::runtime_symbol(name);
}

/// The folder that objects/make_objects.py wrote: from the build (objects/objects.cmake), else from the environment.
inline std::filesystem::path object_folder() {
#if defined(TACK_TEST_OBJECTS)
  return TACK_TEST_OBJECTS;
#else
  const char* folder = std::getenv("TACK_TEST_OBJECTS");
  return folder != nullptr ? folder : "";
#endif
}

inline Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(
      in.good(), path.string(),
      " is missing: cpp/tests/objects/objects.cmake makes it, or cpp/tests/objects/make_objects.py FOLDER with TACK_TEST_OBJECTS=FOLDER");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto view = std::as_bytes(std::span(text.data(), text.size()));
  return {view.begin(), view.end()};
}

inline std::string folder_of(const cpu::Machine& machine) { return machine.number == elf::machine_x86_64 ? "x86_64" : "aarch64"; }

inline Bytes object_of(const cpu::Machine& machine, const std::string& name) {
  return read_file(object_folder() / folder_of(machine) / (name + ".o"));
}

inline const cpu::Machine& host() {
  REQUIRE(cpu::host_machine() != nullptr);
  return *cpu::host_machine();
}

/// The message with which an object is refused; "" when it is loaded. Any other failure than Error(corrupt) fails the test.
inline std::string refusal(const cpu::Machine& machine, std::span<const std::byte> object) {
  try {
    cpu::link_object(machine, object, resolve, "k");
    return "";
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::corrupt);
    return error.what();
  }
}

/// A right object for x86-64 that tests spoil: code, data, a relocation of each.
struct Sound {
  ElfBuilder builder{elf::machine_x86_64};
  std::uint32_t text = builder.add_code(Bytes(64, std::byte{0x90}));
  std::uint32_t data = builder.add(".data", elf::section_type::program, elf::section_flag::alloc | elf::section_flag::write, Bytes(32), 8);
  std::uint32_t function = builder.add_function("f", text);
  std::uint32_t object = builder.add_symbol("d", elf::binding::local, elf::symbol_type::object, static_cast<std::uint16_t>(data), 8);
  std::uint32_t relocations = builder.add_relocations(text, {ElfBuilder::relocation(4, object, 2, -4)});

  std::string refused() { return refusal(cpu::x86_64, builder.build()); }
  /// The refusal after one field of the finished object is overwritten.
  template <class T>
  std::string refused_with(std::size_t offset, T value) {
    Bytes image = builder.build();
    poke(image, offset, value);
    return refusal(cpu::x86_64, image);
  }
  template <class T>
  std::string refused_with_section(std::uint32_t section, std::size_t field, T value) {
    Bytes image = builder.build();
    poke(image, builder.field_offset(section, field), value);
    return refusal(cpu::x86_64, image);
  }
};

/// A check that a message has a part, which shows the message when it fails.
inline void check_contains(const std::string& text, std::string_view part, std::source_location where = std::source_location::current()) {
  const bool contains = text.find(part) != std::string::npos;
  if (!contains) {
    std::string problem(part);
    problem += " is not in: ";
    problem += text;
    ADD_MESSAGE_AT(where.file_name(), static_cast<int>(where.line()), problem);
  }
  CHECK(contains);
}

inline const std::array<std::string, 6> good_objects{"switch", "constants", "table", "data", "calls", "kernel"};
inline const std::array<std::string, 5> refused_objects{"refused_thread_local", "refused_constructor", "refused_unknown", "refused_common",
                                                        "refused_absolute"};

}  // namespace tack::testing
