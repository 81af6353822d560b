// tack/config.hpp -- every setting of tack, declared once; no other file reads the environment.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tack/export.hpp"

namespace tack {

/// One row of the settings table: the environment variable, its default and what it does.
struct Setting {
  std::string_view name;           ///< "TACK_CPU_THREADS"
  std::string_view type;           ///< "int", "bool", "bytes", "path", "choice"
  std::string_view default_value;  ///< as one would write it in the environment
  std::string_view help;           ///< one sentence; the docs page is made from it
};

/// The settings of one Runtime. A plain value: read from the environment once, or filled by a host.
struct TACK_API Config {
  bool cache = true;                      // TACK_CACHE: 0 keeps nothing on disk
  std::string cache_dir;                  // TACK_CACHE_DIR: empty means the platform's cache folder + "/tack"
  std::uint64_t cache_size = 1ull << 30;  // TACK_CACHE_SIZE: bytes, or "512M", "2G"
  int cpu_threads = 0;                    // TACK_CPU_THREADS: 0 means one per physical core
  std::string cpu_pool = "native";        // TACK_CPU_POOL: native | python
  int cpu_simd = 0;                       // TACK_CPU_SIMD: lanes; 0 lets the compiler choose, 1 is plain code
  std::string cpu_target = "native";      // TACK_CPU_TARGET: native | x86-64 | x86-64-v2 | x86-64-v3 | x86-64-v4 | aarch64
  bool debug = false;                     // TACK_DEBUG
  std::string log_level = "warning";      // TACK_LOG: error | warning | info | debug
  bool dump_msl = false;                  // TACK_DUMP_MSL
  std::string cuda_path;                  // CUDA_PATH: a CUDA installation's folder
  std::string lib_cuda, lib_nvrtc, lib_hip, lib_hiprtc, lib_ze, lib_ocloc;  // TACK_LIBCUDA, ...: the library to open
  std::string lib_metal;                                                    // TACK_LIBMETAL: a stand-in for Metal

  /// The one table: name, type, default and help of every setting above.
  static std::span<const Setting> table() noexcept;
  /// Reads the environment. Throws Error(invalid_argument) naming the variable, its value and what is accepted.
  static Config from_environment();
  /// Sets one field by its variable's name. Throws Error(invalid_argument).
  void set(std::string_view name, std::string_view value);
  /// The value of a setting as text. Throws Error(invalid_argument) for an unknown name.
  std::string get(std::string_view name) const;
};

}  // namespace tack
