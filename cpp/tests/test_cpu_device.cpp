// test_cpu_device.cpp -- the CPU device: its capabilities, memory, loading and compiling.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "backends/cpu/cpu_arch.h"
#include "cpu_support.h"
#include "elf_builder.h"

using tack::Config;
using tack::DeviceOptions;
using tack::Runtime;

using namespace tack::testing;

TEST_CASE("what the CPU can do") {
  Machine machine(3);
  const tack::Capabilities& can = machine.device->capabilities();
  CHECK(can.threads == 3);
  CHECK(can.supports_f64);
  CHECK(can.host_addressable);
  CHECK(can.f32_denormals);
  CHECK_FALSE(can.supports_workgroups);
  CHECK_FALSE(can.supports_images);
  CHECK_FALSE(can.queued);
  CHECK(can.max_iterations == 0);
  CHECK(can.array_dtypes == 0x3ff);
  CHECK(can.atomic_dtypes == 0x3ff);
  CHECK_FALSE(can.device_name.empty());
#if defined(__x86_64__)
  const std::vector<std::string> levels{"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
  CHECK(std::find(levels.begin(), levels.end(), can.arch) != levels.end());
  CHECK(can.vector_bits == (can.arch == "x86-64-v4" ? 512u : can.arch == "x86-64-v3" ? 256u : 128u));
  // The compiler's own run-time check, which knows about the operating system's part too.
  CHECK((can.vector_bits >= 256) == (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")));
  if (!__builtin_cpu_supports("avx512vl")) CHECK(can.vector_bits < 512);
#elif defined(__aarch64__)
  CHECK(can.arch == "aarch64");
  CHECK(can.vector_bits == 128);
#endif
}

TEST_CASE("num_threads wins over the setting, which wins over the cores") {
  Config config = quiet();
  const auto threads = [](const Config& c, const DeviceOptions& options) {
    return Runtime::create(c)->device("cpu", options)->capabilities().threads;
  };
  CHECK(threads(config, {}) == static_cast<unsigned>(tack::physical_cores()));
  config.cpu_threads = 5;
  CHECK(threads(config, {}) == 5);
  CHECK(threads(config, {.num_threads = 3}) == 3);
}

TEST_CASE("CPU devices share their memory, whatever their options") {
  const auto runtime = Runtime::create(quiet());
  const auto all = runtime->device("cpu"), one = runtime->device("cpu", {.num_threads = 1});
  CHECK(all->name() == "cpu");
  CHECK(one->name() == "cpu(num_threads=1)");
  CHECK(all != one);
  CHECK(all->can_address(*one));
  CHECK(runtime->device_count("cpu") == 1);
}

TEST_CASE("memory: aligned, writable to the last byte, large blocks to 2 MiB") {
  Machine machine(1);
  CpuDevice& cpu = machine.cpu();
  constexpr std::size_t mib = std::size_t{1} << 20;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, 4 * mib - 1, 4 * mib, 6 * mib + 12345}) {
    CAPTURE(bytes);
    std::vector<void*> blocks;
    for (int i = 0; i < 3; ++i) {
      void* const block = cpu.allocate(bytes);
      REQUIRE(block != nullptr);
      const std::size_t alignment = bytes >= 4 * mib ? 2 * mib : 64;
      CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
      std::memset(block, 1 + i, bytes);
      blocks.push_back(block);
    }
    for (int i = 0; i < 3; ++i) {
      const auto* const data = static_cast<const unsigned char*>(blocks[static_cast<std::size_t>(i)]);
      if (bytes != 0) CHECK(data[0] == 1 + i);
      if (bytes != 0) CHECK(data[bytes - 1] == 1 + i);
      cpu.free(blocks[static_cast<std::size_t>(i)], bytes);
    }
  }
}

#if defined(__linux__)

TEST_CASE("large blocks ask for huge pages") {
  const std::string lists = "/proc/self/smaps";
  if (!std::filesystem::exists(lists) || !std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) {
    MESSAGE("this kernel has no huge pages, or doesn't list them");
    return;
  }
  Machine machine(1);
  constexpr std::size_t bytes = std::size_t{8} << 20u;
  void* const block = machine.cpu().allocate(bytes);
  std::memset(block, 1, bytes);
  // The mapping that holds the block, and the flags that it was given.
  std::ifstream file(lists);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  std::string flags;
  bool inside = false;
  for (std::string line; std::getline(file, line) && flags.empty();) {
    std::uintptr_t first = 0, last = 0;
    char dash = 0;
    if (std::istringstream range(line); range >> std::hex >> first >> dash >> last && dash == '-') {
      inside = first <= address && address + bytes <= last;
    } else if (inside && line.rfind("VmFlags:", 0) == 0) {
      flags = line + ' ';
    }
  }
  CHECK(flags.find(" hg ") != std::string::npos);
  machine.cpu().free(block, bytes);
}

#endif

TEST_CASE("memory that isn't there: the error names the size, and the device goes on") {
  Machine machine(1);
  for (const std::size_t bytes : {std::size_t{1} << 60, std::numeric_limits<std::size_t>::max()}) {
    try {
      machine.cpu().allocate(bytes);
      FAIL("allocated");
    } catch (const tack::Error& error) {
      CHECK(error.code() == tack::ErrorCode::out_of_memory);
      CHECK(std::string(error.what()).find(std::to_string(bytes)) != std::string::npos);
    }
  }
  void* const block = machine.cpu().allocate(100);
  CHECK(block != nullptr);
  machine.cpu().free(block, 100);
}

TEST_CASE("copies, overlapping ones too, and fills of each element size") {
  Machine machine(1);
  CpuDevice& cpu = machine.cpu();
  std::array<std::uint8_t, 6> bytes{1, 2, 3, 4, 5, 6};
  cpu.copy(bytes.data() + 1, bytes.data(), 5);
  CHECK(bytes == std::array<std::uint8_t, 6>{1, 1, 2, 3, 4, 5});
  std::array<std::uint8_t, 6> other{};
  cpu.upload(other.data(), bytes.data(), 6);
  CHECK(other == bytes);
  cpu.download(bytes.data(), bytes.data() + 3, 0);
  CHECK(other == bytes);
  cpu.copy(nullptr, nullptr, 0);

  const auto fills = [&](auto value) {
    std::array<decltype(value), 5> values{};
    cpu.fill(values.data() + 1, &value, sizeof value, 3);
    return values[0] == 0 && values[1] == value && values[2] == value && values[3] == value && values[4] == 0;
  };
  CHECK(fills(std::uint8_t{0x12}));
  CHECK(fills(std::uint16_t{0x1234}));
  CHECK(fills(std::uint32_t{0x12345678}));
  CHECK(fills(std::uint64_t{0x123456789abcdef0}));
  CHECK(fills(-1.5));
  CHECK_THROWS_AS(cpu.fill(bytes.data(), bytes.data(), 3, 1), tack::Error);
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST_CASE("loading: entries are found by their symbols; a missing one is named") {
#  if defined(__x86_64__)
  constexpr std::array<std::uint8_t, 7> code{0x48, 0x8b, 0x07, 0x48, 0x89, 0x10, 0xc3};  // mov rax, [rdi]; mov [rax], rdx; ret
  ElfBuilder builder(elf::machine_x86_64);
#  else
  constexpr std::array<std::uint32_t, 3> code{0xf9400003, 0xf9000062, 0xd65f03c0};  // ldr x3, [x0]; str x2, [x3]; ret
  ElfBuilder builder(elf::machine_aarch64);
#  endif
  const auto view = std::as_bytes(std::span(code));
  builder.add_function("store_end", builder.add_code({view.begin(), view.end()}));
  const std::vector<std::byte> object = builder.build();

  Machine machine(1);
  tack::KernelSource source;
  source.name = "my_kernel";
  source.target = "cpu";
  source.entries.push_back({.symbol = "store_end", .params = {{}}, .rank = 1, .cost_hint = -1.0});
  const std::unique_ptr<tack::ModuleImpl> module = machine.cpu().load(object, source);
  std::int64_t stored = 0;
  machine.launch(dynamic_cast<CpuModule&>(*module), 123, &stored);
  CHECK(stored == 123);
  CHECK(module->statistics().at(0).symbol == "store_end");

  source.entries.at(0).symbol = "not_there";
  try {
    machine.cpu().load(object, source);
    FAIL("loaded");
  } catch (const tack::Error& error) {
    CHECK(error.code() == tack::ErrorCode::corrupt);
    const std::string message = error.what();
    CHECK(message.find("my_kernel") != std::string::npos);
    CHECK(message.find("not_there") != std::string::npos);
  }
}
#endif

TEST_CASE("compiling goes to the installed compiler, for the source's architecture") {
  const auto runtime = Runtime::create(quiet());
  const auto backend = tack::make_cpu_backend();
  tack::KernelSource source;
  source.name = "k";
  source.text = "the text";
  source.arch = "x86-64-v3";
  CHECK_THROWS_WITH_AS(backend->compile(runtime->impl(), source), doctest::Contains("llvmlite"), tack::Error);
  runtime->set_cpu_compiler([](const tack::CompileRequest& request) {
    CHECK(request.name == "k");
    CHECK(request.text == "the text");
    CHECK(request.arch == "x86-64-v3");
    CHECK_FALSE(request.assembly);
    CHECK_FALSE(request.optimized_ir);
    return std::vector<std::byte>(3, std::byte{7});
  });
  CHECK(backend->compile(runtime->impl(), source) == std::vector<std::byte>(3, std::byte{7}));
  CHECK(backend->compiler_version(runtime->impl()) == backend->compiler_version(runtime->impl()));
  CHECK_FALSE(backend->numbered());
}