// core/device.cpp -- Device: its kernels (compiled once, found again on disk) and its memory.
#include "tack/device.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/device_data.h"
#include "core/kernel_source_io.h"
#include "core/text.h"
#include "tack/tack.h"

namespace tack {

namespace {

/// What a front entry of the disk cache holds: all of a kernel but its text, and where its binary lies.
std::string front_key(const KernelKey& key) { return "front:" + key.digest; }
std::string binary_key(const std::string& content) { return "binary:" + content; }

/// Names a binary by everything that it was made of.
std::string content_digest(const KernelSource& source, std::string_view compiler) {
  const std::string abi = text(TACK_ABI_VERSION);
  const std::array<std::string_view, 7> parts{"tack binary", abi, source.target, source.arch, source.options, compiler, source.text};
  return digest(parts);
}

/// Names a kernel that has no key of a front end's: one binary may serve kernels with different tables.
std::string whole_digest(const KernelSource& source, std::string_view content) {
  const std::vector<std::byte> bytes = write_kernel_source(source);
  const std::array<std::string_view, 3> parts{"tack kernel", content, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
  return digest(parts);
}

}  // namespace

Device::Device(std::unique_ptr<Data> data, std::unique_ptr<DeviceImpl> impl)
    : data_(std::move(data)), impl_(std::move(impl)), queue_(new Queue(*impl_, data_->runtime.impl().log, data_->name)) {}

Device::~Device() {
  queue_->close();
  data_.reset();  // with the allocator, which gives its memory back through impl_
}

const std::string& Device::type() const noexcept { return data_->type; }
int Device::index() const noexcept { return data_->index; }
const std::string& Device::name() const noexcept { return data_->name; }
const DeviceOptions& Device::options() const noexcept { return data_->options; }
const Capabilities& Device::capabilities() const noexcept { return impl_->capabilities(); }
std::uint32_t Device::memory_id() const noexcept { return data_->memory_id; }
std::uint64_t Device::compiled() const noexcept { return data_->compiled.load(std::memory_order_relaxed); }
std::uint64_t Device::loaded() const noexcept { return data_->loaded.load(std::memory_order_relaxed); }
MemoryStatistics Device::memory() const { return data_->allocator.statistics(); }
bool Device::addresses(const void* pointer, std::size_t bytes) const noexcept { return impl_->addresses(pointer, bytes); }
MemoryHandle Device::handle_of(const void* pointer) const { return impl_->handle_of(pointer); }

std::shared_ptr<void> Device::adopt(void* object) {
  std::shared_ptr<void> memory = impl_->adopt(object);
  void* const address = memory.get();
  // The memory's end comes before the device's.
  return {address, [device = shared_from_this(), memory = std::move(memory)](void*) mutable { memory.reset(); }};
}

void Device::wait_for_stream(std::uintptr_t stream) {
  queue_->attributed([&] { impl_->wait_for_stream(stream); });
}
std::uint64_t Device::trim() { return data_->allocator.trim(); }
void Device::set_memory_limit(std::uint64_t bytes) { data_->allocator.set_limit(bytes); }
Allocator& Device::allocator() noexcept { return data_->allocator; }

std::shared_ptr<Runtime> Device::runtime() const { return data_->runtime.shared_from_this(); }
std::shared_ptr<Device> Device::shared_from_this() { return {runtime(), this}; }
std::weak_ptr<Device> Device::weak_from_this() { return shared_from_this(); }

void Device::synchronize() { queue_->synchronize(); }

std::shared_ptr<Kernel> Device::load(const KernelKey& key) {
  if (key.digest.empty()) return nullptr;
  {
    const std::lock_guard lock(data_->mutex);
    const auto found = data_->kernels.find(key.digest);
    if (found != data_->kernels.end())
      if (std::shared_ptr<Kernel> kernel = found->second.lock()) return kernel;
  }
  RuntimeImpl& runtime = data_->runtime.impl();
  const std::optional<std::vector<std::byte>> front = runtime.cache.get(front_key(key));
  if (!front) return nullptr;
  try {
    FrontEntry entry = read_front_entry(*front);
    // A newer compiler, another tack or another machine's folder: not this kernel.
    if (entry.compiler != data_->backend.compiler_version(runtime) || entry.source.target != type() ||
        entry.source.arch != capabilities().arch)
      return nullptr;
    const std::optional<std::vector<std::byte>> binary = runtime.cache.get(binary_key(entry.content));
    if (!binary) return nullptr;
    std::unique_ptr<ModuleImpl> module = queue_->attributed([&] { return impl_->load(*binary, entry.source); });
    data_->loaded.fetch_add(1, std::memory_order_relaxed);
    const std::string name = entry.source.name;
    const std::shared_ptr<Kernel> kernel = data_->adopt(*this, key.digest, std::move(entry.source), std::move(module), true);
    if (runtime.log.enabled(LogLevel::info))
      runtime.log.write(LogLevel::info, text("Kernel '", name, "' loaded from the disk cache for '", this->name(), "'."));
    return kernel;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    // A damaged entry is as good as none; the build that follows writes it anew.
    runtime.log.write(LogLevel::warning, text("An entry of the disk cache is damaged and is made anew: ", error.what()));
    return nullptr;
  }
}

std::shared_ptr<Kernel> Device::build(const KernelSource& source, const KernelKey& key) {
  if (source.target != type())
    throw Error(ErrorCode::invalid_argument,
                text("Kernel '", source.name, "' was printed for '", source.target, "' and cannot be built on '", name(), "'."));
  validate(source, ErrorCode::invalid_argument);
  const std::string compiler = data_->backend.compiler_version(data_->runtime.impl());
  const std::string content = content_digest(source, compiler);
  const std::string once = key.digest.empty() ? whole_digest(source, content) : key.digest;

  for (;;) {
    std::shared_ptr<Build> build;
    bool mine = false;
    {
      const std::lock_guard lock(data_->mutex);
      const auto found = data_->kernels.find(once);
      if (found != data_->kernels.end())
        if (std::shared_ptr<Kernel> kernel = found->second.lock()) return kernel;
      std::shared_ptr<Build>& slot = data_->building[once];
      if (!slot) {
        slot = std::make_shared<Build>();
        mine = true;
      }
      build = slot;
    }
    if (!mine) {
      std::unique_lock lock(build->mutex);
      build->changed.wait(lock, [&] { return build->done; });
      if (build->kernel) return build->kernel;
      // What the compiler refuses it refuses again. Anything else (an interrupt, no memory) was that thread's: this one tries itself.
      try {
        std::rethrow_exception(build->error);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::compile || error.code() == ErrorCode::unavailable || error.code() == ErrorCode::unsupported) throw;
      } catch (...) {
        continue;
      }
      continue;
    }

    std::shared_ptr<Kernel> kernel;
    std::exception_ptr error;
    try {
      kernel = data_->build_now(*this, source, key, once, content, compiler);
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(data_->mutex);
      data_->building.erase(once);
    }
    {
      const std::lock_guard lock(build->mutex);
      build->done = true;
      build->kernel = kernel;
      build->error = error;
    }
    build->changed.notify_all();
    if (error) std::rethrow_exception(error);
    return kernel;
  }
}

std::shared_ptr<Kernel> Device::Data::build_now(Device& device, const KernelSource& source, const KernelKey& key, const std::string& once,
                                                const std::string& content, const std::string& compiler) {
  RuntimeImpl& owner = runtime.impl();
  std::unique_ptr<ModuleImpl> module;
  bool from_cache = false;
  if (const std::optional<std::vector<std::byte>> binary = owner.cache.get(binary_key(content))) {
    try {
      module = device.queue_->attributed([&] { return device.impl_->load(*binary, source); });
      from_cache = true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::corrupt) throw;
      owner.log.write(LogLevel::warning, text("A binary in the disk cache is damaged and is compiled anew: ", error.what()));
    }
  }
  if (!module) {
    const std::vector<std::byte> binary = backend.compile(owner, source);
    module = device.queue_->attributed([&] { return device.impl_->load(binary, source); });
    owner.cache.put(binary_key(content), binary);
  }
  (from_cache ? loaded : compiled).fetch_add(1, std::memory_order_relaxed);
  if (!key.digest.empty()) owner.cache.put(front_key(key), write_front_entry(source, content, compiler));
  if (owner.log.enabled(LogLevel::info))
    owner.log.write(LogLevel::info,
                    text("Kernel '", source.name, "' ", from_cache ? "loaded from the disk cache" : "compiled", " for '", name, "'."));
  return adopt(device, once, source, std::move(module), from_cache);
}

std::shared_ptr<Kernel> Device::Data::adopt(Device& device, const std::string& once, KernelSource source,
                                            std::unique_ptr<ModuleImpl> module, bool from_cache) {
  // The constructor is private to Kernel and Device, which make_shared is not.
  std::shared_ptr<Kernel> kernel(new Kernel(device.shared_from_this(), std::move(source), std::move(module), from_cache));
  const std::lock_guard lock(mutex);
  std::erase_if(kernels, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Kernel>& slot = kernels[once];
  if (std::shared_ptr<Kernel> other = slot.lock()) return other;
  slot = kernel;
  return kernel;
}

}  // namespace tack
