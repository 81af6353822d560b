// level_zero/ocloc.cpp -- libocloc with counters: hands everything on to the real one, which TACK_SIM_OCLOC names, and keeps what that
// made.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../engine/control.h"

namespace sim {
const char* const library_name = "libocloc";

namespace {

using Invoke = int (*)(unsigned, const char**, std::uint32_t, const std::uint8_t**, const std::uint64_t*, const char**, std::uint32_t,
                       const std::uint8_t**, const std::uint64_t*, const char**, std::uint32_t*, std::uint8_t***, std::uint64_t**, char***);
using Free = int (*)(std::uint32_t*, std::uint8_t***, std::uint64_t**, char***);

void* real(const char* function) {
  static void* const library =
      dlopen(std::getenv("TACK_SIM_OCLOC") == nullptr ? "libocloc.so" : std::getenv("TACK_SIM_OCLOC"), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : dlsym(library, function);
}

}  // namespace
}  // namespace sim

using namespace sim;

#pragma GCC visibility push(default)
extern "C" {

int oclocInvoke(unsigned arguments, const char** argv, std::uint32_t sources, const std::uint8_t** data, const std::uint64_t* sizes,
                const char** names, std::uint32_t headers, const std::uint8_t** header_data, const std::uint64_t* header_sizes,
                const char** header_names, std::uint32_t* outputs, std::uint8_t*** output_data, std::uint64_t** output_sizes,
                char*** output_names) {
  static CallSite site("oclocInvoke");
  static const auto function = reinterpret_cast<Invoke>(real("oclocInvoke"));
  const int injected = Control::instance().enter(site);
  if (injected != 0 || function == nullptr) return injected != 0 ? injected : -1;
  for (std::uint32_t i = 0; i < sources; ++i)
    if (sizes[i] == 0 || data[i][sizes[i] - 1] != 0) Control::instance().report("oclocInvoke: a source does not end with a zero");
  const int result = function(arguments, argv, sources, data, sizes, names, headers, header_data, header_sizes, header_names, outputs,
                              output_data, output_sizes, output_names);
  if (*outputs != 0) Control::instance().counter("ocloc outputs") += 1;
  return result;
}

int oclocFreeOutput(std::uint32_t* outputs, std::uint8_t*** data, std::uint64_t** sizes, char*** names) {
  static CallSite site("oclocFreeOutput");
  static const auto function = reinterpret_cast<Free>(real("oclocFreeOutput"));
  const int injected = Control::instance().enter(site);
  if (function == nullptr) return -1;
  if (*outputs != 0) Control::instance().counter("ocloc outputs") -= 1;
  const int result = function(outputs, data, sizes, names);
  return injected != 0 ? injected : result;
}
}
#pragma GCC visibility pop
