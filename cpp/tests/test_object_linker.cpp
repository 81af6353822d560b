// test_object_linker.cpp -- machine code that is not ELF goes to the linker that the host has installed, and is owned by its kernel.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/object_loader.h"
#include "tack/array.hpp"
#include "tack/error.hpp"
#include "tack/kernel.hpp"
#include "tack/runtime.hpp"

using tack::Config;
using tack::ErrorCode;
using tack::Runtime;
using tack::cpu::object_format;
using tack::cpu::ObjectFormat;

namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes(std::initializer_list<int> values) {
  Bytes made;
  for (const int value : values) made.push_back(static_cast<std::byte>(value));
  return made;
}

const Bytes mach_o = bytes({0xcf, 0xfa, 0xed, 0xfe, 1, 2, 3});
const Bytes coff = bytes({0x64, 0x86, 4, 5});

/// The entry point that the stand-in linker hands out: adds its iterations to the array's first element.
void count(const std::uint64_t* words, std::int64_t begin, std::int64_t end) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the parameter block holds addresses as numbers
  *reinterpret_cast<std::int64_t*>(words[0]) += end - begin;
}

/// Over `x.shape[0]` iterations.
tack::KernelSource kernel_source(const tack::Device& cpu) {
  tack::KernelSource source;
  source.name = "my_kernel";
  source.target = "cpu";
  source.arch = cpu.capabilities().arch;
  source.text = "some text";
  tack::ArgumentSpec x;
  x.name = "x";
  x.dtype = tack::i64;
  x.rank = 1;
  x.written = true;
  source.arguments = {x};
  source.entries = {{"my_entry", {{tack::ParamKind::pointer, 0, 0, tack::i64}}, 1, 1.0}};
  tack::Step step;
  step.stop = {{{tack::ExtentOp::shape, 0, 0, 0}}};
  source.steps = {step};
  return source;
}

/// A runtime whose compiler answers `object` and whose linker hands out `count`, and what both were asked.
struct Host {
  explicit Host(Bytes made, const std::string& cache_folder = "") : object(std::move(made)) {
    Config config;
    config.cache = !cache_folder.empty();
    config.cache_dir = cache_folder;
    runtime = Runtime::create(config);
    cpu = runtime->device("cpu", {.num_threads = 1});
    runtime->set_cpu_compiler([this](const tack::CompileRequest&) {
      ++compiled;
      return object;
    });
    runtime->set_object_linker([this](const tack::LinkRequest& request) {
      ++linked;
      CHECK(request.name == "my_kernel");
      CHECK(std::equal(request.object.begin(), request.object.end(), object.begin(), object.end()));
      REQUIRE(request.functions.size() == 1);
      CHECK(request.functions[0] == "my_entry");
      const auto find = [&](std::string_view name) -> void* {
        const auto row = std::find_if(request.imports.begin(), request.imports.end(), [&](const auto& r) { return r.name == name; });
        return row == request.imports.end() ? nullptr : row->address;
      };
      CHECK(find("memset") == tack::cpu::runtime_symbol("memset"));
      CHECK(find("fmodf") != nullptr);
      CHECK(find("system") == nullptr);
      auto owner = std::make_shared<int>(1);
      code = owner;
      return tack::LinkedObject{.functions = answer, .owner = std::move(owner)};
    });
  }

  Bytes object;
  std::vector<void*> answer{reinterpret_cast<void*>(&count)};
  int compiled = 0, linked = 0;
  std::weak_ptr<const void> code;  // what the last link handed over
  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<tack::Device> cpu;
};

std::int64_t run(tack::Device& cpu, tack::Kernel& kernel) {
  const std::array<std::int64_t, 1> shape{123}, strides{8};
  const tack::Array x = tack::Array::empty(cpu.shared_from_this(), tack::i64, shape);
  std::array<std::int64_t, 123> values{};
  x.write(values.data(), strides);
  const std::array<tack::Argument, 1> arguments{tack::Argument(x)};
  kernel.check(arguments);
  kernel.launch(arguments);
  x.read(values.data(), strides);
  return values[0];
}

