// cuda/memory.cpp -- the CUDA driver stand-in: memory, copies and fills, with the synchronization that the driver's manual documents for
// each.
#include <cstring>
#include <optional>

#include "driver.h"

namespace sim::cuda {
namespace {

constexpr std::size_t staged_copy = 65536;

std::string hexadecimal(std::uintptr_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%lx", value);
  return text;
}

Result refuse(const char* function, const std::string& what) {
  Control::instance().report(std::string(function) + ": " + what);
  return Result::invalid_value;
}

// Whether all the bytes lie in one live allocation that a device can address; reports if not.
bool device_range(const char* function, std::uintptr_t address, std::size_t size) {
  const std::optional<Allocation> found = Memory::instance().find(address);
  if (found && found->contains(address, size)) return true;
  const std::uintptr_t wrong = found ? found->start + found->size : address;
  refuse(function, std::to_string(size) + " bytes at the device address " + hexadecimal(address) + ": " + hexadecimal(wrong) + " is " +
                       Memory::instance().describe(wrong));
  return false;
}

bool host_range(const char* function, const void* pointer) {
  const auto address = address_of(pointer);
  if (pointer != nullptr && !Memory::instance().is_device_address(address)) return true;
  refuse(function, "the host address " + hexadecimal(address) + " is " + Memory::instance().describe(address));
  return false;
}

// Whether it is memory of the driver's.
bool known(std::uintptr_t address) { return Memory::instance().is_device_address(address) || Memory::instance().find(address).has_value(); }

bool pinned(const void* pointer) {
  const std::optional<Allocation> found = Memory::instance().find(address_of(pointer));
  return found && found->kind == MemoryKind::pinned;
}

void move(std::uintptr_t to, std::uintptr_t from, std::size_t size) {
  const Memory::Opened source(Memory::instance(), from), target(Memory::instance(), to);
  std::memmove(pointer_to(to), pointer_to<const void>(from), size);
}

Result copy_in(const char* function, const ContextPtr& context, Stream* stream, abi::DevicePointer to, const void* from, std::size_t size) {
  if (stream == nullptr) return Result::invalid_handle;
  if (size == 0) return Result::success;
  if (!device_range(function, to, size) || !host_range(function, from)) return Result::invalid_value;
  if (pinned(from)) {
    context->submit(*stream, [=] { move(to, address_of(from), size); });
    return Result::success;
  }
  // From pageable memory: the source is taken at the call.
  auto staged = std::make_shared<std::vector<char>>(static_cast<const char*>(from), static_cast<const char*>(from) + size);
  context->submit(*stream, [=] { move(to, address_of(staged->data()), size); });
  return Result::success;
}

Result copy_out(const char* function, const ContextPtr& context, Stream* stream, void* to, abi::DevicePointer from, std::size_t size) {
  if (stream == nullptr) return Result::invalid_handle;
  if (size == 0) return Result::success;
  if (!device_range(function, from, size) || !host_range(function, to)) return Result::invalid_value;
  const TaskPtr task = context->submit(*stream, [=] { move(address_of(to), from, size); });
  if (pinned(to)) return Result::success;
  context->queue.wait(task);  // to pageable memory: the call returns when the copy is complete
  return context->state();
}

Result copy_within(const char* function, const ContextPtr& context, Stream* stream, abi::DevicePointer to, abi::DevicePointer from,
                   std::size_t size) {
  if (stream == nullptr) return Result::invalid_handle;
  if (size == 0) return Result::success;
  if (!device_range(function, to, size) || !device_range(function, from, size)) return Result::invalid_value;
  context->submit(*stream, [=] { move(to, from, size); });
  return Result::success;
}

// Waits for the legacy default stream, as the synchronous forms do.
Result finish(const ContextPtr& context) {
  context->queue.wait(context->queue.mark(*context->queue.legacy()));
  return context->state();
}

template <class T>
Result fill(const char* function, const ContextPtr& context, Stream* stream, abi::DevicePointer to, std::size_t pitch, T value,
            std::size_t width, std::size_t height) {
  if (stream == nullptr) return Result::invalid_handle;
  if (width == 0 || height == 0) return Result::success;
  if (to % sizeof(T) != 0 || pitch % sizeof(T) != 0) return refuse(function, hexadecimal(to) + " is not aligned to the value's size");
  if (!device_range(function, to, pitch * (height - 1) + width * sizeof(T))) return Result::invalid_value;
  context->submit(*stream, [=] {
    const Memory::Opened opened(Memory::instance(), to);
    for (std::size_t row = 0; row < height; ++row) {
      T* first = pointer_to<T>(to + row * pitch);
      for (std::size_t i = 0; i < width; ++i) first[i] = value;
    }
  });
  return Result::success;
}

Result allocate_pinned(const ContextPtr& context, void** pointer, std::size_t size) {
  if (pointer == nullptr || size == 0) return Result::invalid_value;
  const std::uintptr_t start = Memory::instance().allocate_pinned(size);
  if (start == 0) return Result::out_of_memory;
  const std::lock_guard lock(context->mutex);
  context->pinned.insert(start);
  *pointer = pointer_to(start);
  return Result::success;
}

}  // namespace
}  // namespace sim::cuda

