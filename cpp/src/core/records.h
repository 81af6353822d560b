// core/records.h -- what kernels report while they run (prints, failed checks): the buffer of a call, and what becomes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/allocator.h"
#include "tack/kernel.hpp"

namespace tack {

// The words of a record buffer, as RecordSite describes it.
inline constexpr std::size_t failed_word = 0, printed_word = 8, fitting_word = 9, header_words = 16;
inline constexpr std::size_t max_record_values = 64;
inline constexpr std::size_t print_buffer_bytes = std::size_t{1} << 20;  // for the prints of one call

/// The sites of one kernel. Shared with its calls that are still queued, which the kernel need not outlive.
struct RecordTable {
  explicit RecordTable(const KernelSource& source);

  const std::string kernel;
  const std::vector<RecordSite> sites;
  std::size_t words = 1;      // of a record
  std::uint64_t fitting = 0;  // prints that the buffer has room for
};

/// The buffer of one call, in the device's memory.
class Records {
 public:
  Records(Device& device, std::shared_ptr<const RecordTable> table);
  ~Records();
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;
  Records(Records&& other) noexcept;
  Records& operator=(Records&& other) noexcept;

  void* pointer() const noexcept { return block_.pointer; }
  /// Waits for the call's launches. Prints what they printed, then throws the failure that they reported: Error(index) or
  /// Error(assertion).
  void deliver();

 private:
  std::vector<std::uint64_t> fetch(std::size_t first, std::size_t count) const;
  const RecordSite* site_of(std::uint64_t number) const noexcept;
  void print(std::uint64_t printed) const;
  [[noreturn]] void fail() const;

  Device* device_;
  std::shared_ptr<const RecordTable> table_;
  Allocator::Block block_;
};

/// Whether the text has a placeholder for each value, of a form that its type can be written in.
bool fits_values(const RecordSite& site) noexcept;
/// The text with the values in their places, written as Python writes them.
std::string said(const RecordSite& site, std::span<const std::uint64_t> values);

}  // namespace tack
