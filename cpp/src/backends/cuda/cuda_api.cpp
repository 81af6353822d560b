// backends/cuda/cuda_api.cpp -- finds the functions of driver and compiler, starts the driver, and says in words what results mean.
#include "backends/cuda/cuda_api.h"

#include <array>

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/nvrtc.h"
#include "core/text.h"
#include "core/unavailable.h"

namespace tack::cuda {

namespace {

constexpr bool required = true, optional = false;             // as the .def files have them
constexpr int oldest_capability = 50, oldest_driver = 11000;  // what NVRTC 12 compiles for; CUDA 11.0

}  // namespace

std::vector<std::string> abi::DriverFunctions::find_in(const Library& library) {
  std::vector<std::string> missing;
#define X(need, member, symbol, ...) find_function(library, member, need, missing);
#include "backends/cuda/driver.def"
#undef X
  return missing;
}

std::vector<std::string> abi::NvrtcFunctions::find_in(const Library& library) {
  std::vector<std::string> missing;
#define X(need, member, symbol, ...) find_function(library, member, need, missing);
#include "backends/cuda/nvrtc.def"
#undef X
  find_function(library, error_string, required, missing);
  return missing;
}

const char* Api::name_of(const Functions& driver, Result result) {
  const char* found = nullptr;
  return driver.error_name(result, &found) == Result::success ? found : nullptr;
}

const char* Api::text_of(const Functions& driver, Result result) {
  const char* found = nullptr;
  return driver.error_string(result, &found) == Result::success ? found : nullptr;
}

std::string_view Api::advice_for(Result result) noexcept {
  if (is_lost(result))
    return "The GPU dropped this process's context: its arrays are lost and nothing runs on it any more until the process is started anew. "
           "tack.debug(True) finds indices outside of an array.";
  switch (result) {
    case Result::not_initialized:
      return "The driver does not survive fork(): start worker processes with 'spawn'.";
    case Result::deinitialized:
      return "The process is ending and the driver is gone.";
    case Result::invalid_context:
    case Result::context_is_destroyed:
      return "The context that tack adopted from the application, or shares with it, was destroyed.";
    case Result::unsupported_ptx_version:
      return "NVRTC is newer than the driver: update the driver, or install an older NVRTC (pip install nvidia-cuda-nvrtc-cu12).";
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
    case Result::hardware_stack_error:
    case Result::illegal_instruction:
    case Result::misaligned_address:
    case Result::invalid_address_space:
    case Result::invalid_pc:
    case Result::launch_failed:
      return true;
    default:
      return false;
  }
}

bool Api::is_gone(Result result) noexcept { return result == Result::deinitialized || result == Result::context_is_destroyed; }

bool Api::is_corrupt(Result result) noexcept {
  return result == Result::invalid_image || result == Result::no_binary_for_gpu || result == Result::invalid_ptx;
}

abi::Result Api::load(const Functions& driver, Module& module, std::span<const std::byte> binary, std::string& words) {
  // The driver's words about PTX that it cannot compile. The size is an option's value, not a pointer to one.
  std::vector<char> log(8192, '\0');
  std::array<abi::JitOption, 2> options{abi::JitOption::error_log_buffer, abi::JitOption::error_log_buffer_bytes};
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size() - 1)};
  const Result result =
      driver.module_load(&module, binary.data(), static_cast<unsigned int>(options.size()), options.data(), values.data());
  if (result != Result::success) words = log.data();
  return result;
}

Error Api::unavailable(const std::string& reason) {
  return device_unavailable("cuda", "missing dependency", reason, "an NVIDIA GPU with its driver, plus NVRTC 13; in a clone",
                            "pip install '.[cuda]'   (or: uv sync --extra cuda)");
}

std::vector<std::string> Api::driver_libraries() {
#if defined(_WIN32)
  return {"nvcuda.dll"};
#else
  return {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
#endif
}

std::vector<std::string> Api::compiler_libraries(RuntimeImpl& runtime) {
  return nvrtc_libraries(runtime.package_folders(), runtime.config.cuda_path);
}

void Api::initialize(const Driver& driver) {
  const auto require = [&](const char* symbol, Result result) {
    if (result == Result::success) return;
    const std::string call = text(symbol, ": ", driver.name_of(result), " (", static_cast<int>(result), ')');
    switch (result) {
      case Result::no_device:
        throw unavailable(text("The driver finds no NVIDIA GPU. nvidia-smi and CUDA_VISIBLE_DEVICES say more.\n", call));
      case Result::stub_library:
        throw unavailable(text(driver.library(), " is the stub for linking, not a driver.\n", call));
      case Result::driver_mismatch:
      case Result::compat_not_supported:
        throw unavailable(text("The driver's library and its kernel module do not fit together: restart the machine.\n", call));
      default:
        throw unavailable(text("The driver cannot be started: ", driver.text_of(result), ".\n", call));
    }
  };
  int version = 0;
  require(driver.driver_version.symbol, driver.driver_version(&version));
  if (version < oldest_driver)
    throw unavailable(text("The CUDA driver in ", driver.library(), " is too old: it is for CUDA ", version / 1000, '.',
                           version % 1000 / 10, ", and 11.0 is needed. Update NVIDIA's driver."));
  require(driver.init.symbol, driver.init(0));
}

int Api::current_device(const Driver& driver) {
  abi::Context current = nullptr;
  driver("read the current context", driver.context_current, &current);
  if (current == nullptr) return -1;
  abi::Device device = -1;
  const Result result = driver.context_device(&device);
  // Its owner destroyed it and left it current, or a kernel's failure made it useless: as good as none.
  if (result == Result::context_is_destroyed || result == Result::invalid_context || is_lost(result)) return -1;
  if (result != Result::success) driver.fail("read the current context's device", result, driver.context_device.symbol);
  return device;
}

Capabilities Api::describe(std::string_view arch) {
  const int capability = capability_of(arch);
  if (capability < oldest_capability)
    throw Error(ErrorCode::invalid_argument,
                text("'", arch, "' is no architecture that tack compiles for; CUDA's are called sm_75, sm_90, sm_120 and so on, from sm_",
                     oldest_capability, '.'));
  return capabilities_of(capability / 10, capability % 10);
}

}  // namespace tack::cuda