using namespace sim;
using namespace sim::cuda;

#pragma GCC visibility push(default)
extern "C" {

Result cuMemAlloc_v2(abi::DevicePointer* pointer, std::size_t size) {
  return call<"cuMemAlloc_v2">([&](const ContextPtr& context) {
    if (pointer == nullptr || size == 0) return Result::invalid_value;
    const std::uintptr_t start = Memory::instance().allocate(context->device, size);
    if (start == 0) return Result::out_of_memory;
    const std::lock_guard lock(context->mutex);
    context->memory.insert(start);
    *pointer = start;
    return Result::success;
  });
}

// Waits for all queued work, as the driver does for memory of cuMemAlloc.
Result cuMemFree_v2(abi::DevicePointer pointer) {
  return call<"cuMemFree_v2", Needs::context, Failing::afterwards>([&](const ContextPtr& context) {
    if (pointer == 0) return Result::success;
    if (context->state() == Result::success) context->queue.wait_all();
    if (!Memory::instance().free(pointer, MemoryKind::device)) {
      return refuse("cuMemFree_v2",
                    hexadecimal(pointer) + " is " + Memory::instance().describe(pointer) + ", and no allocation starts there");
    }
    const std::lock_guard lock(context->mutex);
    context->memory.erase(pointer);
    return context->state();
  });
}

Result cuMemAllocHost_v2(void** pointer, std::size_t size) {
  return call<"cuMemAllocHost_v2">([&](const ContextPtr& context) { return allocate_pinned(context, pointer, size); });
}

Result cuMemHostAlloc(void** pointer, std::size_t size, unsigned) {
  return call<"cuMemHostAlloc">([&](const ContextPtr& context) { return allocate_pinned(context, pointer, size); });
}

Result cuMemFreeHost(void* pointer) {
  return call<"cuMemFreeHost", Needs::context, Failing::afterwards>([&](const ContextPtr& context) {
    if (context->state() == Result::success) context->queue.wait_all();
    if (!Memory::instance().free(address_of(pointer), MemoryKind::pinned)) {
      return refuse("cuMemFreeHost", hexadecimal(address_of(pointer)) + " is no pinned allocation");
    }
    const std::lock_guard lock(context->mutex);
    context->pinned.erase(address_of(pointer));
    return context->state();
  });
}

Result cuMemHostGetDevicePointer_v2(abi::DevicePointer* pointer, void* host, unsigned) {
  return call<"cuMemHostGetDevicePointer_v2">([&](const ContextPtr&) {
    if (pointer == nullptr || !pinned(host)) return Result::invalid_value;
    *pointer = address_of(host);
    return Result::success;
  });
}

Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return call<"cuMemGetInfo_v2">([&](const ContextPtr& context) {
    if (free == nullptr || total == nullptr) return Result::invalid_value;
    *total = settings().memory;
    *free = settings().memory - Memory::instance().used(context->device);
    return Result::success;
  });
}

