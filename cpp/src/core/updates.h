// core/updates.h -- which launches update memory by atomics at the same time: one that is alone needs no locked instructions.
#pragma once

#include <atomic>
#include <cstdint>

namespace tack {

/// The launches with atomics on a runtime's CPU devices. One that finds no other may be alone: its atomics are plain instructions then.
/// Those that come meanwhile wait until it goes on as they do, which it has to ask for often enough. Survives fork: a child has none of its
/// parent's launches.
class Updates {
 public:
  Updates() noexcept;
  ~Updates() = default;
  Updates(const Updates&) = delete;
  Updates& operator=(const Updates&) = delete;

  /// Something that is no such launch may update the same memory from now on: nobody is alone any more. Waits for a launch that is.
  void never_alone() noexcept;

  /// A launch's part in it, for as long as the object lives. Whoever is alone must not wait for others.
  class Part {
   public:
    /// `alone`: to be so where that is possible.
    Part(Updates& updates, bool alone) noexcept;
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    /// Whether the launch is alone, until it asks again. Once it is not, it never is.
    bool alone() noexcept;

   private:
    void join() noexcept;
    Updates& updates_;
    const std::uint64_t process_;
    bool alone_ = false;
  };

 private:
  std::atomic<std::uint64_t> state_;  // above: forks that led to this process; below: a launch is alone, others wait, how many there are
  std::atomic<bool> never_{false};
};

}  // namespace tack
