// test_disk_cache.cpp -- the disk cache: round trips, damage, concurrent and killed processes, full and read-only disks, the sweep.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#if defined(__linux__)
#  include <sched.h>
#endif

#include "core/blake2b.h"
#include "core/disk_cache.h"
#include "core/log.h"

namespace fs = std::filesystem;
using tack::DiskCache;

namespace {

constexpr std::uint64_t megabyte = 1 << 20;

/// A new folder that anyone may enter; removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "tack-cache-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
    fs::permissions(path,
                    fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read | fs::perms::others_exec);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  fs::path path;
};

/// A log that counts what it is given at each level and keeps the text.
class CountingLog {
 public:
  CountingLog() : log(tack::LogLevel::debug) {
    log.set_sink([this](tack::LogLevel level, std::string_view message) {
      const std::lock_guard lock(mutex_);
      if (level == tack::LogLevel::warning) warnings += std::string(message) + "\n";
      if (level == tack::LogLevel::warning) ++warning_count;
    });
  }
  tack::Log log;
  std::string warnings;
  int warning_count = 0;

 private:
  std::mutex mutex_;
};

struct Fixture {
  TemporaryFolder folder;
  CountingLog log;
  fs::path place = folder.path / "cache";
  DiskCache cache{place.string(), 64 * megabyte, log.log};
};

std::vector<std::byte> bytes(std::string_view text) {
  const auto view = std::as_bytes(std::span(text.data(), text.size()));
  return {view.begin(), view.end()};
}

/// A value that tells its key and version: any mixture of two is noticed.
std::vector<std::byte> patterned(std::size_t size, unsigned seed) {
  std::vector<std::byte> value(size);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::byte& b : value) {
    state = state * 1664525u + 1013904223u;
    b = static_cast<std::byte>(state >> 24);
  }
  return value;
}

