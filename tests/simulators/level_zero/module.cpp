// level_zero/module.cpp -- the Level Zero stand-in: SPIR-V compiled and run by the OpenCL runtime of the CPU.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "driver.h"
#include "faults.h"

namespace sim::level_zero {

struct Program {
  explicit Program(cl::Handle made) : handle(made) {}
  ~Program() { cl::Runtime::instance().release_program(handle); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  const cl::Handle handle;
};

KernelObject::~KernelObject() { cl::Runtime::instance().release_kernel(handle); }

namespace {

// Of the flags, what OpenCL knows: those that begin with -cl. The runtime's optimizer is kept out, as it has errors of its own;
// TACK_SIM_OPTIMIZE=1 shows one (tests/conformance/test_devices_gpu_level_zero.py).
std::string options_of(const char* flags) {
  std::istringstream words(flags == nullptr ? "" : flags);
  const char* const optimize = std::getenv("TACK_SIM_OPTIMIZE");
  std::string options = optimize != nullptr && std::string_view(optimize) == "1" ? "" : "-cl-opt-disable ";
  for (std::string word; words >> word;)
    if (word.starts_with("-cl")) options += word + ' ';
  return options;
}

// What an argument's bytes say: the handle of an image or a sampler, or a value, which may turn out to be an address.
KernelObject::Argument argument_of(std::size_t size, const void* value) {
  using Kind = KernelObject::Kind;
  const auto bytes_of = [](const void* first, std::size_t count) {
    return std::vector<unsigned char>(static_cast<const unsigned char*>(first), static_cast<const unsigned char*>(first) + count);
  };
  std::uint64_t handle = 0;
  if (size == sizeof handle) {
    std::memcpy(&handle, value, sizeof handle);
    if (const auto image = Driver::instance().images.find(handle); image != nullptr)
      return {Kind::image, bytes_of(&image->handle, sizeof image->handle), image};
    if (const auto sampler = Driver::instance().samplers.find(handle); sampler != nullptr)
      return {Kind::sampler, bytes_of(&sampler->handle, sizeof sampler->handle), sampler};
  }
  return {Kind::value, bytes_of(value, size), nullptr};
}

// One kernel at a time: an OpenCL kernel's arguments are its own.
void run(KernelObject& kernel, const std::vector<KernelObject::Argument>& arguments, std::size_t groups, std::uint32_t group, int device) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const cl::Runtime& runtime = cl::Runtime::instance();
  for (std::uint32_t i = 0; i < arguments.size(); ++i) {
    const KernelObject::Argument& argument = arguments[i];
    if (argument.kind == KernelObject::Kind::pointer) {
      void* pointer = nullptr;
      std::memcpy(&pointer, argument.bytes.data(), sizeof pointer);
      runtime.set_pointer(kernel.handle, i, pointer);
    } else {
      runtime.set_argument(kernel.handle, i, argument.bytes.size(), argument.bytes.data());
    }
  }
  const std::size_t global = groups * group, local = group;
  const Memory::Opened opened(Memory::instance(), DeviceNumber{device});
  const WildAccesses wild;
  cl::Int failed = runtime.launch(runtime.queue, kernel.handle, 1, nullptr, &global, &local, 0, nullptr, nullptr);
  if (failed == 0) failed = runtime.finish(runtime.queue);
  if (failed != 0)
    misuse("zeCommandListAppendLaunchKernel", Result::unknown, kernel.name + " does not run: OpenCL " + std::to_string(failed));
  if (wild.first() == 0) return;
  kernel.context->error = Result::device_lost;
  misuse("zeCommandListAppendLaunchKernel", Result::device_lost,
         kernel.name + " uses memory that is " + Memory::instance().describe(wild.first()));
}

}  // namespace
}  // namespace sim::level_zero

using namespace sim;
using namespace sim::level_zero;

