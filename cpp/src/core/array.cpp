// core/array.cpp -- Array: shapes and bounds are checked once, when a view is made; then copies and fills of any layout.
#include "tack/array.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "backend.h"
#include "core/checked_arithmetic.h"
#include "core/dtype_check.h"
#include "core/strided.h"
#include "core/text.h"

namespace tack {

namespace {

[[noreturn]] void refuse(std::string message) { throw Error(ErrorCode::invalid_argument, std::move(message)); }

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string out = "(";
  for (std::size_t d = 0; d < shape.size(); ++d) out += text(d == 0 ? "" : ", ", shape[d]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

/// The number of elements. Also assures that bytes and row-major strides fit 63 bits.
std::int64_t checked_size(DType dtype, std::span<const std::int64_t> shape) {
  if (!is_known(dtype)) refuse("An array cannot have this element type; tack.dtype lists those it can have.");
  if (shape.size() > max_rank)
    refuse(text("The shape ", shape_text(shape), " has ", shape.size(), " dimensions; an array has at most ", max_rank, "."));
  std::int64_t size = 1;
  auto bytes = static_cast<std::int64_t>(dtype.size());
  for (const std::int64_t length : shape) {
    if (length < 0) refuse(text("The shape ", shape_text(shape), " has a negative length."));
    if (multiply_overflows(bytes, std::max<std::int64_t>(length, 1), bytes))
      refuse(text("An array of tack.", name_of(dtype), " with the shape ", shape_text(shape), " has more than 2^63 - 1 bytes."));
    size *= length;
  }
  return size;
}

std::uint32_t signature_of(DType dtype, std::size_t rank, Layout layout, bool read_only) noexcept {
  const auto code = static_cast<std::uint32_t>(dtype.code);
  return code | std::uint32_t{dtype.bits} << 4 | std::uint32_t{dtype.lanes} << 12 | static_cast<std::uint32_t>(rank) << 20 |
         static_cast<std::uint32_t>(layout) << 24 | std::uint32_t{read_only} << 26;
}

void require_writable(const Array& array) {
  if (array.read_only())
    refuse(text("An array of tack.", name_of(array.dtype()), " with the shape ", shape_text(array.shape()),
                " is read-only; write to a copy of it."));
}

/// Whether the host may touch the device's memory; waits for the queue where there is one.
bool host_can_touch(Device& device) {
  const Capabilities& capabilities = device.capabilities();
  if (!capabilities.host_addressable) return false;
  if (capabilities.queued) device.synchronize();
  return true;
}

/// Host memory for data on its way.
class Staging {
 public:
  explicit Staging(std::int64_t bytes) : bytes_(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes))) {}
  std::byte* get() const noexcept { return bytes_.get(); }

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

using Strides = std::array<std::int64_t, max_rank>;

Strides dense_strides_of(const Array& array) noexcept {
  Strides strides{};
  dense_strides(array.shape(), array.dtype().size(), strides);
  return strides;
}

bool overlap(const Array& a, const Array& b) noexcept {
  const ByteRange ra = byte_range(a.shape(), a.strides(), a.dtype().size());
  const ByteRange rb = byte_range(b.shape(), b.strides(), b.dtype().size());
  // As numbers: the two need not belong to one object.
  const auto pa = reinterpret_cast<std::uintptr_t>(a.data());
  const auto pb = reinterpret_cast<std::uintptr_t>(b.data());
  return pa + static_cast<std::uintptr_t>(ra.low) < pb + static_cast<std::uintptr_t>(rb.high) &&
         pb + static_cast<std::uintptr_t>(rb.low) < pa + static_cast<std::uintptr_t>(ra.high);
}

}  // namespace

Array Array::empty(const std::shared_ptr<Device>& device, DType dtype, std::span<const std::int64_t> shape) {
  Array array;
  array.size_ = checked_size(dtype, shape);
  array.dtype_ = dtype;
  array.rank_ = static_cast<std::uint8_t>(shape.size());
  std::copy(shape.begin(), shape.end(), array.shape_.begin());
  dense_strides(shape, dtype.size(), array.strides_);
  array.signature_ = signature_of(dtype, shape.size(), Layout::contiguous, false);
  array.buffer_ = Buffer::allocate(device, static_cast<std::size_t>(array.bytes()));
  array.data_ = static_cast<std::byte*>(array.buffer_->pointer());
  return array;
}

Array Array::view(std::shared_ptr<Buffer> buffer, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                  std::int64_t byte_offset, bool read_only) {
  Array array;
  array.size_ = checked_size(dtype, shape);
  const std::size_t rank = shape.size();
  const auto item = static_cast<std::int64_t>(dtype.size());
  if (strides.size() != rank) refuse(text("A view of ", rank, " dimensions was given ", strides.size(), " strides."));
  for (const std::int64_t stride : strides)
    if (stride % item != 0)
      refuse(text("The stride ", stride, " is no multiple of the ", item, " bytes of a tack.", name_of(dtype),
                  "; make a contiguous copy first."));

  // Bounds, with every step checked: shapes and strides may come from anywhere.
  const auto available = static_cast<std::int64_t>(std::min<std::size_t>(buffer->bytes(), std::numeric_limits<std::int64_t>::max()));
  std::int64_t low = byte_offset;
  std::int64_t high = byte_offset;
  bool inside = true;
  if (array.size_ != 0) {
    for (std::size_t d = 0; d < rank; ++d) {
      std::int64_t reach = 0;
      inside = inside && !multiply_overflows(shape[d] - 1, strides[d], reach);
      inside = inside && !add_overflows(reach < 0 ? low : high, reach, reach < 0 ? low : high);
    }
    inside = inside && !add_overflows(high, item, high);
  }
  if (!inside || low < 0 || high > available)
    refuse(text("A view of tack.", name_of(dtype), " with the shape ", shape_text(shape), ", strides ", shape_text(strides), " and offset ",
                byte_offset, " leaves its buffer of ", buffer->bytes(), " bytes."));

  array.data_ = static_cast<std::byte*>(buffer->pointer());
  if (byte_offset != 0) array.data_ += byte_offset;
  const std::uintptr_t alignment = dtype.size() / dtype.lanes;
  if (array.size_ != 0 && reinterpret_cast<std::uintptr_t>(array.data_) % alignment != 0)
    refuse(text("The address of a tack.", name_of(dtype), " must be a multiple of ", std::uint64_t{alignment}, "; make a copy first."));

  array.dtype_ = dtype;
  array.rank_ = static_cast<std::uint8_t>(rank);
  array.read_only_ = read_only;
  std::copy(shape.begin(), shape.end(), array.shape_.begin());
  std::copy(strides.begin(), strides.end(), array.strides_.begin());
  if (is_dense(shape, strides, dtype.size()))
    array.layout_ = Layout::contiguous;
  else
    array.layout_ = strides[rank - 1] == item || shape[rank - 1] == 1 ? Layout::inner : Layout::general;
  array.signature_ = signature_of(dtype, rank, array.layout_, read_only);
  array.buffer_ = std::move(buffer);
  return array;
}

void Array::read(void* destination, std::span<const std::int64_t> strides) const {
  if (strides.size() != rank_)
    refuse(text("Reading an array of ", rank(), " dimensions needs as many strides; ", strides.size(), " were given."));
  if (size_ == 0) return;
  const std::size_t item = dtype_.size();
  auto* const target = static_cast<std::byte*>(destination);
  if (layout_ == Layout::contiguous && is_dense(shape(), strides, item)) {
    device().queue().download(target, data_, static_cast<std::size_t>(bytes()));
    device().queue().settle();
    return;
  }
  if (host_can_touch(device())) {
    copy_strided(target, strides, data_, strides_, shape(), item);
    return;
  }
  const ByteRange range = byte_range(shape(), this->strides(), item);
  const Staging staging(range.high - range.low);
  device().queue().download(staging.get(), data_ + range.low, static_cast<std::size_t>(range.high - range.low));
  device().queue().settle();
  copy_strided(target, strides, staging.get() - range.low, strides_, shape(), item);
}

void Array::write(const void* source, std::span<const std::int64_t> strides) const {
  if (strides.size() != rank_)
    refuse(text("Writing an array of ", rank(), " dimensions needs as many strides; ", strides.size(), " were given."));
  if (size_ == 0) return;
  require_writable(*this);
  const std::size_t item = dtype_.size();
  const auto* const origin = static_cast<const std::byte*>(source);
  const bool dense = layout_ == Layout::contiguous;
  if (dense && is_dense(shape(), strides, item)) {
    device().queue().upload(data_, origin, static_cast<std::size_t>(bytes()));
    return;
  }
  if (host_can_touch(device())) {
    copy_strided(data_, strides_, origin, strides, shape(), item);
    return;
  }
  if (dense) {
    const Staging staging(bytes());
    copy_strided(staging.get(), dense_strides_of(*this), origin, strides, shape(), item);
    device().queue().upload(data_, staging.get(), static_cast<std::size_t>(bytes()));
    return;
  }
  // The bytes between the elements are the device's and have to survive: fetch, change, send back.
  const ByteRange range = byte_range(shape(), this->strides(), item);
  const auto covered = static_cast<std::size_t>(range.high - range.low);
  const Staging staging(range.high - range.low);
  device().queue().download(staging.get(), data_ + range.low, covered);
  copy_strided(staging.get() - range.low, strides_, origin, strides, shape(), item);
  device().queue().upload(data_ + range.low, staging.get(), covered);
}

void Array::copy_from(const Array& source) const {
  if (source.dtype_ != dtype_)
    refuse(text("Elements of tack.", name_of(source.dtype_), " cannot be copied to an array of tack.", name_of(dtype_),
                "; convert them first."));
  if (!std::equal(shape().begin(), shape().end(), source.shape().begin(), source.shape().end()))
    refuse(text("The shapes ", shape_text(source.shape()), " and ", shape_text(shape()), " of a copy's two arrays differ."));
  if (size_ == 0) return;
  require_writable(*this);

  const bool same_memory = device().can_address(source.device());
  const bool overlapping = same_memory && overlap(*this, source);
  if (overlapping && data_ == source.data_ && std::equal(strides().begin(), strides().end(), source.strides().begin())) return;

  if (same_memory && layout_ == Layout::contiguous && source.layout_ == Layout::contiguous) {
    const auto count = static_cast<std::size_t>(bytes());
    if (!overlapping) {
      device().queue().copy(data_, source.data_, count);
      return;
    }
    if (!host_can_touch(device())) {
      const std::shared_ptr<Buffer> between = Buffer::allocate(buffer_->device(), count);
      device().queue().copy(between->pointer(), source.data_, count);
      device().queue().copy(data_, between->pointer(), count);
      return;
    }
    std::memmove(data_, source.data_, count);
    return;
  }
  // Overlapping elements all are read before the first is written, as in NumPy.
  if (!overlapping && host_can_touch(source.device())) {
    write(source.data_, source.strides());
    return;
  }
  if (!overlapping && host_can_touch(device())) {
    source.read(data_, strides());
    return;
  }
  const Staging staging(bytes());
  const Strides dense = dense_strides_of(*this);
  source.read(staging.get(), std::span(dense).first(rank_));
  write(staging.get(), std::span(dense).first(rank_));
}

void Array::fill(const void* element) const {
  if (size_ == 0) return;
  require_writable(*this);
  const std::size_t item = dtype_.size();
  const auto* const value = static_cast<const std::byte*>(element);
  const bool simple = dtype_.lanes == 1;
  if (simple && layout_ == Layout::contiguous) {
    device().queue().fill(data_, value, item, static_cast<std::size_t>(size_));
    return;
  }
  const Strides broadcast{};
  write(value, std::span(broadcast).first(rank_));
}

}  // namespace tack
