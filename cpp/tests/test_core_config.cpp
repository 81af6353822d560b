// test_core_config.cpp -- settings, errors, element types, log and the texts of messages.
#include <doctest/doctest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/config.h"
#include "core/log.h"
#include "core/text.h"
#include "core/unavailable.h"
#include "error_support.h"
#include "tack/config.hpp"
#include "tack/dtype.hpp"
#include "tack/error.hpp"

using tack::Config;
using tack::Error;
using tack::ErrorCode;
using tack::test::contains;
using tack::test::message_of;

namespace {

/// Sets an environment variable for the scope.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) { setenv(name_.c_str(), value.c_str(), 1); }
  ~Variable() { unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
};

}  // namespace

TEST_CASE("every setting is in the table, can be read, and has the default that the table says") {
  const Config defaults;
  CHECK(Config::table().size() == 18);
  for (const tack::Setting& setting : Config::table()) {
    CAPTURE(std::string(setting.name));
    CHECK((setting.name.substr(0, 5) == "TACK_" || setting.name == "CUDA_PATH"));  // NVIDIA's installers set that one
    CHECK(!setting.help.empty());
    CHECK(setting.help.back() == '.');
    CHECK(defaults.get(setting.name) == setting.default_value);
    Config changed;
    changed.set(setting.name, setting.default_value);
    CHECK(changed.get(setting.name) == setting.default_value);
  }
}

TEST_CASE("settings change their own field and no other") {
  Config config;
  config.set("TACK_CACHE", "0");
  config.set("TACK_CACHE_DIR", "/somewhere");
  config.set("TACK_CACHE_SIZE", "512M");
  config.set("TACK_CPU_THREADS", "3");
  config.set("TACK_CPU_POOL", "python");
  config.set("TACK_CPU_SIMD", "16");
  config.set("TACK_DEBUG", "true");
  config.set("TACK_LOG", "debug");
  config.set("TACK_DUMP_MSL", "on");
  config.set("TACK_LIBCUDA", "c");
  config.set("TACK_LIBNVRTC", "n");
  config.set("TACK_LIBHIP", "h");
  config.set("TACK_LIBHIPRTC", "r");
  config.set("TACK_LIBZE", "z");
  config.set("TACK_LIBOCLOC", "o");
  config.set("TACK_LIBMETAL", "m");
  CHECK(!config.cache);
  CHECK(config.cache_dir == "/somewhere");
  CHECK(config.cache_size == 512u << 20);
  CHECK(config.cpu_threads == 3);
  CHECK(config.cpu_pool == "python");
  CHECK(config.cpu_simd == 16);
  CHECK(config.debug);
  CHECK(config.log_level == "debug");
  CHECK(config.dump_msl);
  CHECK(config.lib_cuda + config.lib_nvrtc + config.lib_hip + config.lib_hiprtc + config.lib_ze + config.lib_ocloc + config.lib_metal ==
        "cnhrzom");
}

TEST_CASE("sizes: units, and how they are shown again") {
  Config config;
  const std::vector<std::pair<std::string, std::uint64_t>> sizes{
      {"0", 0}, {"1000", 1000}, {"4k", 4096}, {"512M", 512u << 20}, {"2G", std::uint64_t{2} << 30}, {"1T", std::uint64_t{1} << 40}};
  for (const auto& [written, bytes] : sizes) {
    config.set("TACK_CACHE_SIZE", written);
    CHECK(config.cache_size == bytes);
    Config again;
    again.set("TACK_CACHE_SIZE", config.get("TACK_CACHE_SIZE"));
    CHECK(again.cache_size == bytes);
  }
  for (const char* bad : {"", "M", "-1", "1.5G", "10 M", "99999999T", "18446744073709551616", "1X"})
    CHECK(message_of(ErrorCode::invalid_argument, [&] { config.set("TACK_CACHE_SIZE", bad); }) ==
          "TACK_CACHE_SIZE is '" + std::string(bad) + "'; accepted is a number of bytes, also with K, M, G or T behind it, as in 512M.");
}

