// cuda/context.cpp -- the CUDA driver stand-in: initialisation, devices and contexts.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include "../engine/signals.h"
#include "driver.h"

namespace sim::cuda {
namespace {

enum class Initialized { no, yes, in_parent };
std::atomic<Initialized> state{Initialized::no};

bool valid_device(int device) { return device >= 0 && device < settings().devices; }

// Device attributes by number (CUdevice_attribute in the driver's manual) of the simulated device; all others are 0.
struct Attribute {
  int number, value;
};
constexpr Attribute attributes[] = {
    {1, 1024},         // threads of a block
    {2, 1024},         // ... along x
    {3, 1024},         // ... along y
    {4, 64},           // ... along z
    {5, 2147483647},   // blocks of a grid along x
    {6, 65535},        // ... along y
    {7, 65535},        // ... along z
    {8, 49152},        // shared memory of a block
    {9, 65536},        // constant memory
    {10, 32},          // warp
    {11, 2147483647},  // pitch
    {12, 65536},       // registers of a block
    {13, 1500000},     // clock, kHz
    {14, 512},         // texture alignment
    {15, 1},           // copies beside kernels
    {16, 4},           // multiprocessors
    {19, 1},           // mapped host memory
    {21, 131072},      // width of textures in 1 dimension
    {22, 131072},      // ... in 2
    {23, 65536},       // height in 2
    {24, 16384},       // width in 3
    {25, 16384},       // height in 3
    {26, 16384},       // depth in 3
    {31, 1},           // concurrent kernels
    {32, 1},           // ECC
    {36, 1200000},     // memory clock, kHz
    {37, 256},         // memory bus, bits
    {38, 4194304},     // second-level cache
    {39, 2048},        // threads of a multiprocessor
    {41, 1},           // unified addresses
    {81, 102400},      // shared memory of a multiprocessor
    {82, 65536},       // registers of a multiprocessor
    {97, 101376},      // shared memory of a block that asks for more
};

int attribute(int number, int device) {
  const auto changed = settings().attributes.find(number);
  if (changed != settings().attributes.end()) return changed->second;
  constexpr int bus = 33, major = 75, minor = 76;
  if (number == bus) return device + 1;
  if (number == major) return settings().architecture(device, usual_architecture) / 10;
  if (number == minor) return settings().architecture(device, usual_architecture) % 10;
  const Attribute* found =
      std::find_if(std::begin(attributes), std::end(attributes), [&](const Attribute& a) { return a.number == number; });
  return found == std::end(attributes) ? 0 : found->value;
}

}  // namespace

bool initialized() { return state.load(std::memory_order_relaxed) == Initialized::yes; }

bool sticky(Result result) {
  switch (result) {
    case Result::illegal_address:
    case Result::launch_timeout:
    case Result::device_assert:
    case Result::hardware_stack_error:
    case Result::illegal_instruction:
    case Result::misaligned_address:
    case Result::invalid_address_space:
    case Result::invalid_pc:
    case Result::launch_failed:
    case Result::ecc_uncorrectable:
      return true;
    default:
      return false;
  }
}

std::vector<ContextPtr>& context_stack() {
  // What runs on a thread after its thread-local objects are gone, as the destructors of a program's static objects do, has another stack.
  static auto* const late = new std::vector<ContextPtr>;
  thread_local bool gone = false;
  struct Stack {
    ~Stack() { gone = true; }
    std::vector<ContextPtr> contexts;
  };
  if (gone) return *late;
  thread_local Stack stack;
  return stack.contexts;
}

Driver& Driver::instance() {
  static Driver* const driver = new Driver;  // never destroyed: calls may come while the process ends
  return *driver;
}

TaskPtr Context::submit(Stream& stream, std::function<void()> work, const TaskPtr& also_after) {
  return queue.submit(
      stream,
      [this, run = std::move(work)] {
        if (state() == Result::success) run();
      },
      also_after);
}

ContextPtr Driver::create(int device, bool primary_context) {
  auto context = std::make_shared<Context>(device);
  context->primary = primary_context;
  context->handle = contexts.add(context);
  return context;
}

// All that the context owns goes with it; what the program had not freed is counted.
void Driver::destroy(const ContextPtr& context) {
  if (context->state() == Result::success) context->queue.wait_all();
  context->queue.stop();
  context->alive = false;
  contexts.remove(context->handle);
  const auto mine = [&](const auto& object) {
    if (object.context != context) return false;
    ++Control::instance().counter("left to their context");
    return true;
  };
  streams.remove_if(mine);
  events.remove_if(mine);
  arrays.remove_if(mine);
  functions.remove_if([&](const FunctionObject& f) { return f.context == context; });
  modules.remove_if(mine);
  const std::lock_guard lock(context->mutex);
  for (const std::uintptr_t start : context->memory) Memory::instance().free(start, MemoryKind::device);
  for (const std::uintptr_t start : context->pinned) Memory::instance().free(start, MemoryKind::pinned);
  Control::instance().counter("left to their context") += static_cast<long>(context->memory.size() + context->pinned.size());
  context->memory.clear();
  context->pinned.clear();
  for (const std::uint64_t object : context->textures) remove_texture(object);
  Control::instance().counter("left to their context") += static_cast<long>(context->textures.size());
  context->textures.clear();
}

std::shared_ptr<Stream> find_stream(const ContextPtr& context, abi::Stream handle) {
  const std::uint64_t value = bits(handle);
  if (value <= 1) return context->queue.legacy();
  if (value == 2) {  // CU_STREAM_PER_THREAD
    const std::lock_guard lock(context->mutex);
    std::shared_ptr<Stream>& own = context->per_thread[std::this_thread::get_id()];
    if (own == nullptr) own = context->queue.stream(true);
    return own;
  }
  const auto found = Driver::instance().streams.find(value);
  return found == nullptr || found->context != context ? nullptr : found->stream;
}

const char* name_of(Result result) {
#define SIM_CASE(name, original, value) \
  if (result == Result::name) return #original;
  TACK_CUDA_RESULTS(SIM_CASE)
  SIM_CUDA_OTHER_RESULTS(SIM_CASE)
#undef SIM_CASE
  return nullptr;
}

}  // namespace sim::cuda

