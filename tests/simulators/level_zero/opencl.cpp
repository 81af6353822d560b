// level_zero/opencl.cpp -- opens Intel's OpenCL runtime for the CPU, which TACK_SIM_OPENCL names.
#include "opencl.h"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

namespace sim::level_zero::cl {

const Runtime& Runtime::instance() {
  static const Runtime* const runtime = new Runtime;  // never destroyed: calls may come while the process ends
  return *runtime;
}

Runtime::Runtime() {
  const char* const path = std::getenv("TACK_SIM_OPENCL");
  void* const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error("TACK_SIM_OPENCL names no OpenCL runtime");
#define X(member, function, result, ...)                                         \
  member = reinterpret_cast<result (*)(__VA_ARGS__)>(dlsym(library, #function)); \
  if (member == nullptr) throw std::runtime_error("the OpenCL runtime lacks " #function);
  TACK_CL_FUNCTIONS(X)
#undef X
  Handle platform = nullptr;
  Int failed = 0;
  if (platforms(1, &platform, nullptr) != 0 || devices(platform, all_devices, 1, &device, nullptr) != 0)
    throw std::runtime_error("the OpenCL runtime has no device");
  set_pointer = reinterpret_cast<decltype(set_pointer)>(extension(platform, "clSetKernelArgMemPointerINTEL"));
  context = create_context(nullptr, 1, &device, nullptr, nullptr, &failed);
  if (failed == 0) queue = create_queue(context, device, nullptr, &failed);
  if (failed != 0 || set_pointer == nullptr) throw std::runtime_error("the OpenCL runtime does not start: " + std::to_string(failed));
}

std::string Runtime::log_of(Handle program) const {
  std::size_t size = 0;
  if (build_info(program, device, build_log, 0, nullptr, &size) != 0 || size == 0) return {};
  std::string log(size, '\0');
  if (build_info(program, device, build_log, size, log.data(), nullptr) != 0) return {};
  log.resize(log.find_last_not_of('\0') + 1);
  return log;
}

}  // namespace sim::level_zero::cl
