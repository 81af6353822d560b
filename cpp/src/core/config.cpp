// core/config.cpp -- the one table of settings and the only reader of the environment.
#include "core/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <variant>

#if !defined(_WIN32)
#  include <pwd.h>
#  include <unistd.h>
#endif

#include "core/text.h"
#include "tack/error.hpp"

namespace tack {

namespace {

using Field = std::variant<bool Config::*, int Config::*, std::uint64_t Config::*, std::string Config::*>;

/// A row of the table: what everybody may know about a setting, and where and how it is kept.
struct Row {
  Setting setting;
  Field field;
  int min = 0;                 // of an int
  int max = 0;                 // of an int
  bool power_of_two = false;   // of an int: 0 or a power of two
  std::string_view choices{};  // of a choice: separated by blanks
};

constexpr int max_threads = 4096;
constexpr int max_lanes = 64;

const std::array<Row, 18>& rows() noexcept {
  static const std::array<Row, 18> table{{
      {{"TACK_CACHE", "bool", "1", "Whether compiled kernels are kept on disk; 0 keeps nothing and reads nothing."}, &Config::cache},
      {{"TACK_CACHE_DIR", "path", "", "Folder of the disk cache; empty means the platform's cache folder with 'tack' in it."},
       &Config::cache_dir},
      {{"TACK_CACHE_SIZE", "bytes", "1G", "Size at which the least recently used entries of the disk cache are swept; as in 512M or 2G."},
       &Config::cache_size},
      {{"TACK_CPU_THREADS", "int", "0",
        "Threads of the CPU device; 0 is one for each physical core, 1 runs everything on the calling thread."},
       &Config::cpu_threads,
       0,
       max_threads},
      {{"TACK_CPU_POOL", "choice", "native",
        "Who runs CPU kernels in parallel: tack's own threads (native) or a Python thread pool (python)."},
       &Config::cpu_pool,
       0,
       0,
       false,
       "native python"},
      {{"TACK_CPU_SIMD", "int", "0",
        "Iterations that CPU code runs at a time (a power of two up to 64); 0 lets the compiler choose, 1 is plain code."},
       &Config::cpu_simd,
       0,
       max_lanes,
       true},
      {{"TACK_CPU_TARGET", "choice", "native",
        "The instruction set that CPU code is compiled for; native is the best that this processor has."},
       &Config::cpu_target,
       0,
       0,
       false,
       "native x86-64 x86-64-v2 x86-64-v3 x86-64-v4 aarch64"},
      {{"TACK_DEBUG", "bool", "0", "Whether kernels check every index and every assert."}, &Config::debug},
      {{"TACK_LOG", "choice", "warning", "The least important messages that are shown; info says what is compiled or loaded, and why."},
       &Config::log_level,
       0,
       0,
       false,
       "error warning info debug"},
      {{"TACK_DUMP_MSL", "bool", "0", "Whether Metal writes the source of each kernel that it compiles to /tmp."}, &Config::dump_msl},
      {{"TACK_LIBCUDA", "path", "", "The CUDA driver library to open instead of the one that is found."}, &Config::lib_cuda},
      {{"TACK_LIBNVRTC", "path", "", "The NVRTC library to open instead of the one that is found."}, &Config::lib_nvrtc},
      {{"TACK_LIBHIP", "path", "", "The HIP runtime library to open instead of the one that is found."}, &Config::lib_hip},
      {{"TACK_LIBHIPRTC", "path", "", "The hipRTC library to open instead of the one that is found."}, &Config::lib_hiprtc},
      {{"TACK_LIBZE", "path", "", "The Level Zero loader to open instead of the one that is found."}, &Config::lib_ze},
      {{"TACK_LIBOCLOC", "path", "", "The libocloc library to open instead of the one that is found."}, &Config::lib_ocloc},
      {{"TACK_LIBMETAL", "path", "", "A library to use in place of the system's Metal; for tests."}, &Config::lib_metal},
      {{"CUDA_PATH", "path", "", "Folder of a CUDA installation, in which NVRTC is looked for too; set by NVIDIA's installers."},
       &Config::cuda_path},
  }};
  return table;
}

const Row& row_of(std::string_view name) {
  for (const Row& row : rows())
    if (row.setting.name == name) return row;
  std::string known;
  for (const Row& row : rows()) known += text(' ', row.setting.name);
  throw Error(ErrorCode::invalid_argument, text("Unknown setting '", name, "'. The settings are:", known, "."));
}

[[noreturn]] void refuse(const Row& row, std::string_view value, std::string_view accepted) {
  throw Error(ErrorCode::invalid_argument, text(row.setting.name, " is '", value, "'; accepted is ", accepted, "."));
}

std::optional<bool> parse_bool(std::string_view value) {
  std::string lower(value);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const std::string_view yes : {"1", "true", "yes", "on"})
    if (lower == yes) return true;
  for (const std::string_view no : {"0", "false", "no", "off"})
    if (lower == no) return false;
  return std::nullopt;
}

template <class Integer>
std::optional<Integer> parse_integer(std::string_view value) {
  Integer result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc{} || end != value.data() + value.size()) return std::nullopt;
  return result;
}

