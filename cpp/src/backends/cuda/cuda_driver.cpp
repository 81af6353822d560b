// backends/cuda/cuda_driver.cpp -- finds the driver's functions, and says in words what their results mean.
#include "backends/cuda/cuda_driver.h"

#include <utility>

#include "core/text.h"
#include "core/unavailable.h"

namespace tack::cuda {

namespace {

constexpr bool required = true, optional = false;  // as driver.def has them

/// What the user can do about it; empty where the driver's own words say all.
std::string_view advice_for(abi::Result result) noexcept {
  if (is_lost(result))
    return "The GPU dropped this process's context: its arrays are lost and nothing runs on it any more until the process is started anew. "
           "tack.debug(True) finds indices outside of an array.";
  switch (result) {
    case abi::Result::not_initialized:
      return "The driver does not survive fork(): start worker processes with 'spawn'.";
    case abi::Result::deinitialized:
      return "The process is ending and the driver is gone.";
    case abi::Result::invalid_context:
    case abi::Result::context_is_destroyed:
      return "The context that tack adopted from the application, or shares with it, was destroyed.";
    case abi::Result::unsupported_ptx_version:
      return "NVRTC is newer than the driver: update the driver, or install an older NVRTC (pip install nvidia-cuda-nvrtc-cu12).";
    case abi::Result::launch_out_of_resources:
      return "The kernel needs more registers or shared memory than a group of this size has: give it a smaller block=.";
    default:
      return {};
  }
}

}  // namespace

bool is_lost(abi::Result result) noexcept {
  switch (result) {
    case abi::Result::ecc_uncorrectable:
    case abi::Result::illegal_address:
    case abi::Result::launch_timeout:
    case abi::Result::device_assert:
    case abi::Result::hardware_stack_error:
    case abi::Result::illegal_instruction:
    case abi::Result::misaligned_address:
    case abi::Result::invalid_address_space:
    case abi::Result::invalid_pc:
    case abi::Result::launch_failed:
      return true;
    default:
      return false;
  }
}

std::vector<std::string> driver_libraries() {
#if defined(_WIN32)
  return {"nvcuda.dll"};
#else
  return {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
#endif
}

Error unavailable(const std::string& reason) {
  return device_unavailable("cuda", "missing dependency", reason, "an NVIDIA GPU with its driver, plus NVRTC 13; in a clone",
                            "pip install '.[cuda]'   (or: uv sync --extra cuda)");
}

Driver::Driver(Library library) : library_(std::move(library)) {
  std::vector<std::string> missing;
#define X(need, member, symbol, ...) find_function(library_, member, need, missing);
#include "backends/cuda/driver.def"
#undef X
  if (!missing.empty())
    throw unavailable(
        text("The CUDA driver in ", library_.name(), " is too old: it lacks ", missing_text(missing), ". Update NVIDIA's driver."));
}

void Driver::fail(std::string_view what, abi::Result result, const char* symbol) const { throw error_of(what, result, symbol); }

Error Driver::error_of(std::string_view what, abi::Result result, const char* symbol, std::string_view advice) const {
  Error::Fields fields;
  fields.code = result == abi::Result::out_of_memory ? ErrorCode::out_of_memory : ErrorCode::driver;
  fields.backend = "cuda";
  fields.operation = symbol;
  fields.native_code = static_cast<int>(result);
  fields.native_name = name_of(result);
  fields.queued = is_lost(result);
  fields.message = fields.queued ? text("CUDA reports a failure of queued work: ", text_of(result), '.')
                                 : text("CUDA cannot ", what, ": ", text_of(result), '.');
  if (advice.empty()) advice = advice_for(result);
  if (!advice.empty()) fields.message += text("\n  ", advice);
  return Error(std::move(fields));
}

std::string Driver::name_of(abi::Result result) const {
  const char* found = nullptr;
  if (error_name(result, &found) == abi::Result::success && found != nullptr) return found;
  return text("CUresult ", static_cast<int>(result));
}

std::string Driver::text_of(abi::Result result) const {
  const char* found = nullptr;
  if (error_string(result, &found) == abi::Result::success && found != nullptr) return found;
  return "the driver has no words for it";
}

void Driver::log_failure(Log& log, std::string_view what, abi::Result result, const char* symbol) const noexcept {
  if (is_lost(result) || result == abi::Result::deinitialized || result == abi::Result::context_is_destroyed) return;
  try {
    log.write(LogLevel::error, error_of(what, result, symbol).what());
  } catch (...) {
    return;  // no memory for the message
  }
}

}  // namespace tack::cuda
