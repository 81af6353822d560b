// cuda/texture.cpp -- the CUDA driver stand-in: arrays of float texels, copies to and from them, texture objects.
#include <cstring>

#include "driver.h"
#include "texture_abi.h"

namespace sim::cuda {
namespace {

using abi::MemoryKind;
using Side = abi::CopySide;
using abi::Copy3D;

constexpr unsigned known_texture_flags = 1 | abi::texture_normalized_coordinates | 0x20;  // as integer, ..., no trilinear optimization

Copy3D in_3d(const Copy2D& copy) {
  const auto side = [](const Side2D& s) { return Side{s.x, s.y, 0, 0, s.kind, s.host, s.device, s.array, nullptr, s.pitch, 0}; };
  return {side(copy.from), side(copy.to), copy.width, copy.height, 1};
}

std::shared_ptr<ArrayObject> find_array(abi::Array handle) { return Driver::instance().arrays.find(bits(handle)); }

// Where a row of a side starts.
char* row(const Side& side, TexelArray* texels, std::size_t j, std::size_t k) {
  if (texels != nullptr) {
    const std::size_t line = ((side.z + k) * texels->rows() + side.y + j) * texels->width * texels->channels * sizeof(float);
    return reinterpret_cast<char*>(texels->texels.data()) + line + side.x;
  }
  const bool host = side.kind == MemoryKind::host;
  char* base = host ? static_cast<char*>(const_cast<void*>(side.host)) : pointer_to<char>(side.device);
  return base + ((side.z + k) * side.height + side.y + j) * side.pitch + side.x;
}

Result check_side(const Side& side, const std::shared_ptr<ArrayObject>& array, const Copy3D& copy) {
  const std::size_t right = side.x + copy.width, bottom = side.y + copy.height, back = side.z + copy.depth;
  if (side.kind == MemoryKind::array) {
    if (array == nullptr) return Result::invalid_handle;
    const TexelArray& t = *array->texels;
    return right <= t.width * t.channels * sizeof(float) && bottom <= t.rows() && back <= t.slices() ? Result::success
                                                                                                     : Result::invalid_value;
  }
  const std::size_t pitch = side.pitch, height = side.height;
  if (right > pitch || (copy.depth > 1 && bottom > height)) return Result::invalid_value;
  const std::uintptr_t start = side.kind == MemoryKind::host ? address_of(side.host) : side.device;
  if (side.kind == MemoryKind::host) {
    if (!Memory::instance().is_device_address(start)) return Result::success;
  } else {
    const std::optional<Allocation> found = Memory::instance().find(start);
    const std::size_t last = ((back - 1) * height + bottom - 1) * pitch + right;
    if (found && found->contains(start, last)) return Result::success;
  }
  Control::instance().report("cuMemcpy3D: the address given is " + Memory::instance().describe(start));
  return Result::invalid_value;
}

Result copy_3d(const ContextPtr& context, const Copy3D* given, Stream* stream, bool wait) {
  if (given == nullptr) return Result::invalid_value;
  if (stream == nullptr) return Result::invalid_handle;
  Copy3D copy = *given;
  if (copy.width == 0 || copy.height == 0 || copy.depth == 0) return Result::success;
  for (Side* side : {&copy.from, &copy.to}) {
    if (side->kind < MemoryKind::host || side->kind > MemoryKind::array || side->level != 0) return Result::invalid_value;
    if (side->pitch == 0) side->pitch = side->x + copy.width;
    if (side->height == 0) side->height = side->y + copy.height;
  }
  const auto from = copy.from.kind == MemoryKind::array ? find_array(copy.from.array) : nullptr;
  const auto to = copy.to.kind == MemoryKind::array ? find_array(copy.to.array) : nullptr;
  for (const Result checked : {check_side(copy.from, from, copy), check_side(copy.to, to, copy)}) {
    if (checked != Result::success) return checked;
  }
  // Rows of pageable host memory are taken at the call.
  std::shared_ptr<std::vector<char>> staged;
  if (copy.from.kind == MemoryKind::host) {
    staged = std::make_shared<std::vector<char>>();
    for (std::size_t k = 0; k < copy.depth; ++k) {
      for (std::size_t j = 0; j < copy.height; ++j) {
        const char* start = row(copy.from, nullptr, j, k);
        staged->insert(staged->end(), start, start + copy.width);
      }
    }
  }
  const TaskPtr task = context->submit(*stream, [=] {
    const Memory::Opened source(Memory::instance(), copy.from.kind == MemoryKind::device ? copy.from.device : 0);
    const Memory::Opened target(Memory::instance(), copy.to.kind == MemoryKind::device ? copy.to.device : 0);
    for (std::size_t k = 0; k < copy.depth; ++k) {
      for (std::size_t j = 0; j < copy.height; ++j) {
        const char* start = staged != nullptr ? staged->data() + (k * copy.height + j) * copy.width
                                              : row(copy.from, from == nullptr ? nullptr : from->texels.get(), j, k);
        std::memcpy(row(copy.to, to == nullptr ? nullptr : to->texels.get(), j, k), start, copy.width);
      }
    }
  });
  if (wait || copy.to.kind == MemoryKind::host) context->queue.wait(task);
  return context->state();
}

bool address_mode(abi::AddressMode given, AddressMode& mode) {
  const int number = static_cast<int>(given);
  constexpr AddressMode modes[] = {AddressMode::wrap, AddressMode::clamp, AddressMode::mirror, AddressMode::border};
  if (number < 0 || number > 3) return false;
  mode = modes[number];
  return true;
}

}  // namespace
}  // namespace sim::cuda

