// backends/cpu/elf_aarch64.cpp -- the relocations of position-independent AArch64 code in the small model.
#include <array>
#include <cstring>

#include "backends/cpu/elf.h"
#include "backends/cpu/elf_relocation.h"

namespace tack::cpu {

namespace {

// Numbers and formulas: "ELF for the Arm 64-bit Architecture". S symbol, A addend, P place, G its slot's address, Page(x) x without 12 low
// bits.
enum : std::uint32_t {
  none = 0,
  none_withdrawn = 256,
  abs64 = 257,              // S + A
  abs32 = 258,              // S + A, either extension
  prel64 = 260,             // S + A - P
  prel32 = 261,             // S + A - P
  adr_prel_lo21 = 274,      // S + A - P, ADR
  adr_prel_pg_hi21 = 275,   // Page(S + A) - Page(P), ADRP
  add_abs_lo12_nc = 277,    // S + A, low 12 bits, ADD
  ldst8_abs_lo12_nc = 278,  // the same, scaled by the access: loads and stores
  condbr19 = 280,           // S + A - P, conditional branch
  jump26 = 282,             // S + A - P, B
  call26 = 283,             // S + A - P, BL
  ldst16_abs_lo12_nc = 284,
  ldst32_abs_lo12_nc = 285,
  ldst64_abs_lo12_nc = 286,
  ldst128_abs_lo12_nc = 299,
  adr_got_page = 311,     // Page(G) - Page(P), ADRP
  ld64_got_lo12_nc = 312  // G, low 12 bits scaled by 8, LDR
};

constexpr std::array<RelocationType, 19> types{{
    {none, "R_AARCH64_NONE", Reach::symbol, 0},
    {none_withdrawn, "R_AARCH64_NONE", Reach::symbol, 0},
    {abs64, "R_AARCH64_ABS64", Reach::symbol, 8},
    {abs32, "R_AARCH64_ABS32", Reach::symbol, 4},
    {prel64, "R_AARCH64_PREL64", Reach::symbol, 8},
    {prel32, "R_AARCH64_PREL32", Reach::symbol, 4},
    {adr_prel_lo21, "R_AARCH64_ADR_PREL_LO21", Reach::symbol, 4},
    {adr_prel_pg_hi21, "R_AARCH64_ADR_PREL_PG_HI21", Reach::symbol, 4},
    {add_abs_lo12_nc, "R_AARCH64_ADD_ABS_LO12_NC", Reach::symbol, 4},
    {ldst8_abs_lo12_nc, "R_AARCH64_LDST8_ABS_LO12_NC", Reach::symbol, 4},
    {condbr19, "R_AARCH64_CONDBR19", Reach::symbol, 4},
    {jump26, "R_AARCH64_JUMP26", Reach::call, 4},
    {call26, "R_AARCH64_CALL26", Reach::call, 4},
    {ldst16_abs_lo12_nc, "R_AARCH64_LDST16_ABS_LO12_NC", Reach::symbol, 4},
    {ldst32_abs_lo12_nc, "R_AARCH64_LDST32_ABS_LO12_NC", Reach::symbol, 4},
    {ldst64_abs_lo12_nc, "R_AARCH64_LDST64_ABS_LO12_NC", Reach::symbol, 4},
    {ldst128_abs_lo12_nc, "R_AARCH64_LDST128_ABS_LO12_NC", Reach::symbol, 4},
    {adr_got_page, "R_AARCH64_ADR_GOT_PAGE", Reach::slot, 4},
    {ld64_got_lo12_nc, "R_AARCH64_LD64_GOT_LO12_NC", Reach::slot, 4},
}};

constexpr std::uint64_t page(std::uint64_t address) noexcept { return address & ~std::uint64_t{0xfff}; }

/// Replaces the bits of `mask` in the instruction.
PatchResult insert(std::byte* place, std::uint32_t mask, std::uint64_t bits) noexcept {
  std::uint32_t instruction = 0;
  std::memcpy(&instruction, place, sizeof instruction);
  instruction = (instruction & ~mask) | (static_cast<std::uint32_t>(bits) & mask);
  std::memcpy(place, &instruction, sizeof instruction);
  return PatchResult::done;
}

/// ADR and ADRP keep two low bits of their 21 at bit 29, the others at bit 5.
PatchResult insert_adr(std::byte* place, std::uint64_t value) noexcept {
  return insert(place, 0x60ffffe0u, (value & 3) << 29 | (value >> 2 & 0x7ffff) << 5);
}

PatchResult insert_page(std::byte* place, std::uint64_t distance) noexcept {
  return fits_signed(distance, 33) ? insert_adr(place, distance >> 12) : PatchResult::out_of_range;
}

/// The 12 bits at bit 10 of ADD and of loads and stores, in units of 1 << scale.
PatchResult insert_low12(std::byte* place, std::uint64_t value, int scale) noexcept {
  if ((value & ((std::uint64_t{1} << scale) - 1)) != 0) return PatchResult::misaligned;
  return insert(place, 0x003ffc00u, (value & 0xfff) >> scale << 10);
}

/// A branch distance in words: `bits` of them at bit `shift`.
PatchResult insert_branch(std::byte* place, std::uint64_t distance, int bits, int shift) noexcept {
  if ((distance & 3) != 0) return PatchResult::misaligned;
  if (!fits_signed(distance, bits + 2)) return PatchResult::out_of_range;
  const std::uint32_t mask = ((std::uint32_t{1} << bits) - 1) << shift;
  return insert(place, mask, distance >> 2 << shift);
}

PatchResult apply(const Patch& patch) noexcept {
  const std::uint64_t absolute = patch.target + patch.addend;  // modulo 2^64, as the ABI computes
  const std::uint64_t relative = absolute - patch.address();
  const std::uint64_t pages = page(absolute) - page(patch.address());
  switch (patch.type) {
    case abs64:
      return store<std::uint64_t>(patch.place, absolute);
    case abs32:
      return absolute >> 32 == 0 ? store<std::uint32_t>(patch.place, absolute) : store_signed32(patch.place, absolute);
    case prel64:
      return store<std::uint64_t>(patch.place, relative);
    case prel32:
      return store_signed32(patch.place, relative);
    case adr_prel_lo21:
      return fits_signed(relative, 21) ? insert_adr(patch.place, relative) : PatchResult::out_of_range;
    case adr_prel_pg_hi21:
      return insert_page(patch.place, pages);
    case add_abs_lo12_nc:
    case ldst8_abs_lo12_nc:
      return insert_low12(patch.place, absolute, 0);
    case ldst16_abs_lo12_nc:
      return insert_low12(patch.place, absolute, 1);
    case ldst32_abs_lo12_nc:
      return insert_low12(patch.place, absolute, 2);
    case ldst64_abs_lo12_nc:
      return insert_low12(patch.place, absolute, 3);
    case ldst128_abs_lo12_nc:
      return insert_low12(patch.place, absolute, 4);
    case condbr19:
      return insert_branch(patch.place, relative, 19, 5);
    case jump26:
    case call26:
      return insert_branch(patch.place, relative, 26, 0);
    case adr_got_page:  // the addend would select another slot, which a compiler never asks for
      return patch.addend == 0 ? insert_page(patch.place, pages) : PatchResult::bad_addend;
    case ld64_got_lo12_nc:
      return patch.addend == 0 ? insert_low12(patch.place, absolute, 3) : PatchResult::bad_addend;
    default:
      return PatchResult::done;  // none
  }
}

/// adrp x16, slot; ldr x17, [x16, slot]; br x17; udf. The ABI leaves x16 and x17 to such stubs.
bool write_stub(std::byte* stub, std::uint64_t slot) noexcept {
  constexpr std::array<std::uint32_t, 4> code{0x90000010u, 0xf9400211u, 0xd61f0220u, 0u};
  std::memcpy(stub, code.data(), sizeof code);
  const std::uint64_t distance = page(slot) - page(reinterpret_cast<std::uintptr_t>(stub));
  return insert_page(stub, distance) == PatchResult::done && insert_low12(stub + 4, slot, 3) == PatchResult::done;
}

}  // namespace

constinit const Machine aarch64{.number = elf::machine_aarch64,
                                .name = "AArch64",
                                .relocations = types,
                                .padding = std::byte{0},
                                .stub_bytes = 16,
                                .stub_alignment = 16,
                                .apply = apply,
                                .write_stub = write_stub};

}  // namespace tack::cpu
