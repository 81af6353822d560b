// backends/level_zero/ze_device.cpp -- what a GPU says that it can do; memory, copies and launches on its queue.
#include "backends/level_zero/ze_device.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "backends/gpu/device.h"
#include "backends/level_zero/ze_module.h"
#include "backends/level_zero/ze_texture.h"
#include "core/text.h"

namespace tack::level_zero {

namespace {

constexpr DTypeSet bit_of(DType type) noexcept {
  DTypeSet bit = 0;
  for (std::size_t i = 0; i < array_dtypes.size(); ++i)
    if (array_dtypes[i] == type) bit = static_cast<DTypeSet>(1u << i);
  return bit;
}

/// "0x1912", as ocloc takes it.
std::string hexadecimal(std::uint32_t number) {
  std::array<char, 8> digits{};
  const auto [end, error] = std::to_chars(digits.begin(), digits.end(), number, 16);
  return text("0x", std::string_view(digits.begin(), end));
}

}  // namespace

Capabilities capabilities_of(bool f64) {
  Capabilities can = gpu::usual_capabilities();
  can.supports_f64 = f64;
  if (!f64) can.array_dtypes = static_cast<DTypeSet>(can.array_dtypes & ~bit_of(tack::f64));
  can.atomic_dtypes = static_cast<DTypeSet>(bit_of(i32) | bit_of(u32) | bit_of(f32));
  return can;
}

Device::Device(const Driver& driver, Log& log, const Gpu& gpu, abi::Context adopted)
    : context_(driver, log, gpu, adopted), stream_(context_), uploads_(stream_), downloads_(stream_) {
  ask();
}

Device::~Device() {
  uploads_.release();
  downloads_.release();
}

void Device::ask() {
  constexpr std::string_view what = "ask the device what it can do";
  abi::DeviceProperties properties;
  abi::ComputeProperties compute;
  abi::ModuleProperties modules;
  abi::ImageProperties images;
  driver()(what, driver().device_properties, context_.device(), &properties);
  driver()(what, driver().compute_properties, context_.device(), &compute);
  driver()(what, driver().module_properties, context_.device(), &modules);
  driver()(what, driver().image_properties, context_.device(), &images);
  capabilities_ = capabilities_of((modules.flags & abi::module_flag_fp64) != 0);
  capabilities_.arch = hexadecimal(properties.device_id);
  capabilities_.device_name = properties.name;
  capabilities_.supports_images = images.max_samplers != 0 && images.max_3d != 0;
  if (capabilities_.supports_images) capabilities_.max_image.fill(images.max_3d);
  capabilities_.f32_denormals = (modules.fp32_flags & abi::fp_flag_denorm) != 0;
  capabilities_.max_group = std::min(compute.max_group, compute.max_group_x);
  if (capabilities_.max_group == 0) throw Api::unavailable(text("The driver says that no group of ", properties.name, " has a thread."));
  capabilities_.block = std::min(capabilities_.block, capabilities_.max_group);
  capabilities_.shared_bytes = compute.shared_bytes;
  capabilities_.max_iterations = std::uint64_t{compute.max_groups_x} * capabilities_.block;
  usual_limit_ = properties.max_allocation;
}

void* Device::allocate(std::size_t bytes) { return context_.allocate_device(bytes, usual_limit_); }

void Device::free(void* pointer, std::size_t /*bytes*/) noexcept {
  try {
    stream_.finish();  // queued work may still use it
  } catch (const Error& error) {
    Driver::log_failure(context_.log(), error);
    if (!error.fields().queued) return;  // it may be in use for all that is known: better lost than overwritten
  }
  context_.free(pointer);
}

void Device::upload(void* destination, const void* source, std::size_t bytes) { uploads_.upload(destination, source, bytes); }

void Device::download(void* destination, const void* source, std::size_t bytes) { downloads_.download(destination, source, bytes); }

void Device::copy(void* destination, const void* source, std::size_t bytes) {
  if (bytes != 0) stream_.copy("copy on the device", destination, source, bytes);
}

void Device::fill(void* destination, const void* element, std::size_t size, std::size_t count) {
  if (count != 0) stream_.fill(destination, element, size, size * count);
}

std::unique_ptr<TextureImpl> Device::make_texture(std::array<std::size_t, 3> shape, Sampling sampling) {
  return std::make_unique<Texture>(context_, stream_, shape, sampling);
}

std::unique_ptr<ModuleImpl> Device::load(std::span<const std::byte> binary, const KernelSource& source) {
  return std::make_unique<Module>(context_, binary, source, capabilities_);
}

void Device::launch(const LaunchCommand& command) {
  const Module::Entry& entry = static_cast<const Module*>(command.module)->entry(command.entry);
  stream_.launch(entry.kernel, {static_cast<std::uint32_t>(entry.groups.count(command.iterations))}, [&](abi::Kernel kernel) {
    std::uint32_t number = 0;
    const auto give = [&](std::size_t bytes, const void* value) {
      driver()("give a kernel its arguments", driver().kernel_argument, kernel, number++, bytes, value);
    };
    for (std::size_t i = 0; i < command.words.size(); ++i) {
      if (entry.sizes[i] != Module::texture) {
        give(entry.sizes[i], &command.words[i]);
      } else {
        for (const std::uint64_t& handle : Texture::arguments_of(command.words[i])) give(sizeof handle, &handle);
      }
    }
  });
}

void Device::synchronize() { stream_.finish(); }

bool Device::addresses(const void* pointer, std::size_t bytes) const noexcept {
  const auto* const first = static_cast<const std::byte*>(pointer);
  for (const std::byte* const end : {first, first + bytes - 1}) {
    abi::AllocationProperties properties;
    abi::Device device = nullptr;
    if (driver().memory_properties(context_.handle(), end, &properties, &device) != abi::Result::success) return false;
    if (properties.type == abi::memory_unknown) return false;
    if (properties.type == abi::memory_device && device != context_.device()) return false;
  }
  return true;
}

}  // namespace tack::level_zero
