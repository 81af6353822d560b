// backends/cpu/cpu_schedule.h -- decides for each launch: on the calling thread, or over the pool. Measures both sides.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "backends/cpu/float_mode.h"
#include "core/thread_pool.h"
#include "core/tick_clock.h"
#include "tack/kernel.hpp"
#include "tack/runtime.hpp"

namespace tack {
class RuntimeImpl;
}

namespace tack::cpu {

/// The machine code of an entry: iterations [begin, end) of the row-major linear index range.
using EntryFunction = void (*)(const std::uint64_t* words, std::int64_t begin, std::int64_t end);
struct EntryCode {
  EntryFunction usual = nullptr;
  EntryFunction alone = nullptr;  ///< as EntryPoint::alone; null for an entry without atomics
};

/// What one entry's iterations cost, by launch size, since the same loop runs at another speed in cache than out of it.
/// Lock-free: concurrent launches may lose one another's samples, never see a torn one.
class EntryCost {
 public:
  /// `hint`: the compiler's estimate in ns per iteration; negative for an entry whose cost depends on values, which is then always timed.
  /// `threads_ratio`: of an entry that one thread may run without locks, how long threads, which need them, take over that one, by
  /// estimate; 0 for other entries.
  explicit EntryCost(double hint, double threads_ratio = 0.0) noexcept;

  /// Expected ns of `iterations` on one thread; infinity while nothing is known.
  double predict(std::int64_t iterations) const noexcept;
  /// The launch is certainly short: not worth a clock.
  bool certainly_short(std::int64_t iterations) const noexcept { return iterations < short_below_ || measured_short(iterations); }
  /// The compiler couldn't say what an iteration costs.
  bool varies() const noexcept { return hint_ < 0; }

  void ran_serial(std::int64_t iterations, double ns) noexcept;
  /// What `iterations` would take on one thread, going by a few of them. Counts until a whole launch is timed.
  void probed(std::int64_t iterations, double ns) noexcept;
  /// `busy_ns`: all threads' time in the kernel.
  void ran_parallel(std::int64_t iterations, double busy_ns) noexcept;
  /// How long the caller of a parallel launch took: whether threads help.
  void compared(std::int64_t iterations, double wall_ns) noexcept;
  /// Threads have not helped this entry lately (memory already saturated, other programs on the cores): a spell of launches without them,
  /// twice as long each time that it turns out so again. Counts down.
  bool holding_off() noexcept;

  /// The last measurement in ns per iteration; negative before the first.
  double measured() const noexcept { return latest_.load(std::memory_order_relaxed); }

