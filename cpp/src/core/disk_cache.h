// core/disk_cache.h -- a folder of checksummed entries that many processes share; the runtime's memory between processes.
#pragma once

#include <array>
#include <atomic>
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
  /// `folder` empty: disabled. The folder is made at the first put; a relative one is meant from the folder that is current now.
  DiskCache(std::string folder, std::uint64_t max_bytes, Log& log);

  bool enabled() const noexcept { return !folder_.empty(); }
  const std::string& folder() const noexcept { return folder_; }
  /// The subfolder of this format's version, where all entries are.
  const std::string& root() const noexcept { return root_; }
  /// The entry under `key` (any bytes), or nothing. An entry that is damaged is deleted; an I/O error never deletes.
  std::optional<std::vector<std::byte>> get(std::string_view key);
  /// Writes a temporary file and renames it; sweeps the least recently used entries now and then when over max_bytes.
  /// A value that alone exceeds max_bytes is not stored.
  void put(std::string_view key, std::span<const std::byte> value);

 private:
  enum class Trouble : std::size_t { reading, writing, damage };
  static constexpr std::size_t troubles = 3;

  std::string entry_folder(std::string_view name) const;
  std::string entry_path(std::string_view name) const;
  std::string temporary_path(std::string_view name);
  std::optional<std::vector<std::byte>> read_entry(std::string_view key);
  bool write_entry(std::string_view key, std::span<const std::byte> value);
  void discard_damaged(const std::string& path, std::string_view problem);
  void sweep_if_due(std::uint64_t bytes_put);
  void sweep();
  /// A warning the first time in the life of this object, a debug message later: a broken disk is broken for every kernel.
  void report(Trouble trouble, const std::string& message);

  std::string folder_;
  std::string root_;  // the subfolder of this format's version
  std::uint64_t max_bytes_;
  Log& log_;
  std::uint64_t instance_;  // tells the temporary files of processes apart, beside the process id
  std::atomic<std::uint64_t> temporaries_{0};
  std::atomic<std::uint64_t> bytes_put_{0};  // since this process last swept
  std::array<std::atomic<bool>, troubles> reported_{};
};

/// A 256-bit digest of the parts and of their lengths: the same in every process, on every machine. 32 bytes.
std::string digest(std::span<const std::string_view> parts);

}  // namespace tack
