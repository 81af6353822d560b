// core/thread_pool.cpp -- the pool's one algorithm: a job's pieces are dealt out in parts, one for each thread; the submitter and whichever
// workers are awake claim from their own part first, then from the others'.
#include "core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/parking.h"
#include "core/processor.h"
#include "core/thread_host.h"
#include "tack/error.hpp"

namespace tack {
namespace {

// How long a worker looks for the next job before it parks, and a submitter for the last claimed piece before it sleeps.
// Longer spins gain nothing after idleness and take a core from everybody else (measure with tests/bench/cpp/fanout.cpp).
constexpr std::chrono::microseconds worker_spin{20};
constexpr std::chrono::microseconds submitter_spin{20};
constexpr int pauses_per_look = 16;  // between two looks at the clock

// A parked worker is woken by the submitter, and wakes others in turn: the cost of waking is spread as a tree.
constexpr std::uint32_t wakes_per_thread = 2;

constexpr std::size_t cache_line = 64;

// Launch after launch over the same arrays finds each thread on the same part of them, in that core's cache; a part whose thread sleeps or
// is held up goes to those that have done their own.
//
// The job's word: its number, and how many parts it has. A part's word: the number of the last job that claimed from it, and how many of
// that job's pieces are left; while that number is an earlier one, all of them are. So a job begins with one store, and a worker that slept
// through it can't claim from a later one with what it remembers: the numbers differ (those of 2^44 jobs in a row, half a year of
// launches).
constexpr unsigned number_at = 20;  // the bits below it are for the count
constexpr std::uint32_t max_pieces = (1u << number_at) - 1;

constexpr std::uint64_t number_of(std::uint64_t word) noexcept { return word >> number_at; }
constexpr std::uint32_t count_of(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word) & max_pieces; }
constexpr std::uint64_t word_of(std::uint64_t number, std::uint32_t count) noexcept { return number << number_at | count; }

/// A part: pieces [first, first + count).
struct Part {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Part number `p` of `parts`, which differ by one piece at most.
constexpr Part part_at(std::uint32_t p, std::uint32_t pieces, std::uint32_t parts) noexcept {
  const std::uint32_t each = pieces / parts, longer = pieces % parts;
  return {p * each + std::min(p, longer), each + (p < longer ? 1 : 0)};
}

// Claims shrink: each takes half of what is left of a part; the last pieces go one by one. So a thread that is held up keeps little
// waiting.
constexpr std::uint32_t claim_size(std::uint32_t rest) noexcept { return std::max(rest / 2, 1u); }

/// Counts the forks that led to this process. A child has none of its parent's threads, and its locks may be held for ever: every pool
/// compares this number with the one it started under. The one mutable global that pools need; fork offers no other way.
std::atomic<std::uint32_t> fork_count{0};

/// What others see of a worker: whether it sleeps, and where it runs.
///
/// A virtual machine's scheduler takes an idle processor, which its host has put to sleep, for a busy one, and wakes a worker on the
/// submitter's: there it gets no time before the job is over, and is left there for launches without end (measured: no help in 5 ms of
/// them). So workers may run everywhere but where the last job came from, unless its submitter sleeps.
class alignas(cache_line) Seat {
 public:
  /// By the worker, before anything else: until then nobody sends it anywhere.
  void begin() noexcept {
    thread_.store(thread_host::this_thread(), std::memory_order_relaxed);
    note_processor();
  }
  /// By the worker, when it may have been moved.
  void note_processor() noexcept {
    const int here = thread_host::this_processor();
    if (processor_.load(std::memory_order_relaxed) != here) processor_.store(here, std::memory_order_release);
  }
  /// By a thread that runs on `here` and wants the worker, which has begun, elsewhere.
  void send_off(int here) noexcept {
    if (kept_off_.load(std::memory_order_relaxed) == here && processor_.load(std::memory_order_relaxed) != here) return;
    const std::unique_lock lock(moving_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    const int thread = thread_.load(std::memory_order_relaxed);
    before_ = unrestricted(thread);
    thread_host::Processors elsewhere = before_;
    elsewhere.reset(static_cast<std::size_t>(here));
    if (elsewhere.none()) elsewhere = before_;
    thread_host::allow_processors(thread, elsewhere);
    allowed_ = elsewhere;
    kept_off_.store(here, std::memory_order_relaxed);
  }
  /// The worker may run where it was kept off.
  void lift() noexcept {
    if (kept_off_.load(std::memory_order_relaxed) < 0) return;
    const std::unique_lock lock(moving_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    const int thread = thread_.load(std::memory_order_relaxed);
    thread_host::allow_processors(thread, unrestricted(thread));
    kept_off_.store(none, std::memory_order_relaxed);
  }
  /// Whether the worker has begun and was last seen on `here`.
  bool is_on(int here) const noexcept { return processor_.load(std::memory_order_acquire) == here; }

  // Waking pairs with Crew::park(): either the worker sees the job, or its submitter sees it asleep. Hence seq_cst.

  /// By the worker, before it looks for a job a last time.
  void lie_down() noexcept { asleep_.store(1, std::memory_order_seq_cst); }
  /// By whoever wakes the worker; true for one caller, who owes it the call.
  bool claim_wake() noexcept {
    std::uint32_t yes = 1;
    return asleep_.load(std::memory_order_seq_cst) == 1 && asleep_.compare_exchange_strong(yes, 0, std::memory_order_seq_cst);
  }
  void sleep() noexcept {
    while (asleep_.load(std::memory_order_acquire) == 1) parking::wait(asleep_, 1);
  }
  void call() noexcept { parking::wake(asleep_, 1); }

 private:
  static constexpr int none = -1;

  /// Where the worker may run but for send_off(), also if somebody else has restricted it meanwhile.
  thread_host::Processors unrestricted(int thread) const noexcept {
    const thread_host::Processors now = thread_host::allowed_processors(thread);
    return kept_off_.load(std::memory_order_relaxed) >= 0 && now == allowed_ ? before_ : now;
  }

  std::atomic<std::uint32_t> asleep_{0};
  std::atomic<int> thread_{0};
  std::atomic<int> processor_{none};  // where the worker runs or ran last; none before it has begun
  std::atomic<int> kept_off_{none};   // the processor that was taken from it
  std::mutex moving_;                 // guards the two below; nobody waits for it
  thread_host::Processors before_, allowed_;
};

/// What is left of one part: its word. The thread whose part it is has it in its cache until others come to help.
struct alignas(cache_line) Claims {
  std::atomic<std::uint64_t> word{0};
};

/// Calls `done` until it is true or `budget` has passed; answers whether it became true. Calls `look` between two looks at the clock.
template <class Look, class Done>
bool spin(std::chrono::microseconds budget, Look look, Done done) noexcept {
  for (int i = 0; i < pauses_per_look; ++i) {
    if (done()) return true;
    processor::pause();
  }
  const auto end = std::chrono::steady_clock::now() + budget;
  do {
    look();
    for (int i = 0; i < pauses_per_look; ++i) {
      if (done()) return true;
      processor::pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

/// The workers of one process and the job they share. A fork's child leaves its parent's crew alone and hires its own.
class Crew {
 public:
  Crew(int threads, std::uint32_t forks)
      : roomy_(static_cast<unsigned>(threads) <= std::thread::hardware_concurrency()),
        forks_(forks),
        threads_(static_cast<std::uint32_t>(threads)),
        seats_(threads_),
        claims_(threads_) {}
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  std::uint32_t forks() const noexcept { return forks_; }
  bool idle() const noexcept {
    return !started_.load(std::memory_order_acquire) || parked_.load(std::memory_order_relaxed) >= workers_.size();
  }

  /// Takes the pool for one job; false when somebody has it.
  bool acquire() noexcept { return !busy_.load(std::memory_order_relaxed) && !busy_.exchange(true, std::memory_order_acquire); }
  void release() noexcept { busy_.store(false, std::memory_order_release); }
  /// Starts the workers at the first call. Call with the pool acquired. Throws Error(unavailable) when none can start.
  void start();
  /// Runs one job. Call with the pool acquired.
  void run(std::int64_t n, std::int64_t grain, std::uint32_t pieces, ParallelBody body, void* context) noexcept;

 private:
  void work(std::uint32_t number) noexcept;
  std::uint32_t drain(std::uint64_t job, std::uint32_t mine) noexcept;
  std::uint32_t drain_part(std::uint64_t job, std::uint32_t part) noexcept;
  void finish(std::uint32_t pieces) noexcept;
  void park(Seat& seat, std::uint64_t seen) noexcept;
  void clear_processor(std::uint32_t mine) noexcept;
  void ring(std::uint32_t count) noexcept;

  // Written by the submitter between jobs, read by workers. A worker may read them while they change, and then fails to claim:
  // atomics, so that this is no data race; relaxed, so that it costs nothing.
  alignas(cache_line) std::atomic<std::uint64_t> job_{0};
  std::atomic<ParallelBody> body_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<std::int64_t> n_{0}, grain_{1};
  std::atomic<std::uint32_t> pieces_{0};

  // Pieces of the job that are not done yet, and whether the submitter sleeps on that number.
  alignas(cache_line) std::atomic<std::uint32_t> left_{0};
  std::atomic<bool> submitter_sleeps_{false};

  alignas(cache_line) std::atomic<std::uint32_t> parked_{0};  // workers that sleep or are about to, and that nobody is waking
  std::atomic<bool> stop_{false};

  alignas(cache_line) std::atomic<bool> busy_{false};
  std::atomic<bool> started_{false};
  const bool roomy_;  // each thread can have a processor of its own
  const std::uint32_t forks_;
  const std::uint32_t threads_;
  std::vector<std::thread> workers_;  // constant once started_
  std::vector<Seat> seats_;           // one for each of threads_; the submitter's, number 0, stays empty
  std::vector<Claims> claims_;        // of the part of each
};

Crew::~Crew() {
  stop_.store(true, std::memory_order_seq_cst);
  ring(threads_);
  for (std::thread& worker : workers_) worker.join();
}

void Crew::start() {
  if (started_.load(std::memory_order_relaxed)) return;
  const thread_host::SignalsBlocked blocked;
  workers_.reserve(threads_ - 1);
  try {
    for (std::uint32_t i = 1; i < threads_; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    if (workers_.empty()) {
      throw Error({.code = ErrorCode::unavailable,
                   .message = "The CPU thread pool could not start a thread (" + std::string(error.what()) +
                              "). Raise the process's limit of threads (ulimit -u, the container's pids limit), or set TACK_CPU_THREADS=1.",
                   .backend = "cpu",
                   .operation = "start thread",
                   .native_code = error.code().value(),
                   .native_name = {}});
    }
    // Some is better than none: the parts of those that are missing go to the others.
  }
  started_.store(true, std::memory_order_release);
}

void Crew::run(std::int64_t n, std::int64_t grain, std::uint32_t pieces, ParallelBody body, void* context) noexcept {
  body_.store(body, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  n_.store(n, std::memory_order_relaxed);
  grain_.store(grain, std::memory_order_relaxed);
  pieces_.store(pieces, std::memory_order_relaxed);
  left_.store(pieces, std::memory_order_relaxed);
  const std::uint32_t parts = std::min(pieces, threads_);  // none is empty
  const std::uint64_t job = word_of(number_of(job_.load(std::memory_order_relaxed)) + 1, parts);
  // seq_cst pairs with park(): either the worker sees this job, or it is seen as parked here.
  job_.store(job, std::memory_order_seq_cst);
  clear_processor(0);
  if (parked_.load(std::memory_order_seq_cst) > 0) ring(std::min(wakes_per_thread, parts - 1));

  const std::uint32_t mine = drain(job, 0);
  if (left_.fetch_sub(mine, std::memory_order_acq_rel) == mine) return;
  // What is left is claimed and being worked on; a worker that hasn't begun is not waited for.
  // Not politely, as beside a busy neighbour this thread would give away its own time.
  if (spin(submitter_spin, [] {}, [this] { return left_.load(std::memory_order_acquire) == 0; })) return;
  // The worker has been held up. Sleeping lends it this CPU, should that be what it waits for.
  for (Seat& seat : seats_) seat.lift();
  submitter_sleeps_.store(true, std::memory_order_seq_cst);
  for (std::uint32_t left; (left = left_.load(std::memory_order_seq_cst)) != 0;) parking::wait(left_, left);
  submitter_sleeps_.store(false, std::memory_order_relaxed);
}

/// Claims and runs pieces of `job` until none is unclaimed, those of part `mine` first; answers how many that were.
std::uint32_t Crew::drain(std::uint64_t job, std::uint32_t mine) noexcept {
  const std::uint32_t parts = count_of(job);
  std::uint32_t pieces_done = 0;
  for (std::uint32_t i = 0; i < parts; ++i) {
    pieces_done += drain_part(job, (mine + i) % parts);
  }
  return pieces_done;
}

/// The same of one part, which is not empty in `job`.
std::uint32_t Crew::drain_part(std::uint64_t job, std::uint32_t part_number) noexcept {
  std::atomic<std::uint64_t>& word = claims_[part_number].word;
  std::uint32_t pieces_done = 0;
  std::uint64_t seen = word.load(std::memory_order_acquire);
  // A later job's claim would have been seen together with that job: what was seen is this job's or an earlier one's.
  while (number_of(job_.load(std::memory_order_acquire)) == number_of(job)) {
    const std::int64_t n = n_.load(std::memory_order_relaxed), grain = grain_.load(std::memory_order_relaxed);
    const ParallelBody body = body_.load(std::memory_order_relaxed);
    void* const context = context_.load(std::memory_order_relaxed);
    const Part part = part_at(part_number, pieces_.load(std::memory_order_relaxed), count_of(job));
    const std::uint32_t rest = number_of(seen) == number_of(job) ? count_of(seen) : part.count;
    if (rest == 0) break;
    const std::uint32_t count = claim_size(rest);
    // Success proves that this part had an unclaimed piece until now, hence that what was read above is this job's: the next job's values
    // are written only after every piece of this one was claimed and done.
    if (!word.compare_exchange_weak(seen, word_of(number_of(job), rest - count), std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    const std::int64_t begin = (part.first + part.count - rest) * grain;
    const std::int64_t length = count * grain;
    body(context, begin, n - begin < length ? n : begin + length);
    pieces_done += count;
    seen = word.load(std::memory_order_acquire);
  }
  return pieces_done;
}

/// Books a worker's pieces as done and wakes the submitter if they were the last.
void Crew::finish(std::uint32_t pieces) noexcept {
  if (pieces == 0) return;
  if (left_.fetch_sub(pieces, std::memory_order_seq_cst) == pieces && submitter_sleeps_.load(std::memory_order_seq_cst)) {
    parking::wake(left_, 1);
  }
}

void Crew::work(std::uint32_t number) noexcept {
  thread_host::name_this_thread("tack-cpu-" + std::to_string(number));
  Seat& seat = seats_[number];
  seat.begin();
  std::uint64_t seen = 0;  // the number of the last job that was looked at
  // Politely: a worker on its submitter's own processor must not keep it from submitting.
  const auto give_way = [&] {
    std::this_thread::yield();
    seat.note_processor();
  };
  while (!stop_.load(std::memory_order_acquire)) {
    const auto fresh = [&] { return number_of(job_.load(std::memory_order_acquire)) != seen || stop_.load(std::memory_order_relaxed); };
    const bool slept = !spin(worker_spin, give_way, fresh);
    if (slept) park(seat, seen);
    seat.note_processor();
    // Woken with work at hand: pass the call on before beginning, if there is enough for more.
    if (slept && left_.load(std::memory_order_relaxed) > 1) {
      clear_processor(number);
      ring(wakes_per_thread);
    }
    const std::uint64_t job = job_.load(std::memory_order_acquire);
    if (number_of(job) == seen) continue;
    finish(drain(job, number));
    seen = number_of(job);
  }
}

void Crew::park(Seat& seat, std::uint64_t seen) noexcept {
  parked_.fetch_add(1, std::memory_order_seq_cst);
  seat.lie_down();
  const bool came_up = number_of(job_.load(std::memory_order_seq_cst)) != seen || stop_.load(std::memory_order_seq_cst);
  if (came_up && seat.claim_wake()) {  // take the announcement back, unless somebody is waking this worker already
    parked_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  seat.sleep();
}

/// Has the workers that are awake on this thread's processor go elsewhere; `mine`: its own number.
void Crew::clear_processor(std::uint32_t mine) noexcept {
  if (!roomy_) return;
  const int here = thread_host::this_processor();
  if (here < 0) return;
  for (std::uint32_t i = 1; i < threads_; ++i) {
    if (i != mine && seats_[i].is_on(here)) seats_[i].send_off(here);
  }
}

/// Wakes up to `count` parked workers.
void Crew::ring(std::uint32_t count) noexcept {
  const int here = roomy_ ? thread_host::this_processor() : -1;
  for (Seat& seat : seats_) {
    if (count == 0 || parked_.load(std::memory_order_seq_cst) == 0) return;
    if (!seat.claim_wake()) continue;
    parked_.fetch_sub(1, std::memory_order_relaxed);
    if (here >= 0) seat.send_off(here);
    seat.call();
    --count;
  }
}

}  // namespace

struct ThreadPool::State {
  explicit State(int count) : threads(count), crew(std::make_unique<Crew>(count, fork_count.load()).release()) {}
  ~State() {
    Crew* last = crew.load();
    if (last->forks() == fork_count.load()) delete_crew(last);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static void delete_crew(Crew* crew) noexcept { std::unique_ptr<Crew>{crew}; }

  /// This process's crew. A child of fork leaks its parent's: joining its threads would wait for ever, and no lock in it can be trusted.
  Crew& current() {
    Crew* now = crew.load(std::memory_order_acquire);
    const std::uint32_t forks = fork_count.load(std::memory_order_relaxed);
    if (now->forks() == forks) [[likely]]
      return *now;
    auto fresh = std::make_unique<Crew>(threads, forks);
    if (crew.compare_exchange_strong(now, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
    return *now;  // another thread of the child was first
  }

  const int threads;
  std::atomic<Crew*> crew;
};

std::uint32_t forks() noexcept {
  [[maybe_unused]] static const bool watching = [] {
    thread_host::at_fork_in_child([] { fork_count.fetch_add(1, std::memory_order_relaxed); });
    return true;
  }();
  return fork_count.load(std::memory_order_relaxed);
}

ThreadPool::ThreadPool(int threads) {
  if (threads < 1) {
    throw Error(ErrorCode::invalid_argument, "A CPU pool of " + std::to_string(threads) +
                                                 " threads was asked for; give 1 or more (1 runs everything on the calling thread).");
  }
  static_cast<void>(forks());  // are counted from now on
  state_ = std::make_unique<State>(threads);
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const noexcept { return state_->threads; }

bool ThreadPool::idle() const noexcept {
  const Crew& crew = *state_->crew.load(std::memory_order_acquire);
  return crew.forks() != fork_count.load(std::memory_order_relaxed) || crew.idle();
}

bool ThreadPool::run(std::int64_t n, std::int64_t grain, ParallelBody body, void* context) {
  if (n <= 0) return false;
  grain = std::max({grain, std::int64_t{1}, (n - 1) / max_pieces + 1});
  Crew* const taken = n > grain && state_->threads > 1 ? &state_->current() : nullptr;
  if (taken == nullptr || !taken->acquire()) {  // too little, or nested, or concurrent: this thread does it all
    body(context, 0, n);
    return false;
  }
  Crew& crew = *taken;
  try {
    crew.start();
  } catch (...) {
    crew.release();
    throw;
  }
  crew.run(n, grain, static_cast<std::uint32_t>((n - 1) / grain + 1), body, context);
  crew.release();
  return true;
}

}  // namespace tack
