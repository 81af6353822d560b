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

constexpr unsigned doubles = 1u << dtype_index(f64);
constexpr unsigned with_atomics = 1u << dtype_index(i32) | 1u << dtype_index(u32) | 1u << dtype_index(f32);

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

/// Metal's own copies and fills are of whole words; the host does the others, behind all that is queued.
bool in_words(const void* pointer, std::size_t bytes) noexcept {
  return (reinterpret_cast<std::uintptr_t>(pointer) | bytes) % abi::word_bytes == 0;
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
  can.array_dtypes = static_cast<DTypeSet>(can.array_dtypes & ~doubles);
  can.atomic_dtypes = static_cast<DTypeSet>(with_atomics);
  can.supports_f64 = false;
  can.supports_images = true;
  can.max_image.fill(abi::most_texels);
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
    : gpu_(gpu), metal_(gpu.metal), log_(log), memory_(gpu.metal, gpu.device.get()), queue_(gpu.metal, log, gpu.device.get()) {
  capabilities_ = capabilities_of(gpu.facts.family);
  capabilities_.device_name = gpu.facts.name;
  capabilities_.max_group = gpu.facts.max_threads;
  capabilities_.shared_bytes = gpu.facts.group_bytes;
  capabilities_.supports_images = gpu.facts.filters != 0;
}

abi::Binding MetalDevice::place_of(const void* pointer) const {
  const std::optional<abi::Binding> found = memory_.find(pointer);
  if (!found)
    throw Error(ErrorCode::invalid_argument,
                "An array's memory is none of the Metal device's: it was freed, or is another library's, which Metal cannot use.");
  return *found;
}

bool MetalDevice::addresses(const void* pointer, std::size_t bytes) const noexcept {
  const std::optional<abi::Binding> first = memory_.find(pointer), last = memory_.find(static_cast<const std::byte*>(pointer) + bytes - 1);
  return first && last && first->buffer == last->buffer;
}

MemoryHandle MetalDevice::handle_of(const void* pointer) const {
  const abi::Binding found = memory_.find(pointer).value_or(abi::Binding{});
  return {found.buffer, found.offset};
}

std::shared_ptr<void> MetalDevice::adopt(void* object) {
  return {memory_.adopt(object), [this](void* address) { memory_.free(address); }};
}

Ref MetalDevice::temporary(std::size_t bytes, void*& contents) const {
  Ref buffer(metal_);
  metal_("allocate memory for a copy", metal_.buffer, gpu_.device.get(), bytes, buffer.place(), &contents);
  return buffer;
}

void MetalDevice::upload(void* destination, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  if (bytes <= most_staged && in_words(destination, bytes) && !queue_.idle()) {
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
  const bool by_host = !in_words(destination, bytes) || !in_words(source, bytes);
  if (by_host) queue_.drain();
  if (by_host || queue_.idle()) {
    std::memcpy(destination, source, bytes);
    return;
  }
  const abi::Binding from = place_of(source), to = place_of(destination);
  queue_.submit("copy", [&](abi::Object commands) { metal_("copy", metal_.copy, commands, &from, &to, bytes); });
}

void MetalDevice::fill(void* destination, const void* element, std::size_t size, std::size_t count) {
  const std::size_t bytes = size * count;
  if (bytes == 0) return;
  const bool by_host = !in_words(destination, bytes);
  if (by_host) queue_.drain();
  if (by_host || queue_.idle()) {
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

/// Samplers are in the kernels' text, so that one texture serves them all. Commands that use it keep it alive.
class MetalDevice::Texture final : public TextureImpl {
 public:
  Texture(MetalDevice& device, std::array<std::size_t, 3> shape) : device_(device), shape_(shape), texture_(device.metal_) {
    abi::Problem problem;
    const auto& make = device_.metal_.texture;
    if (make(device_.gpu_.device.get(), shape[2], shape[1], shape[0], texture_.place(), &problem) == abi::Status::done) return;
    // There is one reason for which Metal makes no texture of a size that it takes.
    Error::Fields fields = device_.metal_.error_of("make a texture", problem, make.symbol).fields();
    fields.code = ErrorCode::out_of_memory;
    throw Error(std::move(fields));
  }
  std::uint64_t handle() const noexcept override { return reinterpret_cast<std::uintptr_t>(texture_.get()); }
  void update(const void* texels) override {
    const abi::Binding from = device_.place_of(texels);
    device_.queue_.submit("texture", [&](abi::Object commands) {
      device_.metal_("copy texels", device_.metal_.texels, commands, &from, texture_.get(), shape_[2], shape_[1], shape_[0]);
    });
  }

 private:
  MetalDevice& device_;
  const std::array<std::size_t, 3> shape_;
  Ref texture_;
};

std::unique_ptr<TextureImpl> MetalDevice::make_texture(std::array<std::size_t, 3> shape, Sampling /*sampling*/) {
  return std::make_unique<Texture>(*this, shape);
}

std::unique_ptr<ModuleImpl> MetalDevice::load(std::span<const std::byte> binary, const KernelSource& source) {
  return std::make_unique<MetalModule>(metal_, log_, gpu_.device.get(), binary, source, capabilities_.block);
}

void MetalDevice::launch(const LaunchCommand& command) {
  const auto& module = *static_cast<const MetalModule*>(command.module);
  const MetalModule::Entry& entry = module.entry(command.entry);
  std::array<abi::Binding, abi::most_buffers> buffers;
  std::array<abi::Object, abi::most_textures> textures;
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
  // NOLINTBEGIN(performance-no-int-to-ptr): words are addresses, handles and numbers
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    const auto pointer = reinterpret_cast<void*>(static_cast<std::uintptr_t>(command.words[i]));
    if (entry.places[i] == Place::buffer)
      buffers[dispatch.count++] = place_of(pointer);
    else if (entry.places[i] == Place::texture)
      textures[dispatch.texture_count++] = pointer;
    else
      *constants++ = command.words[i];
  }
  // NOLINTEND(performance-no-int-to-ptr)
  if (more) buffers[dispatch.count++] = {more.get(), 0};
  dispatch.pipeline = entry.pipeline.get();
  dispatch.buffers = buffers.data();
  dispatch.textures = textures.data();
  dispatch.threads = entry.groups.threads;
  dispatch.groups = static_cast<std::uint64_t>(entry.groups.count(command.iterations));
  queue_.submit(module.kernel(), [&](abi::Object commands) { metal_("launch it", metal_.dispatch, commands, &dispatch); });
}

}  // namespace tack::metal