using namespace sim;
using namespace sim::cuda;

#pragma GCC visibility push(default)
extern "C" {

Result cuInit(unsigned flags) {
  return call<"cuInit", Needs::nothing>([&](const ContextPtr&) {
    if (flags != 0) return Result::invalid_value;
    if (settings().devices == 0) return Result::no_device;
    static std::once_flag once;
    std::call_once(once, [] {
      install_signal_handlers();
      pthread_atfork(nullptr, nullptr, [] {
        if (initialized()) state = Initialized::in_parent;
      });
    });
    if (state == Initialized::in_parent) return Result::not_initialized;
    state = Initialized::yes;
    return Result::success;
  });
}

Result cuDriverGetVersion(int* version) {
  return call<"cuDriverGetVersion", Needs::nothing>([&](const ContextPtr&) {
    if (version == nullptr) return Result::invalid_value;
    *version = settings().driver_version;
    return Result::success;
  });
}

Result cuDeviceGetCount(int* count) {
  return call<"cuDeviceGetCount", Needs::driver>([&](const ContextPtr&) {
    if (count == nullptr) return Result::invalid_value;
    *count = settings().devices;
    return Result::success;
  });
}

Result cuDeviceGet(int* device, int ordinal) {
  return call<"cuDeviceGet", Needs::driver>([&](const ContextPtr&) {
    if (device == nullptr) return Result::invalid_value;
    if (!valid_device(ordinal)) return Result::invalid_device;
    *device = ordinal;
    return Result::success;
  });
}

Result cuDeviceGetName(char* name, int length, int device) {
  return call<"cuDeviceGetName", Needs::driver>([&](const ContextPtr&) {
    if (name == nullptr || length <= 0) return Result::invalid_value;
    if (!valid_device(device)) return Result::invalid_device;
    std::snprintf(name, static_cast<std::size_t>(length), "Simulated GPU %d (no hardware)", device);
    return Result::success;
  });
}

Result cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  return call<"cuDeviceGetUuid_v2", Needs::driver>([&](const ContextPtr&) {
    if (uuid == nullptr) return Result::invalid_value;
    if (!valid_device(device)) return Result::invalid_device;
    std::memset(uuid, 0x51, 16);
    uuid[15] = static_cast<unsigned char>(device);
    return Result::success;
  });
}

