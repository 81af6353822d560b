// backends/level_zero/ze_texture.h -- a volume in the form that samplers read: an image, and the sampler that kernels get beside it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backend.h"
#include "backends/level_zero/ze_stream.h"

namespace tack::level_zero {

/// Lives no longer than its device. Thread-safe as TextureImpl.
class Texture final : public TextureImpl {
 public:
  /// What a kernel is given for a texture: two arguments, the handles of the image and of the sampler. TextureImpl::handle is their
  /// address.
  using Arguments = std::array<std::uint64_t, 2>;

  /// `shape`: depth, height, width. Throws Error(out_of_memory).
  Texture(const Context& context, Stream& stream, std::array<std::size_t, 3> shape, Sampling sampling);
  ~Texture() override;
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;

  std::uint64_t handle() const noexcept override;
  static const Arguments& arguments_of(std::uint64_t handle) noexcept;
  void update(const void* texels) override;

 private:
  const Driver& driver() const noexcept { return context_.driver(); }

  const Context& context_;
  Stream& stream_;
  const abi::ImageRegion all_;
  abi::Image image_ = nullptr;
  abi::Sampler sampler_ = nullptr;
  Arguments arguments_{};
};

}  // namespace tack::level_zero
