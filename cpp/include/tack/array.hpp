// tack/array.hpp -- Buffer: an untyped allocation. Array: a typed, strided view of one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "tack/device.hpp"
#include "tack/dtype.hpp"
#include "tack/export.hpp"

namespace tack {

/// An allocation on a device, or memory of somebody else's that outlives it (`owner`). Shared by views. Freed in queue order.
class TACK_API Buffer {
 public:
  /// Uninitialised memory, aligned to 64 bytes. Zero bytes is legal. Throws Error(out_of_memory) with the sizes.
  static std::shared_ptr<Buffer> allocate(std::shared_ptr<Device> device, std::size_t bytes);
  /// Wraps memory that `device` can address; `release` (may be empty) runs when the last view goes.
  static std::shared_ptr<Buffer> wrap(std::shared_ptr<Device> device, void* pointer, std::size_t bytes, std::function<void()> release,
                                      bool shared);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* pointer() const noexcept { return pointer_; }  ///< a device address
  std::size_t bytes() const noexcept { return bytes_; }
  const std::shared_ptr<Device>& device() const noexcept { return device_; }
  /// Memory shared with another library: launches that use it complete before the call returns.
  bool shared() const noexcept { return shared_; }
  void mark_shared() noexcept { shared_ = true; }

 private:
  Buffer() = default;
  std::shared_ptr<Device> device_;
  void* pointer_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint32_t allocator_class_ = 0;
  std::function<void()> release_;
  bool wrapped_ = false;
  bool shared_ = false;
};

inline constexpr int max_rank = 8;

/// How an array lies in memory; part of a kernel's specialization.
enum class Layout : std::uint8_t {
  contiguous = 0,  ///< row-major without gaps (size 0 and 0-d included)
  inner = 1,       ///< the last dimension has stride itemsize, others any
  general = 2,     ///< any strides that are multiples of the item size: reversed, broadcast, ...
};

/// A view. A plain value that shares its buffer; cheap to copy. Strides are in bytes.
class TACK_API Array {
 public:
  Array() = default;
  /// A new contiguous array, uninitialised. Throws Error(invalid_argument) for a negative or too large shape or rank > 8.
  static Array empty(const std::shared_ptr<Device>& device, DType dtype, std::span<const std::int64_t> shape);
  /// A view of `buffer`. Throws Error(invalid_argument) when it would leave the buffer or strides are no multiple of the item size.
  static Array view(std::shared_ptr<Buffer> buffer, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                    std::int64_t byte_offset, bool read_only);

  const std::shared_ptr<Buffer>& buffer() const noexcept { return buffer_; }
  Device& device() const noexcept { return *buffer_->device(); }
  std::byte* data() const noexcept { return data_; }  ///< device address of element (0, 0, ...)
  DType dtype() const noexcept { return dtype_; }
  int rank() const noexcept { return rank_; }
  std::int64_t shape(int d) const noexcept { return shape_[static_cast<std::size_t>(d)]; }
  std::int64_t stride(int d) const noexcept { return strides_[static_cast<std::size_t>(d)]; }
  std::span<const std::int64_t> shape() const noexcept { return {shape_.data(), rank_}; }
  std::span<const std::int64_t> strides() const noexcept { return {strides_.data(), rank_}; }
  std::int64_t size() const noexcept { return size_; }  ///< number of elements
  std::int64_t bytes() const noexcept { return size_ * static_cast<std::int64_t>(dtype_.size()); }
  Layout layout() const noexcept { return layout_; }
  bool read_only() const noexcept { return read_only_; }
  /// dtype, rank, layout and read-only in 32 bits: what the dispatcher's key takes of an array.
  std::uint32_t signature() const noexcept { return signature_; }

  /// Copies elements from/to host memory with the given strides (bytes); same shape and dtype. Takes its place in the queue's
  /// order; `read` waits until it is done, `write` until the source has been taken.
  void read(void* destination, std::span<const std::int64_t> strides) const;
  void write(const void* source, std::span<const std::int64_t> strides) const;
  /// Copies from an array of the same shape and dtype, on any device.
  void copy_from(const Array& source) const;
  /// Sets every element to the value whose bytes `element` points at (dtype().size() bytes).
  void fill(const void* element) const;

 private:
  std::shared_ptr<Buffer> buffer_;
  std::byte* data_ = nullptr;
  DType dtype_{};
  std::uint8_t rank_ = 0;
  Layout layout_ = Layout::contiguous;
  bool read_only_ = false;
  std::uint32_t signature_ = 0;
  std::int64_t size_ = 0;
  std::array<std::int64_t, max_rank> shape_{};
  std::array<std::int64_t, max_rank> strides_{};
};

}  // namespace tack
