// backends/level_zero/ocloc.cpp -- finds libocloc's functions, runs one compilation, makes its log short; the devices that it knows by
// name.
#include "backends/level_zero/ocloc.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "backends/gpu/compiler.h"
#include "backends/level_zero/ze_api.h"
#include "backends/level_zero/ze_device.h"
#include "core/text.h"

namespace tack::level_zero {

namespace {

constexpr int invalid_device = -33;  // what ocloc answers for a device that it does not know

/// What ocloc's devices can do, as far as their architecture decides it. All have the functions of OpenCL C 1.2.
struct Architecture {
  std::string_view names;  // with blanks around each
  std::string_view title;
  bool f64, images;
  std::uint32_t max_group;
  std::uint64_t shared_bytes;
};
constexpr std::array<Architecture, 6> architectures{{
    {" bdw ", "Gen8", true, true, 256, 64 << 10},
    {" skl kbl cfl glk apl ", "Gen9", true, true, 256, 64 << 10},
    {" icllp ", "Gen11", false, true, 256, 64 << 10},
    {" tgllp rkl adls adlp adln dg1 ", "Xe-LP", false, true, 512, 64 << 10},
    {" acm-g10 acm-g11 acm-g12 ", "Xe-HPG", false, true, 1024, 64 << 10},
    {" pvc ", "Xe-HPC", true, false, 1024, 128 << 10},
}};

}  // namespace

Capabilities Api::describe(std::string_view arch) {
  const std::string name = text(' ', arch, ' ');
  std::string known;
  for (const Architecture& architecture : architectures) {
    known += architecture.names.substr(known.empty() ? 1 : 0, architecture.names.size() - (known.empty() ? 2 : 1));
    if (arch.find(' ') != std::string_view::npos || arch.empty() || architecture.names.find(name) == std::string_view::npos) continue;
    Capabilities can = capabilities_of(architecture.f64);
    can.arch = arch;
    can.device_name = text("an Intel GPU of the architecture ", architecture.title);
    can.supports_images = architecture.images;
    if (architecture.images) can.max_image.fill(2048);
    can.max_group = architecture.max_group;
    can.shared_bytes = architecture.shared_bytes;
    can.max_iterations = std::uint64_t{std::numeric_limits<std::uint32_t>::max()} * can.block;
    return can;
  }
  throw Error(ErrorCode::invalid_argument,
              text("'", arch, "' is no architecture that tack compiles for without a device; Level Zero's are called ", known, '.'));
}

std::vector<std::string> Api::compiler_libraries(RuntimeImpl& /*runtime*/) {
#if defined(_WIN32)
  return {"ocloc64.dll"};
#else
  return {"libocloc.so", "libocloc.so.1"};
#endif
}

Ocloc::Ocloc(Library library) : library_(std::move(library)) {
  constexpr bool required = true;  // as ocloc.def has them
  std::vector<std::string> missing;
#define X(need, member, symbol, ...) find_function(library_, member, need, missing);
#include "backends/level_zero/ocloc.def"
#undef X
  if (!missing.empty()) throw Api::unavailable(text("ocloc in ", library_.name(), " is too old: it lacks ", missing_text(missing), '.'));
}

/// What an invocation answers, until it is given back.
class Ocloc::Outputs {
 public:
  explicit Outputs(const Ocloc& ocloc) : ocloc_(ocloc) {}
  ~Outputs() {
    if (names != nullptr) ocloc_.free_output(&count, &data, &sizes, &names);
  }
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  /// An output's bytes; empty when there is none of this name.
  std::span<const std::uint8_t> find(std::string_view name) const noexcept {
    for (std::uint32_t i = 0; i < count; ++i)
      if (names[i] == name) return {data[i], sizes[i]};
    return {};
  }

  std::uint32_t count = 0;
  std::uint8_t** data = nullptr;
  std::uint64_t* sizes = nullptr;
  char** names = nullptr;

 private:
  const Ocloc& ocloc_;
};

std::vector<std::byte> Ocloc::compile(const KernelSource& source) const {
  std::vector<const char*> words{
      "ocloc",   "compile", "-q",       "-file", "kernel.cl", "-device", source.arch.c_str(), "-output_no_suffix",
      "-output", "kernel",  "-spv_only"};
  if (!source.options.empty()) words.insert(words.end(), {"-options", source.options.c_str()});
  const auto* const file = reinterpret_cast<const std::uint8_t*>(source.text.c_str());
  const std::uint64_t bytes = source.text.size() + 1;  // ocloc reads on until a zero
  const char* const name = "kernel.cl";

  const std::lock_guard lock(mutex_);
  Outputs outputs(*this);
  const int result =
      invoke(static_cast<unsigned int>(words.size()), words.data(), 1, const_cast<const std::uint8_t**>(&file), &bytes,
             const_cast<const char**>(&name), 0, nullptr, nullptr, nullptr, &outputs.count, &outputs.data, &outputs.sizes, &outputs.names);
  const std::span<const std::uint8_t> code = outputs.find("kernel.spv");
  if (result != 0 || code.empty()) {
    const std::span<const std::uint8_t> log = outputs.find("stdout.log");
    fail(source, result, std::string(reinterpret_cast<const char*>(log.data()), log.size()));
  }
  const auto* const first = reinterpret_cast<const std::byte*>(code.data());
  return {first, first + code.size()};
}

void Ocloc::fail(const KernelSource& source, int result, const std::string& log) const {
  Error::Fields fields;
  fields.backend = "level_zero";
  fields.operation = invoke.symbol;
  fields.native_code = result;
  fields.native_name = text("ocloc ", result);
  if (result == invalid_device) {
    fields.code = ErrorCode::unavailable;
    fields.message =
        text("Kernel '", source.name, "': ", library_.name(), " knows no device '", source.arch,
             "'. Install the ocloc that belongs to the GPU's driver, and set TACK_LIBOCLOC where it is not the one that is found.");
  } else {
    fields.code = ErrorCode::compile;
    fields.message = text("Kernel '", source.name, "' cannot be compiled for Level Zero (", source.arch, ")", log.empty() ? "." : ":",
                          gpu::relevant_lines(log));
  }
  throw Error(std::move(fields));
}

}  // namespace tack::level_zero
