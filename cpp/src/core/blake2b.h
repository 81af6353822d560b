// core/blake2b.h -- BLAKE2b (RFC 7693) with a digest of 256 bits: names and checksums of cache entries.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tack {

/// Feed it any number of pieces, then call finish once.
class Blake2b {
 public:
  static constexpr std::size_t digest_bytes = 32;
  using Digest = std::array<std::byte, digest_bytes>;

  Blake2b() noexcept;
  void update(std::span<const std::byte> bytes) noexcept;
  void update(std::string_view bytes) noexcept { update(std::as_bytes(std::span(bytes.data(), bytes.size()))); }
  Digest finish() noexcept;

 private:
  static constexpr std::size_t block_bytes = 128;
  void compress(const std::byte* block, bool last) noexcept;

  std::array<std::uint64_t, 8> state_;
  std::array<std::byte, block_bytes> pending_{};  // the last block, held back since it is compressed differently
  std::size_t pending_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

/// Lower-case hexadecimal digits.
std::string hex(std::span<const std::byte> bytes);

}  // namespace tack
