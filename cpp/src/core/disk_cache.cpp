// core/disk_cache.cpp -- entries as checksummed files: temporary file, rename, and a sweep of the least recently used.
//
// Layout: FOLDER/v1/ab/ab12...ef.entry, named by the digest of the key; beside it, while an entry is written, ab12...ef.PID.ID.tmp.
// FOLDER/v1/sweep is empty: its time of modification says when the last sweep was, its lock who sweeps. Nothing is synced to the disk: what
// a crash of the machine leaves half written fails its checksum and is written anew.
#include "core/disk_cache.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "core/blake2b.h"
#include "core/file.h"
#include "core/log.h"
#include "core/text.h"

namespace tack {

namespace {

constexpr std::uint32_t format_version = 1;
constexpr std::string_view version_folder = "v1";
constexpr std::string_view entry_suffix = ".entry";
constexpr std::string_view temporary_suffix = ".tmp";
constexpr std::size_t name_digits = 2 * Blake2b::digest_bytes;
constexpr std::int64_t hour = 3600;  // seconds: between sweeps, between marks of use, and until a temporary file is nobody's

/// The start of an entry's file; the key and the value follow.
struct EntryHeader {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t key_bytes;
  std::uint64_t value_bytes;
  Blake2b::Digest checksum;  // of all of the file but itself
};
static_assert(sizeof(EntryHeader) == 56);

constexpr std::array<char, 8> entry_magic{'t', 'a', 'c', 'k', 'd', 'c', '\r', '\n'};  // a line end that a text transfer would change

template <class T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span(&value, 1));
}

std::span<const std::byte> bytes_of(std::string_view text) noexcept { return std::as_bytes(std::span(text.data(), text.size())); }

Blake2b::Digest checksum(const EntryHeader& header, std::string_view key, std::span<const std::byte> value) noexcept {
  Blake2b hash;
  hash.update(bytes_of(header).first(offsetof(EntryHeader, checksum)));
  hash.update(key);
  hash.update(value);
  return hash.finish();
}

/// The name of a key's entry, without folder and suffix.
std::string name_of_key(std::string_view key) {
  Blake2b hash;
  hash.update(key);
  return hex(hash.finish());
}

bool is_hex(std::string_view text) noexcept { return text.find_first_not_of("0123456789abcdef") == std::string_view::npos; }

/// "v1", and the folders of other versions, which share the limit of size.
bool is_version_folder(std::string_view name) noexcept {
  return name.size() > 1 && name[0] == 'v' && name.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

/// Calls visit(path, name) for each thing in a folder; what can't be listed is passed over.
template <class Visit>
void for_each_in(const std::string& folder, Visit visit) {
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error))
    visit(at->path().string(), at->path().filename().string());
}

bool older_than_an_hour(std::int64_t modified, std::int64_t now) noexcept { return now - modified >= hour; }

}  // namespace

DiskCache::DiskCache(std::string folder, std::uint64_t max_bytes, Log& log)
    : folder_(std::move(folder)),
      max_bytes_(max_bytes),
      log_(log),
      instance_(static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
                static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(this)) << 20) {
  if (folder_.empty()) return;
  std::error_code error;
  const auto absolute = std::filesystem::absolute(folder_, error);
  if (!error) folder_ = absolute.string();
  root_ = text(folder_, '/', version_folder);
}

std::string DiskCache::entry_folder(std::string_view name) const { return text(root_, '/', name.substr(0, 2)); }

std::string DiskCache::entry_path(std::string_view name) const { return text(entry_folder(name), '/', name, entry_suffix); }

std::string DiskCache::temporary_path(std::string_view name) {
  const std::uint64_t id = instance_ + temporaries_.fetch_add(1, std::memory_order_relaxed);
  return text(entry_folder(name), '/', name, '.', process_id(), '.', id, temporary_suffix);
}

void DiskCache::report(Trouble trouble, const std::string& message) {
  const bool first = !reported_[static_cast<std::size_t>(trouble)].exchange(true, std::memory_order_relaxed);
  log_.write(first ? LogLevel::warning : LogLevel::debug, message);
}

