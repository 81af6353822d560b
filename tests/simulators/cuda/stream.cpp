// cuda/stream.cpp -- the CUDA driver stand-in: streams and events.
#include "driver.h"

using namespace sim;
using namespace sim::cuda;

namespace {

constexpr unsigned stream_non_blocking = 1, event_known_flags = 7;

Result make_stream(const ContextPtr& context, abi::Stream* stream, unsigned flags) {
  if (stream == nullptr || (flags & ~stream_non_blocking) != 0) return Result::invalid_value;
  auto made = std::make_shared<StreamObject>();
  made->context = context;
  made->flags = flags;
  made->stream = context->queue.stream((flags & stream_non_blocking) == 0);
  *stream = handle_of<abi::Stream>(Driver::instance().streams.add(made));
  return Result::success;
}

std::shared_ptr<EventObject> find_event(abi::Event event) { return Driver::instance().events.find(bits(event)); }

TaskPtr task_of(EventObject& event) {
  const std::lock_guard lock(event.mutex);
  return event.task;
}

Result elapsed(float* milliseconds, abi::Event start, abi::Event end) {
  const auto from = find_event(start), to = find_event(end);
  if (from == nullptr || to == nullptr) return Result::invalid_handle;
  if (milliseconds == nullptr) return Result::invalid_value;
  if (!from->timing || !to->timing || task_of(*from) == nullptr || task_of(*to) == nullptr) return Result::invalid_handle;
  if (!from->context->queue.query(task_of(*from)) || !to->context->queue.query(task_of(*to))) return Result::not_ready;
  *milliseconds = std::chrono::duration<float, std::milli>(*to->time - *from->time).count();
  return Result::success;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Result cuStreamCreate(abi::Stream* stream, unsigned flags) {
  return call<"cuStreamCreate">([&](const ContextPtr& context) { return make_stream(context, stream, flags); });
}

Result cuStreamCreateWithPriority(abi::Stream* stream, unsigned flags, int) {
  return call<"cuStreamCreateWithPriority">([&](const ContextPtr& context) { return make_stream(context, stream, flags); });
}

// Its queued work is still done.
Result cuStreamDestroy_v2(abi::Stream stream) {
  return call<"cuStreamDestroy_v2", Needs::context, Failing::afterwards>([&](const ContextPtr&) {
    const auto found = Driver::instance().streams.remove(bits(stream));
    if (found == nullptr) return Result::invalid_handle;
    found->context->queue.remove(found->stream);
    return Result::success;
  });
}

Result cuStreamGetFlags(abi::Stream stream, unsigned* flags) {
  return call<"cuStreamGetFlags">([&](const ContextPtr&) {
    const auto found = Driver::instance().streams.find(bits(stream));
    if (flags == nullptr) return Result::invalid_value;
    *flags = found == nullptr ? 0 : found->flags;
    return Result::success;
  });
}

Result cuStreamGetCtx(abi::Stream stream, abi::Context* context) {
  return call<"cuStreamGetCtx">([&](const ContextPtr& current) {
    if (context == nullptr) return Result::invalid_value;
    const auto found = Driver::instance().streams.find(bits(stream));
    if (found == nullptr && bits(stream) > 2) return Result::invalid_handle;
    *context = handle_of<abi::Context>(found == nullptr ? current->handle : found->context->handle);
    return Result::success;
  });
}

Result cuStreamSynchronize(abi::Stream stream) {
  return call<"cuStreamSynchronize">([&](const ContextPtr& context) {
    const auto found = find_stream(context, stream);
    if (found == nullptr) return Result::invalid_handle;
    context->queue.wait(context->queue.mark(*found));
    return context->state();
  });
}

Result cuStreamQuery(abi::Stream stream) {
  return call<"cuStreamQuery">([&](const ContextPtr& context) {
    const auto found = find_stream(context, stream);
    if (found == nullptr) return Result::invalid_handle;
    const bool done = context->queue.query(context->queue.last(*found));
    if (context->state() != Result::success) return context->state();
    return done ? Result::success : Result::not_ready;
  });
}

Result cuStreamWaitEvent(abi::Stream stream, abi::Event event, unsigned) {
  return call<"cuStreamWaitEvent">([&](const ContextPtr& context) {
    const auto to = find_stream(context, stream);
    const auto found = find_event(event);
    if (to == nullptr || found == nullptr) return Result::invalid_handle;
    const TaskPtr task = task_of(*found);
    if (task == nullptr) return Result::success;  // never recorded: nothing to wait for
    if (found->context == context) {
      context->submit(*to, [] {}, task);
    } else {
      found->context->queue.wait(task);  // of another device: the order is kept by waiting here
    }
    return Result::success;
  });
}

Result cuEventCreate(abi::Event* event, unsigned flags) {
  return call<"cuEventCreate">([&](const ContextPtr& context) {
    if (event == nullptr || (flags & ~event_known_flags) != 0) return Result::invalid_value;
    auto made = std::make_shared<EventObject>();
    made->context = context;
    made->timing = (flags & abi::event_disable_timing) == 0;
    *event = handle_of<abi::Event>(Driver::instance().events.add(made));
    return Result::success;
  });
}

Result cuEventDestroy_v2(abi::Event event) {
  return call<"cuEventDestroy_v2", Needs::context, Failing::afterwards>([&](const ContextPtr&) {
    return Driver::instance().events.remove(bits(event)) == nullptr ? Result::invalid_handle : Result::success;
  });
}

Result cuEventRecord(abi::Event event, abi::Stream stream) {
  return call<"cuEventRecord">([&](const ContextPtr& context) {
    const auto found = find_event(event);
    const auto on = find_stream(context, stream);
    if (found == nullptr || on == nullptr || found->context != context) return Result::invalid_handle;
    auto time = std::make_shared<std::chrono::steady_clock::time_point>();
    const TaskPtr task = context->submit(*on, [time] { *time = std::chrono::steady_clock::now(); });
    const std::lock_guard lock(found->mutex);
    found->task = task;
    found->time = std::move(time);
    return Result::success;
  });
}

Result cuEventQuery(abi::Event event) {
  return call<"cuEventQuery">([&](const ContextPtr&) {
    const auto found = find_event(event);
    if (found == nullptr) return Result::invalid_handle;
    const bool done = found->context->queue.query(task_of(*found));
    if (found->context->state() != Result::success) return found->context->state();
    return done ? Result::success : Result::not_ready;
  });
}

Result cuEventSynchronize(abi::Event event) {
  return call<"cuEventSynchronize">([&](const ContextPtr&) {
    const auto found = find_event(event);
    if (found == nullptr) return Result::invalid_handle;
    found->context->queue.wait(task_of(*found));
    return found->context->state();
  });
}

Result cuEventElapsedTime(float* milliseconds, abi::Event start, abi::Event end) {
  return call<"cuEventElapsedTime">([&](const ContextPtr&) { return elapsed(milliseconds, start, end); });
}

Result cuEventElapsedTime_v2(float* milliseconds, abi::Event start, abi::Event end) {
  return call<"cuEventElapsedTime_v2">([&](const ContextPtr&) { return elapsed(milliseconds, start, end); });
}
}
#pragma GCC visibility pop