/// The message of the error that a build ends in.
std::string refusal(Host& host, ErrorCode code) {
  try {
    host.cpu->build(kernel_source(*host.cpu), {});
  } catch (const tack::Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL("built");
  return "";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("formats are told apart by their first bytes") {
  CHECK(object_format(bytes({0x7f, 'E', 'L', 'F', 2})) == ObjectFormat::elf);
  CHECK(object_format(mach_o) == ObjectFormat::mach_o);
  CHECK(object_format(coff) == ObjectFormat::coff);
  CHECK(object_format(bytes({0x64, 0xaa})) == ObjectFormat::coff);
  CHECK(object_format(bytes({0, 0, 0xff, 0xff, 2})) == ObjectFormat::coff);
  CHECK(object_format({}) == ObjectFormat::unknown);
  CHECK(object_format(bytes({0x7f})) == ObjectFormat::unknown);
  CHECK(object_format(bytes({0x7f, 'E', 'L', 'G'})) == ObjectFormat::unknown);
  CHECK(object_format(bytes({0xfe, 0xed, 0xfa, 0xcf})) == ObjectFormat::unknown);  // the other byte order
}

TEST_CASE("the installed linker's code runs, and is released with the kernel") {
  for (const Bytes& object : {mach_o, coff}) {
    Host host(object);
    std::shared_ptr<tack::Kernel> kernel = host.cpu->build(kernel_source(*host.cpu), {});
    CHECK(host.compiled == 1);
    CHECK(host.linked == 1);
    CHECK(run(*host.cpu, *kernel) == 123);
    CHECK_FALSE(host.code.expired());
    kernel.reset();
    CHECK(host.code.expired());
  }
}

TEST_CASE("a binary from the disk cache is linked and not compiled") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("tack-linker-" + std::to_string(std::random_device()()));
  for (const bool first : {true, false}) {
    Host host(mach_o, folder.string());
    const std::shared_ptr<tack::Kernel> kernel = host.cpu->build(kernel_source(*host.cpu), {"a key"});
    CHECK(run(*host.cpu, *kernel) == 123);
    CHECK(host.compiled == (first ? 1 : 0));
    CHECK(host.linked == 1);
  }
  Host host(mach_o, folder.string());
  const std::shared_ptr<tack::Kernel> kernel = host.cpu->load({"a key"});
  REQUIRE(kernel != nullptr);
  CHECK(run(*host.cpu, *kernel) == 123);
  CHECK(host.compiled == 0);
  std::filesystem::remove_all(folder);
}

TEST_CASE("what is wrong with a link is said") {
  Host host(mach_o);
  host.answer = {nullptr};
  std::string message = refusal(host, ErrorCode::corrupt);
  CHECK(contains(message, "my_kernel"));
  CHECK(contains(message, "my_entry"));
  CHECK(host.code.expired());

  host.answer = {};
  message = refusal(host, ErrorCode::internal);
  CHECK(contains(message, "0 addresses for 1 functions"));

  host.runtime->set_object_linker([](const tack::LinkRequest&) -> tack::LinkedObject { throw tack::Error(ErrorCode::compile, "mine"); });
  CHECK(refusal(host, ErrorCode::compile) == "mine");

  host.runtime->set_object_linker({});
  message = refusal(host, ErrorCode::unavailable);
  for (const std::string_view part : {"my_kernel", "Mach-O", "llvmlite", "set_object_linker"}) CHECK(contains(message, part));
  host.object = coff;
  CHECK(contains(refusal(host, ErrorCode::unavailable), "COFF"));
}

TEST_CASE("damaged ELF is refused by the runtime's own loader and never reaches a linker") {
  Host host(bytes({0x7f, 'E', 'L', 'G', 2, 1, 1}));
  CHECK(contains(refusal(host, ErrorCode::corrupt), "my_kernel"));
  host.object = bytes({0x7f, 'E', 'L', 'F', 2, 1, 1});
  CHECK(contains(refusal(host, ErrorCode::corrupt), "my_kernel"));
  CHECK(host.linked == 0);
}
