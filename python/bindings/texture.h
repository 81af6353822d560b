// texture.h -- the C++ part of tack.Texture3D.
#pragma once

#include <optional>

#include "gil.h"
#include "tack/texture.hpp"

namespace tack::python {

/// A texture that a Python object owns. Freeing one may wait for the device, and other threads run meanwhile.
struct HeldTexture {
  std::optional<Texture> texture;

  HeldTexture() = default;
  ~HeldTexture() {
    const MaybeRelease release(texture && texture->hardware());
    texture.reset();
  }
  HeldTexture(const HeldTexture&) = delete;
  HeldTexture& operator=(const HeldTexture&) = delete;
};

}  // namespace tack::python
