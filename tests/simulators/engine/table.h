// engine/table.h -- handles: numbers that no pointer can have, so that a program cannot look inside, each valid from creation to
// destruction.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "control.h"

namespace sim {

template <class T>
class Table {
 public:
  // name is what the live objects are counted under; tag is the handles' upper half, different for each table.
  Table(const char* name, std::uint32_t tag) : live_(Control::instance().counter(name)), tag_(static_cast<std::uint64_t>(tag) << 32) {}

  std::uint64_t add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t handle = tag_ | ++last_;
    objects_.emplace(handle, std::move(object));
    ++live_;
    return handle;
  }

  // Null for a handle that is not, or no longer, valid.
  std::shared_ptr<T> find(std::uint64_t handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }

  // The same, fast for the handle that the thread asked for last; valid until the handle is removed. There is one table of each type.
  T* find_again(std::uint64_t handle) const {
    thread_local std::uint64_t last = 0, when = 0;
    thread_local T* object = nullptr;
    const std::uint64_t now = removed_.load(std::memory_order_acquire);
    if (handle != last || now != when || object == nullptr) {
      object = find(handle).get();
      last = handle;
      when = now;
    }
    return object;
  }

  std::shared_ptr<T> remove(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    ++removed_;
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    --live_;
    return object;
  }

  // Whether it was a valid handle at some time.
  bool was(std::uint64_t handle) const {
    const std::lock_guard lock(mutex_);
    return (handle & ~0xffffffffull) == tag_ && (handle & 0xffffffffull) <= last_ && (handle & 0xffffffffull) != 0;
  }

  // Removes all objects that the condition holds for.
  template <class F>
  void remove_if(F condition) {
    const std::lock_guard lock(mutex_);
    ++removed_;
    for (auto it = objects_.begin(); it != objects_.end();) {
      if (condition(*it->second)) {
        it = objects_.erase(it);
        --live_;
      } else {
        ++it;
      }
    }
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<T>> objects_;
  std::atomic<long>& live_;
  std::uint64_t tag_;
  std::uint64_t last_ = 0;
  std::atomic<std::uint64_t> removed_{0};
};

}  // namespace sim