  /// Counts a launch that ran on its own thread. Without a locked instruction, which would cost more than the rest of a short launch:
  /// of concurrent launches, one may go uncounted.
  void count_serial() noexcept { serial.store(serial.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  std::atomic<std::uint64_t> serial{0}, parallel{0};  ///< launches of either kind

 private:
  bool measured_short(std::int64_t iterations) const noexcept;
  /// In launches, after trials that took `ratio` times as long as one thread would have.
  static int longest_spell(double ratio, double serial_ns) noexcept;
  /// `rise`: the weight of a sample that is above what was known.
  void sample(std::int64_t iterations, double ns_per_iteration, double rise) noexcept;

  static constexpr int classes = 11;     // launch sizes by powers of 64
  static constexpr int first_spell = 4;  // launches
  const double hint_;
  const bool locks_;                // threads need locked instructions, one does not
  const std::int64_t short_below_;  // fewer iterations are short even if the hint is far off; 0 without a hint
  std::array<std::atomic<float>, classes> ns_;
  std::array<std::atomic<float>, classes> previous_;  // the last sample as it was
  std::array<std::atomic<std::uint8_t>, classes> samples_{};
  std::array<std::atomic<bool>, classes> timed_{};  // a whole launch ran on one thread
  std::atomic<float> latest_{-1.0f};
  std::atomic<float> ratio_{0.5f};       // wall time over the serial prediction, of parallel launches
  std::atomic<bool> settling_{false};    // the last launch ran on one thread, in whose core's cache the data lie
  std::atomic<int> hold_off_{0};         // launches left of the present spell without threads
  std::atomic<int> spell_{first_spell};  // length of the next one
};

/// What a fan-out costs beyond the evenly divided work, in ns; negative before it is measured.
struct FanOutCost {
  double warm = -1.0;  ///< workers awake
  double idle = -1.0;  ///< workers parked
};

/// One per CPU device. Thread-safe.
class Schedule {
 public:
  /// Starts no thread.
  Schedule(RuntimeImpl& runtime, int threads);
  ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  int threads() const noexcept { return pool_.threads(); }
  /// Runs a launch that is certainly short on the calling thread; false, and nothing done, when it is not.
  static bool run_if_short(EntryCost& cost, const EntryCode& code, const std::uint64_t* words, std::int64_t iterations) noexcept {
    if (code.alone != nullptr || !cost.certainly_short(iterations)) return false;
    const DefaultFloatMode mode;
    code.usual(words, 0, iterations);
    cost.count_serial();
    return true;
  }
  /// Runs one launch; returns when it is done. Every piece runs in the default floating-point mode. `shared`: as LaunchCommand has it.
  void run(EntryCost& cost, const EntryCode& code, const std::uint64_t* words, std::int64_t iterations, bool shared);
  /// Measured fan-out costs; measures (2 to 8 ms, once) if that has not been done and there are threads to fan out to.
  FanOutCost fan_out();

 private:
  struct Launch;
  static void run_piece(void* context, std::int64_t begin, std::int64_t end);
  void run_here(const Launch& launch, std::int64_t begin, std::int64_t end, double ns_per_iteration) noexcept;
  void run_timed(EntryCost& cost, const Launch& launch, std::int64_t begin, std::int64_t end);
  std::int64_t probe(EntryCost& cost, const Launch& launch, std::int64_t iterations);
  bool worth_threads(EntryCost& cost, double serial_ns, std::uint64_t now);
  void run_parallel(EntryCost& cost, Launch& launch, std::int64_t begin, std::int64_t end, double ns_per_iteration);
  ParallelFor host() const;
  bool fan_out_over(std::int64_t n, std::int64_t grain, ParallelBody body, void* context);
  bool idle(std::uint64_t now) const noexcept;
  bool proves_nothing(std::uint64_t start, double busy_ns, double wall_ns) const noexcept;
  void forget_costs() noexcept;
  void calibrate();
  double fan_out_sample(double ns_each);

  RuntimeImpl& runtime_;
  const TickClock clock_;
  ThreadPool pool_;
  std::atomic<bool> pool_failed_{false};        // no thread could start: the fallback, or serial, from then on; said once
  std::atomic<bool> missing_host_said_{false};  // TACK_CPU_POOL=python and no such pool installed
  std::atomic<bool> host_runs_{false};          // the last fan-out went to the host's parallel_for

  // Guessed until measured; what is worth measuring is known only after some launches.
  std::atomic<double> warm_ns_, idle_ns_;
  std::atomic<bool> measured_{false};
  std::mutex measuring_;
  std::atomic<double> worked_ns_{0};            // time of launches for which threads come into question, since the last measurement
  std::atomic<double> measure_after_ns_;        // the amount of it that is worth the next one
  std::atomic<double> missed_ns_{0};            // what warm workers would have saved in the present burst of launches
  std::atomic<std::uint64_t> last_end_{0};      // tick at which the last launch of more than a trifle ended
  std::atomic<std::uint64_t> last_fan_out_{0};  // tick at which the last fan-out ended
  std::atomic<std::uint64_t> burst_woke_{0};    // tick at which the workers were last woken for the sake of launches to come
};

}  // namespace tack::cpu
