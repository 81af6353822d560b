// engine/compile.h -- kernel text to a shared object, by the host's C++ compiler.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sim {

struct Kernel {
  std::string name;      // that modules find it by
  std::string function;  // C++ expression for the function
  unsigned max_threads = 0;
};

struct CompileRequest {
  std::string text;
  std::string name;                  // of the text in messages
  std::string builtins;              // the header of the language's builtins, in device/
  std::vector<std::string> options;  // for the host's compiler
  std::vector<Kernel> kernels;
};

struct Compiled {
  bool ok = false;
  std::string log;     // the compiler's messages
  std::string object;  // the shared object's bytes
};

// Compiles, or takes the same request's object from the folder of TACK_SIM_CACHE. Safe for many processes at once.
Compiled compile(const CompileRequest& request);

// The text with comments and strings blanked, places kept.
std::string blanked(std::string_view text);
// The kernels of CUDA-like text: functions declared __global__, with the thread limit of __launch_bounds__.
std::vector<Kernel> find_kernels(std::string_view text);
// Makes every access to variables in shared memory visible to the checks, and gives `extern __shared__` arrays their place.
std::string mark_shared(std::string_view text);

}  // namespace sim