std::optional<std::vector<std::byte>> DiskCache::get(std::string_view key) {
  if (!enabled()) return std::nullopt;
  try {
    return read_entry(key);
  } catch (const std::bad_alloc&) {
    report(Trouble::reading,
           text("Not enough memory to read an entry of the kernel cache in '", folder_, "'; the kernel is compiled again."));
    return std::nullopt;
  }
}

std::optional<std::vector<std::byte>> DiskCache::read_entry(std::string_view key) {
  const std::string path = entry_path(name_of_key(key));
  std::error_code error;
  const File file = File::open(path, error);
  if (error == std::errc::no_such_file_or_directory) return std::nullopt;
  const auto failed = [&](const std::string& reason) {
    report(Trouble::reading, text("Cannot read the kernel cache ('", path, "': ", reason,
                                  "). Kernels are compiled again until that is mended; TACK_CACHE_DIR chooses another folder."));
    return std::nullopt;
  };
  if (error) return failed(error.message());
  const FileInfo info = file.info(error);
  if (error) return failed(error.message());
  if (!info.regular) return failed("not a regular file");

  const auto damaged = [&](std::string_view problem) {
    discard_damaged(path, problem);
    return std::nullopt;
  };
  EntryHeader header;
  std::size_t got = file.read(std::as_writable_bytes(std::span(&header, 1)), error);
  if (error) return failed(error.message());
  if (got != sizeof header) return damaged("it is too short");
  if (header.magic != entry_magic) return damaged("it does not start as an entry does");
  if (header.version != format_version) return damaged("it has another version");
  if (header.key_bytes != key.size()) return damaged("it belongs to another key");
  const std::uint64_t room = info.bytes - std::min<std::uint64_t>(info.bytes, sizeof header + key.size());
  if (header.value_bytes != room) return damaged("its length is wrong");

  std::string stored_key(key.size(), '\0');
  got = file.read(std::as_writable_bytes(std::span(stored_key.data(), stored_key.size())), error);
  if (error) return failed(error.message());
  if (got != key.size()) return damaged("it is too short");
  std::vector<std::byte> value(static_cast<std::size_t>(room));
  got = file.read(value, error);
  if (error) return failed(error.message());
  if (got != value.size()) return damaged("it is too short");
  if (checksum(header, stored_key, value) != header.checksum) return damaged("its checksum is wrong");
  if (stored_key != key) return damaged("it belongs to another key");

  const std::int64_t now = wall_clock();
  if (older_than_an_hour(info.modified, now) || info.modified > now + hour) file.touch(error);  // a read-only folder keeps its times
  return value;
}

void DiskCache::discard_damaged(const std::string& path, std::string_view problem) {
  std::error_code error;
  remove_file(path, error);
  report(Trouble::damage, text("An entry of the kernel cache is damaged: ", problem, " ('", path, "'). It is ",
                               error ? "ignored" : "deleted", ", and the kernel compiled again."));
}

void DiskCache::put(std::string_view key, std::span<const std::byte> value) {
  if (!enabled()) return;
  const std::uint64_t bytes = sizeof(EntryHeader) + std::uint64_t{key.size()} + value.size();
  try {
    if (bytes > max_bytes_) {
      log_.write(LogLevel::debug, text("A kernel of ", bytes_text(bytes), " is not kept in the kernel cache, whose limit is ",
                                       bytes_text(max_bytes_), " (TACK_CACHE_SIZE)."));
      return;
    }
    if (write_entry(key, value)) sweep_if_due(bytes);
  } catch (const std::bad_alloc&) {
    report(Trouble::writing, text("Not enough memory to write to the kernel cache in '", folder_, "'."));
  }
}

