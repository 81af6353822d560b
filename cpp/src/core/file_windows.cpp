// core/file_windows.cpp -- the disk cache's file operations on Windows.
#include <windows.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "core/file.h"

namespace tack {

namespace {

constexpr std::intptr_t none = -1;
static_assert(sizeof(HANDLE) == sizeof(none));
// Everybody may read, replace and delete a file that somebody has open, as on other systems.
constexpr DWORD share_all = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

// NOLINTNEXTLINE(performance-no-int-to-ptr): a handle is kept as the number that it is
HANDLE handle_of(std::intptr_t number) noexcept { return reinterpret_cast<HANDLE>(number); }

/// The conditions that the disk cache asks for, in the words of std::errc; anything else as the system's own number.
std::error_code code_of(DWORD number) noexcept {
  switch (number) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH:
      return std::make_error_code(std::errc::no_such_file_or_directory);
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
      return std::make_error_code(std::errc::file_exists);
    case ERROR_ACCESS_DENIED:
      return std::make_error_code(std::errc::permission_denied);
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
      return std::make_error_code(std::errc::device_or_resource_busy);
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      return std::make_error_code(std::errc::no_space_on_device);
    case ERROR_WRITE_PROTECT:
      return std::make_error_code(std::errc::read_only_file_system);
    case ERROR_DIRECTORY:
      return std::make_error_code(std::errc::not_a_directory);
    case ERROR_FILENAME_EXCED_RANGE:
      return std::make_error_code(std::errc::filename_too_long);
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
      return std::make_error_code(std::errc::not_enough_memory);
    default:
      return {static_cast<int>(number), std::system_category()};
  }
}

/// Sets `error` from a call's success; answers it.
bool checked(std::error_code& error, BOOL success) noexcept {
  if (success != FALSE) {
    error.clear();
  } else {
    error = code_of(GetLastError());
  }
  return success != FALSE;
}

/// Runs `body`, which allocates memory and nothing else that can throw.
template <class Body>
void without_exceptions(std::error_code& error, Body body) noexcept {
  try {
    body();
  } catch (...) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
}

/// A path for the system's calls; one that is long in the form that may be.
std::wstring native(const std::string& path) {
  constexpr std::size_t longest_plain = 240;  // less than MAX_PATH, which a folder may use up to 248
  std::filesystem::path wide(path);
  wide.make_preferred();
  std::wstring text = wide.wstring();
  if (text.size() >= longest_plain && wide.is_absolute() && !text.starts_with(L"\\\\")) text.insert(0, L"\\\\?\\");
  return text;
}

std::int64_t seconds(FILETIME time) noexcept {
  constexpr std::int64_t per_second = 10'000'000, from_1601_to_1970 = 11'644'473'600;
  const std::uint64_t ticks = std::uint64_t{time.dwHighDateTime} << 32u | time.dwLowDateTime;
  return static_cast<std::int64_t>(ticks) / per_second - from_1601_to_1970;
}

FileInfo info_of(DWORD attributes, FILETIME modified, DWORD size_high, DWORD size_low) noexcept {
  constexpr DWORD others = FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DEVICE;
  return {std::uint64_t{size_high} << 32u | size_low, seconds(modified), (attributes & others) == 0};
}

/// An open file's number, or `none` and the reason.
std::intptr_t open_file(const std::string& path, DWORD access, DWORD disposition, std::error_code& error) noexcept {
  std::intptr_t number = none;
  without_exceptions(error, [&] {
    HANDLE const handle = CreateFileW(native(path).c_str(), access, share_all, nullptr, disposition, FILE_ATTRIBUTE_NORMAL, nullptr);
    checked(error, handle != INVALID_HANDLE_VALUE);
    number = reinterpret_cast<std::intptr_t>(handle);
  });
  return number;
}

/// Renames as POSIX does: a file of the new name goes away though somebody reads it. False where the system or the disk cannot.
bool rename_over_open_file(const std::wstring& from, const std::wstring& to) {
  // FILE_RENAME_INFO and FileRenameInfoEx as Windows 10 has them; older headers lack the flags.
  constexpr DWORD replace_if_exists = 1, posix_semantics = 2;
  constexpr auto file_rename_info_ex = static_cast<FILE_INFO_BY_HANDLE_CLASS>(22);
  HANDLE const file = CreateFileW(from.c_str(), DELETE | SYNCHRONIZE, share_all, nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) return false;
  const std::size_t name_bytes = to.size() * sizeof(wchar_t);
  std::vector<std::byte> room(sizeof(FILE_RENAME_INFO) + name_bytes);
  const DWORD flags = replace_if_exists | posix_semantics;
  const auto length = static_cast<DWORD>(name_bytes);
  std::memcpy(room.data(), &flags, sizeof flags);
  std::memcpy(room.data() + offsetof(FILE_RENAME_INFO, FileNameLength), &length, sizeof length);
  std::memcpy(room.data() + offsetof(FILE_RENAME_INFO, FileName), to.data(), name_bytes);
  const BOOL done = SetFileInformationByHandle(file, file_rename_info_ex, room.data(), static_cast<DWORD>(room.size()));
  CloseHandle(file);
  return done != FALSE;
}

}  // namespace

std::int64_t wall_clock() noexcept { return static_cast<std::int64_t>(std::time(nullptr)); }

