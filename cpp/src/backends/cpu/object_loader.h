// backends/cpu/object_loader.h -- maps and relocates relocatable ELF objects (x86-64, aarch64); never writable and executable at once.
// Objects of other formats are told apart here, and linked by whoever the runtime's host has installed (ObjectLinker).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tack/runtime.hpp"

namespace tack::cpu {

enum class ObjectFormat : std::uint8_t { elf, mach_o, coff, unknown };
/// By the first bytes, for little-endian 64-bit machines. Damaged bytes are `unknown`, or will be refused by whoever reads on.
ObjectFormat object_format(std::span<const std::byte> object) noexcept;

/// Answers the address of an external symbol, or null when the runtime does not offer it.
using SymbolResolver = void* (*)(std::string_view name);

/// Machine code in memory. Immutable once made; freed with the object.
class LoadedObject {
 public:
  virtual ~LoadedObject() = default;
  /// The address of a defined function, or null.
  virtual void* find(std::string_view symbol) const noexcept = 0;
  virtual std::size_t code_bytes() const noexcept = 0;
};

/// Loads an ELF relocatable object for this machine. `name` is the kernel's, for messages.
/// Throws Error(corrupt) for anything damaged, out of range or unknown (with the section, relocation or symbol's name).
std::unique_ptr<LoadedObject> load_object(std::span<const std::byte> object, SymbolResolver resolve, std::string_view name);

/// The C library functions that CPU code may call (memcpy, memset, memmove, fmod, ...): one table, sorted by name.
std::span<const ImportedSymbol> runtime_symbols();
/// Those of them that only this system's code asks for: runtime_symbols_posix.cpp, runtime_symbols_windows.cpp.
std::vector<ImportedSymbol> system_symbols();
/// The address in that table, or null.
void* runtime_symbol(std::string_view name);

}  // namespace tack::cpu
