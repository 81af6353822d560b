// core/dtype.cpp -- names of element types.
#include "tack/dtype.hpp"

#include <charconv>

#include "core/dtype_check.h"
#include "core/text.h"
#include "tack/error.hpp"

namespace tack {

namespace {

constexpr unsigned max_lanes = 16;

std::string_view prefix_of(TypeCode code) noexcept {
  switch (code) {
    case TypeCode::int_:
      return "i";
    case TypeCode::uint:
      return "u";
    case TypeCode::float_:
      return "f";
    case TypeCode::bool_:
      return "bool";
  }
  return "?";
}

}  // namespace

bool is_known(DType t) noexcept { return (t == bool8 || dtype_index({t.code, t.bits, 1}) >= 0) && t.lanes >= 1 && t.lanes <= max_lanes; }

std::string name_of(DType t) {
  std::string name(prefix_of(t.code));
  if (t.code != TypeCode::bool_) name += text(t.bits);
  if (t.lanes != 1) name += text('x', t.lanes);
  return name;
}

DType dtype_from_name(std::string_view name) {
  const std::size_t cross = name.find('x');
  const std::string_view scalar = name.substr(0, cross);
  unsigned lanes = 1;
  bool good = true;
  if (cross != std::string_view::npos) {
    const std::string_view digits = name.substr(cross + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), lanes);
    good = error == std::errc{} && end == digits.data() + digits.size() && lanes >= 2 && lanes <= max_lanes && scalar != "bool";
  }
  if (good && scalar == "bool") return bool8;
  for (DType t : array_dtypes) {
    if (!good || name_of(t) != scalar) continue;
    t.lanes = static_cast<std::uint16_t>(lanes);
    return t;
  }
  std::string known;
  for (DType t : array_dtypes) known += name_of(t) + " ";
  throw Error(ErrorCode::invalid_argument, text("Unknown element type '", name, "'. Known are ", known,
                                                "bool, and vectors of the first ten such as f32x3 (2 to ", max_lanes, " lanes)."));
}

}  // namespace tack
