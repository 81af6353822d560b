// core/digest.cpp -- BLAKE2b after RFC 7693, and the digest of several parts that keys are made of.
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/blake2b.h"
#include "core/disk_cache.h"

namespace tack {

namespace {

// The fractional parts of the square roots of the first eight primes.
constexpr std::array<std::uint64_t, 8> initial{0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
                                               0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u};

// Which word of the block enters where, in each round; after ten rounds from the top again.
constexpr std::array<std::array<std::uint8_t, 16>, 10> order{{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                                              {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                                              {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                                              {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                                              {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                                              {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                                              {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                                              {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                                              {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                                              {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}}};
constexpr std::size_t rounds = 12;

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

}  // namespace

Blake2b::Blake2b() noexcept : state_(initial) {
  constexpr std::uint64_t sequential = 0x01010000;  // no key, fan-out 1, depth 1
  state_[0] ^= sequential ^ digest_bytes;
}

void Blake2b::compress(const std::byte* block, bool last) noexcept {
  std::array<std::uint64_t, 16> m;
  std::memcpy(m.data(), block, block_bytes);
  std::array<std::uint64_t, 16> v;
  std::copy(state_.begin(), state_.end(), v.begin());
  std::copy(initial.begin(), initial.end(), v.begin() + 8);
  v[12] ^= total_bytes_;  // the counter has 128 bits; its high half stays 0
  if (last) v[14] = ~v[14];
  const auto mix = [&v](std::size_t a, std::size_t b, std::size_t c, std::size_t d, std::uint64_t x, std::uint64_t y) {
    v[a] += v[b] + x;
    v[d] = std::rotr(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = std::rotr(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = std::rotr(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = std::rotr(v[b] ^ v[c], 63);
  };
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto& s = order[round % order.size()];
    mix(0, 4, 8, 12, m[s[0]], m[s[1]]);
    mix(1, 5, 9, 13, m[s[2]], m[s[3]]);
    mix(2, 6, 10, 14, m[s[4]], m[s[5]]);
    mix(3, 7, 11, 15, m[s[6]], m[s[7]]);
    mix(0, 5, 10, 15, m[s[8]], m[s[9]]);
    mix(1, 6, 11, 12, m[s[10]], m[s[11]]);
    mix(2, 7, 8, 13, m[s[12]], m[s[13]]);
    mix(3, 4, 9, 14, m[s[14]], m[s[15]]);
  }
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i] ^= v[i] ^ v[i + 8];
}

void Blake2b::update(std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    if (pending_bytes_ == block_bytes) {  // more follows, so this block is not the last
      total_bytes_ += block_bytes;
      compress(pending_.data(), false);
      pending_bytes_ = 0;
    }
    if (pending_bytes_ == 0) {
      while (bytes.size() > block_bytes) {
        total_bytes_ += block_bytes;
        compress(bytes.data(), false);
        bytes = bytes.subspan(block_bytes);
      }
    }
    const std::size_t taken = std::min(bytes.size(), block_bytes - pending_bytes_);
    std::memcpy(pending_.data() + pending_bytes_, bytes.data(), taken);
    pending_bytes_ += taken;
    bytes = bytes.subspan(taken);
  }
}

Blake2b::Digest Blake2b::finish() noexcept {
  total_bytes_ += pending_bytes_;
  std::fill(pending_.begin() + static_cast<std::ptrdiff_t>(pending_bytes_), pending_.end(), std::byte{0});
  compress(pending_.data(), true);
  Digest digest;
  std::memcpy(digest.data(), state_.data(), digest.size());
  return digest;
}

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<std::size_t>(byte >> 4)];
    text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

std::string digest(std::span<const std::string_view> parts) {
  Blake2b hash;
  const auto number = [&hash](std::uint64_t value) { hash.update(std::as_bytes(std::span(&value, 1))); };
  number(parts.size());
  for (const std::string_view part : parts) {
    number(part.size());
    hash.update(part);
  }
  const Blake2b::Digest value = hash.finish();
  return {reinterpret_cast<const char*>(value.data()), value.size()};
}

}  // namespace tack
