// tack/texture.hpp -- Texture: a volume of f32 that kernels sample between its texels.
#pragma once

#include <cstdint>
#include <memory>

#include "tack/array.hpp"
#include "tack/device.hpp"
#include "tack/export.hpp"

namespace tack {

class TextureImpl;

/// How a texture gives values between its texels, and which texel stands where there is none.
enum class Interp : std::uint8_t { linear = 0, nearest = 1 };
enum class Wrap : std::uint8_t { clamp = 0, repeat = 1, mirror = 2 };

/// A copy of a volume of f32, indexed [z, y, x], in a device's memory, and how it is read. Where the device's texture units can hold it
/// (Capabilities::supports_images, max_image), they have a second copy, which kernels sample that were not built with exact=True.
/// The memory of both goes back when all work queued before is done; the destructor waits for that where there is a second copy.
/// Thread-safe but for being moved; updates and launches take effect in the order of the calls.
class TACK_API Texture {
 public:
  /// Copies `texels`, which may lie on any device, to `device`, in queue order. Throws Error(type_mismatch) for elements other than f32,
  /// Error(invalid_argument) unless there are three dimensions and at least one texel, Error(out_of_memory).
  Texture(const std::shared_ptr<Device>& device, const Array& texels, Interp interp, Wrap wrap);
  ~Texture();
  Texture(Texture&&) noexcept;
  Texture(const Texture&) = delete;
  Texture& operator=(Texture&&) = delete;
  Texture& operator=(const Texture&) = delete;

  /// Copies other texels of the same shape, in queue order. Throws Error(invalid_argument) for another shape or dtype.
  void update(const Array& texels);

  const Array& texels() const noexcept { return texels_; }  ///< the copy; contiguous, [z, y, x]. Not to be written
  Interp interp() const noexcept { return interp_; }
  Wrap wrap() const noexcept { return wrap_; }
  /// Whether the device's texture units sample it.
  bool hardware() const noexcept { return impl_ != nullptr; }
  /// The word that kernels get which sample by hardware; 0 where they read the texels.
  std::uint64_t handle() const noexcept;
  /// interp, wrap and hardware as one number from 1 on: ArgumentSpec::texture of the kernels that take it.
  std::uint8_t reading() const noexcept {
    return static_cast<std::uint8_t>(1 + static_cast<int>(interp_) * 3 + static_cast<int>(wrap_) + (hardware() ? 6 : 0));
  }

 private:
  Array texels_;
  std::unique_ptr<TextureImpl> impl_;  // null: sampled in software
  Interp interp_;
  Wrap wrap_;
};

/// The largest Texture::reading().
inline constexpr std::uint8_t max_reading = 12;

}  // namespace tack
