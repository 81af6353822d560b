// backends/cuda/nvrtc.cpp -- finds NVRTC's functions, runs one compilation, and makes its log short.
#include "backends/cuda/nvrtc.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/text.h"

namespace tack::cuda {

namespace {

constexpr bool required = true, optional = false;  // as nvrtc.def has them

constexpr std::size_t shown_errors = 4, shown_lines = 24;

std::vector<std::string> words_of(std::string_view options) {
  std::vector<std::string> words;
  while (!options.empty()) {
    const std::size_t end = std::min(options.find(' '), options.size());
    if (end != 0) words.emplace_back(options.substr(0, end));
    options.remove_prefix(std::min(end + 1, options.size()));
  }
  return words;
}

}  // namespace

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

Nvrtc::Nvrtc(Library library) : library_(std::move(library)) {
  std::vector<std::string> missing;
#define X(need, member, symbol, ...) find_function(library_, member, need, missing);
#include "backends/cuda/nvrtc.def"
#undef X
  find_function(library_, error_string, required, missing);
  if (!missing.empty()) throw unavailable(text("NVRTC in ", library_.name(), " is too old: it lacks ", missing_text(missing), "."));
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

/// One program of NVRTC's.
class Nvrtc::Job {
 public:
  Job(const Nvrtc& nvrtc, const KernelSource& source) : nvrtc_(nvrtc) {
    const abi::CompileResult result =
        nvrtc.create_program(&program_, source.text.c_str(), text(source.name, ".cu").c_str(), 0, nullptr, nullptr);
    if (result != abi::CompileResult::success) nvrtc.fail(source, result, nvrtc.create_program.symbol, {});
  }
  ~Job() { nvrtc_.destroy_program(&program_); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  abi::Program program() const noexcept { return program_; }
  /// Empty when there is none.
  std::string log() const {
    std::size_t size = 0;
    if (nvrtc_.program_log_size(program_, &size) != abi::CompileResult::success || size == 0) return {};
    std::string log(size, '\0');
    if (nvrtc_.program_log(program_, log.data()) != abi::CompileResult::success) return {};
    log.resize(log.find_last_not_of('\0') + 1);
    return log;
  }

 private:
  const Nvrtc& nvrtc_;
  abi::Program program_ = nullptr;
};

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
                text("Kernel '", source.name, "': NVRTC ", major, '.', minor, " (", library_.name(), ") compiles no more for ", source.arch,
                     ". Install an older one: pip install nvidia-cuda-nvrtc-cu12, and set TACK_LIBNVRTC to its library."));
  }
  const bool ptx_only = as_text || target.starts_with(virtual_prefix) || !cubin || !cubin_size;
  std::vector<std::string> options{text("--gpu-architecture=", ptx_only ? "compute_" : "sm_", target.substr(target.find('_') + 1)),
                                   "--fmad=false", "--std=c++17", "-default-device"};
  for (std::string& word : words_of(source.options)) options.push_back(std::move(word));
  std::vector<const char*> given;
  given.reserve(options.size());
  for (const std::string& option : options) given.push_back(option.c_str());

  const Job job(*this, source);
  const abi::CompileResult result = compile_program(job.program(), static_cast<int>(given.size()), given.data());
  if (result != abi::CompileResult::success) fail(source, result, compile_program.symbol, job.log());
  const auto& size_function = ptx_only ? ptx_size : cubin_size;
  const auto& bytes_function = ptx_only ? ptx : cubin;
  std::size_t size = 0;
  if (const abi::CompileResult r = size_function(job.program(), &size); r != abi::CompileResult::success)
    fail(source, r, size_function.symbol, {});
  std::vector<std::byte> binary(size);
  if (const abi::CompileResult r = bytes_function(job.program(), reinterpret_cast<char*>(binary.data())); r != abi::CompileResult::success)
    fail(source, r, bytes_function.symbol, {});
  return binary;
}

std::string Nvrtc::relevant_lines(std::string_view log) {
  std::vector<std::string_view> lines;
  for (std::string_view rest = log; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const auto has = [](std::string_view line, std::string_view word) { return line.find(word) != std::string_view::npos; };
  const auto is_error = [&](std::string_view line) { return has(line, "error:") || has(line, "error :") || has(line, "error #"); };
  std::string out;
  std::size_t errors = 0, shown = 0;
  bool inside = false;  // of a diagnostic that is shown; it ends at an empty line or at the next diagnostic
  for (const std::string_view line : lines) {
    const bool starts = is_error(line) || has(line, "warning:") || has(line, "warning #") || has(line, "remark");
    if (is_error(line)) {
      inside = errors < shown_errors;
      ++errors;
    } else if (starts || line.find_first_not_of(' ') == std::string_view::npos) {
      inside = false;
    }
    if (inside && shown++ < shown_lines) out += text("\n  ", line);
  }
  // No error in the usual form: the log as it is, shortened.
  for (std::size_t i = 0; errors == 0 && i < std::min(lines.size(), shown_lines); ++i) out += text("\n  ", lines[i]);
  if (errors > shown_errors) out += text("\n  ... and ", std::uint64_t{errors - shown_errors}, " more errors");
  return out;
}

void Nvrtc::fail(const KernelSource& source, abi::CompileResult result, const char* symbol, std::string_view log) const {
  Error::Fields fields;
  const bool refused = result == abi::CompileResult::compilation || result == abi::CompileResult::invalid_option;
  fields.code = refused ? ErrorCode::compile : result == abi::CompileResult::out_of_memory ? ErrorCode::out_of_memory : ErrorCode::driver;
  fields.message =
      text("Kernel '", source.name, "' cannot be compiled for CUDA (", source.arch, ")", log.empty() ? "." : ":", relevant_lines(log));
  fields.backend = "cuda";
  fields.operation = symbol;
  fields.native_code = static_cast<int>(result);
  const char* name = error_string(result);
  fields.native_name = name == nullptr ? "" : name;
  throw Error(std::move(fields));
}

}  // namespace tack::cuda
