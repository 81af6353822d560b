// specializations.h -- a dispatcher's table from key words to kernels: open addressing, and a memo of the last hit.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "arguments.h"
#include "guards.h"

namespace tack::python {

/// A kernel for one key and one set of captured values. Counted by hand: a launch without the GIL must keep it, and an atomic count
/// costs what a guard costs.
class Specialization {
 public:
  Specialization(std::span<const KeyWord> key, nb::object kernel, Guards guards)
      : key_(key.begin(), key.end()), object_(std::move(kernel)), kernel_(nb::inst_ptr<Kernel>(object_)), guards_(std::move(guards)) {}

  const Kernel& kernel() const noexcept { return *kernel_; }
  bool has_key(std::span<const KeyWord> key) const noexcept {
    if (key.size() != key_.size()) return false;
    KeyWord different = 0;  // a few words: no branch for each, and no call of memcmp
    for (std::size_t i = 0; i < key.size(); ++i) different |= key[i] ^ key_[i];
    return different == 0;
  }
  std::span<const KeyWord> key() const noexcept { return key_; }
  /// The captured values are still those that it was compiled with.
  bool current() const { return guards_.hold(); }
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(object_.ptr());
    return guards_.traverse(visit, arg);
  }

 private:
  friend class SpecializationRef;
  std::vector<KeyWord> key_;
  nb::object object_;
  const Kernel* kernel_;
  Guards guards_;
#if defined(NB_FREE_THREADED)
  std::atomic<long> references_{0};
#else
  long references_ = 0;  // guarded by the GIL
#endif
};

/// A counted reference; copied and dropped under the GIL only.
class SpecializationRef {
 public:
  SpecializationRef() = default;
  explicit SpecializationRef(std::unique_ptr<Specialization> s) : pointer_(s.release()) { ++pointer_->references_; }
  SpecializationRef(const SpecializationRef& o) noexcept : pointer_(o.pointer_) {
    if (pointer_ != nullptr) ++pointer_->references_;
  }
  SpecializationRef(SpecializationRef&& o) noexcept : pointer_(std::exchange(o.pointer_, nullptr)) {}
  SpecializationRef& operator=(SpecializationRef o) noexcept {
    std::swap(pointer_, o.pointer_);
    return *this;
  }
  ~SpecializationRef() {
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDelete): it does not know that every reference is counted
    if (pointer_ != nullptr && --pointer_->references_ == 0) std::unique_ptr<Specialization>(pointer_).reset();
  }
  const Specialization* operator->() const noexcept { return pointer_; }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  bool operator==(const SpecializationRef&) const = default;

 private:
  Specialization* pointer_ = nullptr;
};

/// The table. Kernels with one key but other captured values stand side by side, the newest first: switching a constant to and fro
/// compiles nothing anew.
class Specializations {
 public:
  /// The kernel for the key whose captured values hold, or nothing. May run a module's or object's __getattr__, never with a lock held.
  SpecializationRef find(std::span<const KeyWord> key);
  void insert(const SpecializationRef& specialization);
  void clear();
  std::size_t size() const;
  int traverse(visitproc visit, void* arg) const;

 private:
  static constexpr std::size_t max_versions = 8;

  struct Slot {
    std::uint64_t hash = 0;
    std::vector<SpecializationRef> versions;  // empty: the slot is free
  };
  static std::uint64_t hash_of(std::span<const KeyWord> key) noexcept;
  Slot& slot_of(std::uint64_t hash, std::span<const KeyWord> key);
  std::vector<SpecializationRef> versions(std::span<const KeyWord> key);
  void grow();

  mutable nb::ft_mutex mutex_;  // nothing under the GIL
  SpecializationRef last_;
  std::vector<Slot> slots_;  // a power of two of them, or none
  std::size_t used_ = 0;
};

}  // namespace tack::python
