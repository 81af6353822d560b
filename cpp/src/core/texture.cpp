// core/texture.cpp -- Texture: the texels in ordinary memory, and the device's own form of them where it samples by hardware.
#include "tack/texture.hpp"

#include <array>
#include <cstddef>
#include <utility>

#include "backend.h"
#include "core/text.h"

namespace tack {

namespace {

Array empty_like(const std::shared_ptr<Device>& device, const Array& texels) {
  if (texels.dtype() != f32)
    throw Error(ErrorCode::type_mismatch, text("A texture has texels of tack.f32, not of tack.", name_of(texels.dtype()), '.'));
  if (texels.rank() != 3)
    throw Error(ErrorCode::invalid_argument, text("A texture is made of an array of 3 dimensions; this one has ", texels.rank(), '.'));
  if (texels.size() == 0)
    throw Error(ErrorCode::invalid_argument, "A texture is made of an array with at least one texel; this one is empty.");
  return Array::empty(device, f32, texels.shape());
}

bool fits(const Capabilities& can, const Array& texels) noexcept {
  if (!can.supports_images) return false;
  for (std::size_t d = 0; d < can.max_image.size(); ++d)
    if (texels.shape()[d] > static_cast<std::int64_t>(can.max_image[d])) return false;
  return true;
}

/// Where the device has no memory for it, what the allocator keeps goes back, and it is tried once more.
std::unique_ptr<TextureImpl> make(Device& device, const std::array<std::size_t, 3>& shape, Sampling sampling) {
  const auto attempt = [&] { return device.queue().attributed([&] { return device.impl().make_texture(shape, sampling); }); };
  try {
    return attempt();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
  }
  device.trim();
  try {
    return attempt();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    Error::Fields fields = error.fields();
    fields.message =
        text("A texture of ", std::uint64_t{shape[2]}, " x ", std::uint64_t{shape[1]}, " x ", std::uint64_t{shape[0]}, " texels (",
             bytes_text(shape[0] * shape[1] * shape[2] * sizeof(float)), ") finds no memory on '", device.name(), "'; ",
             bytes_text(device.memory().in_use), " in use. Drop arrays that are no longer needed, or sample a smaller volume.");
    throw Error(std::move(fields));
  }
}

/// What texture units have to do: kernels bring coordinates to the range of texels themselves, except for the seam of a repeated volume.
Sampling sampling_of(Interp interp, Wrap wrap) noexcept {
  if (interp == Interp::nearest) return Sampling::nearest;
  return wrap == Wrap::repeat ? Sampling::repeat : Sampling::linear;
}

}  // namespace

std::unique_ptr<TextureImpl> DeviceImpl::make_texture(std::array<std::size_t, 3> /*shape*/, Sampling /*sampling*/) {
  throw Error(ErrorCode::internal, "A texture was asked of a device that says that it samples none. Please report this.");
}

Texture::Texture(const std::shared_ptr<Device>& device, const Array& texels, Interp interp, Wrap wrap)
    : texels_(empty_like(device, texels)), interp_(interp), wrap_(wrap) {
  if (fits(device->capabilities(), texels_)) {
    const std::array<std::size_t, 3> shape{static_cast<std::size_t>(texels.shape(0)), static_cast<std::size_t>(texels.shape(1)),
                                           static_cast<std::size_t>(texels.shape(2))};
    impl_ = make(*device, shape, sampling_of(interp, wrap));
  }
  update(texels);
}

Texture::~Texture() = default;
Texture::Texture(Texture&&) noexcept = default;

void Texture::update(const Array& texels) {
  texels_.copy_from(texels);
  if (impl_) texels_.device().queue().attributed([&] { impl_->update(texels_.data()); });
}

std::uint64_t Texture::handle() const noexcept { return impl_ ? impl_->handle() : 0; }

}  // namespace tack
