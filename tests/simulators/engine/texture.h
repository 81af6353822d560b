// engine/texture.h -- texel arrays and texture objects, sampled as the CUDA C++ Programming Guide's "Texture Fetching" says.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sim {

// Texels of 32-bit floats in memory of their own: no address reaches them.
struct TexelArray {
  std::size_t width = 0, height = 0, depth = 0;  // 0: the array has not this dimension
  unsigned channels = 1;
  int device = 0;
  std::vector<float> texels;

  std::size_t rows() const { return height == 0 ? 1 : height; }
  std::size_t slices() const { return depth == 0 ? 1 : depth; }
};

enum class AddressMode { wrap, clamp, mirror, border };

struct Texture {
  std::shared_ptr<TexelArray> array;
  std::array<AddressMode, 3> address{AddressMode::clamp, AddressMode::clamp, AddressMode::clamp};
  bool linear = false, normalized = false;
  std::array<float, 4> border{};
};

std::uint64_t add_texture(std::shared_ptr<Texture> texture);
bool remove_texture(std::uint64_t object);
std::shared_ptr<Texture> find_texture(std::uint64_t object);

// Empty, or why there is no value.
std::string sample(std::uint64_t object, unsigned dimensions, float x, float y, float z, float* texel);

}  // namespace sim
