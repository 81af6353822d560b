// backends/metal/metal_device.cpp -- copies, fills and launches: by the host where nothing is queued, else in the queue.
#include "backends/metal/metal_device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "backends/gpu/device.h"
#include "backends/metal/metal_module.h"
#include "core/text.h"

namespace tack::metal {

namespace {

constexpr std::size_t most_staged = std::size_t{1} << 20;  // bytes that the host writes into the queue; for more it waits

constexpr unsigned bit_of(DType type) noexcept { return 1u << dtype_index(type); }

/// `bytes` of one element after the other; of the last one what fits.
void fill_pattern(void* destination, const void* element, std::size_t size, std::size_t bytes) noexcept {
  auto* const to = static_cast<std::byte*>(destination);
  std::size_t done = std::min(size, bytes);
  std::memcpy(to, element, done);
  while (done != bytes) {
    const std::size_t piece = std::min(done, bytes - done);
    std::memcpy(to + done, to, piece);
    done += piece;
  }
}

bool is_one_byte(const void* element, std::size_t size) noexcept {
  const auto* const bytes = static_cast<const unsigned char*>(element);
  return std::all_of(bytes, bytes + size, [bytes](unsigned char byte) { return byte == bytes[0]; });
}

}  // namespace

Capabilities capabilities_of(std::uint32_t family) {
  Capabilities can = gpu::usual_capabilities();
  can.arch = text("apple", family);
  can.device_name = text("an Apple GPU of family ", family);
  can.array_dtypes = static_cast<DTypeSet>(can.array_dtypes & ~bit_of(f64));
  can.atomic_dtypes = static_cast<DTypeSet>(bit_of(i32) | bit_of(u32) | bit_of(f32));
  can.supports_f64 = false;
  can.supports_images = true;
  can.f32_denormals = false;  // Metal leaves it open whether subnormal results become 0
  can.host_addressable = true;
  can.shared_bytes = std::uint64_t{32} << 10;
  can.max_iterations = std::uint64_t{1} << 32;
  can.max_buffers = abi::most_buffers;
  return can;
}

Gpu::Gpu(const Metal& functions) : metal(functions), device(functions) {
  abi::Problem problem;
  if (metal.device(device.place(), &facts, &problem) != abi::Status::done)
    throw unavailable(text("Metal finds no GPU.", problem.text[0] == '\0' ? "" : "\n", problem.text), "no GPU found");
  if (facts.family < oldest_family) throw unavailable(text("The GPU '", facts.name, "' is none of Apple silicon."), "no GPU found");
}

MetalDevice::MetalDevice(const Gpu& gpu, Log& log)
    : gpu_(gpu),
      metal_(gpu.metal),
      log_(log),
      memory_(gpu.metal, gpu.device.get(), static_cast<std::size_t>(gpu.facts.page_bytes)),
      queue_(gpu.metal, log, gpu.device.get()) {
  capabilities_ = capabilities_of(gpu.facts.family);
  capabilities_.device_name = gpu.facts.name;
  capabilities_.max_group = gpu.facts.max_threads;
  capabilities_.shared_bytes = gpu.facts.group_bytes;
}

abi::Binding MetalDevice::place_of(const void* pointer) const {
  const std::optional<abi::Binding> found = memory_.find(pointer);
  if (!found)
    throw Error(
        ErrorCode::invalid_argument,
        "An array's memory is none of the Metal device's: it was freed, or is another library's and was not given to tack as such.");
  return *found;
}

Ref MetalDevice::temporary(std::size_t bytes, void*& contents) const {
  Ref buffer(metal_);
  metal_("allocate memory for a copy", metal_.buffer, gpu_.device.get(), bytes, buffer.place(), &contents);
  return buffer;
}

void MetalDevice::upload(void* destination, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  if (!queue_.idle() && bytes <= most_staged) {
    void* contents = nullptr;
    const Ref staging = temporary(bytes, contents);
    std::memcpy(contents, source, bytes);
    const abi::Binding from{staging.get(), 0}, to = place_of(destination);
    queue_.submit("copy", [&](abi::Object commands) { metal_("copy", metal_.copy, commands, &from, &to, bytes); });
    return;
  }
  queue_.drain();
  std::memcpy(destination, source, bytes);
}

void MetalDevice::download(void* destination, const void* source, std::size_t bytes) {
  queue_.wait();
  if (bytes != 0) std::memcpy(destination, source, bytes);
}

void MetalDevice::copy(void* destination, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  if (queue_.idle()) {
    std::memcpy(destination, source, bytes);
    return;
  }
  const abi::Binding from = place_of(source), to = place_of(destination);
  queue_.submit("copy", [&](abi::Object commands) { metal_("copy", metal_.copy, commands, &from, &to, bytes); });
}

void MetalDevice::fill(void* destination, const void* element, std::size_t size, std::size_t count) {
  const std::size_t bytes = size * count;
  if (bytes == 0) return;
  if (queue_.idle()) {
    fill_pattern(destination, element, size, bytes);
    return;
  }
  const abi::Binding to = place_of(destination);
  if (is_one_byte(element, size)) {
    const std::uint8_t value = *static_cast<const std::uint8_t*>(element);
    queue_.submit("fill", [&](abi::Object commands) { metal_("fill memory", metal_.fill, commands, &to, bytes, value); });
    return;
  }
  // Metal fills with bytes only: others are copied from a block of them.
  const std::size_t block = std::min(bytes, most_staged);
  void* contents = nullptr;
  const Ref staging = temporary(block, contents);
  fill_pattern(contents, element, size, block);
  const abi::Binding from{staging.get(), 0};
  queue_.submit("fill", [&](abi::Object commands) {
    for (std::size_t done = 0; done < bytes; done += block) {
      const abi::Binding place{to.buffer, to.offset + done};
      metal_("fill memory", metal_.copy, commands, &from, &place, std::min(block, bytes - done));
    }
  });
}

std::unique_ptr<ModuleImpl> MetalDevice::load(std::span<const std::byte> binary, const KernelSource& source) {
  return std::make_unique<MetalModule>(metal_, log_, gpu_.device.get(), binary, source, capabilities_.block);
}

void MetalDevice::launch(const LaunchCommand& command) {
  const auto& module = *static_cast<const MetalModule*>(command.module);
  const MetalModule::Entry& entry = module.entry(command.entry);
  std::array<abi::Binding, abi::most_buffers> buffers;
  std::array<std::uint64_t, abi::most_constant_bytes / sizeof(std::uint64_t)> few;
  Ref more;
  std::uint64_t* constants = few.data();
  abi::Dispatch dispatch{};
  if (entry.constants > few.size()) {
    void* contents = nullptr;
    more = temporary(entry.constants * sizeof(std::uint64_t), contents);
    constants = static_cast<std::uint64_t*>(contents);
  } else {
    dispatch.constants = constants;
    dispatch.constant_bytes = entry.constants * sizeof(std::uint64_t);
  }
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    if (entry.address[i])
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      buffers[dispatch.count++] = place_of(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(command.words[i])));
    else
      *constants++ = command.words[i];
  }
  if (more) buffers[dispatch.count++] = {more.get(), 0};
  dispatch.pipeline = entry.pipeline.get();
  dispatch.buffers = buffers.data();
  dispatch.threads = entry.group;
  dispatch.groups = static_cast<std::uint64_t>(entry.whole_groups ? command.iterations : (command.iterations - 1) / entry.group + 1);
  queue_.submit(module.kernel(), [&](abi::Object commands) { metal_("launch it", metal_.dispatch, commands, &dispatch); });
}

}  // namespace tack::metal
