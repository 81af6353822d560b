// engine/control.h -- what a test sets and reads: the simulator's settings, fault injection, the trace, counters of calls and live objects,
// reports.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace sim {

// How queued work runs: when something waits for it, on a thread of its own with delays, or (launches alone) never.
enum class Order { lazy, delayed, record };

// Read once from the environment; docs/testing.md has the table.
struct Settings {
  int devices = 1;
  std::vector<int> architectures;  // one per device, the last one for the rest; empty: what the front takes for usual
  std::size_t memory = std::size_t{4} << 30;
  int driver_version = 13000;
  int compiler_version = 13000;
  Order order = Order::lazy;
  std::chrono::microseconds delay{200};
  long timeout = 60;      // seconds of a processor that a kernel may take; 0: as long as it likes
  bool check = true;      // every access of a kernel
  bool undefined = true;  // what C++ leaves undefined in arithmetic ends a kernel
  std::string fail, trace, report, cache, compiler, support;
  std::map<int, int> attributes;  // driver attributes by number that differ from the simulated device's own

  int architecture(int device, int usual) const;
};

const Settings& settings();

// One function of the stand-in library, counted.
struct CallSite {
  explicit CallSite(const char* name);
  const char* name;
  std::atomic<long> count{0};
};

// A function's name as a template argument, so that each has its own CallSite.
template <std::size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&given)[N]) {  // NOLINT(google-explicit-constructor): a literal is what is meant
    for (std::size_t i = 0; i < N; ++i) text[i] = given[i];
  }
};

// The counters of one stand-in library.
class Control {
 public:
  static Control& instance();

  // Counts a call. Answers the code that the test wants it to fail with, or 0.
  int enter(CallSite& site) {
    site.count.fetch_add(1, std::memory_order_relaxed);
    const long n = total_.fetch_add(1, std::memory_order_relaxed) + 1;
    return n == fail_at_.load(std::memory_order_relaxed) ? fail_now() : 0;
  }
  bool tracing() const { return tracing_; }
  void trace(std::string_view line);
  // The n-th call from now on (1: the next) fails with the code; 0 takes the wish back.
  void fail_at(long n, int code);

  // Says that the program did what the driver's rules forbid, on stderr and in the counters.
  void report(const std::string& text);

  // Objects alive, by name: all 0 where the program has freed what it made.
  std::atomic<long>& counter(std::string_view name);
  // What was done, by name.
  std::atomic<long>& tally(std::string_view name);

  // Everything as one JSON object.
  std::string json();
  // Writes it to the folder of TACK_SIM_REPORT, if set.
  void write_report();

 private:
  friend struct CallSite;
  Control();
  int fail_now();

  std::mutex mutex_;
  std::vector<const CallSite*> sites_;
  std::map<std::string, std::atomic<long>, std::less<>> counters_, tallies_;
  std::vector<std::string> reports_;
  std::atomic<long> total_{0}, fail_at_{0};
  int fail_code_ = 0;
  bool tracing_ = false;
  long injected_ = 0;
};

// The name of the library that this engine is part of, as libcuda; each front defines it.
extern const char* const library_name;

}  // namespace sim
