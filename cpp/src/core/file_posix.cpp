// core/file_posix.cpp -- the disk cache's file operations on POSIX systems.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

#include "core/file.h"

namespace tack {

namespace {

void set_from_errno(std::error_code& error) noexcept { error.assign(errno, std::generic_category()); }

/// The result of a call that returns -1 on failure, repeated while a signal interrupts it.
template <class Call>
auto checked(std::error_code& error, Call call) noexcept {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  if (result == -1) {
    set_from_errno(error);
  } else {
    error.clear();
  }
  return result;
}

/// A file's handle is its descriptor.
int descriptor_of(std::intptr_t handle) noexcept { return static_cast<int>(handle); }

FileInfo info_of(const struct stat& status) noexcept {
  return {static_cast<std::uint64_t>(status.st_size), static_cast<std::int64_t>(status.st_mtime), S_ISREG(status.st_mode)};
}

}  // namespace

std::int64_t wall_clock() noexcept { return static_cast<std::int64_t>(std::time(nullptr)); }

std::int64_t process_id() noexcept { return static_cast<std::int64_t>(getpid()); }

FileInfo file_info(const std::string& path, std::error_code& error) noexcept {
  struct stat status{};
  if (checked(error, [&] { return lstat(path.c_str(), &status); }) == -1) return {};
  return info_of(status);
}

void rename_file(const std::string& from, const std::string& to, std::error_code& error) noexcept {
  checked(error, [&] { return std::rename(from.c_str(), to.c_str()); });
}

void remove_file(const std::string& path, std::error_code& error) noexcept {
  checked(error, [&] { return unlink(path.c_str()); });
}

void make_folders(const std::string& folder, std::error_code& error) noexcept {
  try {
    for (std::size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
      const bool last = end == std::string::npos;
      const std::string part = folder.substr(0, end);
      if (checked(error, [&] { return mkdir(part.c_str(), S_IRWXU); }) == -1) {
        // A folder above may be there and closed to us: only the last one decides.
        struct stat status{};
        if (stat(part.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) error.clear();
      }
      if (error || last) return;
    }
  } catch (...) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
}

void make_folder(const std::string& folder, std::error_code& error) noexcept {
  checked(error, [&] { return mkdir(folder.c_str(), S_IRWXU | S_IRWXG | S_IRWXO); });
  if (error == std::errc::file_exists) error.clear();
}

File::~File() {
  if (handle_ >= 0) ::close(descriptor_of(handle_));
}

File::File(File&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

File File::open(const std::string& path, std::error_code& error) noexcept {
  return File(checked(error, [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
}

File File::create(const std::string& path, std::error_code& error) noexcept {
  constexpr mode_t for_all = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;  // less what the process's mask forbids
  return File(checked(error, [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, for_all); }));
}

File File::open_or_create(const std::string& path, std::error_code& error) noexcept {
  constexpr mode_t for_all = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
  return File(checked(error, [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, for_all); }));
}

FileInfo File::info(std::error_code& error) const noexcept {
  struct stat status{};
  if (checked(error, [&] { return fstat(descriptor_of(handle_), &status); }) == -1) return {};
  return info_of(status);
}

std::size_t File::read(std::span<std::byte> bytes, std::error_code& error) const noexcept {
  std::size_t done = 0;
  error.clear();
  while (done < bytes.size()) {
    const auto got = checked(error, [&] { return ::read(descriptor_of(handle_), bytes.data() + done, bytes.size() - done); });
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void File::write(std::initializer_list<std::span<const std::byte>> parts, std::error_code& error) const noexcept {
  error.clear();
  for (auto part : parts) {
    while (!part.empty()) {
      const auto written = checked(error, [&] { return ::write(descriptor_of(handle_), part.data(), part.size()); });
      if (!error && written == 0) error = std::make_error_code(std::errc::io_error);
      if (error) return;
      part = part.subspan(static_cast<std::size_t>(written));
    }
  }
}

void File::touch(std::error_code& error) const noexcept {
  checked(error, [&] { return futimens(descriptor_of(handle_), nullptr); });
}

bool File::try_lock(std::error_code& error) const noexcept {
  checked(error, [&] { return flock(descriptor_of(handle_), LOCK_EX | LOCK_NB); });
  if (error != std::errc::operation_would_block) return !error;
  error.clear();
  return false;
}

void File::close(std::error_code& error) noexcept {
  // Never repeated: the descriptor is gone even when a signal interrupted the call.
  error.clear();
  if (::close(descriptor_of(std::exchange(handle_, -1))) == -1 && errno != EINTR) set_from_errno(error);
}

}  // namespace tack