#pragma GCC visibility push(default)
extern "C" {

Result zeModuleCreate(abi::Context handle, abi::Device device, const abi::ModuleDesc* desc, abi::Module* module, abi::BuildLog* log) {
  static CallSite site("zeModuleCreate");
  const ContextPtr context = Driver::instance().contexts.find(bits(handle));
  return call(site, context, [&] {
    const int number = number_of(device);
    if (context == nullptr || number < 0) return Result::invalid_null_handle;
    if (desc->stype != abi::StructureType::ModuleDesc) return misuse(site.name, Result::invalid_argument, "wrong stype");
    if (desc->format != abi::module_spirv) return Result::unsupported_enumeration;
    Control::instance().tally(std::string("built with ") + (desc->build_flags == nullptr ? "" : desc->build_flags)) += 1;
    const cl::Runtime& runtime = cl::Runtime::instance();
    cl::Int failed = 0;
    auto program = std::make_shared<Program>(runtime.create_program(runtime.context, desc->code, desc->bytes, &failed));
    std::string words;
    if (failed == 0) {
      failed = runtime.build(program->handle, 1, &runtime.device, options_of(desc->build_flags).c_str(), nullptr, nullptr);
      words = runtime.log_of(program->handle);
    } else {
      words = "error: this is no SPIR-V";
    }
    if (log != nullptr) {
      auto kept = std::make_shared<BuildLogObject>();
      kept->text = words;
      *log = handle_of<abi::BuildLog>(Driver::instance().logs.add(std::move(kept)));
    }
    if (failed != 0) return Result::module_build_failure;
    auto made = std::make_shared<ModuleObject>();
    made->context = context;
    made->program = std::move(program);
    made->device = number;
    *module = handle_of<abi::Module>(Driver::instance().modules.add(std::move(made)));
    return Result::success;
  });
}

Result zeModuleDestroy(abi::Module handle) {
  static CallSite site("zeModuleDestroy");
  return call<Failing::afterwards>(site, nullptr, [&] {
    const auto module = Driver::instance().modules.remove(bits(handle));
    if (module == nullptr) return Result::invalid_null_handle;
    if (module->program.use_count() > 1 && !module->context->disturbed)
      return misuse(site.name, Result::object_in_use, "the module still has kernels");
    return Result::success;
  });
}

Result zeModuleBuildLogGetString(abi::BuildLog handle, std::size_t* size, char* text) {
  static CallSite site("zeModuleBuildLogGetString");
  return call(site, nullptr, [&] {
    const auto log = Driver::instance().logs.find(bits(handle));
    if (log == nullptr) return Result::invalid_null_handle;
    if (text != nullptr) std::memcpy(text, log->text.c_str(), std::min(*size, log->text.size() + 1));
    *size = log->text.size() + 1;
    return Result::success;
  });
}

Result zeModuleBuildLogDestroy(abi::BuildLog handle) {
  static CallSite site("zeModuleBuildLogDestroy");
  return call<Failing::afterwards>(site, nullptr, [&] {
    return Driver::instance().logs.remove(bits(handle)) == nullptr ? Result::invalid_null_handle : Result::success;
  });
}

Result zeKernelCreate(abi::Module handle, const abi::KernelDesc* desc, abi::Kernel* kernel) {
  static CallSite site("zeKernelCreate");
  const auto module = Driver::instance().modules.find(bits(handle));
  return call(site, module == nullptr ? nullptr : module->context, [&] {
    if (module == nullptr) return Result::invalid_null_handle;
    if (desc->stype != abi::StructureType::KernelDesc) return misuse(site.name, Result::invalid_argument, "wrong stype");
    const cl::Runtime& runtime = cl::Runtime::instance();
    cl::Int failed = 0;
    const cl::Handle found = runtime.create_kernel(module->program->handle, desc->name, &failed);
    if (failed != 0) return Result::invalid_kernel_name;
    auto made = std::make_shared<KernelObject>();
    made->context = module->context;
    made->program = module->program;
    made->handle = found;
    made->name = desc->name;
    std::uint32_t count = 0;
    std::size_t required[3] = {};
    runtime.kernel_info(found, cl::argument_count, sizeof count, &count, nullptr);
    runtime.group_info(found, runtime.device, cl::required_group, sizeof required, required, nullptr);
    made->arguments.resize(count);
    made->required = static_cast<std::uint32_t>(required[0]);
    *kernel = handle_of<abi::Kernel>(Driver::instance().kernels.add(std::move(made)));
    return Result::success;
  });
}

Result zeKernelDestroy(abi::Kernel handle) {
  static CallSite site("zeKernelDestroy");
  return call<Failing::afterwards>(site, nullptr, [&] {
    const auto kernel = Driver::instance().kernels.remove(bits(handle));
    if (kernel == nullptr) return Result::invalid_null_handle;
    if (kernel.use_count() > 1 && !kernel->context->disturbed)
      return misuse(site.name, Result::object_in_use, "a launch of " + kernel->name + " has not run");
    return Result::success;
  });
}

Result zeKernelSetGroupSize(abi::Kernel handle, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  static CallSite site("zeKernelSetGroupSize");
  return call(site, nullptr, [&] {
    const auto kernel = Driver::instance().kernels.find(bits(handle));
    if (kernel == nullptr) return Result::invalid_null_handle;
    const Alone alone(kernel->busy, site.name, "kernel");
    if (x == 0 || y != 1 || z != 1 || x > model_of(0).max_group || (kernel->required != 0 && kernel->required != x))
      return Result::invalid_group_size;
    kernel->group = x;
    return Result::success;
  });
}

Result zeKernelSetArgumentValue(abi::Kernel handle, std::uint32_t index, std::size_t size, const void* value) {
  static CallSite site("zeKernelSetArgumentValue");
  return call(site, nullptr, [&] {
    const auto kernel = Driver::instance().kernels.find(bits(handle));
    if (kernel == nullptr) return Result::invalid_null_handle;
    if (index >= kernel->arguments.size()) return misuse(site.name, Result::invalid_argument_index, kernel->name + " has fewer arguments");
    const Alone alone(kernel->busy, site.name, "kernel");
    const cl::Runtime& runtime = cl::Runtime::instance();
    KernelObject::Argument& argument = kernel->arguments[index];
    KernelObject::Argument given = argument_of(size, value);
    if (argument.kind == KernelObject::Kind::unset) {  // no launch has been given it: OpenCL's kernel, which launches use, may be asked
      if (given.object == nullptr && size == sizeof(void*) && runtime.set_pointer(kernel->handle, index, nullptr) == 0)
        given.kind = KernelObject::Kind::pointer;
      else if (runtime.set_argument(kernel->handle, index, given.bytes.size(), given.bytes.data()) != 0)
        return misuse(site.name, Result::invalid_argument_size,
                      "argument " + std::to_string(index) + " of " + kernel->name + " has not " + std::to_string(size) + " bytes");
    } else if (argument.kind == KernelObject::Kind::pointer && given.kind == KernelObject::Kind::value) {
      given.kind = KernelObject::Kind::pointer;
    }
    if (argument.kind != KernelObject::Kind::unset && (argument.kind != given.kind || argument.bytes.size() != given.bytes.size()))
      return misuse(site.name, Result::invalid_argument_size,
                    "argument " + std::to_string(index) + " of " + kernel->name + " is given something else than before");
    argument = std::move(given);
    if (argument.kind != KernelObject::Kind::pointer) return Result::success;
    std::uintptr_t address = 0;
    std::memcpy(&address, value, sizeof address);
    if (address != 0 && !Memory::instance().find(address))
      return misuse(site.name, Result::invalid_argument, kernel->name + " is given memory that is " + Memory::instance().describe(address));
    return Result::success;
  });
}

Result zeCommandListAppendLaunchKernel(abi::CommandList list_handle, abi::Kernel handle, const abi::GroupCount* groups, abi::Event signal,
                                       std::uint32_t waits, abi::Event*) {
  static CallSite site("zeCommandListAppendLaunchKernel");
  const auto list = Driver::instance().lists.find(bits(list_handle));
  return call(site, list == nullptr ? nullptr : list->context, [&] {
    const auto kernel = Driver::instance().kernels.find(bits(handle));
    if (list == nullptr || kernel == nullptr) return Result::invalid_null_handle;
    if (waits != 0) return misuse(site.name, Result::unsupported_feature, "the stand-in has no wait events");
    const Alone alone(list->busy, site.name, "command list"), mine(kernel->busy, site.name, "kernel");
    if (kernel->group == 0) return misuse(site.name, Result::invalid_group_size, kernel->name + " has no group size");
    for (const KernelObject::Argument& argument : kernel->arguments)
      if (argument.kind == KernelObject::Kind::unset)
        return misuse(site.name, Result::invalid_argument, kernel->name + " lacks an argument");
    if (groups->y != 1 || groups->z != 1) return misuse(site.name, Result::invalid_global_width, "the stand-in's grids have one dimension");
    list->append([kernel, arguments = kernel->arguments, count = std::size_t{groups->x}, group = kernel->group,
                  device = list->device]() { run(*kernel, arguments, count, group, device); },
                 signal);
    return Result::success;
  });
}
}
#pragma GCC visibility pop