TEST_CASE("a setting that is refused names the variable, the value and what is accepted") {
  Config config;
  const auto refused = [&](const char* name, const char* value) {
    return message_of(ErrorCode::invalid_argument, [&] { config.set(name, value); });
  };
  CHECK(refused("TACK_CPU_THREADS", "-1") == "TACK_CPU_THREADS is '-1'; accepted is a whole number from 0 to 4096.");
  CHECK(refused("TACK_CPU_THREADS", "two") == "TACK_CPU_THREADS is 'two'; accepted is a whole number from 0 to 4096.");
  CHECK(refused("TACK_CPU_THREADS", "99999999999") == "TACK_CPU_THREADS is '99999999999'; accepted is a whole number from 0 to 4096.");
  CHECK(refused("TACK_CPU_SIMD", "3") == "TACK_CPU_SIMD is '3'; accepted is 0 or a power of two up to 64.");
  CHECK(refused("TACK_CACHE", "maybe") == "TACK_CACHE is 'maybe'; accepted is 0 or 1.");
  CHECK(refused("TACK_CPU_POOL", "fast") == "TACK_CPU_POOL is 'fast'; accepted is one of: native python.");
  CHECK(refused("TACK_CPU_POOL", "nat") == "TACK_CPU_POOL is 'nat'; accepted is one of: native python.");
  CHECK(refused("TACK_LOG", "loud") == "TACK_LOG is 'loud'; accepted is one of: error warning info debug.");
  CHECK(contains(refused("TACK_NOTHING", "1"), "Unknown setting 'TACK_NOTHING'. The settings are: TACK_CACHE TACK_CACHE_DIR"));
  CHECK(contains(message_of(ErrorCode::invalid_argument, [&] { config.get("cache"); }), "Unknown setting 'cache'"));
}

TEST_CASE("the environment is read when asked, and an empty variable counts as not set") {
  CHECK(Config::from_environment().cpu_threads == 0);
  const Variable threads("TACK_CPU_THREADS", "7");
  const Variable empty("TACK_CACHE_SIZE", "");
  const Config config = Config::from_environment();
  CHECK(config.cpu_threads == 7);
  CHECK(config.cache_size == std::uint64_t{1} << 30);
  const Variable bad("TACK_LOG", "loud");
  CHECK(message_of(ErrorCode::invalid_argument, [] { Config::from_environment(); }) ==
        "TACK_LOG is 'loud'; accepted is one of: error warning info debug.");
}

#if defined(__linux__)
TEST_CASE("the cache's folder: the setting, else XDG_CACHE_HOME, else HOME, else none") {
  Config config;
  {
    const Variable home("HOME", "/home/somebody");
    const Variable unset("XDG_CACHE_HOME", "");
    CHECK(tack::cache_folder(config) == "/home/somebody/.cache/tack");
    const Variable xdg("XDG_CACHE_HOME", "/caches");
    CHECK(tack::cache_folder(config) == "/caches/tack");
    const Variable relative("XDG_CACHE_HOME", "caches");
    CHECK(tack::cache_folder(config) == "/home/somebody/.cache/tack");
  }
  config.cache_dir = "/mine";
  CHECK(tack::cache_folder(config) == "/mine");
  config.cache = false;
  CHECK(tack::cache_folder(config).empty());
}
#endif

