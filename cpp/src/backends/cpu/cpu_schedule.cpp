// backends/cpu/cpu_schedule.cpp -- the serial/parallel decision: costs of entries, costs of a fan-out, and what follows from them.
#include "backends/cpu/cpu_schedule.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/log.h"
#include "core/runtime_impl.h"
#include "core/text.h"
#include "core/updates.h"

namespace tack::cpu {
namespace {

constexpr double unknown = std::numeric_limits<double>::infinity();

constexpr double short_ns = 2000;  // below this, two looks at the clock would be more than a trifle, and threads can't help
constexpr double hint_safety = 8;  // how far the compiler's estimate may be off
constexpr int enough_samples = 4;  // after which a size class of a fixed-cost entry is known
constexpr double probe_ns = 5000;  // an unknown entry runs this long on one thread before anything is decided
constexpr double guessed_warm_ns = 5000, guessed_idle_ns = 150000;
constexpr double gain_needed = 0.8;    // "meaningfully": the parallel run takes at most this part of the serial time
constexpr double awake_ns = 20000;     // workers are awake for this long after a fan-out (the pool's spin)
constexpr double arrival_ns = 300000;  // within which woken workers get processors, unless others keep these busy (measured: 20 to 170 us)
constexpr double wake_ns = 1000;       // between the decision to wake them and that launch's start, at most
constexpr double piece_ns = 20000, smallest_piece_ns = 2000;
constexpr int pieces_per_thread = 4;
constexpr double alone_ns = 1e6;  // how long a launch that is alone keeps others waiting
constexpr std::int64_t most_iterations = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t line_iterations = 64;  // pieces of cheap iterations start at multiples: no two threads store to one cache line
constexpr double first_measure_ns = 1e7, last_measure_ns = 1e10, measure_growth = 10;
constexpr double busy_measure_ns = 2.5e8;                 // after a machine turned out to be too busy: what 8 ms are 3 % of
constexpr double worst_ratio = 4, interrupted_ratio = 2;  // what one launch counts for at most: it may have been interrupted
// After launches on one thread the data lie in its core's cache. The next launch over threads fetches their parts from there, and tells
// nothing about those to come, unless it takes longer than this: a cache of 2 MiB moves in about 50 us.
constexpr double settling_ns = 5e5;
constexpr double useless_ratio = 0.95, retry_ratio = 0.85;
constexpr int most_launches = 512;       // of a spell without threads
constexpr double spell_ns = 1e7;         // or of so much time, where that is fewer launches
constexpr double lost_in_trials = 0.03;  // or as many as make trials cost this part of the time
constexpr float slow_rise = 0.125f, quick_rise = 0.5f;

int size_class(std::int64_t iterations) noexcept { return (63 - std::countl_zero(static_cast<std::uint64_t>(iterations))) / 6; }

/// Launches of fewer iterations are short, going by the compiler's estimate alone; 0 without one.
std::int64_t short_iterations(double hint) noexcept {
  if (hint < 0) return 0;
  return static_cast<std::int64_t>(std::min(std::ceil(short_ns / (std::max(hint, 1e-6) * hint_safety)), 4e18));
}

/// Small relative to the launch, so that threads share evenly; large enough that handing it out costs nothing to speak of.
std::int64_t grain_for(std::int64_t n, double ns_per_iteration, int threads) noexcept {
  const double total = static_cast<double>(n) * ns_per_iteration;
  const double piece = std::clamp(total / (pieces_per_thread * threads), smallest_piece_ns, piece_ns);
  const double iterations = std::clamp(piece / std::max(ns_per_iteration, 1e-6), 1.0, static_cast<double>(n));
  auto grain = static_cast<std::int64_t>(std::min(iterations, 4e18));
  // As many pieces for every thread; a few expensive iterations still go one by one to the threads there are.
  const std::int64_t pieces = std::max<std::int64_t>(1, n / threads / grain) * threads;
  grain = (n - 1) / pieces + 1;
  if (grain < line_iterations) return std::max<std::int64_t>(1, n / pieces);
  return (grain - 1) / line_iterations * line_iterations + line_iterations;  // upwards, lest the rest make a piece of its own
}

}  // namespace

// --- EntryCost ---------------------------------------------------------------------------------------------------------------------

EntryCost::EntryCost(double hint, double threads_ratio) noexcept
    : hint_(std::isfinite(hint) ? hint : -1.0), locks_(threads_ratio > 0), short_below_(short_iterations(hint_)) {
  for (std::atomic<float>& ns : ns_) ns.store(-1.0f, std::memory_order_relaxed);
  for (std::atomic<float>& ns : previous_) ns.store(-1.0f, std::memory_order_relaxed);
  if (threads_ratio > useless_ratio) {  // not worth trying at once: a spell without threads first
    ratio_.store(static_cast<float>(retry_ratio), std::memory_order_relaxed);
    hold_off_.store(first_spell, std::memory_order_relaxed);
  }
}

double EntryCost::predict(std::int64_t iterations) const noexcept {
  const int wanted = size_class(iterations);
  // The class's own measurement, else the nearest one's, the larger size first: it rather errs to the cautious side.
  for (int distance = 0; distance < classes; ++distance) {
    for (const int c : {wanted + distance, wanted - distance}) {
      if (c < 0 || c >= classes) continue;
      const float ns = ns_[static_cast<std::size_t>(c)].load(std::memory_order_relaxed);
      if (ns >= 0) return static_cast<double>(ns) * static_cast<double>(iterations);
    }
  }
  return hint_ >= 0 ? hint_ * static_cast<double>(iterations) : unknown;
}

bool EntryCost::measured_short(std::int64_t iterations) const noexcept {
  if (hint_ < 0) return false;
  const auto n = static_cast<double>(iterations);
  const auto c = static_cast<std::size_t>(size_class(iterations));
  return samples_[c].load(std::memory_order_relaxed) >= enough_samples &&
         static_cast<double>(ns_[c].load(std::memory_order_relaxed)) * n < short_ns;
}

void EntryCost::sample(std::int64_t iterations, double ns_per_iteration, double rise) noexcept {
  const auto c = static_cast<std::size_t>(size_class(iterations));
  const double old = static_cast<double>(ns_[c].load(std::memory_order_relaxed));
  // The first run of all is often a cold one, and a run may be interrupted: down quickly, up slowly. Where the cost depends on values,
  // a change is no accident.
  const double weight = old < 0 ? 1.0 : ns_per_iteration < old || varies() ? 0.5 : rise;
  // A run that lost its core for a while took a thousand times as long: a rise is believed when the next run shows it too.
  const double before = static_cast<double>(previous_[c].exchange(static_cast<float>(ns_per_iteration), std::memory_order_relaxed));
  const double seen = ns_per_iteration > old && before >= 0 ? std::max(old, std::min(ns_per_iteration, before)) : ns_per_iteration;
  const double mixed = old < 0 ? seen : old + (seen - old) * weight;
  ns_[c].store(static_cast<float>(mixed), std::memory_order_relaxed);
  latest_.store(static_cast<float>(mixed), std::memory_order_relaxed);
  if (const std::uint8_t samples = samples_[c].load(std::memory_order_relaxed); samples < enough_samples) {
    samples_[c].store(static_cast<std::uint8_t>(samples + 1), std::memory_order_relaxed);
  }
}

void EntryCost::probed(std::int64_t iterations, double ns) noexcept { sample(iterations, ns / static_cast<double>(iterations), slow_rise); }

void EntryCost::ran_serial(std::int64_t iterations, double ns) noexcept {
  const auto c = static_cast<std::size_t>(size_class(iterations));
  if (!timed_[c].exchange(true, std::memory_order_relaxed)) {  // what a probe or the threads' time told is forgotten
    ns_[c].store(-1.0f, std::memory_order_relaxed);
    previous_[c].store(-1.0f, std::memory_order_relaxed);
  }
  // A spell without threads is there to find out whether they were left out for a wrong reason.
  const double rise = hold_off_.load(std::memory_order_relaxed) > 0 ? quick_rise : slow_rise;
  settling_.store(true, std::memory_order_relaxed);
  sample(iterations, ns / static_cast<double>(iterations), rise);
}

int EntryCost::longest_spell(double ratio, double serial_ns) noexcept {
  const int trial = serial_ns < settling_ns ? 2 : 1;  // launches
  const double launches = std::max(trial * (ratio - 1) / lost_in_trials, spell_ns / serial_ns);
  return static_cast<int>(std::clamp(launches, static_cast<double>(first_spell), static_cast<double>(most_launches)));
}

void EntryCost::ran_parallel(std::int64_t iterations, double busy_ns) noexcept {
  // Threads slow one another down where memory is the limit, so their time is an upper bound of the serial cost: it may only lower it.
  if (busy_ns < predict(iterations)) sample(iterations, busy_ns / static_cast<double>(iterations), slow_rise);
}

void EntryCost::compared(std::int64_t iterations, double wall_ns) noexcept {
  const double serial_ns = predict(iterations);
  if ((varies() && !locks_) || !(serial_ns > 0) || serial_ns == unknown) return;
  if (settling_.load(std::memory_order_relaxed)) {
    settling_.store(false, std::memory_order_relaxed);
    if (serial_ns < settling_ns) return;
  }
  const double old = static_cast<double>(ratio_.load(std::memory_order_relaxed));
  const double now = std::min(wall_ns / serial_ns, worst_ratio);
  double ratio = old + (std::min(now, interrupted_ratio) - old) / 8;
  if (ratio > useless_ratio) {
    // The serial time may be a guess, which a single serial launch corrects. It may have been measured at a bad moment, so the first spells
    // are short. Where threads never help, trying them again costs less and less. But a busy minute of other programs must not keep
    // launches that take long from threads for much longer than that: these are tried again when it costs little.
    const bool timed = timed_[static_cast<std::size_t>(size_class(iterations))].load(std::memory_order_relaxed);
    const int limit = longest_spell(now, serial_ns);
    const int spell = timed ? std::min(spell_.load(std::memory_order_relaxed), limit) : 1;
    hold_off_.store(spell, std::memory_order_relaxed);
    if (spell > 1) spell_.store(std::min(2 * spell, most_launches), std::memory_order_relaxed);
    ratio = retry_ratio;
  } else if (ratio < gain_needed) {
    spell_.store(first_spell, std::memory_order_relaxed);
  }
  ratio_.store(static_cast<float>(ratio), std::memory_order_relaxed);
}

bool EntryCost::holding_off() noexcept {
  if (hold_off_.load(std::memory_order_relaxed) <= 0) return false;
  return hold_off_.fetch_sub(1, std::memory_order_relaxed) > 0;
}

// --- Schedule ----------------------------------------------------------------------------------------------------------------------

/// What a piece needs to run; shared by all threads of one launch.
struct Schedule::Launch {
  EntryCode code;
  bool shared;
  const std::uint64_t* words;
  const TickClock& clock;
  std::int64_t first = 0;                    // pieces are counted from here
  std::atomic<std::uint64_t> busy_ticks{0};  // of all threads
};

Schedule::Schedule(RuntimeImpl& runtime, int threads)
    : runtime_(runtime), pool_(threads), warm_ns_(guessed_warm_ns), idle_ns_(guessed_idle_ns), measure_after_ns_(first_measure_ns) {}

Schedule::~Schedule() = default;

void Schedule::run_piece(void* context, std::int64_t begin, std::int64_t end) {
  Launch& launch = *static_cast<Launch*>(context);
  const DefaultFloatMode mode;
  const std::uint64_t start = launch.clock.now();
  launch.code.usual(launch.words, launch.first + begin, launch.first + end);
  const std::uint64_t stop = launch.clock.now();
  if (stop > start) launch.busy_ticks.fetch_add(stop - start, std::memory_order_relaxed);
}

void Schedule::run(EntryCost& cost, const EntryCode& code, const std::uint64_t* words, std::int64_t iterations, bool shared) {
  if (run_if_short(cost, code, words, iterations)) [[likely]]
    return;
  Launch launch{.code = code, .shared = shared, .words = words, .clock = clock_};
  if (cost.certainly_short(iterations)) {
    const DefaultFloatMode mode;
    run_here(launch, 0, iterations, 0.0);
    cost.count_serial();
    return;
  }
  std::int64_t begin = 0;
  double serial_ns = cost.predict(iterations);
  if (threads() > 1 && iterations > 1) {
    if (serial_ns == unknown) {
      begin = probe(cost, launch, iterations);
      serial_ns = cost.predict(iterations);
    }
    const double ns_per_iteration = serial_ns / static_cast<double>(iterations);
    const double rest_ns = ns_per_iteration * static_cast<double>(iterations - begin);
    if (iterations - begin > 1 && rest_ns >= short_ns && worth_threads(cost, rest_ns, clock_.now())) {
      run_parallel(cost, launch, begin, iterations, ns_per_iteration);
      return;
    }
  }
  if (begin < iterations) run_timed(cost, launch, begin, iterations);
  cost.serial.fetch_add(1, std::memory_order_relaxed);
}

/// Runs [begin, end) on this thread; without locked instructions while nobody else updates the same memory. `ns_per_iteration`: as far as
/// is known.
void Schedule::run_here(const Launch& launch, std::int64_t begin, std::int64_t end, double ns_per_iteration) noexcept {
  if (launch.code.alone == nullptr) [[likely]] {
    launch.code.usual(launch.words, begin, end);
    return;
  }
  Updates::Part part(runtime_.updates, !launch.shared);
  // What an iteration takes may not be known: from one to ever more.
  auto step =
      ns_per_iteration < unknown ? static_cast<std::int64_t>(std::clamp(alone_ns / std::max(ns_per_iteration, 1e-6), 1.0, 4e18)) : 1;
  if (step >= line_iterations) step -= step % line_iterations;  // whole vectors of lanes
  while (begin < end && part.alone()) {
    const std::int64_t length = std::min(step, end - begin);
    const std::uint64_t start = clock_.now();
    launch.code.alone(launch.words, begin, begin + length);
    begin += length;
    if (begin < end && clock_.between(start, clock_.now()) < alone_ns / 8) step = std::min(step, most_iterations / 4) * 4;
  }
  if (begin < end) launch.code.usual(launch.words, begin, end);
}

/// Runs [begin, end) on this thread and learns from it.
void Schedule::run_timed(EntryCost& cost, const Launch& launch, std::int64_t begin, std::int64_t end) {
  const DefaultFloatMode mode;
  const std::uint64_t start = clock_.now();
  run_here(launch, begin, end, cost.predict(end - begin) / static_cast<double>(end - begin));
  const std::uint64_t stop = clock_.now();
  cost.ran_serial(end - begin, clock_.between(start, stop));
  last_end_.store(stop, std::memory_order_relaxed);
}

/// Runs the first iterations of an entry nothing is known of, until their time tells what the rest will take; answers how many it ran.
std::int64_t Schedule::probe(EntryCost& cost, const Launch& launch, std::int64_t iterations) {
  const DefaultFloatMode mode;
  std::int64_t done = 0;
  // Ever larger steps: the last one, which is timed best, has most of the iterations.
  for (std::int64_t step = 1; done < iterations; step *= 4) {
    const std::int64_t end = std::min(done + step, iterations);
    const std::uint64_t start = clock_.now();
    run_here(launch, done, end, 0.0);
    const double ns = clock_.between(start, clock_.now());
    const auto length = static_cast<double>(end - done);
    done = end;
    if (ns < probe_ns && done < iterations) continue;
    // Counted as a measurement of launches of this size, for want of a better one.
    cost.probed(iterations, ns / length * static_cast<double>(iterations));
    break;
  }
  return done;
}

bool Schedule::idle(std::uint64_t now) const noexcept {
  if (!host_runs_.load(std::memory_order_relaxed)) return pool_.idle();
  return clock_.between(last_fan_out_.load(std::memory_order_relaxed), now) > awake_ns;
}

/// Whether a run over all threads takes meaningfully less time than `serial_ns`.
bool Schedule::worth_threads(EntryCost& cost, double serial_ns, std::uint64_t now) {
  if (pool_failed_.load(std::memory_order_relaxed) && !host()) return false;
  const double divided = serial_ns / threads();
  const double limit = serial_ns * gain_needed;

  // Once enough time is spent on launches that threads may help, the machine is measured instead of guessed; and again later on, also
  // where threads are left out because of what was measured: other programs may have been at work.
  const double worked = worked_ns_.load(std::memory_order_relaxed) + serial_ns;
  worked_ns_.store(worked, std::memory_order_relaxed);
  if (worked > measure_after_ns_.load(std::memory_order_relaxed)) calibrate();

  const double warm = warm_ns_.load(std::memory_order_relaxed), idle_cost = idle_ns_.load(std::memory_order_relaxed);
  if (divided + warm >= limit || cost.holding_off()) return false;
  if (!idle(now)) return true;
  // Waking the workers is dear, but serves a whole burst of launches: rent (run serially) until the rent paid equals the price, then buy.
  const bool burst = clock_.between(last_end_.load(std::memory_order_relaxed), now) < awake_ns;
  const double missed = (burst ? missed_ns_.load(std::memory_order_relaxed) : 0.0) + serial_ns - divided - warm;
  const bool wake = divided + idle_cost < limit || missed > idle_cost;
  missed_ns_.store(wake ? 0.0 : missed, std::memory_order_relaxed);
  if (wake && divided + idle_cost >= limit) burst_woke_.store(now, std::memory_order_relaxed);
  return wake;
}

/// Whether a parallel launch that began at `start` tells nothing about those to come: it paid for waking the workers, or came before they
/// were there.
bool Schedule::proves_nothing(std::uint64_t start, double busy_ns, double wall_ns) const noexcept {
  const double awake = clock_.between(burst_woke_.load(std::memory_order_relaxed), start);
  return awake < wake_ns || (awake < arrival_ns && busy_ns <= wall_ns);
}

void Schedule::run_parallel(EntryCost& cost, Launch& launch, std::int64_t begin, std::int64_t end, double ns_per_iteration) {
  std::optional<Updates::Part> part;
  if (launch.code.alone != nullptr) part.emplace(runtime_.updates, false);
  const std::int64_t n = end - begin;
  launch.first = begin;
  const std::uint64_t start = clock_.now();
  const bool fanned_out = fan_out_over(n, grain_for(n, ns_per_iteration, threads()), run_piece, &launch);
  const std::uint64_t stop = clock_.now();
  const double busy_ns = clock_.nanoseconds(launch.busy_ticks.load(std::memory_order_relaxed));
  if (fanned_out) {
    const double wall_ns = clock_.between(start, stop);
    const bool compare = !proves_nothing(start, busy_ns, wall_ns);
    if (compare) cost.compared(n, wall_ns);
    cost.ran_parallel(n, busy_ns);
    cost.parallel.fetch_add(1, std::memory_order_relaxed);
    last_fan_out_.store(stop, std::memory_order_relaxed);
  } else {
    cost.ran_serial(n, busy_ns);
    cost.serial.fetch_add(1, std::memory_order_relaxed);
  }
  last_end_.store(stop, std::memory_order_relaxed);
}

/// What runs launches instead of the pool: the host's parallel_for, or the fallback once the pool has failed; or empty.
ParallelFor Schedule::host() const {
  ParallelFor host = runtime_.parallel_for();
  if (!host && pool_failed_.load(std::memory_order_relaxed)) host = runtime_.parallel_for_fallback();
  return host;
}

/// Hands [0, n) to the host's parallel_for, or to the pool, or runs it here; answers whether other threads were called.
bool Schedule::fan_out_over(std::int64_t n, std::int64_t grain, ParallelBody body, void* context) {
  if (const ParallelFor other = host()) {
    if (!host_runs_.exchange(true)) forget_costs();
    other(n, grain, threads(), body, context);
    return true;
  }
  if (host_runs_.exchange(false)) forget_costs();
  if (runtime_.config.cpu_pool == "python" && !missing_host_said_.exchange(true)) {
    runtime_.log.write(
        LogLevel::warning,
        "TACK_CPU_POOL is 'python', but nobody has installed such a pool (Runtime::set_parallel_for): CPU kernels run on tack's "
        "own threads. Set TACK_CPU_POOL=native to say so.");
  }
  try {
    return pool_.run(n, grain, body, context);
  } catch (const Error& error) {
    // Thrown before anything ran.
    const bool first = !pool_failed_.exchange(true);
    const bool fallback = static_cast<bool>(host());
    if (first) {
      const char* instead = fallback ? "the host program's own threads" : "the calling thread";
      runtime_.log.write(LogLevel::warning, text("CPU kernels run on ", instead, " from now on. ", error.what()));
    }
    if (fallback) return fan_out_over(n, grain, body, context);
  }
  body(context, 0, n);
  return false;
}

// --- The cost of a fan-out -----------------------------------------------------------------------------------------------------------

/// Another scheduler has other costs.
void Schedule::forget_costs() noexcept {
  warm_ns_.store(guessed_warm_ns, std::memory_order_relaxed);
  idle_ns_.store(guessed_idle_ns, std::memory_order_relaxed);
  measure_after_ns_.store(first_measure_ns, std::memory_order_relaxed);
  measured_.store(false, std::memory_order_relaxed);
}

FanOutCost Schedule::fan_out() {
  if (threads() > 1 && !measured_.load(std::memory_order_acquire)) calibrate();
  if (!measured_.load(std::memory_order_acquire)) return {};
  return {warm_ns_.load(std::memory_order_relaxed), idle_ns_.load(std::memory_order_relaxed)};
}

/// Fans out `ns_each` of work for every thread; answers how much longer that took than `ns_each`: negative when nobody was called.
double Schedule::fan_out_sample(double ns_each) {
  constexpr int pieces = 8;  // for every thread
  struct Work {
    const TickClock& clock;
    double piece_ns;
  } work{clock_, ns_each / pieces};
  const auto body = [](void* context, std::int64_t begin, std::int64_t end) {
    const Work& w = *static_cast<const Work*>(context);
    const std::uint64_t start = w.clock.now();
    while (w.clock.between(start, w.clock.now()) < w.piece_ns * static_cast<double>(end - begin)) {
    }
  };
  const std::uint64_t start = clock_.now();
  const bool fanned_out = fan_out_over(std::int64_t{pieces} * threads(), 1, body, &work);
  const std::uint64_t stop = clock_.now();
  last_fan_out_.store(stop, std::memory_order_relaxed);
  return fanned_out ? std::max(0.0, clock_.between(start, stop) - ns_each) : -1.0;
}

/// Measures the fan-out cost, warm and after idleness, as the least of all samples so far: the machine's, not its other programs'.
void Schedule::calibrate() {
  // A thread that finds another one measuring goes on with what is known. No lock is waited for, so a fork can't leave one locked for ever.
  const std::unique_lock lock(measuring_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  worked_ns_.store(0, std::memory_order_relaxed);
  const bool again = measured_.load(std::memory_order_relaxed);
  measure_after_ns_.store(std::min(measure_after_ns_.load(std::memory_order_relaxed) * measure_growth, last_measure_ns),
                          std::memory_order_relaxed);

  // After idleness a worker may need this long to get a core of its own; with less work the submitter does it all and the delay stays
  // hidden.
  constexpr double long_work = 300000, short_work = 20000;
  constexpr int idle_samples = 3, good_samples = 5;
  constexpr double longest_warm_up = 5e6;
  double warm = unknown, idle_cost = unknown;
  for (int i = 0; i < idle_samples; ++i) {
    // Longer than the workers spin, and the machine's idleness is a real one.
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    for (int k = 0; k < 20 && !idle(clock_.now()); ++k) std::this_thread::sleep_for(std::chrono::microseconds(50));
    const double sample = fan_out_sample(long_work);
    if (sample < 0) return;                                       // somebody else uses the pool, or it can't start
    if (again || i > 0) idle_cost = std::min(idle_cost, sample);  // the very first also starts the threads
  }
  // Warm means that the workers have cores of their own, which the system gives them some time after they woke.
  const std::uint64_t start = clock_.now();
  int good = 0;
  while (good < good_samples && clock_.between(start, clock_.now()) < longest_warm_up) {
    const double sample = fan_out_sample(short_work);
    if (sample < 0) return;
    warm = std::min(warm, sample);
    if (sample < short_work / 2) ++good;
  }
  // Not the machine's costs but those of a busy minute: the next look comes soon.
  if (good < good_samples) measure_after_ns_.store(busy_measure_ns, std::memory_order_relaxed);
  if (measured_.load(std::memory_order_relaxed)) {
    warm = std::min(warm, warm_ns_.load(std::memory_order_relaxed));
    idle_cost = std::min(idle_cost, idle_ns_.load(std::memory_order_relaxed));
  }
  warm_ns_.store(warm, std::memory_order_relaxed);
  idle_ns_.store(std::max(idle_cost, warm), std::memory_order_relaxed);
  measured_.store(true, std::memory_order_release);
  if (runtime_.log.enabled(LogLevel::debug)) {
    runtime_.log.write(LogLevel::debug, "A fan-out over " + std::to_string(threads()) + " CPU threads costs " +
                                            std::to_string(warm / 1000) + " us, after idleness " + std::to_string(idle_cost / 1000) +
                                            " us.");
  }
}

}  // namespace tack::cpu
