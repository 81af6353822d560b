// engine/program.h -- what stand-ins for compilers of text share: programs behind handles, the frame of their calls, results, what is given
// out. NVRTC and hipRTC have the same functions under other names.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "address.h"
#include "compile.h"
#include "control.h"
#include "table.h"

namespace sim::rtc {

// Source: NVRTC's manual, nvrtcResult, and hipRTC's reference, hiprtcResult, which are alike: X(name, the manuals' name behind its prefix,
// value).
#define SIM_RTC_RESULTS(X)                                                     \
  X(success, SUCCESS, 0)                                                       \
  X(out_of_memory, ERROR_OUT_OF_MEMORY, 1)                                     \
  X(program_creation, ERROR_PROGRAM_CREATION_FAILURE, 2)                       \
  X(invalid_input, ERROR_INVALID_INPUT, 3)                                     \
  X(invalid_program, ERROR_INVALID_PROGRAM, 4)                                 \
  X(invalid_option, ERROR_INVALID_OPTION, 5)                                   \
  X(compilation, ERROR_COMPILATION, 6)                                         \
  X(builtin_operation, ERROR_BUILTIN_OPERATION_FAILURE, 7)                     \
  X(no_name_expressions_after, ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION, 8) \
  X(no_lowered_names_before, ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION, 9)     \
  X(name_expression, ERROR_NAME_EXPRESSION_NOT_VALID, 10)                      \
  X(internal, ERROR_INTERNAL_ERROR, 11)
#define SIM_RTC_ENUMERATOR(name, original, value) name = (value),
enum class Outcome : int { SIM_RTC_RESULTS(SIM_RTC_ENUMERATOR) };
#undef SIM_RTC_ENUMERATOR

// The names of results behind the prefix "NVRTC_" or "HIPRTC_".
#define SIM_RTC_NAME_OF(prefix, outcome)                      \
  switch (outcome) { SIM_RTC_RESULTS(SIM_RTC_CASE_##prefix) } \
  return #prefix "_ERROR unknown"
#define SIM_RTC_CASE_NVRTC(name, original, value) \
  case Outcome::name:                             \
    return "NVRTC_" #original;
#define SIM_RTC_CASE_HIPRTC(name, original, value) \
  case Outcome::name:                              \
    return "HIPRTC_" #original;

struct Program {
  std::string text, name, log;
  std::vector<std::string> expressions;
  bool compiled = false;
  std::string code, readable;  // for a GPU; as text, where the compiler has that
};

inline Table<Program>& programs() {
  static Table<Program>* const all = new Table<Program>("programs", 0x5c20);
  return *all;
}

template <Name name, class F>
Outcome call(F body) {
  static CallSite site(name.text);
  auto result = static_cast<Outcome>(Control::instance().enter(site));
  if (result == Outcome::success) result = body();
  if (Control::instance().tracing()) Control::instance().trace(std::string(name.text) + " -> " + std::to_string(static_cast<int>(result)));
  return result;
}

// The same, for a call about a program.
template <Name name, class F>
Outcome call_on(void* handle, F body) {
  return call<name>([&] {
    const auto program = programs().find(address_of(handle));
    return program == nullptr ? Outcome::invalid_program : body(*program);
  });
}

inline Outcome create(void** program, const char* text, const char* name, int headers) {
  if (program == nullptr || text == nullptr || headers != 0) return Outcome::invalid_input;
  auto made = std::make_shared<Program>();
  made->text = text;
  made->name = name == nullptr || *name == '\0' ? "default_program" : name;
  *program = pointer_to(programs().add(made));
  return Outcome::success;
}

inline Outcome destroy(void** program) {
  if (program == nullptr || programs().remove(address_of(*program)) == nullptr) return Outcome::invalid_program;
  *program = nullptr;
  return Outcome::success;
}

// Names of the host's compiler that the language does not know, each once: (name, line) to a line of the log.
template <class Format>
std::string foreign_names(const std::string& text, Format line_of) {
  static const std::set<std::string_view> known{"__builtin_assume", "__builtin_assume_aligned", "__builtin_bit_cast",
                                                "__builtin_expect", "__builtin_unreachable",    "__builtin_offsetof",
                                                "__builtin_isnan"};
  const std::string code = blanked(text);
  std::string out;
  std::set<std::string> seen;
  for (std::size_t at = code.find("__builtin_"); at != std::string::npos; at = code.find("__builtin_", at + 1)) {
    std::size_t end = at;
    while (end < code.size() && (std::isalnum(static_cast<unsigned char>(code[end])) != 0 || code[end] == '_')) ++end;
    const std::string word = code.substr(at, end - at);
    if (known.contains(word) || !seen.insert(word).second) continue;
    out += line_of(word, std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1);
  }
  return out;
}

// Adds what turns contraction of products and sums on or off to the options of the host's compiler.
inline void contraction(bool wanted, std::vector<std::string>& host) {
  if (wanted) host.emplace_back("-fexpensive-optimizations");  // where GCC contracts
#if defined(__x86_64__)
  if (wanted) host.emplace_back("-mfma");
#endif
  host.emplace_back(wanted ? "-ffp-contract=fast" : "-ffp-contract=off");
}

// Compiles the program's text with these options for the host's compiler; the log is the host's.
inline Compiled compile_text(const Program& program, const char* builtins, const std::vector<std::string>& host) {
  CompileRequest request;
  request.text = mark_shared(program.text);
  request.name = program.name;
  request.builtins = builtins;
  request.options = host;
  request.kernels = find_kernels(program.text);
  for (std::size_t i = 0; i < program.expressions.size(); ++i)
    request.kernels.push_back({"lowered_" + std::to_string(i), program.expressions[i], 0});
  return compile(request);
}

inline Outcome give_size(const std::string& text, std::size_t extra, std::size_t* size) {
  if (size == nullptr) return Outcome::invalid_input;
  *size = text.size() + extra;
  return Outcome::success;
}

inline Outcome give(const std::string& text, std::size_t extra, char* out) {
  if (out == nullptr) return Outcome::invalid_input;
  std::copy_n(text.c_str(), text.size() + extra, out);  // with the zero at its end where it is text
  return Outcome::success;
}

}  // namespace sim::rtc
