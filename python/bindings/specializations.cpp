// specializations.cpp -- look-up, insertion and growth of a dispatcher's table.
#include "specializations.h"

namespace tack::python {

std::uint64_t Specializations::hash_of(std::span<const KeyWord> key) noexcept {
  std::uint64_t h = 0x9e3779b97f4a7c15u;
  for (const KeyWord word : key) {
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  }
  return h;
}

Specializations::Slot& Specializations::slot_of(std::uint64_t hash, std::span<const KeyWord> key) {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    Slot& slot = slots_[i];
    if (slot.versions.empty() || (slot.hash == hash && slot.versions.front()->has_key(key))) return slot;
  }
}

std::vector<SpecializationRef> Specializations::versions(std::span<const KeyWord> key) {
  const nb::ft_lock_guard lock(mutex_);
  if (slots_.empty()) return {};
  return slot_of(hash_of(key), key).versions;
}

SpecializationRef Specializations::find(std::span<const KeyWord> key) {
  SpecializationRef last;
  {
    const nb::ft_lock_guard lock(mutex_);
    last = last_;
  }
  const bool tried = last && last->has_key(key);
  if (tried && last->current()) return last;
  for (const SpecializationRef& version : versions(key)) {
    if ((tried && version == last) || !version->current()) continue;
    const nb::ft_lock_guard lock(mutex_);
    last_ = version;
    return version;
  }
  return {};
}

void Specializations::grow() {
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(std::max<std::size_t>(8, slots_.size() * 2)));
  for (Slot& slot : old)
    if (!slot.versions.empty()) slot_of(slot.hash, slot.versions.front()->key()) = std::move(slot);
}

void Specializations::insert(const SpecializationRef& specialization) {
  std::vector<SpecializationRef> dropped;  // freed after the lock is
  const nb::ft_lock_guard lock(mutex_);
  if (2 * (used_ + 1) > slots_.size()) grow();
  const std::uint64_t hash = hash_of(specialization->key());
  Slot& slot = slot_of(hash, specialization->key());
  if (slot.versions.empty()) {
    slot.hash = hash;
    ++used_;
  }
  slot.versions.insert(slot.versions.begin(), specialization);
  if (slot.versions.size() > max_versions) {
    dropped.push_back(std::move(slot.versions.back()));
    slot.versions.pop_back();
  }
  dropped.push_back(std::exchange(last_, specialization));
}

void Specializations::clear() {
  // Emptied first, freed afterwards: freeing may run Python code that calls the dispatcher.
  std::vector<Slot> old;
  SpecializationRef last;
  {
    const nb::ft_lock_guard lock(mutex_);
    old.swap(slots_);
    std::swap(last, last_);
    used_ = 0;
  }
}

std::size_t Specializations::size() const {
  const nb::ft_lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const Slot& slot : slots_) count += slot.versions.size();
  return count;
}

int Specializations::traverse(visitproc visit, void* arg) const {
  for (const Slot& slot : slots_)
    for (const SpecializationRef& version : slot.versions)
      if (const int result = version->traverse(visit, arg); result != 0) return result;
  return 0;
}

}  // namespace tack::python
