// test_file.cpp -- the file operations of the disk cache, as every system must do them.
#include "core/file.h"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "core/disk_cache.h"
#include "core/log.h"

using tack::File;
using tack::FileInfo;

namespace {

/// A folder of the test's own, which goes with it.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("tack-file-" + std::to_string(std::random_device()()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

void write_all(const std::string& path, std::string_view text) {
  std::error_code error;
  File file = File::create(path, error);
  REQUIRE_FALSE(error);
  file.write({bytes_of(text.substr(0, 2)), {}, bytes_of(text.substr(2))}, error);
  REQUIRE_FALSE(error);
  file.close(error);
  REQUIRE_FALSE(error);
}

std::string read_all(const File& file) {
  std::array<char, 100> room{};
  std::error_code error;
  const std::size_t got = file.read(std::as_writable_bytes(std::span(room)), error);
  CHECK_FALSE(error);
  return {room.data(), got};
}

std::string read_all(const std::string& path) {
  std::error_code error;
  const File file = File::open(path, error);
  REQUIRE_FALSE(error);
  return read_all(file);
}

}  // namespace

TEST_CASE("what is written is read; a new file is nobody else's") {
  const Folder folder;
  const std::string path = folder / "a";
  write_all(path, "hello");
  CHECK(read_all(path) == "hello");
  std::error_code error;
  File::create(path, error);
  CHECK(error == std::errc::file_exists);
  CHECK(read_all(path) == "hello");
  File::open(folder / "b", error);
  CHECK(error == std::errc::no_such_file_or_directory);
  File::create((folder / "no") + "/b", error);
  CHECK(error == std::errc::no_such_file_or_directory);
  CHECK_FALSE(error.message().empty());
}

TEST_CASE("information: length, kind, age") {
  const Folder folder;
  write_all(folder / "a", "hello");
  std::error_code error;
  const FileInfo info = tack::file_info(folder / "a", error);
  CHECK_FALSE(error);
  CHECK(info.bytes == 5);
  CHECK(info.regular);
  CHECK(info.modified >= tack::wall_clock() - 60);
  CHECK(info.modified <= tack::wall_clock() + 60);
  CHECK_FALSE(tack::file_info(folder / "", error).regular);
  CHECK_FALSE(error);
  tack::file_info(folder / "b", error);
  CHECK(error == std::errc::no_such_file_or_directory);

  const auto long_ago = std::filesystem::last_write_time(folder / "a") - std::chrono::hours(48);
  std::filesystem::last_write_time(folder / "a", long_ago);
  CHECK(tack::file_info(folder / "a", error).modified <= info.modified - 47 * 3600);
  const File file = File::open(folder / "a", error);
  file.touch(error);
  CHECK_FALSE(error);
  CHECK(file.info(error).modified >= info.modified);
  CHECK(file.info(error).bytes == 5);
}

TEST_CASE("a rename replaces, also what somebody reads; so does a removal") {
  const Folder folder;
  write_all(folder / "new", "second");
  write_all(folder / "entry", "first");
  std::error_code error;
  const File reader = File::open(folder / "entry", error);
  REQUIRE_FALSE(error);
  tack::rename_file(folder / "new", folder / "entry", error);
  CHECK_FALSE(error);
  CHECK(read_all(reader) == "first");
  CHECK(read_all(folder / "entry") == "second");
  tack::file_info(folder / "new", error);
  CHECK(error == std::errc::no_such_file_or_directory);

  {
    const File second = File::open(folder / "entry", error);
    tack::remove_file(folder / "entry", error);
    CHECK_FALSE(error);
    CHECK(read_all(second) == "second");
  }
  tack::remove_file(folder / "entry", error);
  CHECK(error == std::errc::no_such_file_or_directory);
  tack::rename_file(folder / "entry", folder / "other", error);
  CHECK(error == std::errc::no_such_file_or_directory);
}

TEST_CASE("a lock is held by one, until its file is closed") {
  const Folder folder;
  std::error_code error;
  File first = File::open_or_create(folder / "lock", error);
  const File second = File::open_or_create(folder / "lock", error);
  CHECK(first.try_lock(error));
  CHECK_FALSE(second.try_lock(error));
  CHECK_FALSE(error);
  first.close(error);
  CHECK(second.try_lock(error));
}

TEST_CASE("folders, and names longer than most programs allow") {
  const Folder folder;
  std::error_code error;
  std::string deep = folder / "a";
  for (int i = 0; i < 6; ++i) deep += "/" + std::string(60, 'x');
  tack::make_folders(deep, error);
  CHECK_FALSE(error);
  tack::make_folders(deep, error);
  CHECK_FALSE(error);
  tack::make_folder(deep + "/b", error);
  CHECK_FALSE(error);
  tack::make_folder(deep + "/b", error);
  CHECK_FALSE(error);
  write_all(deep + "/b/file", "hello");
  CHECK(read_all(deep + "/b/file") == "hello");
  tack::rename_file(deep + "/b/file", deep + "/b/other", error);
  CHECK_FALSE(error);
  CHECK(read_all(deep + "/b/other") == "hello");
}

TEST_CASE("the disk cache over these operations: one object stores, another finds") {
  const Folder folder;
  tack::Log log(tack::LogLevel::warning);
  std::string said;
  log.set_sink([&](tack::LogLevel, std::string_view text) { said += text; });
  const std::string value(100'000, 'v');
  {
    tack::DiskCache cache(folder / "cache", 1 << 20, log);
    CHECK_FALSE(cache.get("key"));
    cache.put("key", bytes_of(value));
    cache.put("key", bytes_of(value));
  }
  tack::DiskCache cache(folder / "cache", 1 << 20, log);
  const auto found = cache.get("key");
  REQUIRE(found);
  CHECK(found->size() == value.size());
  for (int i = 0; i < 30; ++i) cache.put("key" + std::to_string(i), bytes_of(value));  // sweeps on the way
  std::size_t kept = 0;
  for (int i = 0; i < 30; ++i) kept += cache.get("key" + std::to_string(i)) ? 1u : 0u;
  CHECK(kept >= 5);
  CHECK(kept <= 12);
  CHECK(said == "");
}
