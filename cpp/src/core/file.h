// core/file.h -- the file operations that the disk cache needs, each with the system's reason when it fails: file_posix.cpp,
// file_windows.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <system_error>

namespace tack {

struct FileInfo {
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  ///< seconds since 1970
  bool regular = false;
};

/// Seconds since 1970.
std::int64_t wall_clock() noexcept;
std::int64_t process_id() noexcept;

/// Status of a path; a symbolic link is not followed.
FileInfo file_info(const std::string& path, std::error_code& error) noexcept;
/// Gives `from` the name `to` in one step; a file that has it is replaced, though somebody reads it. (A Windows before version 10 needs two
/// steps for that last case.)
void rename_file(const std::string& from, const std::string& to, std::error_code& error) noexcept;
void remove_file(const std::string& path, std::error_code& error) noexcept;
/// Makes a folder and those above it. `folder` and what is above it are for this user alone where they are new; on Windows for whoever
/// may use the folder above.
void make_folders(const std::string& folder, std::error_code& error) noexcept;
/// Makes one folder, with the permissions that the process gives to new folders. One that exists is no error.
void make_folder(const std::string& folder, std::error_code& error) noexcept;

/// An open file. Closed by the destructor; not inherited by programs that this process starts.
class File {
 public:
  File() = default;
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// Opens for reading; never waits, whatever kind of file it is.
  static File open(const std::string& path, std::error_code& error) noexcept;
  /// Makes a new file for writing; one that exists is an error (std::errc::file_exists).
  static File create(const std::string& path, std::error_code& error) noexcept;
  /// Opens for writing, making the file if need be.
  static File open_or_create(const std::string& path, std::error_code& error) noexcept;

  FileInfo info(std::error_code& error) const noexcept;
  /// Reads up to bytes.size() from the current place; fewer only at the end of the file.
  std::size_t read(std::span<std::byte> bytes, std::error_code& error) const noexcept;
  /// Writes all parts, one after the other.
  void write(std::initializer_list<std::span<const std::byte>> parts, std::error_code& error) const noexcept;
  /// Sets the time of modification to now.
  void touch(std::error_code& error) const noexcept;
  /// Takes the file's lock, which other threads and processes respect and which ends with this object. False when another holds it.
  bool try_lock(std::error_code& error) const noexcept;
  /// Closes and reports what a late write failed with.
  void close(std::error_code& error) noexcept;

 private:
  explicit File(std::intptr_t handle) noexcept : handle_(handle) {}
  std::intptr_t handle_ = -1;  // the system's: a descriptor, a HANDLE
};

}  // namespace tack
