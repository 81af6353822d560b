// backends/cpu/elf_relocation.h -- what the object loader must know of a machine: its relocations and how a call reaches far code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tack::cpu {

/// Which address a relocation is computed from.
enum class Reach : std::uint8_t {
  symbol,  ///< the symbol's own address
  slot,    ///< the address of a table slot that holds the symbol's address
  call,    ///< the symbol's address, or that of a stub which jumps to it when the symbol lies outside the object
};

struct RelocationType {
  std::uint32_t number;
  std::string_view name;  ///< as the processor's ABI supplement has it
  Reach reach;
  std::uint8_t bytes;  ///< how many it changes; 0 for one that changes nothing
};

/// One change: `bytes` of its type at `place` are writable, and `target` is as Reach says.
struct Patch {
  std::uint32_t type;
  std::byte* place;
  std::uint64_t target;
  std::uint64_t addend;  ///< two's complement
  /// The address at which the code will run; the loader writes in place.
  std::uint64_t address() const noexcept { return reinterpret_cast<std::uintptr_t>(place); }
};

enum class PatchResult : std::uint8_t { done, out_of_range, misaligned, bad_addend };

/// Whether `value`, as a signed number, has at most `bits` bits; fewer than 64.
constexpr bool fits_signed(std::uint64_t value, int bits) noexcept {
  const std::uint64_t half = std::uint64_t{1} << (bits - 1);
  return value + half < half * 2;
}

/// Writes the low bits of `value`.
template <class Word>
PatchResult store(std::byte* place, std::uint64_t value) noexcept {
  const auto low = static_cast<Word>(value);
  std::memcpy(place, &low, sizeof low);
  return PatchResult::done;
}

/// Writes 32 bits that the processor extends by their sign.
inline PatchResult store_signed32(std::byte* place, std::uint64_t value) noexcept {
  return fits_signed(value, 32) ? store<std::uint32_t>(place, value) : PatchResult::out_of_range;
}

/// One instruction set. Constant; both are compiled into every build, so that either relocator can be tested anywhere.
struct Machine {
  std::uint16_t number;
  std::string_view name;
  std::span<const RelocationType> relocations;
  std::byte padding;       ///< between functions: traps when executed
  std::size_t stub_bytes;  ///< a multiple of stub_alignment
  std::size_t stub_alignment;
  PatchResult (*apply)(const Patch& patch) noexcept;
  /// Writes a stub that jumps to the address in `slot`; false when the slot is too far away.
  bool (*write_stub)(std::byte* stub, std::uint64_t slot) noexcept;
};

extern const Machine x86_64;
extern const Machine aarch64;

}  // namespace tack::cpu