TEST_CASE("an error carries its fields, shows the native call, and takes a context") {
  const Error plain(ErrorCode::overflow, "too large");
  CHECK(std::string(plain.what()) == "too large");
  CHECK(plain.fields().native_code == 0);

  const Error native({ErrorCode::driver, "Copying failed.", "cuda", "cuMemcpy", 700, "CUDA_ERROR_ILLEGAL_ADDRESS"});
  CHECK(std::string(native.what()) == "Copying failed.\n  cuMemcpy: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
  const Error within = native.with_context("Kernel 'k'");
  CHECK(std::string(within.what()) == "Kernel 'k': Copying failed.\n  cuMemcpy: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
  CHECK(within.code() == ErrorCode::driver);
  CHECK(within.fields().backend == "cuda");
  CHECK(std::string(native.what()).find("Kernel") == std::string::npos);

  const Error unnamed({ErrorCode::io, "Writing failed.", {}, {}, 28, {}});
  CHECK(std::string(unnamed.what()) == "Writing failed.\n  native call: error 28");
}

TEST_CASE("a device that cannot start says so in the page's form") {
  const Error error = tack::device_unavailable("hip", "missing dependency", "libamdhip64.so.7: cannot open\nlibamdhip64.so.6: cannot open",
                                               "an AMD GPU with ROCm; in a clone", "pip install '.[hip]'   (or: uv sync --extra hip)");
  CHECK(error.code() == ErrorCode::unavailable);
  CHECK(error.fields().backend == "hip");
  CHECK(std::string(error.what()) ==
        "Cannot start the 'hip' device: missing dependency.\n"
        "  libamdhip64.so.7: cannot open\n"
        "  libamdhip64.so.6: cannot open\n"
        "  Requires an AMD GPU with ROCm; in a clone:\n"
        "    pip install '.[hip]'   (or: uv sync --extra hip)");
  CHECK(std::string(tack::device_unavailable("cpu", "no threads", "", "", "").what()) == "Cannot start the 'cpu' device: no threads.");
  CHECK(std::string(tack::device_unavailable("cuda", "driver too old", "it is 11.0", "driver 13", "").what()) ==
        "Cannot start the 'cuda' device: driver too old.\n  it is 11.0\n  Requires driver 13.");
}

TEST_CASE("names of element types and back") {
  for (const tack::DType type : tack::array_dtypes) CHECK(tack::dtype_from_name(tack::name_of(type)) == type);
  CHECK(tack::name_of(tack::f32) == "f32");
  CHECK(tack::name_of(tack::u8) == "u8");
  CHECK(tack::name_of(tack::bool8) == "bool");
  CHECK(tack::dtype_from_name("bool") == tack::bool8);
  const tack::DType vec3{tack::TypeCode::float_, 32, 3};
  CHECK(tack::name_of(vec3) == "f32x3");
  CHECK(tack::dtype_from_name("f32x3") == vec3);
  CHECK(vec3.size() == 12);
  for (const char* bad : {"", "f16", "float32", "i", "f32x", "f32x1", "f32x17", "f32x3x3", "boolx2", "x3", "f32x-3"})
    CHECK(contains(message_of(ErrorCode::invalid_argument, [&] { tack::dtype_from_name(bad); }),
                   "Unknown element type '" + std::string(bad) + "'. Known are i8 u8"));
}

TEST_CASE("the log delivers what its level lets through, to the sink of the time, and survives a bad sink") {
  tack::Log log(tack::LogLevel::info);
  CHECK(log.enabled(tack::LogLevel::error));
  CHECK(log.enabled(tack::LogLevel::info));
  CHECK(!log.enabled(tack::LogLevel::debug));
  std::vector<std::string> seen;
  log.set_sink([&](tack::LogLevel level, std::string_view message) {
    seen.push_back(tack::text(static_cast<int>(level), ' ', message));
    log.write(tack::LogLevel::debug, "not seen");  // a sink may log: no lock is held
  });
  log.write(tack::LogLevel::warning, "first");
  log.write(tack::LogLevel::debug, "second");
  log.write(tack::LogLevel::info, "third");
  CHECK(seen == std::vector<std::string>{"1 first", "2 third"});
  log.set_sink([](tack::LogLevel, std::string_view) { throw std::runtime_error("bad sink"); });
  log.write(tack::LogLevel::error, "lost, but nothing else happens");
  CHECK(tack::log_level(Config{}) == tack::LogLevel::warning);
}

TEST_CASE("sizes in messages") {
  CHECK(tack::bytes_text(0) == "0 B");
  CHECK(tack::bytes_text(1023) == "1023 B");
  CHECK(tack::bytes_text(1536) == "1.5 KiB");
  CHECK(tack::bytes_text((1u << 20) - 1) == "1.0 MiB");
  CHECK(tack::bytes_text(std::uint64_t{8} << 30) == "8.0 GiB");
  CHECK(tack::bytes_text(~std::uint64_t{0}) == "16.0 EiB");
}
