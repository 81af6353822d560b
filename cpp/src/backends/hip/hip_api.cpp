// backends/hip/hip_api.cpp -- finds the functions of runtime and compiler, starts the runtime, and says in words what results mean.
#include "backends/hip/hip_api.h"

#include <array>

#include "backends/hip/architectures.h"
#include "backends/hip/hip_device.h"
#include "backends/hip/hiprtc.h"
#include "core/text.h"
#include "core/unavailable.h"

namespace tack::hip {

namespace {

constexpr bool required = true, optional = false;  // as the .def files have them
constexpr Release oldest{5, 2};

/// The names of a library: as the system's loader finds it, newest first, and where ROCm is usually installed.
std::vector<std::string> installed(std::string_view library, std::span<const std::string_view> versions) {
  std::vector<std::string> names;
#if defined(_WIN32)
  for (const std::string_view version : versions) names.push_back(text(library, version, ".dll"));
#else
  for (const std::string_view folder : {"", "/opt/rocm/lib/"})
    for (const std::string_view version : versions) names.push_back(text(folder, "lib", library, ".so", version));
#endif
  return names;
}

}  // namespace

std::vector<std::string> abi::RuntimeFunctions::find_in(const Library& library) {
  std::vector<std::string> missing;
#define X(need, member, symbol, ...) find_function(library, member, need, missing);
#include "backends/hip/runtime.def"
#undef X
  find_function(library, error_name, required, missing);
  find_function(library, error_string, required, missing);
  find_function(library, properties_r0600, optional, missing);
  find_function(library, properties, !properties_r0600, missing);
  return missing;
}

std::vector<std::string> abi::HiprtcFunctions::find_in(const Library& library) {
  std::vector<std::string> missing;
#define X(need, member, symbol, ...) find_function(library, member, need, missing);
#include "backends/hip/hiprtc.def"
#undef X
  find_function(library, error_string, required, missing);
  return missing;
}

std::string_view Api::advice_for(Result result) noexcept {
  if (is_lost(result))
    return "The GPU's work of this process is lost, and its arrays with it, until the process is started anew. "
           "tack.debug(True) finds indices outside of an array.";
  switch (result) {
    case Result::not_initialized:
      return "The runtime does not survive fork(): start worker processes with 'spawn'.";
    case Result::deinitialized:
      return "The process is ending and the runtime is gone.";
    case Result::no_binary_for_gpu:
      return "The code was compiled for another GPU.";
    case Result::launch_out_of_resources:
      return "The kernel needs more registers or shared memory than a group of this size has: give it a smaller block=.";
    default:
      return {};
  }
}

bool Api::is_lost(Result result) noexcept {
  switch (result) {
    case Result::ecc_uncorrectable:
    case Result::illegal_address:
    case Result::launch_timeout:
    case Result::device_assert:
    case Result::launch_failed:
      return true;
    default:
      return false;
  }
}

bool Api::is_gone(Result result) noexcept { return result == Result::deinitialized || result == Result::context_is_destroyed; }

bool Api::is_corrupt(Result result) noexcept {
  return result == Result::invalid_image || result == Result::no_binary_for_gpu || result == Result::invalid_kernel_file;
}

abi::Result Api::load(const Functions& driver, Module& module, std::span<const std::byte> binary, std::string& /*words*/) {
  return driver.module_load(&module, binary.data());
}

Error Api::unavailable(const std::string& reason) {
  return device_unavailable("hip", "missing dependency", reason, "an AMD GPU with ROCm; in a clone",
                            "pip install '.[hip]'   (or: uv sync --extra hip)");
}

std::vector<std::string> Api::driver_libraries() {
#if defined(_WIN32)
  constexpr std::array<std::string_view, 3> versions{"_7", "_6", ""};
#else
  constexpr std::array<std::string_view, 4> versions{".7", ".6", ".5", ""};
#endif
  return installed("amdhip64", versions);
}

std::vector<std::string> Api::compiler_libraries(RuntimeImpl& runtime) {
#if defined(_WIN32)
  constexpr std::array<std::string_view, 3> versions{"0701", "0700", "0600"}, with_compiler{""};
#else
  constexpr std::array<std::string_view, 4> versions{".7", ".6", ".5", ""};
  constexpr std::array<std::string_view, 1> with_compiler{".5"};
#endif
  std::vector<std::string> names = installed("hiprtc", versions);
  // Up to release 5 it is a part of the runtime's library, too.
  for (std::string& name : installed("amdhip64", with_compiler)) names.push_back(std::move(name));
  if (!runtime.config.lib_hip.empty()) names.push_back(runtime.config.lib_hip);
  return names;
}

void Api::initialize(const Driver& driver) {
  const auto require = [&](const char* symbol, Result result) {
    if (result == Result::success) return;
    const std::string call = text(symbol, ": ", driver.name_of(result), " (", static_cast<int>(result), ')');
    if (result == Result::no_device || result == Result::invalid_device)
      throw unavailable(text(
          "The runtime finds no AMD GPU. rocminfo and HIP_VISIBLE_DEVICES say more; the user must be in the groups render and video.\n",
          call));
    throw unavailable(text("The runtime cannot be started: ", driver.text_of(result), ".\n", call));
  };
  int version = 0;
  require(driver.runtime_version.symbol, driver.runtime_version(&version));
  if (const Release release = release_of(version); release < oldest)
    throw unavailable(text("The HIP runtime in ", driver.library(), " is too old: it is of ROCm ", number_of(release), ", and ",
                           number_of(oldest), " is needed. Update ROCm."));
  require(driver.init.symbol, driver.init(0));
}

int Api::current_device(const Driver& driver) {
  int ordinal = -1;
  driver("read the thread's device", driver.device_current, &ordinal);
  return ordinal;
}

Capabilities Api::describe(std::string_view arch) {
  const Architecture* const known = find_architecture(arch);
  if (known == nullptr)
    throw Error(ErrorCode::invalid_argument,
                text("'", arch, "' is no architecture that tack compiles for; HIP's are ", architecture_names(), '.'));
  return capabilities_of(*known);
}

}  // namespace tack::hip
