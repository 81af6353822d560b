// engine/texture.cpp -- nearest and linear sampling.
#include "texture.h"

#include <cmath>

#include "table.h"

namespace sim {
namespace {

Table<Texture>& table() {
  static Table<Texture>* const all = new Table<Texture>("textures", 0x5e7u);
  return *all;
}

// The texel's number, or -1: outside, where the border is.
long place(long i, long n, AddressMode mode) {
  switch (mode) {
    case AddressMode::wrap:
      return (i % n + n) % n;
    case AddressMode::mirror: {
      const long j = (i % (2 * n) + 2 * n) % (2 * n);
      return j < n ? j : 2 * n - 1 - j;
    }
    case AddressMode::clamp:
      return i < 0 ? 0 : i >= n ? n - 1 : i;
    case AddressMode::border:
      return i < 0 || i >= n ? -1 : i;
  }
  return -1;
}

// Along one dimension: the two texels, and the second one's weight.
struct Taps {
  long first = 0, second = 0;
  float weight = 0.0f;
};

Taps taps(float coordinate, std::size_t size, AddressMode mode, const Texture& texture) {
  const auto n = static_cast<long>(size);
  float x = texture.normalized ? coordinate * static_cast<float>(size) : coordinate;
  if (std::isnan(x)) x = 0.0f;
  const float limit = 1.0e9f;  // beyond it the texel is the same, and a long could not hold the number
  x = x < -limit ? -limit : x > limit ? limit : x;
  if (!texture.linear) {
    const long i = place(static_cast<long>(std::floor(x)), n, mode);
    return {i, i, 0.0f};
  }
  x -= 0.5f;
  const float below = std::floor(x);
  const float weight = std::nearbyint((x - below) * 256.0f) / 256.0f;  // fixed point with 8 bits of fraction
  const auto i = static_cast<long>(below);
  return {place(i, n, mode), place(i + 1, n, mode), weight};
}

}  // namespace

std::uint64_t add_texture(std::shared_ptr<Texture> texture) { return table().add(std::move(texture)); }
bool remove_texture(std::uint64_t object) { return table().remove(object) != nullptr; }
std::shared_ptr<Texture> find_texture(std::uint64_t object) { return table().find(object); }

std::string sample(std::uint64_t object, unsigned dimensions, float x, float y, float z, float* texel) {
  const std::shared_ptr<Texture> texture = table().find(object);
  if (texture == nullptr) return "samples a texture object that does not exist";
  const TexelArray& array = *texture->array;
  const unsigned actual = array.depth != 0 ? 3 : array.height != 0 ? 2 : 1;
  if (actual != dimensions) {
    return "samples a texture of " + std::to_string(actual) + " dimensions as one of " + std::to_string(dimensions);
  }
  const Taps along_x = taps(x, array.width, texture->address[0], *texture);
  const Taps along_y = taps(y, array.rows(), texture->address[1], *texture);
  const Taps along_z = taps(z, array.slices(), texture->address[2], *texture);
  for (unsigned channel = 0; channel < 4; ++channel) {
    texel[channel] = channel == 3 ? 1.0f : 0.0f;
    if (channel >= array.channels) continue;
    float sum = 0.0f;
    for (unsigned corner = 0; corner < 8; ++corner) {
      const bool right = (corner & 1u) != 0, down = (corner & 2u) != 0, far = (corner & 4u) != 0;
      if ((dimensions < 2 && down) || (dimensions < 3 && far)) continue;
      float weight = right ? along_x.weight : 1.0f - along_x.weight;
      if (dimensions >= 2) weight *= down ? along_y.weight : 1.0f - along_y.weight;
      if (dimensions >= 3) weight *= far ? along_z.weight : 1.0f - along_z.weight;
      if (weight == 0.0f) continue;
      const long i = right ? along_x.second : along_x.first;
      const long j = dimensions < 2 ? 0 : down ? along_y.second : along_y.first;
      const long k = dimensions < 3 ? 0 : far ? along_z.second : along_z.first;
      if (i < 0 || j < 0 || k < 0) {
        sum += weight * texture->border[channel];
        continue;
      }
      const std::size_t index =
          (static_cast<std::size_t>(k) * array.rows() + static_cast<std::size_t>(j)) * array.width + static_cast<std::size_t>(i);
      sum += weight * array.texels[index * array.channels + channel];
    }
    texel[channel] = sum;
  }
  return {};
}

}  // namespace sim
