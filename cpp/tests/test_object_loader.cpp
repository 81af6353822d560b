// test_object_loader.cpp -- the object loader runs what LLVM emits for this machine, and computes each relocation as the ABI says.
//
// The objects are made by objects/make_objects.py.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "object_support.h"

namespace elf = tack::cpu::elf;
using namespace tack::testing;
using tack::cpu::LoadedObject;

namespace {

std::unique_ptr<LoadedObject> load(const std::string& name) { return tack::cpu::load_object(object_of(host(), name), resolve, name); }

/// A function of a loaded object, ready to call.
template <class Function>
Function* function_of(const LoadedObject& object, std::string_view name) {
  void* address = object.find(name);
  REQUIRE_MESSAGE(address != nullptr, std::string(name), " is missing");
  return reinterpret_cast<Function*>(address);
}

/// Whether a jump to the address is refused there and then. Tried in a child, since what lies there need not be code.
bool can_execute(const void* address) {
  std::cout.flush();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    static const void* target;
    target = address;
    struct sigaction action{};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* info, void*) { _exit(info->si_addr == target ? 1 : 0); };
    for (const int signal : {SIGSEGV, SIGBUS}) sigaction(signal, &action, nullptr);
    action.sa_sigaction = [](int, siginfo_t*, void*) { _exit(0); };  // an instruction was tried
    for (const int signal : {SIGILL, SIGTRAP, SIGFPE, SIGALRM}) sigaction(signal, &action, nullptr);
    alarm(5);
    reinterpret_cast<void (*)()>(const_cast<void*>(address))();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status) == 0;
}

/// "r-x" and the like: what may be done at an address. Asks the kernel, which answers EFAULT where a byte can't be read or written; the
/// memory map would do on Linux, but qemu-user joins neighbours in it.
std::string access_of(void* address) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const bool readable = write(ends[1], address, 1) == 1;
  const bool writable = readable && read(ends[0], address, 1) == 1;  // the same byte again
  close(ends[0]);
  close(ends[1]);
  return {readable ? 'r' : '-', writable ? 'w' : '-', readable && can_execute(address) ? 'x' : '-'};
}

/// Function "answer" of `machine`, which returns 42.
Bytes answer_code(const tack::cpu::Machine& machine) {
  constexpr std::array<std::uint8_t, 6> for_x86_64{0xb8, 0x2a, 0, 0, 0, 0xc3};                        // mov eax, 42; ret
  constexpr std::array<std::uint8_t, 8> for_aarch64{0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6};  // mov w0, 42; ret
  const auto to_bytes = [](const auto& code) {
    const auto view = std::as_bytes(std::span(code));
    return Bytes(view.begin(), view.end());
  };
  return machine.number == elf::machine_x86_64 ? to_bytes(for_x86_64) : to_bytes(for_aarch64);
}

}  // namespace

TEST_CASE("a jump table") {
  const auto object = load("switch");
  auto* pick = function_of<std::int64_t(std::int64_t, std::int64_t)>(*object, "pick");
  for (std::int64_t k = -3; k < 60; ++k) {
    const bool known = (k >= 0 && k < 39) || k == 55;
    CHECK(pick(k, 1000) == (known ? ((1000 * (k + 2)) ^ k) : -1));
  }
}

TEST_CASE("many constants, scalar and vector") {
  const auto object = load("constants");
  auto* horner32 = function_of<float(float)>(*object, "horner32");
  auto* horner64 = function_of<double(double)>(*object, "horner64");
  double expected = 0.75;
  for (int k = 0; k < 60; ++k) expected = expected * 0.75 + 1.0 / (k + 3.0);
  CHECK(horner64(0.75) == doctest::Approx(expected).epsilon(1e-13));
  CHECK(horner32(0.75f) == doctest::Approx(expected).epsilon(1e-5));

  auto* vectors = function_of<void(float*)>(*object, "vectors");
  std::array<float, 8> values{1, 2, 3, 4, 5, 6, 7, 8};
  vectors(values.data());
  for (int k = 0; k < 8; ++k) CHECK(values[static_cast<std::size_t>(k)] == static_cast<float>((k + 1) * (k + 0.25) - (k + 0.5)));
}

