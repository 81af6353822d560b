// backends/cuda/nvrtc.cpp -- where NVRTC is looked for, and what it is asked for.
#include "backends/cuda/nvrtc.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"

namespace tack::cuda {

int capability_of(std::string_view arch) noexcept {
  constexpr std::string_view prefix = "sm_";
  int capability = -1;
  if (!arch.starts_with(prefix)) return -1;
  const char* const end = arch.data() + arch.size();
  const auto [stop, error] = std::from_chars(arch.data() + prefix.size(), end, capability);
  return error == std::errc{} && stop == end && capability >= 10 ? capability : -1;
}

std::vector<std::string> nvrtc_libraries(std::span<const std::string> packages, const std::string& cuda_path) {
  std::vector<std::string> names;
#if defined(_WIN32)
  constexpr std::array<std::string_view, 2> versions{"nvrtc64_130_0.dll", "nvrtc64_120_0.dll"};
  constexpr std::array<std::string_view, 2> package_parts{"/nvidia/cu13/bin/x86_64/", "/nvidia/cuda_nvrtc/bin/"};
  constexpr std::array<std::string_view, 2> toolkit_parts{"/bin/x64/", "/bin/"};
  constexpr std::array<std::string_view, 0> toolkits{};
#else
  constexpr std::array<std::string_view, 2> versions{"libnvrtc.so.13", "libnvrtc.so.12"};
  constexpr std::array<std::string_view, 2> package_parts{"/nvidia/cu13/lib/", "/nvidia/cuda_nvrtc/lib/"};
  constexpr std::array<std::string_view, 2> toolkit_parts{"/lib64/", "/lib/"};
  constexpr std::array<std::string_view, 3> toolkits{"/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"};
#endif
  const auto add_toolkit = [&](std::string_view folder) {
    for (const std::string_view part : toolkit_parts)
      for (const std::string_view version : versions) names.push_back(text(folder, part, version));
  };
  for (const std::string_view version : versions) names.emplace_back(version);
  // pip's nvidia-cuda-nvrtc has 13, its nvidia-cuda-nvrtc-cu12 has 12.
  for (std::size_t i = 0; i < versions.size(); ++i)
    for (const std::string& folder : packages) names.push_back(text(folder, package_parts[i], versions[i]));
  if (!cuda_path.empty()) add_toolkit(cuda_path);
  for (const std::string_view folder : toolkits) add_toolkit(folder);
  return names;
}

std::vector<int> Nvrtc::known_architectures() const {
  if (!architecture_count || !architectures) return {};
  int count = 0;
  if (architecture_count(&count) != abi::CompileResult::success || count <= 0) return {};
  std::vector<int> known(static_cast<std::size_t>(count));
  if (architectures(known.data()) != abi::CompileResult::success) return {};
  std::sort(known.begin(), known.end());
  return known;
}

std::string Nvrtc::target_of(int capability, std::span<const int> known) {
  if (known.empty() || std::find(known.begin(), known.end(), capability) != known.end()) return text("sm_", capability);
  int newest = -1;
  for (const int candidate : known)
    if (candidate < capability) newest = candidate;
  return newest < 0 ? std::string() : text("compute_", newest);
}

std::vector<std::byte> Nvrtc::compile(const KernelSource& source) const {
  // An architecture called compute_90 asks for PTX, as in NVRTC's own option: text, for those who want to read it.
  constexpr std::string_view virtual_prefix = "compute_";
  const bool as_text = source.arch.starts_with(virtual_prefix);
  const int capability = capability_of(as_text ? text("sm_", source.arch.substr(virtual_prefix.size())) : source.arch);
  if (capability < 0)
    throw Error(ErrorCode::invalid_argument, text("Kernel '", source.name, "': '", source.arch,
                                                  "' is no architecture of CUDA's; they are called sm_75, sm_90 and so on."));
  const std::string target = target_of(capability, known_architectures());
  if (target.empty()) {
    int major = 0, minor = 0;
    version(&major, &minor);
    throw Error(ErrorCode::unavailable,
                text("Kernel '", source.name, "': NVRTC ", major, '.', minor, " (", library().name(), ") compiles no more for ",
                     source.arch, ". Install an older one: pip install nvidia-cuda-nvrtc-cu12, and set TACK_LIBNVRTC to its library."));
  }
  const bool ptx_only = as_text || target.starts_with(virtual_prefix) || !cubin || !cubin_size;
  const std::string given = text("--gpu-architecture=", ptx_only ? "compute_" : "sm_", target.substr(target.find('_') + 1));
  std::vector<std::string> options{given, "--std=c++17", "-default-device"};
  // Contraction changes bits: only who gives these up asks for it.
  if (source.options.find("--fmad") == std::string::npos) options.emplace_back("--fmad=false");
  return run(source, std::move(options), ptx_only ? ptx_size : cubin_size, ptx_only ? ptx : cubin);
}

}  // namespace tack::cuda
