// backends/cpu/code_memory.h -- pages that are first written, then read or executed; never both writable and executable:
// code_memory_posix.cpp, code_memory_windows.cpp.
#pragma once

#include <cstddef>

namespace tack::cpu {

/// One mapping, zeroed and writable at first. Unmapped by the destructor. Not thread-safe while it is being written.
class CodeMemory {
 public:
  enum class Access { read, execute };

  /// `bytes` > 0, rounded up to whole pages. Throws Error(out_of_memory).
  explicit CodeMemory(std::size_t bytes);
  ~CodeMemory();
  CodeMemory(CodeMemory&& other) noexcept;
  CodeMemory& operator=(CodeMemory&&) = delete;
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  /// Takes writing away from whole pages. `execute` also makes the instruction stream see what was written (aarch64 needs that).
  /// Throws Error(driver) with the system's reason.
  void protect(std::size_t offset, std::size_t bytes, Access access);

  static std::size_t page_bytes() noexcept;

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tack::cpu
