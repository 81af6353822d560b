// cuda/driver.h -- the CUDA driver stand-in's state: contexts, what they own, and the frame that every call runs in.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../engine/address.h"
#include "../engine/control.h"
#include "../engine/grid.h"
#include "../engine/memory.h"
#include "../engine/module.h"
#include "../engine/queue.h"
#include "../engine/table.h"
#include "../engine/texture.h"
#include "codes.h"

namespace sim::cuda {

// Of a device where no setting says another; each front defines it.
extern const int usual_architecture;

struct Context {
  explicit Context(int number) : device(number), queue(number) {}
  const int device;
  bool primary = false;
  bool alive = true;
  std::uint64_t handle = 0;
  Queue queue;
  std::atomic<Result> error{Result::success};  // of a kernel; every later call gives it
  std::mutex mutex;
  std::set<std::uintptr_t> memory, pinned;
  std::set<std::uint64_t> textures;
  std::map<std::thread::id, std::shared_ptr<Stream>> per_thread;

  // Queues work that is dropped once the context is lost.
  TaskPtr submit(Stream& stream, std::function<void()> work, const TaskPtr& also_after = nullptr);
  // A wait's result.
  Result state() const { return error.load(); }
};
using ContextPtr = std::shared_ptr<Context>;

struct StreamObject {
  ContextPtr context;
  std::shared_ptr<Stream> stream;
  unsigned flags = 0;
};

struct EventObject {
  ContextPtr context;
  bool timing = true;
  std::mutex mutex;
  TaskPtr task;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
};

struct ModuleObject {
  ContextPtr context;
  std::shared_ptr<Module> module;
  std::map<std::string, std::uint64_t> functions;
};

struct FunctionObject {
  ContextPtr context;
  std::weak_ptr<ModuleObject> owner;
  std::shared_ptr<Module> module;
  const SimKernel* kernel = nullptr;
  int dynamic_shared = 49152;  // the most that a launch may ask for
};

struct ArrayObject {
  ContextPtr context;
  std::shared_ptr<TexelArray> texels;
};

struct Driver {
  static Driver& instance();

  Table<Context> contexts{"contexts", 0x5c01};
  Table<StreamObject> streams{"streams", 0x5c02};
  Table<EventObject> events{"events", 0x5c03};
  Table<ModuleObject> modules{"modules", 0x5c04};
  Table<FunctionObject> functions{"functions", 0x5c05};
  Table<ArrayObject> arrays{"arrays", 0x5c06};

  std::mutex mutex;
  struct Primary {
    ContextPtr context;
    int retained = 0;
    unsigned flags = 0;
  };
  std::array<Primary, 16> primary;

  ContextPtr create(int device, bool primary_context);
  void destroy(const ContextPtr& context);
};

// The contexts of the calling thread; the last one is current.
std::vector<ContextPtr>& context_stack();

// Whether cuInit was called, in this process and not in its parent.
bool initialized();

// Whether a kernel's error leaves the context unusable.
bool sticky(Result result);

template <class Handle>
std::uint64_t bits(Handle handle) {
  return std::bit_cast<std::uint64_t>(handle);
}
template <class Handle>
Handle handle_of(std::uint64_t value) {
  return std::bit_cast<Handle>(value);
}

void trace_result(const char* function, Result result);

// What a call needs before its body runs.
enum class Needs {
  nothing,  // may come before cuInit
  driver,   // cuInit
  context,  // a current context that is not lost
};
// Whether a call that the test wants to fail does its work all the same, as a release that reports an earlier error does.
enum class Failing { instead, afterwards };

// Whether a call was made by another one, of a front that stands on this one: it is neither counted nor traced, and never made to fail.
class Nested {
 public:
  Nested() : inner_(depth()++ != 0) {}
  ~Nested() { --depth(); }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;
  bool inner() const { return inner_; }

 private:
  static int& depth() {
    thread_local int value = 0;
    return value;
  }
  bool inner_;
};

// The frame of a call. The body takes the current context (null where the call needs none) and gives a result.
template <Name name, Needs needs = Needs::context, Failing failing = Failing::instead, class F>
Result call(F body) {
  static CallSite site(name.text);
  const Nested nested;
  const auto injected = nested.inner() ? Result::success : static_cast<Result>(Control::instance().enter(site));
  Result result = Result::success;
  const std::vector<ContextPtr>& stack = context_stack();
  static const ContextPtr none;
  const ContextPtr& context = stack.empty() ? none : stack.back();
  if (injected != Result::success && sticky(injected) && context != nullptr) context->error = injected;
  if (injected != Result::success && failing == Failing::instead) {
    result = injected;
  } else if (needs != Needs::nothing && !initialized()) {
    result = Result::not_initialized;
  } else if (needs == Needs::context && context == nullptr) {
    result = Result::invalid_context;
  } else if (needs == Needs::context && !context->alive) {
    result = Result::context_is_destroyed;
  } else if (needs == Needs::context && context->state() != Result::success && failing == Failing::instead) {
    result = context->state();
  } else {
    try {
      const ContextPtr held = context;  // the body may change what is current
      result = body(held);
    } catch (const std::bad_alloc&) {
      result = Result::out_of_memory;
    }
    if (injected != Result::success) result = injected;
  }
  if (!nested.inner() && Control::instance().tracing()) trace_result(name.text, result);
  return result;
}

// The stream that a handle names in this context, null where there is none.
std::shared_ptr<Stream> find_stream(const ContextPtr& context, abi::Stream handle);

}  // namespace sim::cuda
