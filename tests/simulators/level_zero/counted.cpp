// level_zero/counted.cpp -- no stand-in: the real loader, which this library is linked with, behind functions that count what is made and
// given back. A program opens it in the loader's place, and asks it by tack_counted.
#include <dlfcn.h>
#include <level_zero/ze_abi.h>

#include <atomic>
#include <cstring>

using namespace tack::level_zero::abi;

namespace {

struct Count {
  const char* name;
  std::atomic<long> made{0}, left{0};
};
Count counts[] = {{"contexts"}, {"command lists"}, {"event pools"}, {"events"}, {"memory"},
                  {"modules"},  {"build logs"},    {"kernels"},     {"images"}, {"samplers"}};
enum Kind { contexts, lists, pools, events, memory, modules, logs, kernels, images, samplers };

// The loader's function of this name, which comes behind this library.
template <class... P>
Result real(const char* name, P... arguments) {
  return reinterpret_cast<Result (*)(P...)>(dlsym(RTLD_NEXT, name))(arguments...);
}

Result made(Kind kind, Result result) {
  if (result != Result::success) return result;
  ++counts[kind].made;
  ++counts[kind].left;
  return result;
}
Result gone(Kind kind, Result result) {
  if (result == Result::success) --counts[kind].left;
  return result;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// How many objects of a kind were made, and how many of them are left; -1 for a kind that is not counted.
long tack_counted(const char* kind, int left) {
  for (const Count& count : counts)
    if (std::strcmp(count.name, kind) == 0) return left != 0 ? count.left : count.made;
  return -1;
}

Result zeContextCreate(Driver driver, const ContextDesc* desc, Context* context) {
  return made(contexts, real(__func__, driver, desc, context));
}
Result zeContextDestroy(Context context) { return gone(contexts, real(__func__, context)); }
Result zeCommandListCreateImmediate(Context context, Device device, const QueueDesc* desc, CommandList* list) {
  return made(lists, real(__func__, context, device, desc, list));
}
Result zeCommandListDestroy(CommandList list) { return gone(lists, real(__func__, list)); }
Result zeEventPoolCreate(Context context, const EventPoolDesc* desc, std::uint32_t count, Device* devices, EventPool* pool) {
  return made(pools, real(__func__, context, desc, count, devices, pool));
}
Result zeEventPoolDestroy(EventPool pool) { return gone(pools, real(__func__, pool)); }
Result zeEventCreate(EventPool pool, const EventDesc* desc, Event* event) { return made(events, real(__func__, pool, desc, event)); }
Result zeEventDestroy(Event event) { return gone(events, real(__func__, event)); }
Result zeMemAllocDevice(Context context, const DeviceMemoryDesc* desc, std::size_t size, std::size_t alignment, Device device,
                        void** pointer) {
  return made(memory, real(__func__, context, desc, size, alignment, device, pointer));
}
Result zeMemAllocHost(Context context, const HostMemoryDesc* desc, std::size_t size, std::size_t alignment, void** pointer) {
  return made(memory, real(__func__, context, desc, size, alignment, pointer));
}
Result zeMemFree(Context context, void* pointer) { return gone(memory, real(__func__, context, pointer)); }
Result zeModuleCreate(Context context, Device device, const ModuleDesc* desc, Module* module, BuildLog* log) {
  const Result result = real(__func__, context, device, desc, module, log);
  if (log != nullptr && *log != nullptr) made(logs, Result::success);
  return made(modules, result);
}
Result zeModuleDestroy(Module module) { return gone(modules, real(__func__, module)); }
Result zeModuleBuildLogDestroy(BuildLog log) { return gone(logs, real(__func__, log)); }
Result zeKernelCreate(Module module, const KernelDesc* desc, Kernel* kernel) { return made(kernels, real(__func__, module, desc, kernel)); }
Result zeKernelDestroy(Kernel kernel) { return gone(kernels, real(__func__, kernel)); }
Result zeImageCreate(Context context, Device device, const ImageDesc* desc, Image* image) {
  return made(images, real(__func__, context, device, desc, image));
}
Result zeImageDestroy(Image image) { return gone(images, real(__func__, image)); }
Result zeSamplerCreate(Context context, Device device, const SamplerDesc* desc, Sampler* sampler) {
  return made(samplers, real(__func__, context, device, desc, sampler));
}
Result zeSamplerDestroy(Sampler sampler) { return gone(samplers, real(__func__, sampler)); }
}
#pragma GCC visibility pop
