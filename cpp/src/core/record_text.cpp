// core/record_text.cpp -- the texts of records: placeholders filled with values as Python writes them.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <system_error>

#include "core/records.h"

namespace tack {

namespace {

/// Of Python's format specifications, those that numbers in kernels need: [+][0][width][.precision][type].
struct Spec {
  bool plus = false;
  bool zeros = false;
  int width = 0;
  int precision = -1;
  char type = 0;
  bool empty() const noexcept { return !plus && !zeros && width == 0 && precision < 0 && type == 0; }
};

constexpr int max_field = 99;

/// A number of at most two digits at the front of `text`, taken off; -1 for none.
int take_number(std::string_view& text) noexcept {
  int value = -1;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    value = (value < 0 ? 0 : value) * 10 + (text.front() - '0');
    if (value > max_field) return max_field + 1;
    text.remove_prefix(1);
  }
  return value;
}

std::optional<Spec> parse(std::string_view text) noexcept {
  Spec spec;
  if (!text.empty() && text.front() == '+') {
    spec.plus = true;
    text.remove_prefix(1);
  }
  if (!text.empty() && text.front() == '0') {
    spec.zeros = true;
    text.remove_prefix(1);
  }
  spec.width = std::max(take_number(text), 0);
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    spec.precision = take_number(text);
    if (spec.precision < 0) return std::nullopt;
  }
  if (!text.empty()) {
    spec.type = text.front();
    text.remove_prefix(1);
  }
  if (!text.empty() || spec.width > max_field || spec.precision > max_field) return std::nullopt;
  return spec;
}

bool fits(const Spec& spec, DType type) noexcept {
  if (spec.empty()) return true;
  if (type.code == TypeCode::bool_) return false;
  constexpr std::string_view of_floats = "eEfFgG", of_ints = "dxXob";
  if (spec.type != 0 && of_floats.find(spec.type) != std::string_view::npos) return true;
  if (spec.precision >= 0) return false;
  return spec.type == 0 || (!type.is_float() && of_ints.find(spec.type) != std::string_view::npos);
}

/// Calls `literal(text)` and `value(spec text)` for the parts of a text; false where it is malformed.
template <class Literal, class Place>
bool each_part(std::string_view text, Literal literal, Place place) {
  while (!text.empty()) {
    const std::size_t brace = text.find_first_of("{}");
    if (brace == std::string_view::npos) {
      literal(text);
      return true;
    }
    if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {
      literal(text.substr(0, brace + 1));
      text.remove_prefix(brace + 2);
      continue;
    }
    const std::size_t end = text.find('}', brace);
    if (text[brace] == '}' || end == std::string_view::npos) return false;
    if (brace != 0) literal(text.substr(0, brace));
    const std::string_view inside = text.substr(brace + 1, end - brace - 1);
    if (!inside.empty() && inside.front() != ':') return false;
    if (!place(inside.empty() ? inside : inside.substr(1))) return false;
    text.remove_prefix(end + 1);
  }
  return true;
}

/// As Python's repr: the fewest digits that give the value back, with an exponent below 1e-4 and from 1e16 on.
template <class Float>
std::string shortest(Float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = text.find('e');
  int exponent = 0;
  const char* const digits_of_exponent = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits_of_exponent, text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(text);
  std::string sign, digits;
  for (const char c : text.substr(0, e)) {
    if (c == '-') sign = "-";
    if (c >= '0' && c <= '9') digits += c;
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::int64_t signed_of(DType type, std::uint64_t bits) noexcept {
  const int unused = 64 - type.bits;
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

std::uint64_t unsigned_of(DType type, std::uint64_t bits) noexcept {
  const int unused = 64 - type.bits;
  return bits << unused >> unused;
}

double float_of(DType type, std::uint64_t bits) noexcept {
  if (type.is_float())
    return type.bits == 32 ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))) : std::bit_cast<double>(bits);
  return type.code == TypeCode::int_ ? static_cast<double>(signed_of(type, bits)) : static_cast<double>(unsigned_of(type, bits));
}

std::string integer(DType type, std::uint64_t bits, char format) {
  std::uint64_t magnitude = unsigned_of(type, bits);
  bool negative = false;
  if (type.code == TypeCode::int_) {
    const std::int64_t value = signed_of(type, bits);
    negative = value < 0;
    magnitude = negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  }
  const int base = format == 'x' || format == 'X' ? 16 : format == 'o' ? 8 : format == 'b' ? 2 : 10;
  std::array<char, 65> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude, base);
  std::string text(negative ? "-" : "");
  for (const char* c = buffer.data(); c != end; ++c) text += format == 'X' && *c >= 'a' ? static_cast<char>(*c - 'a' + 'A') : *c;
  return text;
}

std::string floating(double value, const Spec& spec) {
  if (!std::isfinite(value)) {
    std::string text = shortest(value);
    if (spec.type == 'E' || spec.type == 'F' || spec.type == 'G')
      for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return text;
  }
  const std::array<char, 5> format{'%', '.', '*', spec.type, 0};
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  std::array<char, 512> buffer;  // 309 digits, a sign, a point and 99 decimals
  const int size = std::snprintf(buffer.data(), buffer.size(), format.data(), precision, value);
  return {buffer.data(), static_cast<std::size_t>(std::max(size, 0))};
}

std::string written(const Spec& spec, DType type, std::uint64_t bits) {
  if (type.code == TypeCode::bool_) return (bits & 1) != 0 ? "True" : "False";
  constexpr std::string_view of_floats = "eEfFgG";
  std::string text;
  if (spec.type != 0 && of_floats.find(spec.type) != std::string_view::npos)
    text = floating(float_of(type, bits), spec);
  else if (!type.is_float())
    text = integer(type, bits, spec.type);
  else if (type.bits == 32)
    text = shortest(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  else
    text = shortest(std::bit_cast<double>(bits));
  if (spec.plus && text.front() != '-') text.insert(0, 1, '+');
  const auto width = static_cast<std::size_t>(spec.width);
  if (text.size() >= width) return text;
  const std::size_t sign = spec.zeros && (text.front() == '-' || text.front() == '+') ? 1 : 0;
  text.insert(sign, width - text.size(), spec.zeros ? '0' : ' ');
  return text;
}

}  // namespace

bool fits_values(const RecordSite& site) noexcept {
  std::size_t count = 0;
  const bool good = each_part(
      site.text, [](std::string_view) {},
      [&](std::string_view text) {
        const std::optional<Spec> spec = parse(text);
        const bool fitting = spec && count < site.values.size() && fits(*spec, site.values[count]);
        ++count;
        return fitting;
      });
  return good && count == site.values.size();
}

std::string said(const RecordSite& site, std::span<const std::uint64_t> values) {
  std::string out;
  std::size_t next = 0;
  each_part(
      site.text, [&](std::string_view literal) { out += literal; },
      [&](std::string_view text) {
        const std::optional<Spec> spec = parse(text);
        out += written(spec.value_or(Spec{}), site.values[next], values[next]);
        ++next;
        return true;
      });
  return out;
}

}  // namespace tack
