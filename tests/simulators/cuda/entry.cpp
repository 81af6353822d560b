// cuda/entry.cpp -- the CUDA driver stand-in: functions by name.
#include <dlfcn.h>

#include <string>

#include "driver.h"

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