Result cuMemGetAddressRange_v2(abi::DevicePointer* base, std::size_t* size, abi::DevicePointer pointer) {
  return call<"cuMemGetAddressRange_v2">([&](const ContextPtr&) {
    const std::optional<Allocation> found = Memory::instance().find(pointer);
    if (!found || found->kind != MemoryKind::device) return Result::not_found;
    if (base != nullptr) *base = found->start;
    if (size != nullptr) *size = found->size;
    return Result::success;
  });
}

// Pointer attributes by number: CUpointer_attribute in the driver's manual.
Result cuPointerGetAttribute(void* data, int attribute, abi::DevicePointer pointer) {
  return call<"cuPointerGetAttribute", Needs::driver>([&](const ContextPtr&) {
    const std::optional<Allocation> found = Memory::instance().find(pointer);
    if (data == nullptr || !found) return Result::invalid_value;
    const bool on_device = found->kind == MemoryKind::device;
    switch (attribute) {
      case 2:
        *static_cast<unsigned*>(data) = on_device ? 2 : 1;
        return Result::success;  // memory type
      case 3:
        *static_cast<abi::DevicePointer*>(data) = pointer;
        return Result::success;  // as the device sees it
      case 4:                    // as the host sees it
        if (on_device) return Result::invalid_value;
        *static_cast<void**>(data) = pointer_to(pointer);
        return Result::success;
      case 8:
        *static_cast<unsigned*>(data) = 0;
        return Result::success;  // managed
      case 9:
        *static_cast<int*>(data) = on_device ? found->device : 0;
        return Result::success;
      case 11:
        *static_cast<abi::DevicePointer*>(data) = found->start;
        return Result::success;
      case 12:
        *static_cast<std::size_t*>(data) = found->size;
        return Result::success;
      default:
        return Result::invalid_value;
    }
  });
}

Result cuMemcpyHtoD_v2(abi::DevicePointer to, const void* from, std::size_t size) {
  return call<"cuMemcpyHtoD_v2">([&](const ContextPtr& context) {
    const Result waited = finish(context);
    if (waited != Result::success) return waited;
    const Result queued = copy_in("cuMemcpyHtoD_v2", context, context->queue.legacy().get(), to, from, size);
    // Small copies from pageable memory may still be under way when the call returns.
    if (queued != Result::success || (size <= staged_copy && !pinned(from))) return queued;
    return finish(context);
  });
}

Result cuMemcpyDtoH_v2(void* to, abi::DevicePointer from, std::size_t size) {
  return call<"cuMemcpyDtoH_v2">([&](const ContextPtr& context) {
    const Result queued = copy_out("cuMemcpyDtoH_v2", context, context->queue.legacy().get(), to, from, size);
    return queued == Result::success ? finish(context) : queued;
  });
}

Result cuMemcpyDtoD_v2(abi::DevicePointer to, abi::DevicePointer from, std::size_t size) {
  return call<"cuMemcpyDtoD_v2">(
      [&](const ContextPtr& context) { return copy_within("cuMemcpyDtoD_v2", context, context->queue.legacy().get(), to, from, size); });
}

// Between any two of host and device: the addresses say which.
Result cuMemcpyAsync(abi::DevicePointer to, abi::DevicePointer from, std::size_t size, abi::Stream stream) {
  return call<"cuMemcpyAsync">([&](const ContextPtr& context) {
    const auto on = find_stream(context, stream);
    if (!known(to)) return copy_out("cuMemcpyAsync", context, on.get(), pointer_to(to), from, size);
    if (!known(from)) return copy_in("cuMemcpyAsync", context, on.get(), to, pointer_to(from), size);
    return copy_within("cuMemcpyAsync", context, on.get(), to, from, size);
  });
}

