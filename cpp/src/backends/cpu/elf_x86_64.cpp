// backends/cpu/elf_x86_64.cpp -- the relocations of position-independent x86-64 code in the small model.
#include <array>
#include <cstring>

#include "backends/cpu/elf.h"
#include "backends/cpu/elf_relocation.h"

namespace tack::cpu {

namespace {

// Numbers and formulas: System V ABI, AMD64 supplement, "Relocation Types". S symbol, A addend, P place, G its slot's address, L symbol or
// stub.
enum : std::uint32_t {
  none = 0,
  abs64 = 1,       // S + A
  pc32 = 2,        // S + A - P
  plt32 = 4,       // L + A - P
  gotpcrel = 9,    // G + A - P
  abs32 = 10,      // S + A, zero-extended
  abs32s = 11,     // S + A, sign-extended
  pc64 = 24,       // S + A - P
  gotpcrelx = 41,  // as gotpcrel; a linker may rewrite the instruction, which is left as it is here
  rex_gotpcrelx = 42
};

constexpr std::array<RelocationType, 10> types{{
    {none, "R_X86_64_NONE", Reach::symbol, 0},
    {abs64, "R_X86_64_64", Reach::symbol, 8},
    {pc32, "R_X86_64_PC32", Reach::symbol, 4},
    {plt32, "R_X86_64_PLT32", Reach::call, 4},
    {gotpcrel, "R_X86_64_GOTPCREL", Reach::slot, 4},
    {abs32, "R_X86_64_32", Reach::symbol, 4},
    {abs32s, "R_X86_64_32S", Reach::symbol, 4},
    {pc64, "R_X86_64_PC64", Reach::symbol, 8},
    {gotpcrelx, "R_X86_64_GOTPCRELX", Reach::slot, 4},
    {rex_gotpcrelx, "R_X86_64_REX_GOTPCRELX", Reach::slot, 4},
}};

PatchResult apply(const Patch& patch) noexcept {
  const std::uint64_t absolute = patch.target + patch.addend;  // modulo 2^64, as the ABI computes
  const std::uint64_t relative = absolute - patch.address();
  switch (patch.type) {
    case abs64:
      return store<std::uint64_t>(patch.place, absolute);
    case pc64:
      return store<std::uint64_t>(patch.place, relative);
    case abs32:
      return absolute >> 32 == 0 ? store<std::uint32_t>(patch.place, absolute) : PatchResult::out_of_range;
    case abs32s:
      return store_signed32(patch.place, absolute);
    case pc32:
    case plt32:
    case gotpcrel:
    case gotpcrelx:
    case rex_gotpcrelx:
      return store_signed32(patch.place, relative);
    default:
      return PatchResult::done;  // none
  }
}

/// jmp *slot(%rip), then int3 twice.
bool write_stub(std::byte* stub, std::uint64_t slot) noexcept {
  constexpr std::uint64_t instruction_bytes = 6;
  const std::uint64_t distance = slot - (reinterpret_cast<std::uintptr_t>(stub) + instruction_bytes);
  if (!fits_signed(distance, 32)) return false;
  std::array<std::uint8_t, 8> code{0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc};
  const auto low = static_cast<std::uint32_t>(distance);
  std::memcpy(&code[2], &low, sizeof low);
  std::memcpy(stub, code.data(), code.size());
  return true;
}

}  // namespace

constinit const Machine x86_64{.number = elf::machine_x86_64,
                               .name = "x86-64",
                               .relocations = types,
                               .padding = std::byte{0xcc},
                               .stub_bytes = 8,
                               .stub_alignment = 8,
                               .apply = apply,
                               .write_stub = write_stub};

}  // namespace tack::cpu