TEST_CASE("a table of functions, read-only once it is relocated") {
  const auto object = load("table");
  auto* by_index = function_of<std::int64_t(std::int64_t, std::int64_t)>(*object, "by_index");
  CHECK(by_index(0, 7) == 7);
  CHECK(by_index(1, 7) == 21);
  CHECK(by_index(2, 7) == 10);
  CHECK(object->find("triple") == nullptr);  // local
  CHECK(object->find("functions") == nullptr);
  CHECK(object->find("") == nullptr);
  CHECK(access_of(function_of<void*()>(*object, "address_of_table")()) == "r--");
}

TEST_CASE("data that is written, zeroed, aligned, and reached through the slot table; each load has its own") {
  const auto object = load("data");
  const auto other = load("data");
  auto* count = function_of<std::int64_t()>(*object, "count");
  CHECK(count() == 41);
  CHECK(count() == 42);
  CHECK(function_of<std::int64_t()>(*other, "count")() == 41);

  auto* touch = function_of<std::int64_t(std::int64_t)>(*object, "touch_zeroed");
  auto* through_pointer = function_of<std::int64_t()>(*object, "through_pointer");
  CHECK(through_pointer() == 0);
  CHECK(touch(7) == 5);
  CHECK(through_pointer() == 5);
  CHECK(touch(0) == 5);
  CHECK(touch(1999) == 5);
  CHECK(function_of<std::int64_t()>(*object, "load_shared")() == 7);
  auto* byte_at = function_of<std::int64_t(std::int64_t)>(*object, "byte_at");
  CHECK(byte_at(0) == 't');
  CHECK(byte_at(4) == 0);

  void* aligned = function_of<void*()>(*object, "address_of_aligned")();
  CHECK(reinterpret_cast<std::uintptr_t>(aligned) % 1024 == 0);
  CHECK(access_of(function_of<void*()>(*object, "address_of_counter")()) == "rw-");
}

TEST_CASE("calls and data outside the object") {
  const auto object = load("calls");
  CHECK(function_of<float(float)>(*object, "half_exp")(1.5f) == 0.5f * std::exp(1.5f));
  CHECK(function_of<float(float)>(*object, "tail_call")(1.5f) == std::exp(1.5f));
  CHECK(function_of<double(double, double)>(*object, "remainder_of")(17.5, 4.0) == 1.5);
  CHECK(function_of<double(double)>(*object, "sine_plus_cosine")(0.3) == doctest::Approx(std::sin(0.3) + std::cos(0.3)));
  CHECK(function_of<std::int64_t()>(*object, "load_outside")() == 123456789);
  CHECK(function_of<void*()>(*object, "address_of_expf")() == tack::cpu::runtime_symbol("expf"));
  CHECK(function_of<std::int64_t(std::int64_t)>(*object, "call_weak_absent")(5) == -1);
  CHECK(function_of<std::int64_t(std::int64_t)>(*object, "call_weak_present")(5) == 50);

  std::array<unsigned char, 64> to{};
  std::array<unsigned char, 64> from{};
  from.fill(7);
  function_of<void(void*, const void*, std::int64_t)>(*object, "clear_and_copy")(to.data(), from.data(), 64);
  for (std::size_t i = 0; i < 64; ++i) CHECK(to[i] == (i < 32 ? 7 : 170));
}

TEST_CASE("a kernel") {
  const auto object = load("kernel");
  auto* saxpy = function_of<void(const std::uint64_t*, std::int64_t, std::int64_t)>(*object, "saxpy");
  std::vector<float> x(1001), y(1001, 1.0f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const float a = 2.0f;
  std::array<std::uint64_t, 3> words{reinterpret_cast<std::uintptr_t>(x.data()), reinterpret_cast<std::uintptr_t>(y.data()), 0};
  std::memcpy(&words[2], &a, sizeof a);
  saxpy(words.data(), 3, 1000);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == (i >= 3 && i < 1000 ? 2.0f * static_cast<float>(i) + 1.0f : 1.0f));
}

