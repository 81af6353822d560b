// backends/cuda/cuda_api.h -- the CUDA driver and NVRTC as backends/gpu sees them: names, types, functions, and what results mean.
#pragma once

#include <cuda/driver_abi.h>
#include <cuda/nvrtc_abi.h>

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

namespace tack::cuda {

namespace abi {
/// The functions of driver.def.
struct DriverFunctions {
#define X(need, member, symbol, ...) NativeFunction<Result, __VA_ARGS__> member{#symbol};
#include "backends/cuda/driver.def"
#undef X
  /// Answers the names of the required ones that the library lacks.
  std::vector<std::string> find_in(const Library& library);
};

/// The functions of nvrtc.def.
struct NvrtcFunctions {
#define X(need, member, symbol, ...) NativeFunction<CompileResult, __VA_ARGS__> member{#symbol};
#include "backends/cuda/nvrtc.def"
#undef X
  NativeFunction<const char*, CompileResult> error_string{"nvrtcGetErrorString"};
  std::vector<std::string> find_in(const Library& library);
};
}  // namespace abi

class Context;
class ContextScope;
class CudaDevice;
class Nvrtc;

struct Api {
  static constexpr std::string_view type = "cuda", title = "CUDA", driver_name = "NVIDIA's driver", result_type = "CUresult";
  static constexpr std::string_view compiler_name = "NVRTC", source_suffix = ".cu";
  // Part of the disk cache's key. A newer NVRTC makes other code, but not wrong code: what is stored stays valid until what is asked of
  // NVRTC or the way in which kernels are launched changes. Then this number does.
  static constexpr std::string_view code_revision = "cuda-code-1";
  static constexpr std::uint32_t first_memory_space = 0x200;
  static constexpr std::string Config::* driver_setting = &Config::lib_cuda;
  static constexpr std::string Config::* compiler_setting = &Config::lib_nvrtc;

  using Functions = abi::DriverFunctions;
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
      copy.from.kind = abi::MemoryKind::device;
      copy.from.device = address(texels);
      copy.from.pitch = shape[2] * sizeof(float);
      copy.from.height = shape[1];
      copy.to.kind = abi::MemoryKind::array;
      copy.to.array = array;
      copy.width = shape[2] * sizeof(float);
      copy.height = shape[1];
      copy.depth = shape[0];
      return copy;
    }
  };

  using CompilerFunctions = abi::NvrtcFunctions;
  using CompileResult = abi::CompileResult;
  using Program = abi::Program;

  using Context = cuda::Context;
  using Scope = ContextScope;
  using Device = CudaDevice;
  using Compiler = Nvrtc;

  static abi::DevicePointer address(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are numbers
  static void* pointer(abi::DevicePointer address) noexcept { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }

  /// The driver's words for a result, or null.
  static const char* name_of(const Functions& driver, Result result);
  static const char* text_of(const Functions& driver, Result result);
  /// What the user can do about a result; empty where the driver's own words say all.
  static std::string_view advice_for(Result result) noexcept;
  /// Whether a kernel's failure has made the context unusable for good.
  static bool is_lost(Result result) noexcept;
  /// Whether driver or context were gone already, and with them all that was in them.
  static bool is_gone(Result result) noexcept;
  /// Whether the driver does not take the bytes that it was given as code.
  static bool is_corrupt(Result result) noexcept;
  /// Loads code; `words` gets the driver's log about a failure.
  static Result load(const Functions& driver, Module& module, std::span<const std::byte> binary, std::string& words);

  /// "Cannot start the 'cuda' device: ..." with this reason.
  static Error unavailable(const std::string& reason);
  /// The names under which the libraries are looked for, in this order.
  static std::vector<std::string> driver_libraries();
  static std::vector<std::string> compiler_libraries(RuntimeImpl& runtime);
  /// Throws Error(unavailable) for a driver that is too old or does not start.
  static void initialize(const gpu::Driver<Api>& driver);
  /// The device of this thread's current context, which is its ordinal; -1 where there is none.
  static int current_device(const gpu::Driver<Api>& driver);
  /// The capabilities of the architecture "sm_90", say.
  static Capabilities describe(std::string_view arch);
};

using Driver = gpu::Driver<Api>;

}  // namespace tack::cuda