bool DiskCache::write_entry(std::string_view key, std::span<const std::byte> value) {
  EntryHeader header{.magic = entry_magic,
                     .version = format_version,
                     .key_bytes = static_cast<std::uint32_t>(key.size()),
                     .value_bytes = value.size(),
                     .checksum = {}};
  header.checksum = checksum(header, key, value);
  const std::string name = name_of_key(key);
  std::error_code error;
  std::string temporary;
  File file;
  // Folders are made when they turn out to be missing; somebody may be deleting the cache at the same time, so this is tried a few times.
  for (int attempt = 0; attempt < 4; ++attempt) {
    temporary = temporary_path(name);
    file = File::create(temporary, error);
    if (error == std::errc::file_exists) continue;  // left by a dead process that had our id; the next name differs
    if (error != std::errc::no_such_file_or_directory) break;
    make_folders(folder_, error);
    if (!error) make_folder(root_, error);
    if (!error) make_folder(entry_folder(name), error);
    if (error && error != std::errc::no_such_file_or_directory) break;
    error = std::make_error_code(std::errc::no_such_file_or_directory);
  }
  if (!error) {
    file.write({bytes_of(header), bytes_of(key), value}, error);
    std::error_code late;
    file.close(late);
    if (!error) error = late;
    if (!error) rename_file(temporary, entry_path(name), error);
    if (!error) return true;
    std::error_code ignored;
    remove_file(temporary, ignored);
  }
  report(Trouble::writing, text("Cannot write to the kernel cache in '", folder_, "' (", error.message(),
                                "). Kernels are not kept for later processes until that is mended; TACK_CACHE_DIR chooses another folder, "
                                "TACK_CACHE=0 does without."));
  return false;
}

void DiskCache::sweep_if_due(std::uint64_t bytes_put) {
  const std::uint64_t put = bytes_put_.fetch_add(bytes_put, std::memory_order_relaxed) + bytes_put;
  const bool put_much = put > max_bytes_ / 10;
  const std::string stamp = text(root_, "/sweep");
  std::error_code error;
  const FileInfo before = file_info(stamp, error);
  const bool missing = static_cast<bool>(error);
  const std::int64_t now = wall_clock();
  const bool late = missing || older_than_an_hour(before.modified, now) || before.modified > now + hour;
  if (!put_much && !late) return;

  const File file = File::open_or_create(stamp, error);
  if (error) return;                            // the entry was written, so this is a passing trouble; the next put asks again
  if (!file.try_lock(error) && !error) return;  // another sweeps; where a file system has no locks, two may, which does no harm
  const FileInfo held = file.info(error);
  if (!put_much && !missing && held.modified != before.modified) return;  // another has just swept
  file.touch(error);
  bytes_put_.store(0, std::memory_order_relaxed);
  sweep();
}

void DiskCache::sweep() {
  struct Entry {
    std::int64_t modified;
    std::uint64_t bytes;
    std::string path;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  const std::int64_t now = wall_clock();
  const auto visit_file = [&](const std::string& path, std::string_view name) {
    if (name.size() <= name_digits || !is_hex(name.substr(0, name_digits))) return;  // not ours
    std::error_code error;
    const FileInfo info = file_info(path, error);
    if (error || !info.regular) return;
    if (name.ends_with(temporary_suffix)) {
      if (older_than_an_hour(info.modified, now)) remove_file(path, error);  // its writer was killed
    } else if (name.substr(name_digits) == entry_suffix) {
      entries.push_back({info.modified, info.bytes, path});
      total += info.bytes;
    }
  };
  for_each_in(folder_, [&](const std::string& version_path, std::string_view version) {
    if (!is_version_folder(version)) return;
    for_each_in(version_path, [&](const std::string& path, std::string_view name) {
      if (name.size() == 2 && is_hex(name)) for_each_in(path, visit_file);
    });
  });
  if (total <= max_bytes_) return;

  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.modified < b.modified; });
  const std::uint64_t goal = max_bytes_ / 10 * 8;
  const std::uint64_t before = total;
  std::size_t removed = 0;
  for (const Entry& entry : entries) {
    if (total <= goal) break;
    std::error_code error;
    remove_file(entry.path, error);
    if (error && error != std::errc::no_such_file_or_directory) continue;
    total -= entry.bytes;
    ++removed;
  }
  log_.write(LogLevel::info, text("Swept ", removed, " entries of the kernel cache in '", folder_, "': ", bytes_text(before), " are now ",
                                  bytes_text(total), "."));
}

}  // namespace tack
