// level_zero/commands.cpp -- the Level Zero stand-in: immediate command lists, which may do their commands in any order that barriers and
// the in-order flag leave, and events.
#include <algorithm>
#include <cstring>
#include <utility>

#include "driver.h"

namespace sim::level_zero {
namespace {

std::shared_ptr<ListObject> find_list(abi::CommandList handle) { return Driver::instance().lists.find(bits(handle)); }
std::shared_ptr<EventObject> find_event(abi::Event handle) { return Driver::instance().events.find(bits(handle)); }

constexpr std::uint32_t in_order_since = abi::version(1, 9);

ContextPtr context_of(const std::shared_ptr<ListObject>& list) { return list == nullptr ? nullptr : list->context; }

}  // namespace

bool in_context(const char* function, Context& context, const void* pointer, std::size_t size) {
  const std::optional<Allocation> found = Memory::instance().find(address_of(pointer));
  {
    const std::lock_guard lock(context.mutex);
    if (found && found->contains(address_of(pointer), size) && context.memory.contains(found->start)) return true;
  }
  misuse(
      function, Result::invalid_argument,
      std::to_string(size) + " bytes of memory that is " + Memory::instance().describe(address_of(pointer)) + ", not one of the context's");
  return false;
}

Result idle(const char* function, const Context& context) {
  if (context.unfinished == 0 || context.disturbed) return Result::success;
  return misuse(function, Result::object_in_use, std::to_string(context.unfinished) + " commands have not run");
}

void ListObject::append(std::function<void()> work, abi::Event signal) {
  auto& state = *context;
  ++state.unfinished;
  auto counted = [&state, run = std::move(work)] {
    {
      const std::lock_guard running(state.running);
      if (state.error == Result::success) run();
    }
    --state.unfinished;
  };
  TaskPtr task;
  if (in_order) {
    task = queue().submit(*order, std::move(counted));
  } else {
    const std::shared_ptr<Stream> alone = queue().stream(false);
    task = queue().submit(*alone, std::move(counted), barrier);
    queue().remove(alone);
    open.push_back(task);
  }
  say_when(signal, task);
}

void ListObject::say_when(abi::Event signal, const TaskPtr& task) {
  const auto event = find_event(signal);
  if (event == nullptr) return;
  const std::lock_guard lock(event->mutex);
  event->queue = &queue();
  event->task = task;
}

void ListObject::append_barrier(abi::Event signal) {
  if (!in_order) {
    for (const TaskPtr& before : std::exchange(open, {})) barrier = queue().submit(*order, [] {}, before);
  } else {
    barrier = queue().submit(*order, [] {});
  }
  say_when(signal, barrier == nullptr ? queue().submit(*order, [] {}) : barrier);
}

}  // namespace sim::level_zero

using namespace sim;
using namespace sim::level_zero;

