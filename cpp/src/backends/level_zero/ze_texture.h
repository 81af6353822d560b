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
  /// What a kernel is given for a texture: two arguments, in this order. TextureImpl::handle is the address of one.
  struct Handles {
    abi::Image image = nullptr;
    abi::Sampler sampler = nullptr;
  };

  /// `shape`: depth, height, width. Throws Error(out_of_memory).
  Texture(const Context& context, Stream& stream, std::array<std::size_t, 3> shape, Sampling sampling);
  ~Texture() override;
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;

  std::uint64_t handle() const noexcept override;
  static const Handles& handles_of(std::uint64_t handle) noexcept;
  void update(const void* texels) override;

 private:
  const Driver& driver() const noexcept { return context_.driver(); }

  const Context& context_;
  Stream& stream_;
  const abi::ImageRegion all_;
  Handles handles_;
};

}  // namespace tack::level_zero
