// cuda/nvrtc.cpp -- the NVRTC stand-in: takes CUDA C++ text, compiles it for the host, gives it out as cubin and PTX.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "../engine/program.h"
#include "image.h"

namespace sim {
const char* const library_name = "libnvrtc";
}

namespace {

using namespace sim;
using namespace sim::rtc;

constexpr int architectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

struct Options {
  cuda::Image image;
  bool virtual_architecture = true;
  std::vector<std::string> host;
};

// Options as NVRTC's manual lists them; what changes nothing here is accepted.
std::string read_options(const std::vector<std::string>& given, Options& options) {
  static const std::set<std::string> known{"-default-device",
                                           "--device-as-default-execution-space",
                                           "-lineinfo",
                                           "--generate-line-info",
                                           "-G",
                                           "--device-debug",
                                           "-w",
                                           "--disable-warnings",
                                           "--extra-device-vectorization",
                                           "-extra-device-vectorization",
                                           "-restrict",
                                           "--restrict",
                                           "--dopt",
                                           "-dopt",
                                           "--relocatable-device-code",
                                           "-rdc",
                                           "--maxrregcount",
                                           "-maxrregcount",
                                           "--ftz",
                                           "-ftz",
                                           "--prec-sqrt",
                                           "-prec-sqrt",
                                           "--prec-div",
                                           "-prec-div",
                                           "--modify-stack-limit",
                                           "-modify-stack-limit",
                                           "--diag-suppress",
                                           "-diag-suppress",
                                           "--diag-error",
                                           "-diag-error",
                                           "--optimization-info",
                                           "-opt-info",
                                           "--display-error-number",
                                           "-err-no",
                                           "--no-display-error-number",
                                           "-no-err-no",
                                           "--split-compile",
                                           "-split-compile",
                                           "--minimal",
                                           "-minimal",
                                           "--device-int128",
                                           "-device-int128",
                                           "--ptxas-options",
                                           "-Xptxas",
                                           "--extensible-whole-program",
                                           "-ewp"};
  options.image.architecture = 75;
  bool contract = true;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& option = given[i];
    const std::size_t equals = option.find('=');
    std::string key = option.substr(0, equals);
    std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
    if (key == "--gpu-architecture" || key == "-arch") {
      const std::size_t low_line = value.find('_');
      const std::string kind = value.substr(0, low_line);
      char* end = nullptr;
      const long number = low_line == std::string::npos ? 0 : std::strtol(value.c_str() + low_line + 1, &end, 10);
      const bool supported = std::find(std::begin(architectures), std::end(architectures), number) != std::end(architectures);
      if (!supported || (kind != "compute" && kind != "sm") || (*end != '\0' && std::string_view(end) != "a")) return option;
      options.virtual_architecture = kind == "compute";
      options.image.architecture = static_cast<int>(number);
      options.image.specific = *end == 'a';
    } else if (key == "--fmad" || key == "-fmad") {
      if (value != "true" && value != "false") return option;
      contract = value == "true";
    } else if (key == "--use_fast_math" || key == "-use_fast_math") {
      contract = true;
    } else if (key == "--std" || key == "-std") {
      if (value != "c++11" && value != "c++14" && value != "c++17" && value != "c++20") return option;
      options.host.push_back("-std=" + value);
    } else if (option == "-D" || option == "--define-macro" || option == "-U" || option == "--undefine-macro") {
      if (++i == given.size()) return option;
      options.host.push_back((option == "-D" || option == "--define-macro" ? "-D" : "-U") + given[i]);
    } else if (key == "--define-macro") {
      options.host.push_back("-D" + value);
    } else if (option.starts_with("-D") || option.starts_with("-U") || option.starts_with("-I")) {
      options.host.push_back(option);
    } else if (key == "--include-path") {
      options.host.push_back("-I" + value);
    } else if (!known.contains(key)) {
      return option;
    }
  }
  contraction(contract, options.host);
  options.host.push_back("-D__CUDA_ARCH__=" + std::to_string(options.image.architecture * 10));
  options.host.push_back("-D__CUDACC_VER_MAJOR__=" + std::to_string(settings().compiler_version / 1000));
  options.host.push_back("-D__CUDACC_VER_MINOR__=" + std::to_string(settings().compiler_version % 1000 / 10));
  return {};
}

// GCC's messages, "file:line:column: error: text", in the form of NVRTC's, "file(line): error: text", with its closing line.
std::string reworded(const std::string& log, const std::string& name) {
  std::istringstream in(log);
  std::string out;
  int errors = 0;
  for (std::string line; std::getline(in, line);) {
    for (const char* kind : {"error", "warning", "note"}) {
      const std::size_t at = line.find(std::string(": ") + kind + ": ");
      const std::size_t first = line.find(':');
      if (at == std::string::npos || first >= at) continue;
      const std::size_t second = line.find(':', first + 1);
      line = line.substr(0, first) + "(" + line.substr(first + 1, std::min(second, at) - first - 1) + ")" + line.substr(at);
      if (kind[0] == 'e') ++errors;
      break;
    }
    constexpr std::string_view undeclared = "' was not declared in this scope";
    const std::size_t end = line.find(undeclared);
    const std::size_t open = end == std::string::npos ? end : line.rfind('\'', end - 1);
    if (open != std::string::npos)
      line = line.substr(0, open) + "identifier \"" + line.substr(open + 1, end - open - 1) + "\" is undefined";
    if (line.find(": In function ") != std::string::npos || line.starts_with("In file included")) continue;
    out += line + '\n';
  }
  if (errors > 0)
    out += "\n" + std::to_string(errors) + (errors == 1 ? " error" : " errors") + " detected in the compilation of \"" + name + "\".\n";
  return out;
}