Result cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  return call<"cuDeviceTotalMem_v2", Needs::driver>([&](const ContextPtr&) {
    if (bytes == nullptr) return Result::invalid_value;
    if (!valid_device(device)) return Result::invalid_device;
    *bytes = settings().memory;
    return Result::success;
  });
}

Result cuDeviceGetAttribute(int* value, int number, int device) {
  return call<"cuDeviceGetAttribute", Needs::driver>([&](const ContextPtr&) {
    constexpr int last = 148;
    if (value == nullptr || number < 1 || number > last) return Result::invalid_value;
    if (!valid_device(device)) return Result::invalid_device;
    *value = attribute(number, device);
    return Result::success;
  });
}

Result cuDeviceCanAccessPeer(int* can, int device, int peer) {
  return call<"cuDeviceCanAccessPeer", Needs::driver>([&](const ContextPtr&) {
    if (can == nullptr) return Result::invalid_value;
    if (!valid_device(device) || !valid_device(peer)) return Result::invalid_device;
    *can = 0;
    return Result::success;
  });
}

Result cuDevicePrimaryCtxRetain(abi::Context* context, int device) {
  return call<"cuDevicePrimaryCtxRetain", Needs::driver>([&](const ContextPtr&) {
    if (context == nullptr) return Result::invalid_value;
    if (!valid_device(device)) return Result::invalid_device;
    Driver& driver = Driver::instance();
    const std::lock_guard lock(driver.mutex);
    auto& primary = driver.primary[static_cast<std::size_t>(device)];
    if (primary.retained++ == 0) primary.context = driver.create(device, true);
    ++Control::instance().counter("primary contexts retained");
    *context = handle_of<abi::Context>(primary.context->handle);
    return Result::success;
  });
}

Result cuDevicePrimaryCtxRelease_v2(int device) {
  return call<"cuDevicePrimaryCtxRelease_v2", Needs::driver, Failing::afterwards>([&](const ContextPtr&) {
    if (!valid_device(device)) return Result::invalid_device;
    Driver& driver = Driver::instance();
    const std::lock_guard lock(driver.mutex);
    auto& primary = driver.primary[static_cast<std::size_t>(device)];
    if (primary.retained == 0) return Result::invalid_context;
    --Control::instance().counter("primary contexts retained");
    if (--primary.retained == 0) driver.destroy(std::exchange(primary.context, nullptr));
    return Result::success;
  });
}

Result cuDevicePrimaryCtxReset_v2(int device) {
  return call<"cuDevicePrimaryCtxReset_v2", Needs::driver>([&](const ContextPtr&) {
    if (!valid_device(device)) return Result::invalid_device;
    Driver& driver = Driver::instance();
    const std::lock_guard lock(driver.mutex);
    auto& primary = driver.primary[static_cast<std::size_t>(device)];
    if (primary.context != nullptr) driver.destroy(primary.context);
    if (primary.retained > 0) primary.context = driver.create(device, true);
    return Result::success;
  });
}

Result cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return call<"cuDevicePrimaryCtxGetState", Needs::driver>([&](const ContextPtr&) {
    if (flags == nullptr || active == nullptr) return Result::invalid_value;
    if (!valid_device(device)) return Result::invalid_device;
    Driver& driver = Driver::instance();
    const std::lock_guard lock(driver.mutex);
    *flags = driver.primary[static_cast<std::size_t>(device)].flags;
    *active = driver.primary[static_cast<std::size_t>(device)].retained > 0 ? 1 : 0;
    return Result::success;
  });
}

Result cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
  return call<"cuDevicePrimaryCtxSetFlags_v2", Needs::driver>([&](const ContextPtr&) {
    if (!valid_device(device)) return Result::invalid_device;
    Driver& driver = Driver::instance();
    const std::lock_guard lock(driver.mutex);
    driver.primary[static_cast<std::size_t>(device)].flags = flags;
    return Result::success;
  });
}