std::int64_t process_id() noexcept { return static_cast<std::int64_t>(GetCurrentProcessId()); }

FileInfo file_info(const std::string& path, std::error_code& error) noexcept {
  FileInfo info;
  without_exceptions(error, [&] {
    WIN32_FILE_ATTRIBUTE_DATA data{};
    if (checked(error, GetFileAttributesExW(native(path).c_str(), GetFileExInfoStandard, &data)))
      info = info_of(data.dwFileAttributes, data.ftLastWriteTime, data.nFileSizeHigh, data.nFileSizeLow);
  });
  return info;
}

void rename_file(const std::string& from, const std::string& to, std::error_code& error) noexcept {
  without_exceptions(error, [&] {
    const std::wstring old_name = native(from), new_name = native(to);
    error.clear();
    if (rename_over_open_file(old_name, new_name)) return;
    if (checked(error, MoveFileExW(old_name.c_str(), new_name.c_str(), MOVEFILE_REPLACE_EXISTING))) return;
    if (error != std::errc::permission_denied && error != std::errc::device_or_resource_busy) return;
    // Somebody reads it: an open file can be given another name. For a moment there is then no file of the new one.
    const std::wstring aside = old_name + L".old.tmp";
    if (MoveFileExW(new_name.c_str(), aside.c_str(), MOVEFILE_REPLACE_EXISTING) == FALSE) return;
    if (checked(error, MoveFileExW(old_name.c_str(), new_name.c_str(), 0))) {
      DeleteFileW(aside.c_str());
    } else {
      MoveFileExW(aside.c_str(), new_name.c_str(), 0);
    }
  });
}

void remove_file(const std::string& path, std::error_code& error) noexcept {
  without_exceptions(error, [&] { checked(error, DeleteFileW(native(path).c_str())); });
}

void make_folders(const std::string& folder, std::error_code& error) noexcept {
  // New folders take their access from the one above, which is the user's own where the settings say nothing else.
  without_exceptions(error, [&] { std::filesystem::create_directories(native(folder), error); });
}

void make_folder(const std::string& folder, std::error_code& error) noexcept {
  without_exceptions(error, [&] { checked(error, CreateDirectoryW(native(folder).c_str(), nullptr)); });
  if (error == std::errc::file_exists) error.clear();
}

File::~File() {
  if (handle_ != none) CloseHandle(handle_of(handle_));
}

File::File(File&& other) noexcept : handle_(std::exchange(other.handle_, none)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

File File::open(const std::string& path, std::error_code& error) noexcept {
  // With the right to touch it, where there is that right.
  std::intptr_t number = open_file(path, GENERIC_READ | FILE_WRITE_ATTRIBUTES, OPEN_EXISTING, error);
  if (error == std::errc::permission_denied || error == std::errc::read_only_file_system)
    number = open_file(path, GENERIC_READ, OPEN_EXISTING, error);
  return File(number);
}

File File::create(const std::string& path, std::error_code& error) noexcept {
  return File(open_file(path, GENERIC_WRITE, CREATE_NEW, error));
}

File File::open_or_create(const std::string& path, std::error_code& error) noexcept {
  return File(open_file(path, GENERIC_WRITE, OPEN_ALWAYS, error));
}

FileInfo File::info(std::error_code& error) const noexcept {
  BY_HANDLE_FILE_INFORMATION data{};
  if (!checked(error, GetFileInformationByHandle(handle_of(handle_), &data))) return {};
  return info_of(data.dwFileAttributes, data.ftLastWriteTime, data.nFileSizeHigh, data.nFileSizeLow);
}

namespace {

/// What one call is asked for: its count of bytes has 32 bits.
DWORD at_once(std::size_t bytes) noexcept { return static_cast<DWORD>(std::min(bytes, std::size_t{1} << 30u)); }

}  // namespace

std::size_t File::read(std::span<std::byte> bytes, std::error_code& error) const noexcept {
  std::size_t done = 0;
  error.clear();
  while (done < bytes.size()) {
    DWORD got = 0;
    if (!checked(error, ReadFile(handle_of(handle_), bytes.data() + done, at_once(bytes.size() - done), &got, nullptr)) || got == 0) break;
    done += got;
  }
  return done;
}

void File::write(std::initializer_list<std::span<const std::byte>> parts, std::error_code& error) const noexcept {
  error.clear();
  for (auto part : parts) {
    while (!part.empty()) {
      DWORD written = 0;
      if (checked(error, WriteFile(handle_of(handle_), part.data(), at_once(part.size()), &written, nullptr)) && written == 0)
        error = std::make_error_code(std::errc::io_error);
      if (error) return;
      part = part.subspan(written);
    }
  }
}

void File::touch(std::error_code& error) const noexcept {
  FILETIME now{};
  GetSystemTimeAsFileTime(&now);
  checked(error, SetFileTime(handle_of(handle_), nullptr, nullptr, &now));
}

bool File::try_lock(std::error_code& error) const noexcept {
  OVERLAPPED start{};
  checked(error, LockFileEx(handle_of(handle_), LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &start));
  if (error != std::errc::device_or_resource_busy) return !error;
  error.clear();
  return false;
}

void File::close(std::error_code& error) noexcept { checked(error, CloseHandle(handle_of(std::exchange(handle_, none)))); }

}  // namespace tack