#pragma GCC visibility push(default)
extern "C" {

Result zeCommandListCreateImmediate(abi::Context handle, abi::Device device, const abi::QueueDesc* desc, abi::CommandList* list) {
  static CallSite site("zeCommandListCreateImmediate");
  const ContextPtr context = Driver::instance().contexts.find(bits(handle));
  return call(site, context, [&] {
    const int number = number_of(device);
    if (context == nullptr || number < 0) return Result::invalid_null_handle;
    if (desc->stype != abi::StructureType::QueueDesc) return misuse(site.name, Result::invalid_argument, "wrong stype");
    if (desc->ordinal > 1 || desc->index != 0) return Result::invalid_argument;
    if (desc->ordinal == 0) return misuse(site.name, Result::unsupported_feature, "the first kind of queue runs no kernels");
    if (desc->flags != 0 && (desc->flags != abi::queue_in_order || api_version() < in_order_since)) return Result::invalid_enumeration;
    if (desc->mode != abi::queue_asynchronous) return misuse(site.name, Result::unsupported_feature, "the queue is not asynchronous");
    auto made = std::make_shared<ListObject>();
    made->context = context;
    made->device = number;
    made->in_order = desc->flags == abi::queue_in_order;
    made->order = made->queue().stream(false);
    *list = handle_of<abi::CommandList>(Driver::instance().lists.add(std::move(made)));
    return Result::success;
  });
}

Result zeCommandListDestroy(abi::CommandList handle) {
  static CallSite site("zeCommandListDestroy");
  return call<Failing::afterwards>(site, nullptr, [&] {
    const auto list = Driver::instance().lists.remove(bits(handle));
    return list == nullptr ? Result::invalid_null_handle : idle(site.name, *list->context);
  });
}

Result zeCommandListAppendBarrier(abi::CommandList handle, abi::Event signal, std::uint32_t waits, abi::Event*) {
  static CallSite site("zeCommandListAppendBarrier");
  const auto list = find_list(handle);
  return call(site, context_of(list), [&] {
    if (list == nullptr) return Result::invalid_null_handle;
    if (waits != 0) return misuse(site.name, Result::unsupported_feature, "the stand-in has no wait events");
    const Alone alone(list->busy, site.name, "command list");
    list->append_barrier(signal);
    return Result::success;
  });
}

Result zeCommandListAppendMemoryCopy(abi::CommandList handle, void* to, const void* from, std::size_t size, abi::Event signal,
                                     std::uint32_t waits, abi::Event*) {
  static CallSite site("zeCommandListAppendMemoryCopy");
  const auto list = find_list(handle);
  return call(site, context_of(list), [&] {
    if (list == nullptr) return Result::invalid_null_handle;
    if (waits != 0) return misuse(site.name, Result::unsupported_feature, "the stand-in has no wait events");
    if (!in_context(site.name, *list->context, to, size) || !in_context(site.name, *list->context, from, size))
      return Result::invalid_argument;
    const Alone alone(list->busy, site.name, "command list");
    list->append(
        [=] {
          const Memory::Opened source(Memory::instance(), address_of(from)), target(Memory::instance(), address_of(to));
          std::memmove(to, from, size);
        },
        signal);
    return Result::success;
  });
}

Result zeCommandListAppendMemoryFill(abi::CommandList handle, void* to, const void* pattern, std::size_t pattern_size, std::size_t size,
                                     abi::Event signal, std::uint32_t waits, abi::Event*) {
  static CallSite site("zeCommandListAppendMemoryFill");
  const auto list = find_list(handle);
  return call(site, context_of(list), [&] {
    if (list == nullptr) return Result::invalid_null_handle;
    if (waits != 0) return misuse(site.name, Result::unsupported_feature, "the stand-in has no wait events");
    if (pattern_size == 0 || (pattern_size & (pattern_size - 1)) != 0 || size % pattern_size != 0) return Result::invalid_size;
    if (!in_context(site.name, *list->context, to, size)) return Result::invalid_argument;
    const Alone alone(list->busy, site.name, "command list");
    std::vector<unsigned char> bytes(static_cast<const unsigned char*>(pattern), static_cast<const unsigned char*>(pattern) + pattern_size);
    list->append(
        [=] {
          const Memory::Opened target(Memory::instance(), address_of(to));
          for (std::size_t i = 0; i < size; i += pattern_size) std::memcpy(static_cast<unsigned char*>(to) + i, bytes.data(), pattern_size);
        },
        signal);
    return Result::success;
  });
}

Result zeEventPoolCreate(abi::Context handle, const abi::EventPoolDesc* desc, std::uint32_t, abi::Device*, abi::EventPool* pool) {
  static CallSite site("zeEventPoolCreate");
  const ContextPtr context = Driver::instance().contexts.find(bits(handle));
  return call(site, context, [&] {
    if (context == nullptr) return Result::invalid_null_handle;
    if (desc->stype != abi::StructureType::EventPoolDesc) return misuse(site.name, Result::invalid_argument, "wrong stype");
    if ((desc->flags & abi::event_pool_host_visible) == 0)
      return misuse(site.name, Result::invalid_argument, "the host cannot wait for these events");
    auto made = std::make_shared<EventPoolObject>();
    made->context = context;
    made->used.resize(desc->count);
    *pool = handle_of<abi::EventPool>(Driver::instance().pools.add(std::move(made)));
    return Result::success;
  });
}

Result zeEventPoolDestroy(abi::EventPool handle) {
  static CallSite site("zeEventPoolDestroy");
  return call<Failing::afterwards>(site, nullptr, [&] {
    const auto pool = Driver::instance().pools.remove(bits(handle));
    if (pool == nullptr) return Result::invalid_null_handle;
    const std::lock_guard lock(pool->mutex);
    if (std::count(pool->used.begin(), pool->used.end(), true) != 0)
      return misuse(site.name, Result::object_in_use, "the pool still has events");
    return Result::success;
  });
}

Result zeEventCreate(abi::EventPool handle, const abi::EventDesc* desc, abi::Event* event) {
  static CallSite site("zeEventCreate");
  const auto pool = Driver::instance().pools.find(bits(handle));
  return call(site, pool == nullptr ? nullptr : pool->context, [&] {
    if (pool == nullptr) return Result::invalid_null_handle;
    if (desc->stype != abi::StructureType::EventDesc) return misuse(site.name, Result::invalid_argument, "wrong stype");
    const std::lock_guard lock(pool->mutex);
    if (desc->index >= pool->used.size() || pool->used[desc->index])
      return misuse(site.name, Result::invalid_argument, "no free event " + std::to_string(desc->index) + " in the pool");
    auto made = std::make_shared<EventObject>();
    made->pool = pool;
    made->index = desc->index;
    *event = handle_of<abi::Event>(Driver::instance().events.add(std::move(made)));
    pool->used[desc->index] = true;
    return Result::success;
  });
}

Result zeEventDestroy(abi::Event handle) {
  static CallSite site("zeEventDestroy");
  return call<Failing::afterwards>(site, nullptr, [&] {
    const auto event = Driver::instance().events.remove(bits(handle));
    if (event == nullptr) return Result::invalid_null_handle;
    const std::lock_guard lock(event->pool->mutex);
    event->pool->used[event->index] = false;
    return Result::success;
  });
}

Result zeEventHostReset(abi::Event handle) {
  static CallSite site("zeEventHostReset");
  const auto event = find_event(handle);
  return call(site, event == nullptr ? nullptr : event->pool->context, [&] {
    if (event == nullptr) return Result::invalid_null_handle;
    const std::lock_guard lock(event->mutex);
    if (event->task != nullptr && !event->task->done)
      return misuse(site.name, Result::invalid_synchronization, "the event is reset while its signal is on the way");
    event->task = nullptr;
    return Result::success;
  });
}

Result zeEventHostSynchronize(abi::Event handle, std::uint64_t) {
  static CallSite site("zeEventHostSynchronize");
  const auto event = find_event(handle);
  const ContextPtr context = event == nullptr ? nullptr : event->pool->context;
  return call(site, context, [&] {
    if (event == nullptr) return Result::invalid_null_handle;
    TaskPtr task;
    Queue* queue = nullptr;
    {
      const std::lock_guard lock(event->mutex);
      task = event->task;
      queue = event->queue;
    }
    if (task == nullptr) return misuse(site.name, Result::not_ready, "nothing signals the event: the wait would never end");
    queue->wait(task);
    return context->error.load();
  });
}
}
#pragma GCC visibility pop