using namespace sim;
using namespace sim::cuda;

#pragma GCC visibility push(default)
extern "C" {

Result cuArray3DCreate_v2(abi::Array* array, const abi::ArrayDescription* description) {
  return call<"cuArray3DCreate_v2">([&](const ContextPtr& context) {
    if (array == nullptr || description == nullptr || description->width == 0 || (description->depth != 0 && description->height == 0)) {
      return Result::invalid_value;
    }
    const unsigned channels = description->channels;
    if (channels != 1 && channels != 2 && channels != 4) return Result::invalid_value;
    if (description->format != abi::ArrayFormat::f32 || description->flags != 0) return Result::not_supported;
    if (description->width > 16384 || description->height > 16384 || description->depth > 16384) return Result::invalid_value;
    auto made = std::make_shared<ArrayObject>();
    made->context = context;
    made->texels = std::make_shared<TexelArray>();
    made->texels->width = description->width;
    made->texels->height = description->height;
    made->texels->depth = description->depth;
    made->texels->channels = channels;
    made->texels->device = context->device;
    made->texels->texels.assign(description->width * made->texels->rows() * made->texels->slices() * channels, -1.0e30f);
    *array = handle_of<abi::Array>(Driver::instance().arrays.add(made));
    return Result::success;
  });
}

Result cuArray3DGetDescriptor_v2(abi::ArrayDescription* description, abi::Array array) {
  return call<"cuArray3DGetDescriptor_v2">([&](const ContextPtr&) {
    const auto found = find_array(array);
    if (found == nullptr) return Result::invalid_handle;
    if (description == nullptr) return Result::invalid_value;
    *description = {found->texels->width, found->texels->height, found->texels->depth, abi::ArrayFormat::f32, found->texels->channels, 0};
    return Result::success;
  });
}

Result cuArrayDestroy(abi::Array array) {
  return call<"cuArrayDestroy", Needs::context, Failing::afterwards>([&](const ContextPtr& context) {
    if (context->state() == Result::success) context->queue.wait_all();
    return Driver::instance().arrays.remove(bits(array)) == nullptr ? Result::invalid_handle : Result::success;
  });
}

Result cuMemcpy3D_v2(const Copy3D* copy) {
  return call<"cuMemcpy3D_v2">([&](const ContextPtr& context) { return copy_3d(context, copy, context->queue.legacy().get(), true); });
}

Result cuMemcpy3DAsync_v2(const Copy3D* copy, abi::Stream stream) {
  return call<"cuMemcpy3DAsync_v2">(
      [&](const ContextPtr& context) { return copy_3d(context, copy, find_stream(context, stream).get(), false); });
}

Result cuMemcpy2D_v2(const Copy2D* copy) {
  return call<"cuMemcpy2D_v2">([&](const ContextPtr& context) {
    if (copy == nullptr) return Result::invalid_value;
    const Copy3D whole = in_3d(*copy);
    return copy_3d(context, &whole, context->queue.legacy().get(), true);
  });
}

Result cuMemcpy2DAsync_v2(const Copy2D* copy, abi::Stream stream) {
  return call<"cuMemcpy2DAsync_v2">([&](const ContextPtr& context) {
    if (copy == nullptr) return Result::invalid_value;
    const Copy3D whole = in_3d(*copy);
    return copy_3d(context, &whole, find_stream(context, stream).get(), false);
  });
}

Result cuTexObjectCreate(abi::TextureObject* object, const abi::ResourceDescription* resource, const abi::TextureDescription* description,
                         const abi::ResourceViewDescription* view) {
  return call<"cuTexObjectCreate">([&](const ContextPtr& context) {
    if (object == nullptr || resource == nullptr || description == nullptr) return Result::invalid_value;
    if (resource->kind != abi::ResourceKind::array || view != nullptr) return Result::not_supported;
    const auto array = find_array(resource->content.array);
    if (array == nullptr) return Result::invalid_value;
    if (resource->flags != 0 || (description->flags & ~known_texture_flags) != 0 || description->filter < abi::FilterMode::point ||
        description->filter > abi::FilterMode::linear) {
      return Result::invalid_value;
    }
    auto made = std::make_shared<Texture>();
    made->array = array->texels;
    made->linear = description->filter == abi::FilterMode::linear;
    made->normalized = (description->flags & abi::texture_normalized_coordinates) != 0;
    for (std::size_t i = 0; i < 3; ++i) {
      if (!address_mode(description->address[i], made->address[i])) return Result::invalid_value;
      // Without normalized coordinates wrap and mirror become clamp.
      if (!made->normalized && made->address[i] != AddressMode::border) made->address[i] = AddressMode::clamp;
    }
    std::copy(std::begin(description->border), std::end(description->border), made->border.begin());
    *object = add_texture(made);
    const std::lock_guard lock(context->mutex);
    context->textures.insert(*object);
    return Result::success;
  });
}

Result cuTexObjectDestroy(abi::TextureObject object) {
  return call<"cuTexObjectDestroy", Needs::context, Failing::afterwards>([&](const ContextPtr& context) {
    const std::lock_guard lock(context->mutex);
    context->textures.erase(object);
    return remove_texture(object) ? Result::success : Result::invalid_value;
  });
}
}
#pragma GCC visibility pop
