// core/strided.h -- copying and filling strided elements in memory that the host can address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tack {

/// Bytes that a strided array touches, relative to its element 0: [low, high). Empty for an array without elements.
struct ByteRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
ByteRange byte_range(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::size_t item) noexcept;

/// Row-major strides without gaps. `strides` has shape.size() elements.
void dense_strides(std::span<const std::int64_t> shape, std::size_t item, std::span<std::int64_t> strides) noexcept;
/// Whether elements lie row-major without gaps; strides of dimensions with one element do not matter.
bool is_dense(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::size_t item) noexcept;

/// Copies elements of `item` bytes; rank at most 8, any strides, also zero and negative, any alignment. The two must not overlap, unless
/// they are the same elements.
void copy_strided(std::byte* destination, std::span<const std::int64_t> destination_strides, const std::byte* source,
                  std::span<const std::int64_t> source_strides, std::span<const std::int64_t> shape, std::size_t item) noexcept;
/// Sets all elements to the `item` bytes at `element`.
void fill_strided(std::byte* destination, std::span<const std::int64_t> strides, const std::byte* element,
                  std::span<const std::int64_t> shape, std::size_t item) noexcept;

}  // namespace tack
