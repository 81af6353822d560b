// core/buffer.cpp -- Buffer: memory from the device's allocator, or somebody else's.
#include <exception>
#include <utility>

#include "core/allocator.h"
#include "core/runtime_impl.h"
#include "core/text.h"
#include "tack/array.hpp"

namespace tack {

std::shared_ptr<Buffer> Buffer::allocate(std::shared_ptr<Device> device, std::size_t bytes) {
  struct Access : Buffer {};  // the constructor is private; this way object and count are one allocation
  // First the object, then the memory, so that nothing is lost when either fails.
  const std::shared_ptr<Buffer> buffer = std::make_shared<Access>();
  const Allocator::Block block = device->queue().attributed([&] { return device->allocator().allocate(bytes); });
  buffer->pointer_ = block.pointer;
  buffer->allocator_class_ = block.size_class;
  buffer->bytes_ = bytes;
  buffer->device_ = std::move(device);
  return buffer;
}

std::shared_ptr<Buffer> Buffer::wrap(std::shared_ptr<Device> device, void* pointer, std::size_t bytes, std::function<void()> release,
                                     bool shared) {
  if (pointer == nullptr && bytes != 0)
    throw Error(ErrorCode::invalid_argument, text("A null pointer cannot be wrapped as ", bytes, " bytes on '", device->name(), "'."));
  struct Access : Buffer {};
  const std::shared_ptr<Buffer> buffer = std::make_shared<Access>();
  buffer->pointer_ = pointer;
  buffer->bytes_ = bytes;
  buffer->release_ = std::move(release);
  buffer->shared_ = shared;
  buffer->wrapped_ = true;
  buffer->device_ = std::move(device);
  return buffer;
}

Buffer::~Buffer() {
  if (!device_) return;
  if (!wrapped_) {
    device_->allocator().free({pointer_, allocator_class_});
    return;
  }
  if (!release_) return;
  try {
    release_();
  } catch (const std::exception& error) {
    device_->runtime()->impl().log.write(LogLevel::error, std::string("The owner of wrapped memory failed to release it: ") + error.what());
  } catch (...) {
    device_->runtime()->impl().log.write(LogLevel::error, "The owner of wrapped memory failed to release it.");
  }
}

}  // namespace tack
