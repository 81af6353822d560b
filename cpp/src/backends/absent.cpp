// backends/absent.cpp -- a backend that counts no devices and explains, from one row of data, why its device cannot start.
#include "backends/absent.h"

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "core/library.h"
#include "core/runtime_impl.h"
#include "core/text.h"
#include "core/unavailable.h"
#include "tack/tack.h"

namespace tack {

namespace {

struct Absent {
  std::string_view type;
  std::string_view title;
  bool numbered;
  std::uint32_t memory_space;           ///< of device 0; devices do not share memory
  std::string Config::* override_path;  ///< the setting that names another library; null where there is none
  std::array<std::string_view, 3> libraries;
  std::string_view requires_text;
  std::string_view install;
};

#if defined(_WIN32)
constexpr std::array<std::string_view, 3> hip_libraries{"amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"},
    level_zero_libraries{"ze_loader.dll"};
#else
constexpr std::array<std::string_view, 3> hip_libraries{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"},
    level_zero_libraries{"libze_loader.so.1"};
#endif

constexpr Absent hip{"hip",
                     "HIP",
                     true,
                     0x300,
                     &Config::lib_hip,
                     hip_libraries,
                     "an AMD GPU with ROCm; in a clone",
                     "pip install '.[hip]'   (or: uv sync --extra hip)"};
constexpr Absent level_zero{"level_zero",
                            "Level Zero",
                            true,
                            0x400,
                            &Config::lib_ze,
                            level_zero_libraries,
                            "an Intel GPU with its driver, the Level Zero loader and libocloc; on Debian and Ubuntu",
                            "apt-get install intel-opencl-icd libze1"};

class AbsentBackend final : public Backend {
 public:
  explicit AbsentBackend(const Absent& data) : data_(data) {}

  std::string name() const override { return std::string(data_.type); }
  bool numbered() const override { return data_.numbered; }
  bool available_in_this_build() const override { return false; }
  int device_count(RuntimeImpl& /*runtime*/) noexcept override { return 0; }
  std::uint32_t memory_space(int index) const override { return data_.memory_space + static_cast<std::uint32_t>(index); }

  std::unique_ptr<DeviceImpl> open(RuntimeImpl& runtime, int /*index*/, const DeviceOptions& /*options*/) override {
    throw reason(runtime.config);
  }

  std::vector<std::byte> compile(RuntimeImpl& runtime, const KernelSource& /*source*/) override { throw reason(runtime.config); }
  std::string compiler_version(RuntimeImpl& /*runtime*/) override { return "none"; }

 private:
  Error reason(const Config& config) const {
    std::vector<std::string> names;
    for (const std::string_view library : data_.libraries)
      if (!library.empty()) names.emplace_back(library);
    const Library library = Library::open(data_.override_path == nullptr ? std::string() : config.*data_.override_path, names);
    if (!library.loaded())
      return device_unavailable(name(), "missing dependency", library.reason(), std::string(data_.requires_text),
                                std::string(data_.install));
    const std::string there = text(library.name(), " is there, but tack ", TACK_VERSION, " does not drive ", data_.title,
                                   " devices yet.\nUse another device, such as 'cpu', or a version of tack that does.");
    return device_unavailable(name(), "not supported yet", there, {}, {});
  }

  const Absent& data_;
};

}  // namespace

std::unique_ptr<Backend> make_absent_hip() { return std::make_unique<AbsentBackend>(hip); }
std::unique_ptr<Backend> make_absent_level_zero() { return std::make_unique<AbsentBackend>(level_zero); }

}  // namespace tack
