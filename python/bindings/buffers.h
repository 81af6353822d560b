// buffers.h -- Python's buffer protocol: other objects' memory read here, and arrays' memory offered to others.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "tack/array.hpp"

namespace tack::python {

/// A Py_buffer that is given back with its owner. Needs the GIL at both ends.
class BufferView {
 public:
  BufferView() = default;
  ~BufferView() {
    if (held_) PyBuffer_Release(&view_);
  }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  /// False with Python's error set when `object` has no such buffer.
  bool acquire(PyObject* object, int flags) noexcept {
    held_ = PyObject_GetBuffer(object, &view_, flags) == 0;
    return held_;
  }
  const Py_buffer& operator*() const noexcept { return view_; }
  const Py_buffer* operator->() const noexcept { return &view_; }

  /// The element type, or nothing for one that arrays cannot have: other kinds, byte-swapped, records. A bool is u8.
  std::optional<DType> dtype() const noexcept;
  /// Shape and strides as libtack's integers. Needs a buffer with strides and at most max_rank dimensions.
  std::span<const std::int64_t> shape() noexcept { return copied(view_.shape, shape_); }
  std::span<const std::int64_t> strides() noexcept { return copied(view_.strides, strides_); }

 private:
  using Dims = std::array<std::int64_t, max_rank>;
  std::span<const std::int64_t> copied(const Py_ssize_t* from, Dims& to) const noexcept {
    const auto rank = static_cast<std::size_t>(view_.ndim);
    for (std::size_t d = 0; d < rank; ++d) to[d] = from[d];
    return {to.data(), rank};
  }

  Py_buffer view_{};
  bool held_ = false;
  Dims shape_, strides_;  // filled when asked for
};

/// The addresses [low, high) that elements of this shape and these strides take, relative to the first element. Empty without elements.
struct ByteRange {
  std::int64_t low = 0, high = 0;
};
ByteRange byte_range(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::size_t itemsize);

inline bool queued(const Array& a) { return a.device().capabilities().queued; }
/// Another library does not know the device's queue: work on memory that it sees is done when the call returns.
inline void finish_shared(const Array& a) {
  if (queued(a) && a.buffer()->shared()) a.device().synchronize();
}

/// bf_getbuffer and bf_releasebuffer of tack._runtime.Array.
int array_getbuffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void array_releasebuffer(PyObject* self, Py_buffer* view) noexcept;

}  // namespace tack::python
