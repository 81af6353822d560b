// backends/hip/hip_api.h -- the HIP runtime and hipRTC as backends/gpu sees them: names, types, functions, and what results mean.
#pragma once

#include <hip/hiprtc_abi.h>
#include <hip/runtime_abi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend.h"
#include "backends/gpu/driver.h"
#include "core/native_function.h"
#include "core/runtime_impl.h"

namespace tack::hip {

namespace abi {
/// The functions of runtime.def, and those whose declarations differ from release to release or answer something else.
struct RuntimeFunctions {
#define X(need, member, symbol, ...) NativeFunction<Result, __VA_ARGS__> member{#symbol};
#include "backends/hip/runtime.def"
#undef X
  NativeFunction<const char*, Result> error_name{"hipGetErrorName"}, error_string{"hipGetErrorString"};
  NativeFunction<Result, void*, int> properties{"hipGetDeviceProperties"}, properties_r0600{"hipGetDevicePropertiesR0600"};
  /// Answers the names of the required ones that the library lacks.
  std::vector<std::string> find_in(const Library& library);
};

/// The functions of hiprtc.def.
struct HiprtcFunctions {
#define X(need, member, symbol, ...) NativeFunction<CompileResult, __VA_ARGS__> member{#symbol};
#include "backends/hip/hiprtc.def"
#undef X
  NativeFunction<const char*, CompileResult> error_string{"hiprtcGetErrorString"};
  std::vector<std::string> find_in(const Library& library);
};
}  // namespace abi

class Context;
class DeviceScope;
class HipDevice;
class Hiprtc;

struct Api {
  static constexpr std::string_view type = "hip", title = "HIP", driver_name = "ROCm", result_type = "hipError_t";
  static constexpr std::string_view compiler_name = "hipRTC", source_suffix = ".hip";
  static constexpr std::string_view code_revision = "hip-code-1";  // as that of CUDA
  static constexpr std::uint32_t first_memory_space = 0x300;
  static constexpr std::string Config::* driver_setting = &Config::lib_hip;
  static constexpr std::string Config::* compiler_setting = &Config::lib_hiprtc;

  using Functions = abi::RuntimeFunctions;
  using Result = abi::Result;
  using DevicePointer = abi::DevicePointer;
  using DeviceAttribute = abi::DeviceAttribute;
  using Module = abi::Module;
  using Function = abi::Function;
  using Stream = abi::Stream;
  using Event = abi::Event;
  static constexpr auto max_threads_per_block = abi::FunctionAttribute::max_threads_per_block;
  static constexpr auto pointer_ordinal = abi::PointerAttribute::device_ordinal;
  static constexpr unsigned int event_disable_timing = abi::event_disable_timing, host_alloc_portable = abi::host_alloc_portable;

  /// What gpu/texture.h is made of.
  struct Images {
    static constexpr unsigned int normalized_coordinates = abi::texture_normalized_coordinates;
    /// The copy of a contiguous volume of floats in the device's memory; `shape`: depth, height, width.
    static abi::Copy3D copy_of(const void* texels, abi::Array array, std::array<std::size_t, 3> shape) noexcept {
      abi::Copy3D copy{};
      copy.from = {const_cast<void*>(texels), shape[2] * sizeof(float), shape[2], shape[1]};
      copy.to_array = array;
      copy.width = shape[2];
      copy.height = shape[1];
      copy.depth = shape[0];
      return copy;
    }
  };

  using CompilerFunctions = abi::HiprtcFunctions;
  using CompileResult = abi::CompileResult;
  using Program = abi::Program;

  using Context = hip::Context;
  using Scope = DeviceScope;
  using Device = HipDevice;
  using Compiler = Hiprtc;

  static abi::DevicePointer address(const void* pointer) noexcept { return const_cast<void*>(pointer); }
  static void* pointer(abi::DevicePointer address) noexcept { return address; }

  // As in cuda/cuda_api.h.
  static const char* name_of(const Functions& driver, Result result) { return driver.error_name(result); }
  static const char* text_of(const Functions& driver, Result result) { return driver.error_string(result); }
  static std::string_view advice_for(Result result) noexcept;
  static bool is_lost(Result result) noexcept;
  static bool is_gone(Result result) noexcept;
  static bool is_corrupt(Result result) noexcept;
  static Result load(const Functions& driver, Module& module, std::span<const std::byte> binary, std::string& words);
  static Error unavailable(const std::string& reason);
  static std::vector<std::string> driver_libraries();
  static std::vector<std::string> compiler_libraries(RuntimeImpl& runtime);
  static void initialize(const gpu::Driver<Api>& driver);
  static int current_device(const gpu::Driver<Api>& driver);
  static Capabilities describe(std::string_view arch);
};

using Driver = gpu::Driver<Api>;

}  // namespace tack::hip