TEST_CASE("code is executable and not writable while it lives, and unmapped after") {
  auto object = load("calls");
  void* code = object->find("half_exp");
  CHECK(access_of(code) == "r-x");
  CHECK(object->code_bytes() > 100);
  CHECK(object->code_bytes() < 4096);
  object.reset();
  CHECK(access_of(code) == "---");
}

TEST_CASE("several threads load at once") {
  const Bytes bytes = object_of(host(), "calls");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const auto object = tack::cpu::load_object(bytes, resolve, "calls");
        auto* remainder_of = reinterpret_cast<double (*)(double, double)>(object->find("remainder_of"));
        if (remainder_of == nullptr || remainder_of(17.5, 4.0) != 1.5) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("the runtime's functions") {
  CHECK(tack::cpu::runtime_symbol("memcpy") ==
        reinterpret_cast<void*>(static_cast<void* (*)(void*, const void*, std::size_t)>(std::memcpy)));
  void* fmodf_address = tack::cpu::runtime_symbol("fmodf");
  REQUIRE(fmodf_address != nullptr);
  CHECK(reinterpret_cast<float (*)(float, float)>(fmodf_address)(7.5f, 2.0f) == 1.5f);
  void* exp10_address = tack::cpu::runtime_symbol("exp10");
  REQUIRE(exp10_address != nullptr);
  CHECK(reinterpret_cast<double (*)(double)>(exp10_address)(3.0) == 1000.0);
  for (const char* name : {"memmove", "memset", "memcmp", "bcmp", "bzero", "sqrtf", "floor", "ceilf", "trunc",   "rintf", "roundf",
                           "exp",     "logf",   "pow",    "sinf", "cos",   "ldexp", "fma",   "fmaf",  "sincosf", "erff",  "atan2"}) {
    INFO(name);
    CHECK(tack::cpu::runtime_symbol(name) != nullptr);
  }
  for (const char* name : {"", "system", "memcp", "memcpyx", "zzz", "aaa"}) {
    INFO(name);
    CHECK(tack::cpu::runtime_symbol(name) == nullptr);
  }
}

TEST_CASE("code of the other machine links, and is refused by name on this one") {
  for (const auto* machine : {&tack::cpu::x86_64, &tack::cpu::aarch64})
    for (const std::string& name : good_objects) {
      INFO(folder_of(*machine), " ", name);
      CHECK(refusal(*machine, object_of(*machine, name)) == "");
    }
  const auto& other = &host() == &tack::cpu::x86_64 ? tack::cpu::aarch64 : tack::cpu::x86_64;
  check_contains(refusal(host(), object_of(other, "kernel")), "it is made for machine " + std::to_string(other.number));
}

TEST_CASE("a hand-made object runs") {
  ElfBuilder builder(host().number);
  const std::uint32_t text = builder.add_code(answer_code(host()));
  builder.add_function("answer", text);
  builder.add_function("again", builder.add_code(answer_code(host()), ".text.again"));
  const auto object = tack::cpu::load_object(builder.build(), nullptr, "k");
  CHECK(function_of<int()>(*object, "answer")() == 42);
  CHECK(function_of<int()>(*object, "again")() == 42);
}

TEST_CASE("x86-64: every relocation computes what the ABI says") {
  // Data at known places: slot 0 of .data is relocated, and read back through the function's address.
  const auto value_of = [](std::uint32_t type, std::int64_t addend, bool outside) {
    Sound sound;
    const std::uint32_t symbol =
        outside ? sound.builder.add_symbol("outside_data", elf::binding::global, elf::symbol_type::none, 0, 0) : sound.object;
    sound.builder.add_relocations(sound.text, {ElfBuilder::relocation(16, symbol, type, addend)});
    auto object = tack::cpu::link_object(tack::cpu::x86_64, sound.builder.build(), resolve, "k");
    auto* code = static_cast<std::byte*>(object->find("f"));
    std::uint64_t word = 0;
    std::memcpy(&word, code + 16, sizeof word);
    return std::pair(word, std::pair(std::move(object), code));
  };
  const auto read32 = [](const std::byte* place) {
    std::uint32_t low = 0;
    std::memcpy(&low, place, sizeof low);
    return low;
  };
  {
    const auto [word, alive] = value_of(1, 5, true);
    CHECK(word == reinterpret_cast<std::uintptr_t>(&outside_data) + 5);
  }
  {
    const auto [word, alive] = value_of(24, 0, true);
    CHECK(word + reinterpret_cast<std::uintptr_t>(alive.second + 16) == reinterpret_cast<std::uintptr_t>(&outside_data));
  }
  {
    // PC32 to .data + 8, which holds zeros; beside it the builder's own relocation with the same target.
    const auto [word, alive] = value_of(2, -4, false);
    CHECK(static_cast<std::uint32_t>(word) + 12 == read32(alive.second + 4));
    std::byte* target = alive.second + 16 + 4 + static_cast<std::int32_t>(word);
    CHECK(access_of(target) == "rw-");
  }
  for (const std::uint32_t type : {9u, 41u, 42u}) {  // through a slot
    const auto [word, alive] = value_of(type, -4, true);
    std::uint64_t slot = 0;
    std::byte* place = alive.second + 16 + 4 + static_cast<std::int32_t>(word);
    std::memcpy(&slot, place, sizeof slot);
    CHECK(slot == reinterpret_cast<std::uintptr_t>(&outside_data));
    CHECK(access_of(place) == "r--");
  }
  {  // a call outside goes through a stub: jmp *slot(%rip)
    const auto [word, alive] = value_of(4, -4, true);
    std::byte* stub = alive.second + 16 + 4 + static_cast<std::int32_t>(word);
    CHECK(stub[0] == std::byte{0xff});
    CHECK(stub[1] == std::byte{0x25});
    CHECK(access_of(stub) == "r-x");
    std::uint64_t slot = 0;
    std::memcpy(&slot, stub + 6 + static_cast<std::int32_t>(read32(stub + 2)), sizeof slot);
    CHECK(slot == reinterpret_cast<std::uintptr_t>(&outside_data));
  }
  {
    const auto [word, alive] = value_of(0, 0, true);  // NONE changes nothing
    CHECK(word == 0x9090909090909090u);
  }
}

TEST_CASE("AArch64: every relocation computes what the ABI says") {
  // A function at an odd multiple of 16 in code of 64 KiB, and one instruction or word that refers to it from near the start.
  constexpr std::uint64_t place_offset = 16, target_offset = 0x8450;
  struct Linked {
    std::unique_ptr<LoadedObject> object;
    std::uint64_t place, target;
    std::uint64_t word;  // eight bytes at the place
  };
  const auto link = [](std::uint32_t type, std::int64_t addend, std::uint32_t instruction) {
    ElfBuilder builder(elf::machine_aarch64);
    Bytes code(0x10000);
    std::memcpy(code.data() + place_offset, &instruction, sizeof instruction);
    const std::uint32_t text = builder.add_code(std::move(code));
    builder.add_function("start", text);
    const std::uint32_t target = builder.add_function("target", text, target_offset);
    builder.add_relocations(text, {ElfBuilder::relocation(place_offset, target, type, addend)});
    Linked linked{tack::cpu::link_object(tack::cpu::aarch64, builder.build(), resolve, "k"), 0, 0, 0};
    const auto* start = static_cast<const std::byte*>(linked.object->find("start"));
    linked.place = reinterpret_cast<std::uintptr_t>(start) + place_offset;
    linked.target = reinterpret_cast<std::uintptr_t>(start) + target_offset;
    std::memcpy(&linked.word, start + place_offset, sizeof linked.word);
    return linked;
  };
  const auto instruction_of = [](const Linked& linked) { return static_cast<std::uint32_t>(linked.word); };
  // The distance that ADR or ADRP encodes, sign-extended from 21 bits.
  const auto adr_distance = [](std::uint32_t instruction) {
    const std::uint32_t bits = (instruction >> 29 & 3) | (instruction >> 5 & 0x7ffff) << 2;
    return static_cast<std::int64_t>(bits) - (bits >> 20 != 0 ? std::int64_t{1} << 21 : 0);
  };
  {
    const Linked abs64 = link(257, 3, 0);
    CHECK(abs64.word == abs64.target + 3);
  }
  {
    const Linked prel64 = link(260, -8, 0);
    CHECK(prel64.word == prel64.target - 8 - prel64.place);
  }
  {
    const Linked prel32 = link(261, 4, 0);
    CHECK(prel32.word == prel32.target + 4 - prel32.place);  // positive here, and the next word is zero
  }
  {
    const Linked adr = link(274, 3, 0x10000003u);  // adr x3
    CHECK((instruction_of(adr) & 0x9f00001fu) == 0x10000003u);
    CHECK(static_cast<std::uint64_t>(adr_distance(instruction_of(adr))) == adr.target + 3 - adr.place);
  }
  {
    const Linked adrp = link(275, 0, 0x90000003u);  // adrp x3
    CHECK((instruction_of(adrp) & 0x9f00001fu) == 0x90000003u);
    const std::uint64_t page = (adrp.place & ~std::uint64_t{0xfff}) + static_cast<std::uint64_t>(adr_distance(instruction_of(adrp))) * 4096;
    CHECK(page == (adrp.target & ~std::uint64_t{0xfff}));
    const Linked back = link(275, -0x20000, 0x90000003u);
    CHECK(adr_distance(instruction_of(back)) < 0);
  }
  // ADD and loads of 1, 2, 4, 8, 16 bytes: the low 12 bits in units of the access.
  for (const auto& [type, opcode, scale] :
       {std::array{277u, 0x91000063u, 0u}, std::array{278u, 0x39400063u, 0u}, std::array{284u, 0x79400063u, 1u},
        std::array{285u, 0xb9400063u, 2u}, std::array{286u, 0xf9400063u, 3u}, std::array{299u, 0x3dc00063u, 4u}}) {
    INFO(type);
    const Linked low = link(type, 0, opcode);
    CHECK((instruction_of(low) & ~0x003ffc00u) == opcode);
    CHECK(((instruction_of(low) >> 10 & 0xfff) << scale) == (low.target & 0xfff));
  }
  for (const auto& [type, opcode] : {std::array{282u, 0x14000000u}, std::array{283u, 0x94000000u}}) {  // b, bl
    const Linked branch = link(type, 0, opcode);
    CHECK((instruction_of(branch) & 0xfc000000u) == opcode);
    CHECK((instruction_of(branch) & 0x03ffffffu) * 4 == branch.target - branch.place);
    const Linked back = link(type, -0x9000, opcode);
    CHECK((instruction_of(back) & 0x03ffffffu) == ((back.target - 0x9000 - back.place) >> 2 & 0x03ffffffu));
    CHECK((instruction_of(back) & 0xfc000000u) == opcode);
  }
  {
    const Linked branch = link(280, 0, 0x54000001u);  // b.ne
    CHECK((instruction_of(branch) & 0xff00001fu) == 0x54000001u);
    CHECK((instruction_of(branch) >> 5 & 0x7ffff) * 4 == branch.target - branch.place);
  }
  {
    const Linked got = link(311, 0, 0x90000003u);
    const std::uint64_t page = (got.place & ~std::uint64_t{0xfff}) + static_cast<std::uint64_t>(adr_distance(instruction_of(got))) * 4096;
    std::uint64_t slot = 0;  // the only one, at the start of the page of constants
    std::memcpy(&slot, reinterpret_cast<const void*>(static_cast<std::uintptr_t>(page)), sizeof slot);
    CHECK(slot == got.target);
    const Linked low = link(312, 0, 0xf9400063u);
    CHECK(instruction_of(low) == 0xf9400063u);
  }
}
