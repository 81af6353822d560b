// cuda/entry.cpp -- the CUDA driver stand-in: functions by name.
#include <dlfcn.h>

#include <string>

#include "driver.h"

namespace sim {
const char* const library_name = "libcuda";
}

namespace sim::cuda {

const int usual_architecture = 90;  // compute capability 9.0

void trace_result(const char* function, Result result) {
  const char* text = name_of(result);
  Control::instance().trace(std::string(function) + " -> " + (text == nullptr ? std::to_string(static_cast<int>(result)) : text));
}

}  // namespace sim::cuda

using namespace sim;
using namespace sim::cuda;

#pragma GCC visibility push(default)
extern "C" {

// The newest version of a function; names are given without the suffix of their version. Status: 0 found, 1 not found.
Result cuGetProcAddress_v2(const char* name, void** function, int, std::uint64_t, int* status) {
  return call<"cuGetProcAddress_v2", Needs::nothing>([&](const ContextPtr&) {
    if (name == nullptr || function == nullptr) return Result::invalid_value;
    Dl_info self{};
    dladdr(reinterpret_cast<void*>(&cuGetProcAddress_v2), &self);
    void* library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    *function = nullptr;
    for (const char* suffix : {"_v2", ""}) {
      if (*function == nullptr && library != nullptr) *function = dlsym(library, (std::string(name) + suffix).c_str());
    }
    if (library != nullptr) dlclose(library);
    if (status != nullptr) *status = *function == nullptr ? 1 : 0;
    return *function == nullptr ? Result::not_found : Result::success;
  });
}
}
#pragma GCC visibility pop
