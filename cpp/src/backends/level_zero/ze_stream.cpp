// backends/level_zero/ze_stream.cpp -- contexts, memory, and commands in order: by the driver's own promise, or by barriers where the
// driver is too old to make it.
#include "backends/level_zero/ze_stream.h"

#include <vector>

namespace tack::level_zero {

namespace {

constexpr std::uint32_t in_order_since = abi::version(1, 9);
constexpr std::size_t alignment = 256;

}  // namespace

Context::Context(const Driver& driver, Log& log, const Gpu& gpu, abi::Context adopted)
    : driver_(driver), log_(log), gpu_(gpu), handle_(adopted), ours_(adopted == nullptr) {
  const abi::ContextDesc desc;
  if (ours_) driver("make a context", driver.context_create, gpu.driver, &desc, &handle_);
}

Context::~Context() {
  if (ours_) driver_.release(log_, "destroy its context", driver_.context_destroy, handle_);
}

void Context::require_memory(std::string_view what, abi::Result result, const char* symbol) const {
  if (result == abi::Result::success) return;
  Error::Fields fields = driver_.error_of(what, result, symbol).fields();
  // More than the GPU has is called a size that it does not support.
  if (result == abi::Result::unsupported_size || result == abi::Result::out_of_host_memory) fields.code = ErrorCode::out_of_memory;
  throw Error(std::move(fields));
}

void* Context::allocate_device(std::size_t bytes, std::uint64_t usual_limit) const {
  abi::RelaxedLimitsDesc beyond;
  beyond.flags = abi::relaxed_max_size;
  abi::DeviceMemoryDesc desc;
  if (bytes > usual_limit) desc.next = &beyond;
  void* pointer = nullptr;
  const abi::Result result = driver_.allocate_device(handle_, &desc, bytes, alignment, gpu_.device, &pointer);
  require_memory("allocate memory", result, driver_.allocate_device.symbol);
  return pointer;
}

void* Context::allocate_host(std::size_t bytes) const {
  const abi::HostMemoryDesc desc;
  void* pointer = nullptr;
  const abi::Result result = driver_.allocate_host(handle_, &desc, bytes, alignment, &pointer);
  require_memory("allocate memory", result, driver_.allocate_host.symbol);
  return pointer;
}

abi::Image Context::make_image(const abi::ImageDesc& desc) const {
  abi::Image image = nullptr;
  require_memory("make a texture", driver_.image_create(handle_, gpu_.device, &desc, &image), driver_.image_create.symbol);
  return image;
}

void Context::free(void* pointer) const noexcept { driver_.release(log_, "free memory", driver_.memory_free, handle_, pointer); }

Stream::Stream(const Context& context) : context_(context) {
  const abi::QueueDesc desc = describe_queue(context.gpu_);
  driver()("make a command list", driver().list_create, context.handle(), context.device(), &desc, &list_);
  try {
    abi::EventPoolDesc pool;
    pool.flags = abi::event_pool_host_visible;
    pool.count = max_events;
    abi::Device device = context.device();
    driver()("make events", driver().event_pool_create, context.handle(), &pool, 1u, &device, &pool_);
    all_ = create_event();
  } catch (...) {
    if (pool_ != nullptr) driver().release(context.log(), "destroy events", driver().event_pool_destroy, pool_);
    driver().release(context.log(), "destroy a command list", driver().list_destroy, list_);
    throw;
  }
}

Stream::~Stream() {
  destroy_event(all_);
  driver().release(context_.log(), "destroy events", driver().event_pool_destroy, pool_);
  driver().release(context_.log(), "destroy a command list", driver().list_destroy, list_);
}

/// The first queue that can compute.
abi::QueueDesc Stream::describe_queue(const Gpu& gpu) {
  std::uint32_t count = 0;
  driver()("count the kinds of queues", driver().queue_groups, gpu.device, &count, nullptr);
  std::vector<abi::QueueGroupProperties> groups(count);
  driver()("list the kinds of queues", driver().queue_groups, gpu.device, &count, groups.data());
  abi::QueueDesc desc;
  while (desc.ordinal < count && (groups[desc.ordinal].flags & abi::queue_group_compute) == 0) ++desc.ordinal;
  if (desc.ordinal == count) throw Api::unavailable("The driver has no queue for the GPU that runs kernels.");
  desc.mode = abi::queue_asynchronous;
  std::uint32_t version = 0;
  driver()("ask for the driver's version", driver().api_version, gpu.driver, &version);
  barriers_ = version < in_order_since;
  if (!barriers_) desc.flags = abi::queue_in_order;
  return desc;
}

/// What is appended next begins when all before is done.
void Stream::in_order() {
  if (barriers_) driver()("keep its work in order", driver().append_barrier, list_, nullptr, 0u, nullptr);
}

void Stream::copy(std::string_view what, void* destination, const void* source, std::size_t bytes, abi::Event done) {
  const std::lock_guard lock(mutex_);
  in_order();
  driver()(what, driver().append_copy, list_, destination, source, bytes, done, 0u, nullptr);
}

void Stream::fill(void* destination, const void* element, std::size_t size, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  in_order();
  driver()("fill memory", driver().append_fill, list_, destination, element, size, bytes, nullptr, 0u, nullptr);
}

void Stream::copy_to_image(abi::Image image, const void* texels, const abi::ImageRegion& region) {
  const std::lock_guard lock(mutex_);
  in_order();
  driver()("copy to a texture", driver().append_image_copy, list_, image, texels, &region, nullptr, 0u, nullptr);
}

void Stream::finish() {
  const std::lock_guard turn(finishing_);
  const auto settle = [&] {
    wait("finish queued work", all_);
    awaited_ = false;
  };
  if (awaited_) settle();  // an earlier wait has failed: that signal may be still to come
  {
    const std::lock_guard lock(mutex_);
    driver()("finish queued work", driver().append_barrier, list_, all_, 0u, nullptr);
  }
  awaited_ = true;
  settle();
}

abi::Event Stream::create_event() {
  const std::lock_guard lock(mutex_);
  abi::EventDesc desc;
  desc.index = events_;
  desc.signal = desc.wait = abi::event_scope_host;
  abi::Event event = nullptr;
  driver()("make an event", driver().event_create, pool_, &desc, &event);
  ++events_;
  return event;
}

void Stream::destroy_event(abi::Event event) const noexcept {
  driver().release(context_.log(), "destroy an event", driver().event_destroy, event);
}

void Stream::wait(std::string_view what, abi::Event event) const {
  driver()(what, driver().event_synchronize, event, abi::no_timeout);
  driver()("use an event again", driver().event_reset, event);
}

}  // namespace tack::level_zero
