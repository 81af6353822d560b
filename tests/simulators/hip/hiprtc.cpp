// hip/hiprtc.cpp -- the hipRTC stand-in: takes HIP C++ text, compiles it for the host, gives it out as code for one architecture.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "../cuda/image.h"
#include "../engine/program.h"
#include "architecture.h"

namespace sim {
const char* const library_name = "libhiprtc";
}

namespace {

using namespace sim;
using namespace sim::rtc;

constexpr int architectures[] = {0x900, 0x906, 0x908, 0x90a, 0x942, 0x1030, 0x1100, 0x1201};

struct Options {
  int architecture = -1;
  std::vector<std::string> host;
};

// Options as clang has them. What it does not know it ignores, as hipRTC does; without an architecture it takes that of a GPU that is
// there.
Options read_options(const std::vector<std::string>& given) {
  Options options;
  bool contract = true;
  for (const std::string& option : given) {
    const std::size_t equals = option.find('=');
    const std::string key = option.substr(0, equals), value = equals == std::string::npos ? "" : option.substr(equals + 1);
    if (key == "--offload-arch") {
      options.architecture = hip::number_of(value);
      // hipRTC of 5.2 does not survive one that it does not know.
      if (std::find(std::begin(architectures), std::end(architectures), options.architecture) == std::end(architectures)) {
        std::fprintf(stderr, "hipRTC's stand-in: unknown architecture '%s'\n", value.c_str());
        std::abort();
      }
    } else if (key == "-ffp-contract") {
      contract = value != "off";
    } else if (key == "-ffast-math") {
      contract = true;
    } else if (key == "-std" || option.starts_with("-D") || option.starts_with("-U")) {
      options.host.push_back(option);
    }
  }
  contraction(contract, options.host);
  return options;
}

// GCC's messages in clang's words.
std::string reworded(const std::string& log) {
  std::istringstream in(log);
  std::string out;
  int errors = 0;
  for (std::string line; std::getline(in, line);) {
    constexpr std::string_view undeclared = "' was not declared in this scope";
    const std::size_t end = line.find(undeclared);
    const std::size_t open = end == std::string::npos ? end : line.rfind('\'', end - 1);
    if (open != std::string::npos)
      line = line.substr(0, open) + "use of undeclared identifier '" + line.substr(open + 1, end - open - 1) + "'";
    if (line.find(": In function ") != std::string::npos || line.starts_with("In file included")) continue;
    if (line.find(": error: ") != std::string::npos) ++errors;
    out += line + '\n';
  }
  if (errors > 0) out += std::to_string(errors) + (errors == 1 ? " error" : " errors") + " generated when compiling.\n";
  return out;
}

Outcome compile_program(Program& program, const std::vector<std::string>& given) {
  const Options options = read_options(given);
  program.log = foreign_names(program.text, [&](const std::string& word, std::ptrdiff_t line) {
    return program.name + ":" + std::to_string(line) + ":1: error: use of undeclared identifier '" + word + "'\n";
  });
  if (!program.log.empty()) return Outcome::compilation;
  const Compiled compiled = compile_text(program, "hip_builtins.h", options.host);
  program.log = reworded(compiled.log);
  if (!compiled.ok) return Outcome::compilation;
  cuda::Image image;
  image.architecture = options.architecture;
  image.specific = true;
  image.object = compiled.object;
  program.code = encode(image);
  program.compiled = true;
  return Outcome::success;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Outcome hiprtcVersion(int* major, int* minor) {
  return call<"hiprtcVersion">([&] {
    if (major == nullptr || minor == nullptr) return Outcome::invalid_input;
    *major = 9;  // whatever the release
    *minor = 0;
    return Outcome::success;
  });
}

const char* hiprtcGetErrorString(Outcome outcome) { SIM_RTC_NAME_OF(HIPRTC, outcome); }

Outcome hiprtcCreateProgram(void** program, const char* text, const char* name, int headers, const char* const*, const char* const*) {
  return call<"hiprtcCreateProgram">([&] { return create(program, text, name, headers); });
}

Outcome hiprtcDestroyProgram(void** program) {
  return call<"hiprtcDestroyProgram">([&] { return destroy(program); });
}

Outcome hiprtcCompileProgram(void* handle, int count, const char* const* options) {
  return call_on<"hiprtcCompileProgram">(handle, [&](Program& program) {
    if (count < 0 || (count > 0 && options == nullptr)) return Outcome::invalid_input;
    return compile_program(program, std::vector<std::string>(options, options + count));
  });
}

Outcome hiprtcGetCodeSize(void* handle, std::size_t* size) {
  return call_on<"hiprtcGetCodeSize">(handle,
                                      [&](Program& p) { return p.compiled ? give_size(p.code, 0, size) : Outcome::invalid_program; });
}

Outcome hiprtcGetCode(void* handle, char* out) {
  return call_on<"hiprtcGetCode">(handle, [&](Program& p) { return p.compiled ? give(p.code, 0, out) : Outcome::invalid_program; });
}

Outcome hiprtcGetProgramLogSize(void* handle, std::size_t* size) {
  return call_on<"hiprtcGetProgramLogSize">(handle, [&](Program& p) { return give_size(p.log, 1, size); });
}

Outcome hiprtcGetProgramLog(void* handle, char* out) {
  return call_on<"hiprtcGetProgramLog">(handle, [&](Program& p) { return give(p.log, 1, out); });
}
}
#pragma GCC visibility pop
