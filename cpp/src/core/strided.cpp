// core/strided.cpp -- strided copies: dimensions are merged and ordered by memory first, so that the inner loop is long.
#include "core/strided.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>

#include "tack/array.hpp"

namespace tack {

namespace {

struct Dim {
  std::int64_t length = 1;
  std::int64_t to = 0;    // destination's stride
  std::int64_t from = 0;  // source's stride
};

/// The dimensions of a copy, outermost first, as few as possible; at least one.
struct Dims {
  std::array<Dim, max_rank> items{};
  std::size_t count = 0;
};

Dims merge(std::span<const std::int64_t> shape, std::span<const std::int64_t> to, std::span<const std::int64_t> from) noexcept {
  // The destination is written in the order of its memory; equal strides keep their order. Rank is small: each is put where it belongs.
  Dims dims;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    std::size_t at = dims.count++;
    for (; at > 0 && std::abs(dims.items[at - 1].to) < std::abs(to[d]); --at) dims.items[at] = dims.items[at - 1];
    dims.items[at] = {shape[d], to[d], from[d]};
  }
  Dims merged;
  for (const Dim& dim : std::span(dims.items).first(dims.count)) {
    if (merged.count != 0) {
      Dim& outer = merged.items[merged.count - 1];
      if (outer.to == dim.to * dim.length && outer.from == dim.from * dim.length) {
        outer = {outer.length * dim.length, dim.to, dim.from};
        continue;
      }
    }
    merged.items[merged.count++] = dim;
  }
  if (merged.count == 0) merged.count = 1;
  return merged;
}

// The element size is a template argument so that memcpy becomes one move.
template <std::size_t Item>
void copy_row(std::byte* to, const std::byte* from, const Dim& row, std::size_t /*item*/) noexcept {
  for (std::int64_t i = 0; i < row.length; ++i, to += row.to, from += row.from) std::memcpy(to, from, Item);
}
void copy_row_any(std::byte* to, const std::byte* from, const Dim& row, std::size_t item) noexcept {
  for (std::int64_t i = 0; i < row.length; ++i, to += row.to, from += row.from) std::memcpy(to, from, item);
}
void copy_row_dense(std::byte* to, const std::byte* from, const Dim& row, std::size_t item) noexcept {
  std::memcpy(to, from, static_cast<std::size_t>(row.length) * item);
}

using CopyRow = void (*)(std::byte*, const std::byte*, const Dim&, std::size_t) noexcept;

CopyRow choose(const Dim& row, std::size_t item) noexcept {
  const auto stride = static_cast<std::int64_t>(item);
  if (row.to == stride && row.from == stride) return copy_row_dense;
  switch (item) {
    case 1:
      return copy_row<1>;
    case 2:
      return copy_row<2>;
    case 4:
      return copy_row<4>;
    case 8:
      return copy_row<8>;
    default:
      return copy_row_any;
  }
}

}  // namespace

ByteRange byte_range(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::size_t item) noexcept {
  ByteRange range{0, static_cast<std::int64_t>(item)};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return {};
    const std::int64_t reach = (shape[d] - 1) * strides[d];
    (reach < 0 ? range.low : range.high) += reach;
  }
  return range;
}

void dense_strides(std::span<const std::int64_t> shape, std::size_t item, std::span<std::int64_t> strides) noexcept {
  auto stride = static_cast<std::int64_t>(item);
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    // Unsigned, since nobody has checked the shape yet: too large ones wrap here and are refused where an array is made of them.
    const auto length = static_cast<std::uint64_t>(std::max<std::int64_t>(shape[d], 1));
    stride = static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) * length);
  }
}

bool is_dense(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::size_t item) noexcept {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  auto stride = static_cast<std::int64_t>(item);
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != stride) return false;
    stride *= shape[d];
  }
  return true;
}

void copy_strided(std::byte* destination, std::span<const std::int64_t> destination_strides, const std::byte* source,
                  std::span<const std::int64_t> source_strides, std::span<const std::int64_t> shape, std::size_t item) noexcept {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  const Dims dims = merge(shape, destination_strides, source_strides);
  const Dim& row = dims.items[dims.count - 1];
  const CopyRow copy = choose(row, item);
  std::array<std::int64_t, max_rank> index{};
  for (;;) {
    copy(destination, source, row, item);
    // The odometer over the outer dimensions.
    std::size_t d = dims.count - 1;
    for (;;) {
      if (d == 0) return;
      --d;
      destination += dims.items[d].to;
      source += dims.items[d].from;
      if (++index[d] < dims.items[d].length) break;
      index[d] = 0;
      destination -= dims.items[d].to * dims.items[d].length;
      source -= dims.items[d].from * dims.items[d].length;
    }
  }
}

void fill_strided(std::byte* destination, std::span<const std::int64_t> strides, const std::byte* element,
                  std::span<const std::int64_t> shape, std::size_t item) noexcept {
  const std::array<std::int64_t, max_rank> zero{};
  copy_strided(destination, strides, element, std::span(zero).first(shape.size()), shape, item);
}

}  // namespace tack