Result cuMemcpyHtoDAsync_v2(abi::DevicePointer to, const void* from, std::size_t size, abi::Stream stream) {
  return call<"cuMemcpyHtoDAsync_v2">([&](const ContextPtr& context) {
    return copy_in("cuMemcpyHtoDAsync_v2", context, find_stream(context, stream).get(), to, from, size);
  });
}

Result cuMemcpyDtoHAsync_v2(void* to, abi::DevicePointer from, std::size_t size, abi::Stream stream) {
  return call<"cuMemcpyDtoHAsync_v2">([&](const ContextPtr& context) {
    return copy_out("cuMemcpyDtoHAsync_v2", context, find_stream(context, stream).get(), to, from, size);
  });
}

Result cuMemcpyDtoDAsync_v2(abi::DevicePointer to, abi::DevicePointer from, std::size_t size, abi::Stream stream) {
  return call<"cuMemcpyDtoDAsync_v2">([&](const ContextPtr& context) {
    return copy_within("cuMemcpyDtoDAsync_v2", context, find_stream(context, stream).get(), to, from, size);
  });
}

Result cuMemsetD8_v2(abi::DevicePointer to, unsigned char value, std::size_t n) {
  return call<"cuMemsetD8_v2">([&](const ContextPtr& c) { return fill("cuMemsetD8_v2", c, c->queue.legacy().get(), to, 0, value, n, 1); });
}
Result cuMemsetD16_v2(abi::DevicePointer to, unsigned short value, std::size_t n) {
  return call<"cuMemsetD16_v2">(
      [&](const ContextPtr& c) { return fill("cuMemsetD16_v2", c, c->queue.legacy().get(), to, 0, value, n, 1); });
}
Result cuMemsetD32_v2(abi::DevicePointer to, unsigned value, std::size_t n) {
  return call<"cuMemsetD32_v2">(
      [&](const ContextPtr& c) { return fill("cuMemsetD32_v2", c, c->queue.legacy().get(), to, 0, value, n, 1); });
}
Result cuMemsetD8Async(abi::DevicePointer to, unsigned char value, std::size_t n, abi::Stream s) {
  return call<"cuMemsetD8Async">(
      [&](const ContextPtr& c) { return fill("cuMemsetD8Async", c, find_stream(c, s).get(), to, 0, value, n, 1); });
}
Result cuMemsetD16Async(abi::DevicePointer to, unsigned short value, std::size_t n, abi::Stream s) {
  return call<"cuMemsetD16Async">(
      [&](const ContextPtr& c) { return fill("cuMemsetD16Async", c, find_stream(c, s).get(), to, 0, value, n, 1); });
}
Result cuMemsetD32Async(abi::DevicePointer to, unsigned value, std::size_t n, abi::Stream s) {
  return call<"cuMemsetD32Async">(
      [&](const ContextPtr& c) { return fill("cuMemsetD32Async", c, find_stream(c, s).get(), to, 0, value, n, 1); });
}
Result cuMemsetD2D8Async(abi::DevicePointer to, std::size_t pitch, unsigned char value, std::size_t width, std::size_t height,
                         abi::Stream s) {
  return call<"cuMemsetD2D8Async">(
      [&](const ContextPtr& c) { return fill("cuMemsetD2D8Async", c, find_stream(c, s).get(), to, pitch, value, width, height); });
}
Result cuMemsetD2D16Async(abi::DevicePointer to, std::size_t pitch, unsigned short value, std::size_t width, std::size_t height,
                          abi::Stream s) {
  return call<"cuMemsetD2D16Async">(
      [&](const ContextPtr& c) { return fill("cuMemsetD2D16Async", c, find_stream(c, s).get(), to, pitch, value, width, height); });
}
Result cuMemsetD2D32Async(abi::DevicePointer to, std::size_t pitch, unsigned value, std::size_t width, std::size_t height, abi::Stream s) {
  return call<"cuMemsetD2D32Async">(
      [&](const ContextPtr& c) { return fill("cuMemsetD2D32Async", c, find_stream(c, s).get(), to, pitch, value, width, height); });
}
}
#pragma GCC visibility pop
