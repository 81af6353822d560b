// level_zero/driver.h -- the Level Zero stand-in's state: contexts, what they own, and the frame that every call runs in.
#pragma once

#include <level_zero/ze_abi.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "../engine/address.h"
#include "../engine/control.h"
#include "../engine/memory.h"
#include "../engine/queue.h"
#include "../engine/table.h"
#include "opencl.h"

namespace sim::level_zero {

namespace abi = tack::level_zero::abi;
using Result = abi::Result;

struct Context {
  explicit Context(std::uint64_t number);
  const std::uint64_t handle_number;
  std::vector<std::unique_ptr<Queue>> queues;  // one for each device
  std::atomic<Result> error{Result::success};  // of queued work; every later call gives it
  std::atomic<bool> disturbed{false};          // by a failure that a test wanted: work may be under way that nobody could wait for
  std::atomic<long> unfinished{0};             // commands that were queued and have not run
  std::mutex running;                          // held while a command runs
  std::mutex mutex;
  std::map<std::uintptr_t, int> memory;  // addresses, and the devices that they are on; -1: the host's
};
using ContextPtr = std::shared_ptr<Context>;

struct Program;  // module.cpp

struct ImageObject {
  ContextPtr context;
  cl::Handle handle = nullptr;
  std::size_t width = 0, height = 0, depth = 0;
  ~ImageObject();
};

struct SamplerObject {
  ContextPtr context;
  cl::Handle handle = nullptr;
  ~SamplerObject();
};

struct KernelObject {
  ContextPtr context;
  std::shared_ptr<Program> program;
  cl::Handle handle = nullptr;
  std::string name;
  std::uint32_t group = 0, required = 0;
  enum class Kind { unset, value, pointer, image, sampler };
  struct Argument {
    Kind kind = Kind::unset;
    std::vector<unsigned char> bytes;  // what OpenCL is given: of an image and a sampler its handle for these
    std::shared_ptr<void> object;      // the image or the sampler
  };
  std::vector<Argument> arguments;
  std::atomic<bool> busy{false};  // a thread sets its arguments, or launches it
  ~KernelObject();
};

struct ModuleObject {
  ContextPtr context;
  std::shared_ptr<Program> program;
  int device = 0;
};

struct BuildLogObject {
  std::string text;
};

struct EventPoolObject {
  ContextPtr context;
  std::vector<bool> used;
  std::mutex mutex;
};

struct EventObject {
  std::shared_ptr<EventPoolObject> pool;
  std::uint32_t index = 0;
  std::mutex mutex;
  Queue* queue = nullptr;
  TaskPtr task;  // of the queue; its end signals the event
};

// An immediate command list.
struct ListObject {
  ContextPtr context;
  int device = 0;
  bool in_order = false;
  std::atomic<bool> busy{false};  // a thread appends to it
  std::shared_ptr<Stream> order;  // of all commands, or of the barriers alone
  std::vector<TaskPtr> open;      // commands since the last barrier, in no order
  TaskPtr barrier;

  Queue& queue() const { return *context->queues[static_cast<std::size_t>(device)]; }
  // Queues work where the list's rules put it, and has `signal` say when it is done.
  void append(std::function<void()> work, abi::Event signal);
  void append_barrier(abi::Event signal);

 private:
  void say_when(abi::Event signal, const TaskPtr& task);
};

struct Driver {
  static Driver& instance();
  Table<Context> contexts{"contexts", 0x5e01};
  Table<ListObject> lists{"command lists", 0x5e02};
  Table<EventPoolObject> pools{"event pools", 0x5e03};
  Table<EventObject> events{"events", 0x5e04};
  Table<ModuleObject> modules{"modules", 0x5e05};
  Table<BuildLogObject> logs{"build logs", 0x5e06};
  Table<KernelObject> kernels{"kernels", 0x5e07};
  Table<ImageObject> images{"images", 0x5e08};
  Table<SamplerObject> samplers{"samplers", 0x5e09};
};

template <class Handle>
std::uint64_t bits(Handle handle) {
  return std::bit_cast<std::uint64_t>(handle);
}
template <class Handle>
Handle handle_of(std::uint64_t value) {
  return std::bit_cast<Handle>(value);
}

// The driver and the devices are there from the start.
inline constexpr std::uint64_t driver_handle = 0x5e10ull << 32, device_handle = 0x5e11ull << 32;
// A device's number; -1 for what is no device.
int number_of(abi::Device device);
// The properties of a simulated device that differ between them.
struct Model {
  std::uint32_t id;
  const char* name;
  bool f64, images;
  std::uint32_t max_group;
};
const Model& model_of(int device);
inline constexpr std::uint32_t largest_image = 2048;  // along each dimension, where there are images
std::size_t max_allocation();
// The version of the specification that the driver is for.
std::uint32_t api_version();

// Whether zeInit was called, in this process and not in its parent.
bool initialized();
// Says what was done against the specification's rules.
Result misuse(const char* function, Result result, const std::string& what);

// Whether all the bytes lie in one allocation of the context; reports if not.
bool in_context(const char* function, Context& context, const void* pointer, std::size_t size);
// Whether no command can use what is destroyed; reports where one may.
Result idle(const char* function, const Context& context);

// Only one thread at a time may use a list or a kernel: says so where two do.
class Alone {
 public:
  Alone(std::atomic<bool>& busy, const char* function, const char* what) : busy_(busy), mine_(!busy.exchange(true)) {
    if (!mine_) misuse(function, Result::object_in_use, std::string("two threads use one ") + what);
  }
  ~Alone() {
    if (mine_) busy_ = false;
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  std::atomic<bool>& busy_;
  const bool mine_;
};

// Whether a call that the test wants to fail does its work all the same.
enum class Failing { instead, afterwards };

// The frame of a call: counts it, has it fail where a test wants that, and otherwise answers what the body does. `context`, if any, is lost
// once an injected failure says so, and then answers that to everything.
template <Failing failing = Failing::instead, class F>
Result call(CallSite& site, const ContextPtr& context, F body, bool needs_init = true) {
  const auto injected = static_cast<Result>(Control::instance().enter(site));
  Result result = injected;
  if (injected != Result::success && context != nullptr) context->disturbed = true;
  if (injected == Result::device_lost && context != nullptr) {
    context->error = injected;
    const std::lock_guard stopped(context->running);  // a device that is lost has stopped: what it used may be freed
  }
  if (injected == Result::success || failing == Failing::afterwards) {
    if (needs_init && !initialized()) {
      result = Result::uninitialized;
    } else if (failing == Failing::instead && context != nullptr && context->error != Result::success) {
      result = context->error;
    } else {
      try {
        result = body();
      } catch (const std::bad_alloc&) {
        result = Result::out_of_host_memory;
      } catch (const std::exception& error) {
        result = misuse(site.name, Result::unknown, error.what());
      }
    }
    if (injected != Result::success) result = injected;
  }
  if (Control::instance().tracing()) Control::instance().trace(std::string(site.name) + ": " + std::to_string(static_cast<int>(result)));
  return result;
}

}  // namespace sim::level_zero
