// core/disk_cache.h -- a folder of checksummed entries that many processes share; the runtime's memory between processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tack {

class Log;

/// Thread-safe and process-safe. No failure of the disk is an error of the caller's: get answers nothing, put does nothing, both log.
class DiskCache {
 public:
  /// `folder` empty: disabled. The folder is made at the first put.
  DiskCache(std::string folder, std::uint64_t max_bytes, Log& log);

  bool enabled() const noexcept { return !folder_.empty(); }
  const std::string& folder() const noexcept { return folder_; }
  /// The entry under `key` (any bytes), or nothing. An entry that is damaged is deleted; an I/O error never deletes.
  std::optional<std::vector<std::byte>> get(std::string_view key);
  /// Writes a temporary file and renames it; sweeps the least recently used entries now and then when over max_bytes.
  void put(std::string_view key, std::span<const std::byte> value);

 private:
  std::string folder_;
  std::uint64_t max_bytes_;
  Log& log_;
};

/// A 256-bit digest of the parts and of their lengths: the same in every process, on every machine. 32 bytes.
std::string digest(std::span<const std::string_view> parts);

}  // namespace tack
