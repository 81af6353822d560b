// core/checked_arithmetic.h -- sums and products of 64-bit integers that say whether they overflowed, on every compiler.
#pragma once

#include <cstdint>

#if defined(_MSC_VER) && !defined(__clang__)
#  include <intrin.h>
#endif

namespace tack {

/// Puts a + b, modulo 2^64, into `sum`; true when that is not the true sum.
[[nodiscard]] inline bool add_overflows(std::int64_t a, std::int64_t b, std::int64_t& sum) noexcept {
#if defined(_MSC_VER) && !defined(__clang__)
  sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  return ((a ^ sum) & (b ^ sum)) < 0;
#else
  return __builtin_add_overflow(a, b, &sum);
#endif
}

/// Puts a * b, modulo 2^64, into `product`; true when that is not the true product.
[[nodiscard]] inline bool multiply_overflows(std::int64_t a, std::int64_t b, std::int64_t& product) noexcept {
#if defined(_MSC_VER) && !defined(__clang__)
  product = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  return __mulh(a, b) != product >> 63;
#else
  return __builtin_mul_overflow(a, b, &product);
#endif
}

}  // namespace tack
