// arguments.h -- Python objects as kernel arguments: what kind each is (its word of the key) and its value.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "buffers.h"
#include "state.h"
#include "tack/kernel.hpp"

namespace tack::python {

/// `size` elements, up to N of them without the heap. Uninitialised: T must be a type that assignment alone brings to life.
template <class T, std::size_t N>
class Scratch {
 public:
  explicit Scratch(std::size_t size) : size_(size) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    if (size > N) large_ = std::make_unique<T[]>(size);
    data_ = size > N ? large_.get() : reinterpret_cast<T*>(small_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T& operator[](std::size_t i) noexcept {
    return data_[i];  // NOLINT(clang-analyzer-security.ArrayBound): it takes a heap block of unknown size for an empty one
  }
  std::span<T> span() noexcept { return {data_, size_}; }

 private:
  std::size_t size_;
  T* data_;
  std::unique_ptr<T[]> large_;
  alignas(T) std::byte small_[N * sizeof(T)];
};

/// One word of a key: the kind in bits 32 to 39; below them an array's signature, or the dtype of a NumPy scalar; above them how an
/// array is read that comes in a texture.
using KeyWord = std::uint64_t;
constexpr KeyWord key_word(ArgumentSpec::Kind kind, std::uint32_t detail = 0) noexcept { return static_cast<KeyWord>(kind) << 32 | detail; }
constexpr std::uint32_t detail_of(DType t) noexcept { return static_cast<std::uint32_t>(t.code) << 8 | t.bits; }

/// A NumPy array, or another library's tensor, taken in place for one call.
struct ForeignArray {
  BufferView view;  // of a NumPy array
  nb::object held;  // a tack.Array on the memory of a tensor whose library has no functions for C
  Array array;
  std::size_t position = 0;
  bool numpy = false;
};

/// These arrays of one call, the first few without the heap.
class ForeignArrays {
 public:
  ForeignArrays() = default;
  ~ForeignArrays() {
    if (size_ != 0) clear();
  }
  ForeignArrays(const ForeignArrays&) = delete;
  ForeignArrays& operator=(const ForeignArrays&) = delete;

  /// A new one. It stays where it is.
  ForeignArray& add();
  /// That of a parameter, or null.
  const ForeignArray* find(std::size_t position) const noexcept;
  std::size_t size() const noexcept { return size_; }
  ForeignArray& operator[](std::size_t k) noexcept { return const_cast<ForeignArray&>(at(k)); }

 private:
  static constexpr std::size_t usual = 6;
  const ForeignArray& at(std::size_t k) const noexcept;
  void clear() noexcept;

  std::size_t size_ = 0;
  alignas(ForeignArray) std::byte small_[usual * sizeof(ForeignArray)];
  std::vector<std::unique_ptr<ForeignArray>> more_;
};

/// How an object was taken.
enum class Taken : std::uint8_t {
  yes,
  no,        ///< no kind that kernels take: the slow path says what is wrong
  too_large  ///< an int beyond 64 bits
};

/// The arguments of one call, in parameter order. Borrows the objects: they must outlive it. Needs the GIL to be destroyed.
class Arguments {
 public:
  explicit Arguments(std::size_t count) : values_(count), key_(count + 1) {}

  /// Takes argument i. Answers `no` without a Python error, for whoever words the refusal.
  Taken take(std::size_t i, PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    if (type == state().array_type && nb::inst_ready(object)) {
      add_array(i, *nb::inst_ptr<Array>(object));
      return Taken::yes;
    }
    if (type == &PyFloat_Type) {
      scalar(i, key_word(ArgumentSpec::Kind::floating), Argument(PyFloat_AsDouble(object)));
      return Taken::yes;
    }
    return take_rarer(i, object);
  }
  /// Chooses the device that can address all arrays: the default one, else the first array's. Fills the key's first word, whose last bit
  /// says whether the kernel is to check (devices lie at even addresses).
  /// Null when there is none; `conflict` then has the positions of two arrays that no device joins.
  Device* choose_device() {
    Device* chosen = &default_device();
    if (device_ != nullptr && device_ != chosen && !chosen->can_address(*device_)) chosen = device_;
    if (!joined_) chosen = nullptr;
    static_assert(alignof(Device) > 1);
    key_[0] = reinterpret_cast<std::uintptr_t>(chosen) | (state().debugging.load(std::memory_order_relaxed) ? 1u : 0u);
    return chosen;
  }
  /// Finds NumPy arrays whose memory is nobody else's, which kernels with atomics gain by: those count as unshared from here on.
  void find_unshared();
  std::pair<std::size_t, std::size_t> conflict() const noexcept { return {first_, other_}; }
  /// The array of a parameter where it is no tack.Array, else null.
  const ForeignArray* foreign(std::size_t i) const noexcept { return foreign_.find(i); }
  const Array& array(std::size_t i) noexcept { return *values_[i].array; }

  std::span<const Argument> values() noexcept { return values_.span(); }
  std::span<const KeyWord> key() noexcept { return key_.span(); }
  bool debug() noexcept { return (key_[0] & 1u) != 0; }

 private:
  static constexpr std::size_t usual = 16;

  void add_array(std::size_t i, const Array& array) {
    key_[i + 1] = key_word(ArgumentSpec::Kind::array, array.signature());
    values_[i] = Argument(array);
    if (&array.device() != device_) add_device(i, array.device());
  }
  void add_device(std::size_t i, Device& device);
  Taken take_rarer(std::size_t i, PyObject* object);
  Taken take_int(std::size_t i, PyObject* object);
  Taken take_other(std::size_t i, PyObject* object);
  bool take_numpy_array(std::size_t i, PyObject* object);
  bool take_tensor(std::size_t i, PyObject* object);
  bool take_described(std::size_t i, PyObject* object);
  void take_numpy_scalar(std::size_t i, PyObject* object, DType type);
  void scalar(std::size_t i, KeyWord word, Argument value) noexcept {
    key_[i + 1] = word;
    values_[i] = value;
  }

  Scratch<Argument, usual> values_;
  Scratch<KeyWord, usual + 1> key_;
  Device* device_ = nullptr;  // the first array's
  std::size_t first_ = 0, other_ = 0;
  bool joined_ = true;  // device_ can address all arrays. Then so can every device that can address device_: memory is common or not
  ForeignArrays foreign_;
};

/// All memory that a device can address as one buffer, kept as long as the device. Arrays in it own nothing. Counts as shared.
std::shared_ptr<Buffer> all_memory_of(Device& device);
/// The CPU device that this thread's calls use.
Device& host_device();

/// The dtype of a NumPy scalar's type (np.float32, np.bool_, ...), or nothing. Imports nothing: without numpy loaded there are none.
std::optional<DType> numpy_scalar_dtype(PyTypeObject* type);

/// A returned scalar as int, float or bool; None where there is none. A new reference, or null with Python's error set.
PyObject* to_python(const Result& result) noexcept;

}  // namespace tack::python