struct Unit {
  char letter;
  int shift;
};
constexpr std::array<Unit, 4> units{{{'K', 10}, {'M', 20}, {'G', 30}, {'T', 40}}};

std::optional<std::uint64_t> parse_bytes(std::string_view value) {
  int shift = 0;
  if (!value.empty()) {
    const char last = value.back() >= 'a' ? static_cast<char>(value.back() - 'a' + 'A') : value.back();
    for (const Unit& unit : units) {
      if (unit.letter != last) continue;
      shift = unit.shift;
      value.remove_suffix(1);
      break;
    }
  }
  const std::optional<std::uint64_t> number = parse_integer<std::uint64_t>(value);
  if (!number || *number > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
  return *number << shift;
}

std::string bytes_setting(std::uint64_t bytes) {
  for (auto unit = units.rbegin(); unit != units.rend(); ++unit)
    if (bytes != 0 && bytes % (std::uint64_t{1} << unit->shift) == 0) return text(bytes >> unit->shift, unit->letter);
  return text(bytes);
}

/// Sets a field from text, by the field's type.
struct Setter {
  Config& config;
  const Row& row;
  std::string_view value;

  void operator()(bool Config::* field) const {
    const std::optional<bool> parsed = parse_bool(value);
    if (!parsed) refuse(row, value, "0 or 1");
    config.*field = *parsed;
  }
  void operator()(int Config::* field) const {
    const std::optional<int> parsed = parse_integer<int>(value);
    const bool good = parsed && *parsed >= row.min && *parsed <= row.max && (!row.power_of_two || (*parsed & (*parsed - 1)) == 0);
    if (!good) refuse(row, value, text(row.power_of_two ? "0 or a power of two up to " : "a whole number from 0 to ", row.max));
    config.*field = *parsed;
  }
  void operator()(std::uint64_t Config::* field) const {
    const std::optional<std::uint64_t> parsed = parse_bytes(value);
    if (!parsed) refuse(row, value, "a number of bytes, also with K, M, G or T behind it, as in 512M");
    config.*field = *parsed;
  }
  void operator()(std::string Config::* field) const {
    if (!row.choices.empty()) {
      bool found = false;
      for (std::string_view rest = row.choices; !rest.empty() && !found;) {
        const std::string_view choice = rest.substr(0, rest.find(' '));
        found = choice == value;
        rest.remove_prefix(std::min(choice.size() + 1, rest.size()));
      }
      if (!found) refuse(row, value, text("one of: ", row.choices));
    }
    config.*field = std::string(value);
  }
};

struct Getter {
  const Config& config;

  std::string operator()(bool Config::* field) const { return config.*field ? "1" : "0"; }
  std::string operator()(int Config::* field) const { return text(config.*field); }
  std::string operator()(std::uint64_t Config::* field) const { return bytes_setting(config.*field); }
  std::string operator()(std::string Config::* field) const { return config.*field; }
};

/// An environment variable, or empty: a variable that is set to nothing counts as not set.
std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::string() : std::string(value);
}

std::string platform_cache_folder() {
#if defined(_WIN32)
  return environment("LOCALAPPDATA");
#else
  std::string home = environment("HOME");
  if (home.empty()) {
    // Not getpwuid: a host may be calling it on another thread.
    std::array<char, 4096> buffer{};
    passwd entry{};
    passwd* found = nullptr;
    if (getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr && found->pw_dir != nullptr)
      home = found->pw_dir;
  }
#  if defined(__APPLE__)
  return home.empty() ? home : home + "/Library/Caches";
#  else
  // The XDG specification has relative paths ignored.
  std::string xdg = environment("XDG_CACHE_HOME");
  if (!xdg.empty() && xdg.front() == '/') return xdg;
  return home.empty() ? home : home + "/.cache";
#  endif
#endif
}

}  // namespace

std::span<const Setting> Config::table() noexcept {
  static const std::array<Setting, 18> settings = [] {
    std::array<Setting, 18> copy{};
    std::transform(rows().begin(), rows().end(), copy.begin(), [](const Row& row) { return row.setting; });
    return copy;
  }();
  return settings;
}

Config Config::from_environment() {
  Config config;
  for (const Row& row : rows()) {
    const std::string value = environment(std::string(row.setting.name));
    if (!value.empty()) std::visit(Setter{config, row, value}, row.field);
  }
  return config;
}

void Config::set(std::string_view name, std::string_view value) {
  const Row& row = row_of(name);
  std::visit(Setter{*this, row, value}, row.field);
}

std::string Config::get(std::string_view name) const { return std::visit(Getter{*this}, row_of(name).field); }

std::string cache_folder(const Config& config) {
  if (!config.cache) return {};
  if (!config.cache_dir.empty()) return config.cache_dir;
  const std::string folder = platform_cache_folder();
  return folder.empty() ? folder : folder + "/tack";
}

LogLevel log_level(const Config& config) {
  constexpr std::array<std::string_view, 4> names{"error", "warning", "info", "debug"};
  const auto found = std::find(names.begin(), names.end(), config.log_level);
  if (found == names.end()) refuse(row_of("TACK_LOG"), config.log_level, "one of: error warning info debug");
  return static_cast<LogLevel>(found - names.begin());
}

}  // namespace tack