std::vector<fs::path> files_ending(const fs::path& folder, std::string_view suffix) {
  std::vector<fs::path> found;
  if (!fs::exists(folder)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().string().ends_with(suffix)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

fs::path only_entry(const fs::path& folder) {
  const auto found = files_ending(folder, ".entry");
  REQUIRE(found.size() == 1);
  return found[0];
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(content.data(), static_cast<std::streamsize>(content.size()));
}

void set_age(const fs::path& path, std::chrono::seconds age) { fs::last_write_time(path, fs::file_time_type::clock::now() - age); }

std::chrono::seconds age_of(const fs::path& path) {
  return std::chrono::duration_cast<std::chrono::seconds>(fs::file_time_type::clock::now() - fs::last_write_time(path));
}

/// A fork whose child does not print again what the parent has written.
pid_t fork_quietly() {
  std::cout.flush();
  return fork();
}

/// Runs `work` in a child process; its result, or -1 when the child died.
int in_child(const std::function<int()>& work) {
  const pid_t child = fork_quietly();
  REQUIRE(child >= 0);
  if (child == 0) {
    int result = 99;
    try {
      result = work();
    } catch (...) {
      result = 98;
    }
    _exit(result);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Gives up root's rights, before which no permission holds. False when this process keeps them.
bool become_unprivileged() {
  constexpr uid_t nobody = 65534;
  if (geteuid() != 0) return true;
  return setgid(nobody) == 0 && setuid(nobody) == 0;
}

}  // namespace

TEST_CASE("blake2b: the digests of other implementations") {
  const auto of = [](std::string_view text) {
    tack::Blake2b hash;
    hash.update(text);
    return tack::hex(hash.finish());
  };
  const auto counted = [](std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i % 251);
    return text;
  };
  CHECK(of("") == "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  CHECK(of("abc") == "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  CHECK(of(counted(128)) == "c3582f71ebb2be66fa5dd750f80baae97554f3b015663c8be377cfcb2488c1d1");
  CHECK(of(counted(129)) == "f7f3c46ba2564ff4c4c162da1f5b605f9f1c4aa6a20652a9f9a337c1a2f5b9c9");
  CHECK(of(counted(100000)) == "916cfaa800ee55811e82095babeb88ea29c9ef8a36e8d7e20c7b772c344c9e1c");

  // The same in pieces of any size.
  const std::string text = counted(1000);
  for (std::size_t piece = 1; piece < 300; ++piece) {
    tack::Blake2b hash;
    for (std::size_t at = 0; at < text.size(); at += piece) hash.update(std::string_view(text).substr(at, piece));
    REQUIRE(tack::hex(hash.finish()) == of(text));
  }
}

TEST_CASE("digest: of parts and their lengths") {
  const auto of = [](std::vector<std::string_view> parts) {
    const std::string digest = tack::digest(parts);
    CHECK(digest.size() == 32);
    return tack::hex(std::as_bytes(std::span(digest.data(), digest.size())));
  };
  CHECK(of({}) == "81e47a19e6b29b0a65b9591762ce5143ed30d0261e5d24a3201752506b20f15c");
  CHECK(of({"ab", "c"}) == "7708ed971a95ad875640426733375ad2e0c1a2272209be9299859bd7e9851b0c");
  CHECK(of({"a", "bc"}) == "52aea2577b065797eac24dd57464d8ba21987f83b2a4e88f99070359e3cd21ee");
  CHECK(of({"abc"}) != of({"abc", ""}));
}

TEST_CASE_FIXTURE(Fixture, "values come back as they were put") {
  CHECK_FALSE(cache.get("absent").has_value());
  CHECK_FALSE(fs::exists(place));  // asking makes nothing

  const std::string odd_key("a\0b\xff/../\n", 9);
  for (const std::size_t size : {0u, 1u, 10'000u, 1'000'003u}) {
    const auto value = patterned(size, static_cast<unsigned>(size));
    cache.put(odd_key, value);
    CHECK(cache.get(odd_key) == value);
  }
  cache.put("", bytes("under the empty key"));
  CHECK(cache.get("") == bytes("under the empty key"));
  CHECK(files_ending(place, ".entry").size() == 2);
  CHECK(files_ending(place, ".tmp").empty());
  CHECK(log.warnings == "");

  DiskCache other(place.string(), megabyte, log.log);
  CHECK(other.get("") == bytes("under the empty key"));
  CHECK(other.folder() == place.string());

  struct stat status{};
  REQUIRE(stat(place.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);  // a new cache is this user's alone
}

TEST_CASE("a disabled cache does nothing") {
  CountingLog log;
  DiskCache cache("", megabyte, log.log);
  CHECK_FALSE(cache.enabled());
  cache.put("k", bytes("v"));
  CHECK_FALSE(cache.get("k").has_value());
  CHECK(log.warnings == "");
}

TEST_CASE_FIXTURE(Fixture, "a value above the limit is not kept, and does not push others out") {
  DiskCache small(place.string(), 1000, log.log);
  small.put("small", patterned(500, 1));
  small.put("large", patterned(1000, 2));
  CHECK(small.get("small") == patterned(500, 1));
  CHECK_FALSE(small.get("large").has_value());
}

TEST_CASE_FIXTURE(Fixture, "a relative folder means the one from where the cache was made") {
  const fs::path before = fs::current_path();
  fs::current_path(folder.path);
  DiskCache relative("here", megabyte, log.log);
  fs::current_path(before);
  relative.put("k", bytes("v"));
  CHECK(files_ending(folder.path / "here", ".entry").size() == 1);
  CHECK(relative.get("k") == bytes("v"));
}

TEST_CASE_FIXTURE(Fixture, "every flipped bit, every truncation and every appended byte is noticed, and the entry deleted") {
  const auto value = patterned(60, 5);
  cache.put("key", value);
  const fs::path entry = only_entry(place);
  const std::string good = read_file(entry);
  REQUIRE(good.size() == 56 + 3 + 60);

  const auto is_refused = [&](const std::string& content) {
    write_file(entry, content);
    return !cache.get("key").has_value() && !fs::exists(entry);
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      INFO("byte ", i, ", bit ", bit);
      REQUIRE(is_refused(bad));
    }
  }
  for (std::size_t length = 0; length < good.size(); ++length) {
    INFO("length ", length);
    REQUIRE(is_refused(good.substr(0, length)));
  }
  CHECK(is_refused(good + '\0'));
  CHECK(log.warning_count == 1);  // the first of them; the others are debug messages
  CHECK(log.warnings.find("damaged") != std::string::npos);
  CHECK(log.warnings.find(entry.string()) != std::string::npos);

  cache.put("key", value);
  CHECK(cache.get("key") == value);
}

TEST_CASE_FIXTURE(Fixture, "an entry under another key's name is not believed") {
  cache.put("one", bytes("1"));
  const fs::path one = only_entry(place);
  const std::string content = read_file(one);
  cache.put("two", bytes("2"));
  for (const fs::path& path : files_ending(place, ".entry")) write_file(path, content);
  CHECK_FALSE(cache.get("two").has_value());
  CHECK(cache.get("one") == bytes("1"));
  CHECK(files_ending(place, ".entry") == std::vector<fs::path>{one});
}

TEST_CASE_FIXTURE(Fixture, "what cannot be read is not deleted") {
  cache.put("key", bytes("value"));
  const fs::path entry = only_entry(place);

  SUBCASE("a folder in an entry's place") {
    fs::remove(entry);
    fs::create_directory(entry);
    CHECK_FALSE(cache.get("key").has_value());
    CHECK(fs::is_directory(entry));
    cache.put("key", bytes("value"));
    CHECK(log.warning_count == 2);  // one for reading, one for writing
  }
  SUBCASE("a pipe in an entry's place does not make us wait") {
    fs::remove(entry);
    REQUIRE(mkfifo(entry.c_str(), 0600) == 0);
    CHECK_FALSE(cache.get("key").has_value());
    CHECK(fs::is_fifo(entry));
    CHECK(log.warning_count == 1);
  }
  SUBCASE("no permission") {
    fs::permissions(place, fs::perms::all);
    fs::permissions(entry, fs::perms::none);
    const int result = in_child([&] {
      if (!become_unprivileged()) return 10;
      for (int i = 0; i < 3; ++i)
        if (cache.get("key").has_value()) return 1;
      return log.warning_count == 1 ? 0 : 2;
    });
    if (result == 10) {
      MESSAGE("skipped: this process cannot give up its rights");
    } else {
      CHECK(result == 0);
    }
    CHECK(fs::exists(entry));
    fs::permissions(entry, fs::perms::owner_all);
    CHECK(cache.get("key") == bytes("value"));
  }
}

TEST_CASE("a folder that cannot be made: one warning, then work goes on") {
  TemporaryFolder folder;
  CountingLog log;
  write_file(folder.path / "file", "in the way");
  DiskCache cache((folder.path / "file" / "cache").string(), megabyte, log.log);
  for (int i = 0; i < 5; ++i) cache.put("key" + std::to_string(i), bytes("value"));
  CHECK(log.warning_count == 1);
  CHECK(log.warnings.find("Cannot write to the kernel cache") != std::string::npos);
  CHECK(log.warnings.find("TACK_CACHE_DIR") != std::string::npos);
  CHECK_FALSE(cache.get("key0").has_value());
  CHECK(log.warning_count == 2);  // "not a directory" is an error of reading, which says something else
}

TEST_CASE_FIXTURE(Fixture, "a read-only folder is read, and written to no more") {
  cache.put("key", bytes("value"));
  set_age(only_entry(place), std::chrono::hours(3));  // so that get wants to mark its use
  fs::permissions(only_entry(place), fs::perms::owner_read | fs::perms::others_read);
  for (const auto& entry : fs::recursive_directory_iterator(folder.path))
    if (entry.is_directory())
      fs::permissions(entry, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
  const int result = in_child([&] {
    if (!become_unprivileged()) return 10;
    for (int i = 0; i < 3; ++i) {
      if (cache.get("key") != bytes("value")) return 1;
      cache.put("new" + std::to_string(i), bytes("value"));
      if (cache.get("new" + std::to_string(i)).has_value()) return 2;
    }
    return log.warning_count == 1 ? 0 : 3;
  });
  for (const auto& entry : fs::recursive_directory_iterator(folder.path))
    if (entry.is_directory()) fs::permissions(entry, fs::perms::owner_all);
  if (result == 10) {
    MESSAGE("skipped: this process cannot give up its rights");
  } else {
    CHECK(result == 0);
  }
}

TEST_CASE_FIXTURE(Fixture, "a write that fails half-way leaves nothing behind") {
  const int result = in_child([&] {
    const rlimit limit{.rlim_cur = 5000, .rlim_max = 5000};
    if (std::signal(SIGXFSZ, SIG_IGN) == SIG_ERR || setrlimit(RLIMIT_FSIZE, &limit) != 0) return 10;
    cache.put("fits", patterned(4000, 1));
    for (int i = 0; i < 3; ++i) cache.put("too large", patterned(6000, 2));
    if (cache.get("fits") != patterned(4000, 1)) return 1;
    if (cache.get("too large").has_value()) return 2;
    if (!files_ending(place, ".tmp").empty()) return 3;
    return log.warning_count == 1 ? 0 : 4;
  });
  CHECK(result == 0);
}

#if defined(__linux__)
TEST_CASE_FIXTURE(Fixture, "a full disk: one warning, what was there stays readable") {
  fs::create_directory(place);
  const int result = in_child([&] {
    // In a mount namespace of its own, so that nothing outside the child sees the small file system.
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 10;
    if (mount("tmpfs", place.c_str(), "tmpfs", 0, "size=1m") != 0) return 10;
    int kept = 0;
    for (unsigned i = 0; i < 64; ++i) {
      cache.put("key" + std::to_string(i), patterned(50'000, i));
      const auto value = cache.get("key" + std::to_string(i));
      if (value.has_value() && *value != patterned(50'000, i)) return 1;
      kept += value.has_value() ? 1 : 0;
    }
    if (kept < 10 || kept > 20) return 2;
    for (unsigned i = 0; i < static_cast<unsigned>(kept); ++i)
      if (cache.get("key" + std::to_string(i)) != patterned(50'000, i)) return 3;
    if (!files_ending(place, ".tmp").empty()) return 4;
    if (log.warning_count != 1) return 5;
    return log.warnings.find("No space left") != std::string::npos ? 0 : 6;
  });
  if (result == 10) {
    MESSAGE("skipped: this process may not mount a small tmpfs");
  } else {
    CHECK(result == 0);
  }
}
#endif

TEST_CASE_FIXTURE(Fixture, "threads share one cache") {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 100; ++i) {
        const unsigned key = (i * 7 + t) % 10;
        cache.put("key" + std::to_string(key), patterned(3000 + key, key));
        const auto value = cache.get("key" + std::to_string((key + 3) % 10));
        const unsigned asked = (key + 3) % 10;
        if (value.has_value() && *value != patterned(3000 + asked, asked)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(log.warnings == "");
  CHECK(files_ending(place, ".entry").size() == 10);
  CHECK(files_ending(place, ".tmp").empty());
}

TEST_CASE_FIXTURE(Fixture, "processes share one folder, while it is swept") {
  std::vector<pid_t> children;
  for (unsigned process = 0; process < 4; ++process) {
    const pid_t child = fork_quietly();
    REQUIRE(child >= 0);
    if (child == 0) {
      DiskCache mine(place.string(), 300'000, log.log);  // so small that sweeps come all the time
      int result = 0;
      for (unsigned i = 0; i < 150; ++i) {
        const unsigned key = (i * 7 + process) % 20;
        // Two versions of each value race under one key; either may be read, a mixture never.
        mine.put("key" + std::to_string(key), patterned(20'000 + key, key + 100 * (process % 2)));
        const unsigned asked = (key + 3) % 20;
        const auto value = mine.get("key" + std::to_string(asked));
        if (value.has_value() && *value != patterned(20'000 + asked, asked) && *value != patterned(20'000 + asked, asked + 100)) result = 1;
      }
      if (log.warning_count != 0) result = 2;
      _exit(result);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(files_ending(place, ".tmp").empty());
  std::uint64_t total = 0;
  for (const fs::path& path : files_ending(place, ".entry")) total += fs::file_size(path);
  CHECK(total > 0);
  CHECK(total < 600'000);  // 400,000 were written under distinct keys at most, and each process swept on its own count
}

TEST_CASE_FIXTURE(Fixture, "a killed writer leaves whole entries, and a temporary file that the sweep takes later") {
  std::vector<std::vector<std::byte>> values;
  for (unsigned i = 0; i < 4; ++i) values.push_back(patterned(700'000 + i, i));
  std::size_t killed_half_way = 0;
  for (int round = 0; round < 25; ++round) {
    const pid_t child = fork_quietly();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (unsigned i = 0;; ++i) cache.put("key" + std::to_string(i % 4), values[i % 4]);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + 731 * round));
    kill(child, SIGKILL);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    for (unsigned i = 0; i < 4; ++i) {
      const auto value = cache.get("key" + std::to_string(i));
      if (value.has_value()) REQUIRE(*value == values[i]);
    }
    killed_half_way = files_ending(place, ".tmp").size();
  }
  CHECK(log.warnings == "");
  MESSAGE(killed_half_way, " of 25 writers were killed while a temporary file was open");

  cache.put("key", bytes("value"));
  const fs::path sample = files_ending(place, ".entry").front();
  const fs::path fresh = sample.string().substr(0, sample.string().size() - 6) + ".1.1.tmp";
  const fs::path stale = sample.string().substr(0, sample.string().size() - 6) + ".1.2.tmp";
  write_file(fresh, "being written");
  write_file(stale, "left by a killed process");
  for (const fs::path& path : files_ending(place, ".tmp"))
    if (path != fresh) set_age(path, std::chrono::minutes(61));
  set_age(place / "v1" / "sweep", std::chrono::hours(2));
  cache.put("key", bytes("value"));
  CHECK(files_ending(place, ".tmp") == std::vector<fs::path>{fresh});
}

TEST_CASE_FIXTURE(Fixture, "the sweep takes what was used longest ago, and nothing that is not an entry") {
  constexpr std::uint64_t limit = 100'000;
  DiskCache filling(place.string(), 64 * megabyte, log.log);  // never over its own limit: it sweeps nothing
  std::vector<fs::path> paths;
  for (unsigned i = 0; i < 12; ++i) {
    const auto known = files_ending(place, ".entry");
    filling.put("key" + std::to_string(i), patterned(10'000, i));
    for (const fs::path& path : files_ending(place, ".entry"))
      if (std::find(known.begin(), known.end(), path) == known.end()) paths.push_back(path);
  }
  REQUIRE(paths.size() == 12);
  for (unsigned i = 0; i < 12; ++i) set_age(paths[i], std::chrono::hours(100 - static_cast<int>(i)));
  CHECK(filling.get("key0").has_value());  // the oldest is used again
  CHECK(age_of(paths[0]) < std::chrono::minutes(5));
  set_age(paths[11], std::chrono::minutes(30));
  CHECK(filling.get("key11").has_value());  // used within the hour: not marked again
  CHECK(age_of(paths[11]) > std::chrono::minutes(29));

  const fs::path strange = paths[1].parent_path() / "notes.txt";
  write_file(strange, std::string(50'000, 'x'));
  fs::create_directories(place / "v0" / "00");
  const fs::path old_version = place / "v0" / "00" / (std::string(64, '0') + ".entry");
  write_file(old_version, std::string(1000, 'x'));
  set_age(old_version, std::chrono::hours(1000));

  DiskCache cache_of_another(place.string(), limit, log.log);
  SUBCASE("not within an hour of the last sweep") {
    cache_of_another.put("new", patterned(100, 1));
    CHECK(files_ending(place, ".entry").size() == 14);
  }
  SUBCASE("an hour after the last sweep") {
    set_age(place / "v1" / "sweep", std::chrono::minutes(61));
    cache_of_another.put("new", patterned(100, 1));
    CHECK(age_of(place / "v1" / "sweep") < std::chrono::minutes(5));
  }
  SUBCASE("when the clock once ran ahead") {
    set_age(place / "v1" / "sweep", -std::chrono::hours(48));
    cache_of_another.put("new", patterned(100, 1));
    CHECK(age_of(place / "v1" / "sweep") > -std::chrono::minutes(5));
  }
  SUBCASE("when a process has put more than a tenth of the limit") {
    cache_of_another.put("new", patterned(100, 1));
    CHECK(files_ending(place, ".entry").size() == 14);
    cache_of_another.put("larger", patterned(10'000, 2));
    CHECK(cache_of_another.get("larger").has_value());
  }
  CHECK(fs::exists(strange));
  CHECK(cache_of_another.get("new") == patterned(100, 1));
  CHECK(filling.get("key0").has_value());
  CHECK(filling.get("key11").has_value());
  if (!fs::exists(old_version)) {  // it has swept
    CHECK_FALSE(filling.get("key1").has_value());
    CHECK_FALSE(filling.get("key2").has_value());
    std::uint64_t total = 0;
    for (const fs::path& path : files_ending(place, ".entry")) total += fs::file_size(path);
    CHECK(total <= limit / 10 * 8);
    CHECK(total > limit / 10 * 6);
  } else {
    CHECK(filling.get("key1").has_value());
  }
  CHECK(log.warnings == "");
}

TEST_CASE_FIXTURE(Fixture, "a folder that is deleted under us comes back") {
  cache.put("key", bytes("value"));
  fs::remove_all(place);
  CHECK_FALSE(cache.get("key").has_value());
  cache.put("key", bytes("value"));
  CHECK(cache.get("key") == bytes("value"));
  CHECK(log.warnings == "");
}
