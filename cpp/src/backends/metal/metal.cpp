// backends/metal/metal.cpp -- finds Metal's functions, and says in words what its errors mean.
#include "backends/metal/metal.h"

#include <vector>

#include "core/library.h"
#include "core/text.h"
#include "core/unavailable.h"

namespace tack::metal {

#if defined(__APPLE__)
namespace abi {
extern "C" {
#  define X(member, symbol, result, ...) result symbol(__VA_ARGS__);
#  include "backends/metal/metal.def"
#  undef X
}
}  // namespace abi
#endif

namespace {

bool is_error(const abi::Problem& problem, abi::CommandError code) noexcept {
  return std::string_view(problem.domain) == abi::command_domain && problem.code == static_cast<std::int64_t>(code);
}

bool is_error(const abi::Problem& problem, abi::LibraryError code) noexcept {
  return std::string_view(problem.domain) == abi::library_domain && problem.code == static_cast<std::int64_t>(code);
}

/// What the user can do about it; empty where Metal's own words say all.
std::string_view advice_for(const abi::Problem& problem) noexcept {
  if (is_error(problem, abi::CommandError::page_fault) || is_error(problem, abi::CommandError::invalid_resource))
    return "tack.debug(True) finds indices outside of an array.";
  if (is_error(problem, abi::CommandError::timeout))
    return "macOS ends work that keeps the GPU busy for seconds: split it across several calls.";
  if (is_error(problem, abi::CommandError::access_revoked) || is_error(problem, abi::CommandError::not_permitted))
    return "macOS takes no more work of this process, after failures or while it is in the background.";
  if (is_error(problem, abi::CommandError::out_of_memory)) return "Drop arrays that are no longer needed, or work in smaller pieces.";
  if (is_error(problem, abi::CommandError::stack_overflow)) return "The kernel's local arrays or nested calls need too much memory.";
  return {};
}

std::string name_of(const abi::Problem& problem) {
#define X(constant, original, value) \
  if (is_error(problem, abi::LibraryError::constant)) return #original;
  TACK_METAL_LIBRARY_ERRORS(X)
#undef X
#define X(constant, original, value) \
  if (is_error(problem, abi::CommandError::constant)) return #original;
  TACK_METAL_COMMAND_ERRORS(X)
#undef X
  return problem.domain;
}

Error::Fields fields_of(const abi::Problem& problem, const char* symbol) {
  Error::Fields fields;
  fields.code = is_error(problem, abi::CommandError::out_of_memory)     ? ErrorCode::out_of_memory
                : is_error(problem, abi::LibraryError::compile_failure) ? ErrorCode::compile
                                                                        : ErrorCode::driver;
  fields.backend = "metal";
  fields.operation = symbol;
  fields.native_code = problem.code;
  fields.native_name = name_of(problem);
  return fields;
}

std::string reason_of(const abi::Problem& problem) {
  return problem.text[0] == '\0' ? "the system does not say why" : std::string(problem.text);
}

}  // namespace

Error unavailable(const std::string& reason, const std::string& problem) {
  return device_unavailable("metal", problem, reason, "an Apple silicon Mac; in a clone",
                            "pip install '.[metal]'   (or: uv sync --extra metal)");
}

Metal::Metal(const Config& config) {
  if (!config.lib_metal.empty()) {
    const Library library = Library::open(config.lib_metal, {});
    if (!library.loaded()) throw unavailable(library.reason());
    std::vector<std::string> missing;
#define X(member, symbol, result, ...) find_function(library, member, true, missing);
#include "backends/metal/metal.def"
#undef X
    if (!missing.empty()) throw unavailable(text(library.name(), " is no stand-in for Metal: it lacks ", missing_text(missing), '.'));
    return;
  }
#if defined(__APPLE__)
#  define X(member, symbol, result, ...) member.address = abi::symbol;
#  include "backends/metal/metal.def"
#  undef X
#else
  throw unavailable("Metal is a part of macOS, which this system is not.");
#endif
}

Error Metal::error_of(std::string_view what, const abi::Problem& problem, const char* symbol) const {
  Error::Fields fields = fields_of(problem, symbol);
  fields.message = text("Metal cannot ", what, ": ", reason_of(problem), '.');
  const std::string_view advice = advice_for(problem);
  if (!advice.empty()) fields.message += text("\n  ", advice);
  return Error(std::move(fields));
}

Error Metal::queued_error(std::string_view kernel, const abi::Problem& problem) const {
  Error::Fields fields = fields_of(problem, wait.symbol);
  fields.code = ErrorCode::driver;
  fields.queued = true;
  fields.message = text("Metal reports a failure of queued work ('", kernel, "'): ", reason_of(problem), '.');
  const std::string_view advice = advice_for(problem);
  if (!advice.empty()) fields.message += text("\n  ", advice);
  return Error(std::move(fields));
}

}  // namespace tack::metal