Outcome compile_program(Program& program, const std::vector<std::string>& given) {
  Options options;
  const std::string refused = read_options(given, options);
  if (!refused.empty()) {
    program.log = "nvrtc: error: invalid value or unrecognized option " + refused + "\n";
    return Outcome::invalid_option;
  }
  program.log = foreign_names(program.text, [&](const std::string& word, std::ptrdiff_t line) {
    return program.name + "(" + std::to_string(line) + "): error: identifier \"" + word + "\" is undefined\n";
  });
  if (!program.log.empty()) return Outcome::compilation;
  const Compiled compiled = compile_text(program, "cuda_builtins.h", options.host);
  program.log = reworded(compiled.log, program.name);
  if (!compiled.ok) return Outcome::compilation;
  options.image.compiler = settings().compiler_version;
  options.image.object = compiled.object;
  if (!options.virtual_architecture) program.code = encode(options.image);
  options.image.ptx = true;
  program.readable = encode(options.image);
  program.compiled = true;
  return Outcome::success;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Outcome nvrtcVersion(int* major, int* minor) {
  return call<"nvrtcVersion">([&] {
    if (major == nullptr || minor == nullptr) return Outcome::invalid_input;
    *major = settings().compiler_version / 1000;
    *minor = settings().compiler_version % 1000 / 10;
    return Outcome::success;
  });
}

const char* nvrtcGetErrorString(Outcome outcome) { SIM_RTC_NAME_OF(NVRTC, outcome); }

Outcome nvrtcGetNumSupportedArchs(int* count) {
  return call<"nvrtcGetNumSupportedArchs">([&] {
    if (count == nullptr) return Outcome::invalid_input;
    *count = static_cast<int>(std::size(architectures));
    return Outcome::success;
  });
}

Outcome nvrtcGetSupportedArchs(int* out) {
  return call<"nvrtcGetSupportedArchs">([&] {
    if (out == nullptr) return Outcome::invalid_input;
    std::copy(std::begin(architectures), std::end(architectures), out);
    return Outcome::success;
  });
}

Outcome nvrtcCreateProgram(void** program, const char* text, const char* name, int headers, const char* const*, const char* const*) {
  return call<"nvrtcCreateProgram">([&] { return create(program, text, name, headers); });
}

Outcome nvrtcDestroyProgram(void** program) {
  return call<"nvrtcDestroyProgram">([&] { return destroy(program); });
}

Outcome nvrtcCompileProgram(void* handle, int count, const char* const* options) {
  return call_on<"nvrtcCompileProgram">(handle, [&](Program& program) {
    if (count < 0 || (count > 0 && options == nullptr)) return Outcome::invalid_input;
    return compile_program(program, std::vector<std::string>(options, options + count));
  });
}

Outcome nvrtcAddNameExpression(void* handle, const char* expression) {
  return call_on<"nvrtcAddNameExpression">(handle, [&](Program& program) {
    if (expression == nullptr) return Outcome::invalid_input;
    if (program.compiled) return Outcome::no_name_expressions_after;
    program.expressions.emplace_back(expression);
    return Outcome::success;
  });
}

Outcome nvrtcGetLoweredName(void* handle, const char* expression, const char** lowered) {
  return call_on<"nvrtcGetLoweredName">(handle, [&](Program& program) {
    static const std::vector<std::string>* const names = [] {
      auto* all = new std::vector<std::string>;
      for (int i = 0; i < 256; ++i) all->push_back("lowered_" + std::to_string(i));
      return all;
    }();
    if (expression == nullptr || lowered == nullptr) return Outcome::invalid_input;
    if (!program.compiled) return Outcome::no_lowered_names_before;
    for (std::size_t i = 0; i < program.expressions.size(); ++i) {
      if (program.expressions[i] != expression) continue;
      *lowered = (*names)[i].c_str();
      return Outcome::success;
    }
    return Outcome::name_expression;
  });
}

Outcome nvrtcGetCUBINSize(void* handle, std::size_t* size) {
  return call_on<"nvrtcGetCUBINSize">(handle,
                                      [&](Program& p) { return p.compiled ? give_size(p.code, 0, size) : Outcome::invalid_program; });
}

Outcome nvrtcGetCUBIN(void* handle, char* out) {
  return call_on<"nvrtcGetCUBIN">(
      handle, [&](Program& p) { return p.compiled && !p.code.empty() ? give(p.code, 0, out) : Outcome::invalid_program; });
}

Outcome nvrtcGetPTXSize(void* handle, std::size_t* size) {
  return call_on<"nvrtcGetPTXSize">(handle,
                                    [&](Program& p) { return p.compiled ? give_size(p.readable, 1, size) : Outcome::invalid_program; });
}

Outcome nvrtcGetPTX(void* handle, char* out) {
  return call_on<"nvrtcGetPTX">(handle, [&](Program& p) { return p.compiled ? give(p.readable, 1, out) : Outcome::invalid_program; });
}

Outcome nvrtcGetProgramLogSize(void* handle, std::size_t* size) {
  return call_on<"nvrtcGetProgramLogSize">(handle, [&](Program& p) { return give_size(p.log, 1, size); });
}

Outcome nvrtcGetProgramLog(void* handle, char* out) {
  return call_on<"nvrtcGetProgramLog">(handle, [&](Program& p) { return give(p.log, 1, out); });
}
}
#pragma GCC visibility pop
