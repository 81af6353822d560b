// tack/dtype.hpp -- element types as (code, bits, lanes), the encoding DLPack uses, and the ten that kernels know.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tack/export.hpp"

namespace tack {

/// Kind of an element; the numbers are those of DLPack's type codes.
enum class TypeCode : std::uint8_t { int_ = 0, uint = 1, float_ = 2, bool_ = 6 };

/// An element type. A plain value; `lanes` > 1 is a short vector (vec3 of f32: lanes 3).
struct DType {
  TypeCode code = TypeCode::float_;
  std::uint8_t bits = 32;
  std::uint16_t lanes = 1;

  constexpr bool operator==(const DType&) const = default;
  /// Bytes of one element, lanes included. A bool takes one byte.
  constexpr std::size_t size() const noexcept { return std::size_t{(bits + 7u) / 8u} * lanes; }
  constexpr bool is_float() const noexcept { return code == TypeCode::float_; }
};

inline constexpr DType i8{TypeCode::int_, 8}, i16{TypeCode::int_, 16}, i32{TypeCode::int_, 32}, i64{TypeCode::int_, 64};
inline constexpr DType u8{TypeCode::uint, 8}, u16{TypeCode::uint, 16}, u32{TypeCode::uint, 32}, u64{TypeCode::uint, 64};
inline constexpr DType f32{TypeCode::float_, 32}, f64{TypeCode::float_, 64};
inline constexpr DType bool8{TypeCode::bool_, 8};

/// The ten array element types, in the order of the documentation. A set of them is a bit mask over these positions.
inline constexpr std::array<DType, 10> array_dtypes{i8, u8, i16, u16, i32, u32, i64, u64, f32, f64};
using DTypeSet = std::uint16_t;

/// Position in array_dtypes, or -1 for a type that no array can have.
constexpr int dtype_index(DType t) noexcept {
  for (int i = 0; i < static_cast<int>(array_dtypes.size()); ++i)
    if (array_dtypes[static_cast<std::size_t>(i)] == t) return i;
  return -1;
}

/// "f32", "u8", "bool"; a vector is "f32x3".
TACK_API std::string name_of(DType t);
/// The inverse of name_of. Throws Error(invalid_argument) that lists the known names.
TACK_API DType dtype_from_name(std::string_view name);

}  // namespace tack
