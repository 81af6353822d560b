// cuda/module.cpp -- the CUDA driver stand-in: modules, functions and launches.
#include <cstring>

#include "driver.h"
#include "image.h"

namespace sim::cuda {
namespace {

constexpr int shared_limit = 101376;

Result load(const ContextPtr& context, abi::Module* module, const void* data) {
  if (module == nullptr || data == nullptr) return Result::invalid_value;
  Image image;
  if (decode(data, image) != Reading::ok) return Result::invalid_image;
  const int device = settings().architecture(context->device, usual_architecture);
  const bool fits = image.ptx        ? image.architecture <= device
                    : image.specific ? image.architecture == device
                                     : image.architecture / 10 == device / 10 && image.architecture <= device;
  if (!fits) return Result::no_binary_for_gpu;
  if (image.ptx && image.compiler > settings().driver_version) return Result::unsupported_ptx_version;
  std::string why;
  auto made = std::make_shared<ModuleObject>();
  made->context = context;
  made->module = Module::load(image.object, why);
  if (made->module == nullptr) {
    Control::instance().report("cuModuleLoadData: " + why);
    return Result::invalid_image;
  }
  *module = handle_of<abi::Module>(Driver::instance().modules.add(made));
  return Result::success;
}

void lose(Context& context, const Fault& fault) {
  Result result = Result::launch_failed;
  switch (fault.kind) {
    case Fault::Kind::address:
      result = Result::illegal_address;
      break;
    case Fault::Kind::misaligned:
      result = Result::misaligned_address;
      break;
    case Fault::Kind::assertion:
      result = Result::device_assert;
      break;
    case Fault::Kind::trap:
      result = Result::illegal_instruction;
      break;
    case Fault::Kind::timeout:
      result = Result::launch_timeout;
      break;
    case Fault::Kind::failure:
      break;
  }
  Control::instance().report(fault.text);
  context.error = result;
}

// The arguments from one buffer, each at its natural alignment. False where it is too short.
bool unpack(const SimKernel& kernel, void** extra, std::vector<void*>& parameters) {
  char* buffer = nullptr;
  std::size_t size = 0;
  for (; *extra != nullptr; extra += 2) {  // a list of names and values: 1 the buffer, 2 the address of its size, 0 the end
    const std::uint64_t name = bits(*extra);
    if (name == 1) buffer = static_cast<char*>(extra[1]);
    if (name == 2) size = *static_cast<std::size_t*>(extra[1]);
  }
  std::size_t offset = 0;
  for (unsigned i = 0; i < kernel.parameters; ++i) {
    offset = (offset + kernel.alignments[i] - 1) / kernel.alignments[i] * kernel.alignments[i];
    parameters.push_back(buffer + offset);
    offset += kernel.sizes[i];
  }
  return buffer != nullptr && offset <= size;
}

Result launch(const ContextPtr& context, abi::Function function, const SimIndex& grid, const SimIndex& block, unsigned shared,
              abi::Stream stream, void** parameters, void** extra) {
  FunctionObject* const found = Driver::instance().functions.find_again(bits(function));
  if (found == nullptr || found->context != context) return Result::invalid_handle;
  const std::shared_ptr<Stream> on = find_stream(context, stream);
  if (on == nullptr) return Result::invalid_handle;
  const std::uint64_t threads = static_cast<std::uint64_t>(block.x) * block.y * block.z;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 2147483647u || grid.y > 65535u || grid.z > 65535u) return Result::invalid_value;
  if (threads == 0 || block.x > 1024u || block.y > 1024u || block.z > 64u || threads > 1024u) return Result::invalid_value;
  if (found->kernel->max_threads != 0 && threads > found->kernel->max_threads) return Result::launch_out_of_resources;
  if (static_cast<int>(shared) > found->dynamic_shared) return Result::invalid_value;
  std::vector<void*> unpacked;
  if (extra != nullptr && parameters == nullptr) {
    if (!unpack(*found->kernel, extra, unpacked)) return Result::invalid_value;
    parameters = unpacked.data();
  }
  if (parameters == nullptr && found->kernel->parameters > 0) return Result::invalid_value;
  static std::atomic<long>& launches = Control::instance().tally("launches");
  ++launches;
  if (settings().order == Order::record) return Result::success;
  if (Control::instance().tracing()) {
    Control::instance().trace(std::string("  ") + found->kernel->name + " grid " + std::to_string(grid.x) + "," + std::to_string(grid.y) +
                              "," + std::to_string(grid.z) + " block " + std::to_string(threads) + " shared " + std::to_string(shared));
  }
  Launch work;
  work.module = found->module;
  work.kernel = found->kernel;
  work.grid = grid;
  work.block = block;
  work.shared = shared;
  work.device = context->device;
  work.take(parameters);
  context->submit(*on, [context = context.get(), work = std::move(work)] {
    const std::optional<Fault> fault = run(work);
    if (fault) lose(*context, *fault);
  });
  return Result::success;
}

// Function attributes by number: CUfunction_attribute in the driver's manual.
Result attribute(const FunctionObject& function, int number, int& value) {
  switch (number) {
    case 0:
      value = function.kernel->max_threads == 0 ? 1024 : static_cast<int>(function.kernel->max_threads);
      return Result::success;
    case 1:
      value = static_cast<int>(function.module->shared_size());
      return Result::success;
    case 2:
    case 3:
    case 7:
      value = 0;
      return Result::success;  // constant and local bytes, cache mode
    case 4:
      value = 32;
      return Result::success;  // registers
    case 5:
    case 6:
      value = settings().architecture(function.context->device, usual_architecture);
      return Result::success;
    case 8:
      value = function.dynamic_shared;
      return Result::success;
    case 9:
      value = -1;
      return Result::success;  // preferred carve-out
    default:
      return Result::invalid_value;
  }
}

}  // namespace
}  // namespace sim::cuda