Result cuCtxCreate_v2(abi::Context* context, unsigned, int device) {
  return call<"cuCtxCreate_v2", Needs::driver>([&](const ContextPtr&) {
    if (context == nullptr) return Result::invalid_value;
    if (!valid_device(device)) return Result::invalid_device;
    const ContextPtr made = Driver::instance().create(device, false);
    context_stack().push_back(made);
    *context = handle_of<abi::Context>(made->handle);
    return Result::success;
  });
}

Result cuCtxDestroy_v2(abi::Context context) {
  return call<"cuCtxDestroy_v2", Needs::driver, Failing::afterwards>([&](const ContextPtr& current) {
    const ContextPtr found = Driver::instance().contexts.find(bits(context));
    if (found == nullptr || found->primary) return Result::invalid_context;
    Driver::instance().destroy(found);
    if (current == found) context_stack().pop_back();
    return Result::success;
  });
}

Result cuCtxGetCurrent(abi::Context* context) {
  return call<"cuCtxGetCurrent", Needs::driver>([&](const ContextPtr& current) {
    if (context == nullptr) return Result::invalid_value;
    *context = current == nullptr ? nullptr : handle_of<abi::Context>(current->handle);
    return Result::success;
  });
}

Result cuCtxSetCurrent(abi::Context context) {
  return call<"cuCtxSetCurrent", Needs::driver>([&](const ContextPtr&) {
    std::vector<ContextPtr>& stack = context_stack();
    if (context == nullptr) {
      if (!stack.empty()) stack.pop_back();
      return Result::success;
    }
    const ContextPtr found = Driver::instance().contexts.find(bits(context));
    if (found == nullptr) return Driver::instance().contexts.was(bits(context)) ? Result::context_is_destroyed : Result::invalid_context;
    if (stack.empty()) {
      stack.push_back(found);
    } else {
      stack.back() = found;
    }
    return Result::success;
  });
}

Result cuCtxPushCurrent_v2(abi::Context context) {
  return call<"cuCtxPushCurrent_v2", Needs::driver>([&](const ContextPtr&) {
    const ContextPtr found = Driver::instance().contexts.find(bits(context));
    if (found == nullptr) return Driver::instance().contexts.was(bits(context)) ? Result::context_is_destroyed : Result::invalid_context;
    context_stack().push_back(found);
    return Result::success;
  });
}

Result cuCtxPopCurrent_v2(abi::Context* context) {
  return call<"cuCtxPopCurrent_v2", Needs::driver>([&](const ContextPtr& current) {
    if (current == nullptr) return Result::invalid_context;
    if (context != nullptr) *context = handle_of<abi::Context>(current->handle);
    context_stack().pop_back();
    return Result::success;
  });
}

Result cuCtxGetDevice(int* device) {
  return call<"cuCtxGetDevice">([&](const ContextPtr& current) {
    if (device == nullptr) return Result::invalid_value;
    *device = current->device;
    return Result::success;
  });
}

Result cuCtxGetFlags(unsigned* flags) {
  return call<"cuCtxGetFlags">([&](const ContextPtr&) {
    if (flags == nullptr) return Result::invalid_value;
    *flags = 0;
    return Result::success;
  });
}

Result cuCtxGetApiVersion(abi::Context, unsigned* version) {
  return call<"cuCtxGetApiVersion", Needs::driver>([&](const ContextPtr&) {
    if (version == nullptr) return Result::invalid_value;
    *version = 3020;
    return Result::success;
  });
}

Result cuCtxSynchronize() {
  return call<"cuCtxSynchronize">([&](const ContextPtr& context) {
    context->queue.wait_all();
    return context->state();
  });
}

Result cuGetErrorName(Result result, const char** text) {
  return call<"cuGetErrorName", Needs::nothing>([&](const ContextPtr&) {
    if (text == nullptr) return Result::invalid_value;
    *text = name_of(result);
    return *text == nullptr ? Result::invalid_value : Result::success;
  });
}

Result cuGetErrorString(Result result, const char** text) {
  return call<"cuGetErrorString", Needs::nothing>([&](const ContextPtr&) {
    if (text == nullptr) return Result::invalid_value;
    const char* name = name_of(result);
    *text = name == nullptr ? nullptr : "simulated error";
    return name == nullptr ? Result::invalid_value : Result::success;
  });
}
}
#pragma GCC visibility pop
