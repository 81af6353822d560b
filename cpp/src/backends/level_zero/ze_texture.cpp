// backends/level_zero/ze_texture.cpp -- makes images and samplers, fills images in the queue's order, and frees both when nothing uses
// them.
#include "backends/level_zero/ze_texture.h"

#include <bit>
#include <exception>

namespace tack::level_zero {

namespace {

abi::ImageRegion region_of(const std::array<std::size_t, 3>& shape) noexcept {
  abi::ImageRegion region;
  region.width = static_cast<std::uint32_t>(shape[2]);
  region.height = static_cast<std::uint32_t>(shape[1]);
  region.depth = static_cast<std::uint32_t>(shape[0]);
  return region;
}

abi::SamplerDesc describe(Sampling sampling) noexcept {
  const bool repeat = sampling == Sampling::repeat;
  abi::SamplerDesc desc;
  desc.address = repeat ? abi::address_repeat : abi::address_clamp;
  desc.filter = sampling == Sampling::nearest ? abi::filter_nearest : abi::filter_linear;
  desc.normalized = repeat ? 1 : 0;
  return desc;
}

}  // namespace

Texture::Texture(const Context& context, Stream& stream, std::array<std::size_t, 3> shape, Sampling sampling)
    : context_(context), stream_(stream), all_(region_of(shape)) {
  abi::ImageDesc image;
  image.width = all_.width;
  image.height = all_.height;
  image.depth = all_.depth;
  image_ = context.make_image(image);
  try {
    const abi::SamplerDesc sampler = describe(sampling);
    driver()("make a sampler", driver().sampler_create, context.handle(), context.device(), &sampler, &sampler_);
  } catch (...) {
    driver().release(context.log(), "free a texture", driver().image_destroy, image_);
    throw;
  }
  arguments_ = {std::bit_cast<std::uint64_t>(image_), std::bit_cast<std::uint64_t>(sampler_)};
}

Texture::~Texture() {
  try {
    stream_.finish();  // queued work may still use it
  } catch (const Error& error) {
    Driver::log_failure(context_.log(), error);
    if (!error.fields().queued) return;  // it may be in use for all that is known
  } catch (const std::exception& error) {
    Driver::log_failure(context_.log(), error);
    return;
  }
  driver().release(context_.log(), "free a sampler", driver().sampler_destroy, sampler_);
  driver().release(context_.log(), "free a texture", driver().image_destroy, image_);
}

std::uint64_t Texture::handle() const noexcept { return std::bit_cast<std::uintptr_t>(&arguments_); }

const Texture::Arguments& Texture::arguments_of(std::uint64_t handle) noexcept {
  return *std::bit_cast<const Arguments*>(static_cast<std::uintptr_t>(handle));
}

void Texture::update(const void* texels) { stream_.copy_to_image(image_, texels, all_); }

}  // namespace tack::level_zero