using namespace sim;
using namespace sim::cuda;

#pragma GCC visibility push(default)
extern "C" {

Result cuModuleLoadData(abi::Module* module, const void* image) {
  return call<"cuModuleLoadData">([&](const ContextPtr& context) { return load(context, module, image); });
}

Result cuModuleLoadDataEx(abi::Module* module, const void* image, unsigned, int*, void**) {
  return call<"cuModuleLoadDataEx">([&](const ContextPtr& context) { return load(context, module, image); });
}

Result cuModuleUnload(abi::Module module) {
  return call<"cuModuleUnload", Needs::context, Failing::afterwards>([&](const ContextPtr&) {
    const auto found = Driver::instance().modules.remove(bits(module));
    if (found == nullptr) return Result::invalid_handle;
    for (const auto& [name, function] : found->functions) Driver::instance().functions.remove(function);
    return Result::success;
  });
}

Result cuModuleGetFunction(abi::Function* function, abi::Module module, const char* name) {
  return call<"cuModuleGetFunction">([&](const ContextPtr&) {
    if (function == nullptr || name == nullptr) return Result::invalid_value;
    const auto found = Driver::instance().modules.find(bits(module));
    if (found == nullptr) return Result::invalid_handle;
    const SimKernel* kernel = found->module->find(name);
    if (kernel == nullptr) return Result::not_found;
    std::uint64_t& handle = found->functions[name];
    if (handle == 0) {
      auto made = std::make_shared<FunctionObject>();
      made->context = found->context;
      made->owner = found;
      made->module = found->module;
      made->kernel = kernel;
      handle = Driver::instance().functions.add(made);
    }
    *function = handle_of<abi::Function>(handle);
    return Result::success;
  });
}

Result cuFuncGetAttribute(int* value, int number, abi::Function function) {
  return call<"cuFuncGetAttribute">([&](const ContextPtr&) {
    const auto found = Driver::instance().functions.find(bits(function));
    if (found == nullptr) return Result::invalid_handle;
    return value == nullptr ? Result::invalid_value : attribute(*found, number, *value);
  });
}

Result cuFuncSetAttribute(abi::Function function, int number, int value) {
  return call<"cuFuncSetAttribute">([&](const ContextPtr&) {
    const auto found = Driver::instance().functions.find(bits(function));
    if (found == nullptr) return Result::invalid_handle;
    constexpr int max_dynamic_shared = 8, carve_out = 9;
    if (number == carve_out) return Result::success;
    if (number != max_dynamic_shared || value < 0 || value > shared_limit) return Result::invalid_value;
    found->dynamic_shared = value;
    return Result::success;
  });
}

Result cuLaunchKernel(abi::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                      unsigned block_z, unsigned shared, abi::Stream stream, void** parameters, void** extra) {
  return call<"cuLaunchKernel">([&](const ContextPtr& context) {
    return launch(context, function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream, parameters, extra);
  });
}
}
#pragma GCC visibility pop
